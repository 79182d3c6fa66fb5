"""Samplers: which samples an epoch has, in which order.

A sampler is anything that can be iterated for indices. Those here also return the whole order of an epoch as an array;
what is random in it is drawn from the generator of the loader, unless a sampler has its own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._calls import check_names
from reactgrad.data._errors import DataError
from reactgrad.scheduler import safe_repr

Order = np.ndarray[Any, np.dtype[np.int64]]


class Sampler(OwnAttributes):
    """A base for samplers whose epoch is one array of indices: define ``order`` and ``__len__``.

    Parameters
    ----------
    rng : int or numpy.random.Generator, optional
        A generator of its own. Without one, a loader gives its generator, and a plain iteration draws without a seed.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_names(cls, cls.__qualname__, args, kwargs)
        return super().__new__(cls)

    def __init__(self, rng: Any = None) -> None:
        self.rng = None if rng is None else np.random.default_rng(rng)

    def order(self, rng: np.random.Generator) -> Order:
        """Return the indices of the next epoch."""
        raise NotImplementedError(f"{type(self).__name__} needs a method order(rng).")

    def epoch(self, rng: np.random.Generator | None = None) -> Order:
        """Return the indices of the next epoch, drawn from its own generator if it has one."""
        own = self.rng if self.rng is not None else rng
        return self.order(np.random.default_rng() if own is None else own)

    def __iter__(self) -> Iterator[int]:
        return iter(self.epoch().tolist())

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} needs a method __len__.")

    def state_dict(self) -> dict[str, Any]:
        """Return the state of its own generator."""
        return {"generator": None if self.rng is None else self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        if self.rng is not None and state["generator"] is not None:
            self.rng.bit_generator.state = state["generator"]


class SequentialSampler(Sampler):
    """All samples in their order.

    Examples
    --------
    >>> import reactgrad as rg
    >>> list(rg.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        super().__init__()
        self.data_source = data_source

    def order(self, rng: np.random.Generator) -> Order:
        return np.arange(len(self.data_source))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All samples in a random order, or any number of them drawn with replacement.

    Examples
    --------
    >>> import reactgrad as rg
    >>> sorted(rg.data.RandomSampler("abcd", rng=0))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        rng: Any = None,
    ) -> None:
        super().__init__(rng)
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = (
            None if num_samples is None else count("RandomSampler", "num_samples", num_samples)
        )

    def order(self, rng: np.random.Generator) -> Order:
        n, wanted = len(self.data_source), len(self)
        if self.replacement:
            return rng.integers(n, size=wanted) if n else np.arange(0)
        if wanted <= n:
            return rng.permutation(n)[:wanted]
        if n == 0:
            raise DataError(f"RandomSampler: {wanted} samples of a dataset that has none.")
        rounds = [
            rng.permutation(n) for _ in range(-(-wanted // n))
        ]  # as PyTorch: again from the start
        return np.concatenate(rounds)[:wanted]

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class WeightedRandomSampler(Sampler):
    """Samples drawn by weights, which need not add up to 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> list(rg.data.WeightedRandomSampler([0.0, 3.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, rng: Any = None
    ) -> None:
        super().__init__(rng)
        self.weights = np.asarray(weights, np.float64)
        total = self.weights.sum()
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or not 0 < total < np.inf:
            raise DataError(
                "WeightedRandomSampler: the weights are to be numbers along one axis that are finite and not negative, "
                f"with one above 0, and are {np.array2string(self.weights, threshold=6)}."
            )
        self.num_samples = count("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement = replacement
        possible = int((self.weights > 0).sum())
        if not replacement and self.num_samples > possible:
            raise DataError(
                f"WeightedRandomSampler: {self.num_samples} samples without replacement, and {possible} have a weight "
                "above 0. Ask for fewer, or write replacement=True."
            )

    def order(self, rng: np.random.Generator) -> Order:
        shares = self.weights / self.weights.sum()
        return rng.choice(len(shares), self.num_samples, replace=self.replacement, p=shares)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices, in a random order.

    Examples
    --------
    >>> import reactgrad as rg
    >>> sorted(rg.data.SubsetRandomSampler([7, 3]))
    [3, 7]
    """

    def __init__(self, indices: Any, rng: Any = None) -> None:
        super().__init__(rng)
        self.indices = np.asarray(indices, np.int64)

    def order(self, rng: np.random.Generator) -> Order:
        return rng.permutation(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(OwnAttributes):
    """The indices of a sampler in lists of `batch_size`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> list(rg.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = count("BatchSampler", "batch_size", batch_size)
        self.drop_last = drop_last

    def batches(self, rng: np.random.Generator | None = None) -> Iterator[Any]:
        """Iterate over the batches of the next epoch, as arrays where the sampler gives one."""
        size = self.batch_size
        if isinstance(self.sampler, Sampler):
            order = self.sampler.epoch(rng)
            stop = len(order) - len(order) % size if self.drop_last else len(order)
            for begin in range(0, stop, size):
                yield order[begin : begin + size]
            return
        batch: list[Any] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self.batches():
            yield batch.tolist() if isinstance(batch, np.ndarray) else batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the sampler, if it has one."""
        return {
            "sampler": self.sampler.state_dict() if hasattr(self.sampler, "state_dict") else None
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        if state["sampler"] is not None and hasattr(self.sampler, "load_state_dict"):
            self.sampler.load_state_dict(state["sampler"])


def count(owner: str, what: str, number: Any) -> int:
    """Return `number` if it is a positive whole number, else raise."""
    try:
        whole = 0 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        whole = 0
    if whole <= 0:
        raise DataError(
            f"{owner}: {what}={safe_repr(number):.60} is no number of samples. Give 1 or more."
        )
    return whole
