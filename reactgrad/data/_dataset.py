"""Datasets: a length, and a sample for each number below it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad.data._errors import DataError

Array = np.ndarray[Any, Any]
Transform = Callable[[Any], Any]


class Dataset(OwnAttributes):
    """A base for datasets: define ``__len__`` and ``__getitem__``.

    A loader takes anything that has both. A subclass that also defines ``take(indices)``, which returns a whole batch
    for an array of indices, is not asked for samples one by one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> class Squares(rg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return index, index**2
    >>> for x, y in rg.data.DataLoader(Squares(), batch_size=2):
    ...     print(x, y)
    [0 1] [0 1]
    [2 3] [4 9]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} needs a method __len__.")

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class ArrayDataset(Dataset):
    """The rows of arrays of one length: sample `i` is ``(X[i], y[i], ...)``.

    Batches are taken from the arrays at once, not row by row.

    Parameters
    ----------
    *arrays : array_like
        Arrays with first axes of one length. They are not copied; batches are.
    transform : callable, optional
        Applied to what is taken of the first array, a whole batch or one row. Let it work along the last axes.
    target_transform : callable, optional
        Likewise of the last of several arrays.

    Raises
    ------
    DataError
        If there is no array, one without an axis, or lengths that differ.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> dataset = rg.data.ArrayDataset(np.eye(3), [0, 1, 2])
    >>> len(dataset), dataset[1]
    (3, (array([0., 1., 0.]), np.int64(1)))
    """

    def __init__(
        self,
        *arrays: Any,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        if not arrays:
            raise DataError("ArrayDataset() has no arrays. Write ArrayDataset(X, y).")
        self.arrays: tuple[Array, ...] = tuple([_rows(one, at) for at, one in enumerate(arrays)])
        lengths = [len(one) for one in self.arrays]
        if len(set(lengths)) > 1:
            raise DataError(
                f"ArrayDataset: the arrays have the lengths {', '.join(map(str, lengths))}, and a sample has a row of "
                "each. Give arrays whose first axes have one length."
            )
        if target_transform is not None and len(arrays) < 2:
            raise DataError(
                "ArrayDataset: target_transform is for the last of several arrays, and there is one. "
                "Write transform=."
            )
        self.transform = transform
        self.target_transform = target_transform
        self._length = lengths[0]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return self.finish(tuple([one[index] for one in self.arrays]))

    def take(self, indices: Any) -> tuple[Any, ...]:
        """Return the batch of the samples with these indices."""
        return self.finish(self.gather(np.asarray(indices)))

    def gather(self, indices: Array) -> tuple[Array, ...]:
        """Return copies of rows, before any transform."""
        return tuple([one.take(indices, axis=0) for one in self.arrays])

    def finish(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return rows after the transforms."""
        if self.transform is None and self.target_transform is None:
            return rows
        made = list(rows)
        if self.transform is not None:
            made[0] = self.transform(made[0])
        if self.target_transform is not None:
            made[-1] = self.target_transform(made[-1])
        return tuple(made)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{one.dtype}{list(one.shape)}" for one in self.arrays)
        return f"{type(self).__name__}({shapes})"


def _rows(one: Any, at: int) -> Array:
    try:
        array = np.asarray(one)
    except Exception as error:
        raise DataError(
            f"ArrayDataset: argument {at} is a {type(one).__name__}, and no array ({error}). Give an array, or y.value "
            "for a node y."
        ) from error
    if array.ndim == 0:
        raise DataError(
            f"ArrayDataset: argument {at} is the number {array}, and a dataset has rows. Give an array with at least "
            "one axis."
        )
    return array


class Subset(Dataset):
    """The samples of a dataset with these indices, in this order.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.data.Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset = dataset
        self.indices: Array = np.asarray(list(indices) if isinstance(indices, range) else indices)
        if self.indices.size == 0:
            self.indices = self.indices.astype(np.intp).reshape(-1)
        if self.indices.ndim != 1 or self.indices.dtype.kind not in "iu":
            raise DataError(
                f"Subset: the indices are {self.indices.dtype}{list(self.indices.shape)}, and have to be integers "
                "along one axis. Write np.flatnonzero(mask) for a mask."
            )
        n = len(dataset)
        wrong = self.indices[(self.indices >= n) | (self.indices < 0)]
        if len(wrong):
            raise DataError(
                f"Subset: there is no sample {wrong[0]} in a dataset of {n}. Give indices from 0 to {n - 1}."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        """Return the sample with this index; a slice gives the batch of its samples."""
        if isinstance(index, slice):
            return self.take(index)
        return self.dataset[int(self.indices[index])]

    def take(self, indices: Any) -> Any:
        """Return the batch of the samples with these indices of the subset."""
        return take(self.dataset, self.indices[indices])


class ConcatDataset(Dataset):
    """The samples of several datasets, one behind the other.

    Examples
    --------
    >>> import reactgrad as rg
    >>> both = rg.data.ConcatDataset(["ab", "cde"])
    >>> len(both), both[1], both[2], both[-1]
    (5, 'b', 'c', 'e')
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = tuple(datasets)
        if not self.datasets:
            raise DataError("ConcatDataset([]) has no datasets. Give at least one.")
        self.ends: Array = np.cumsum([len(one) for one in self.datasets])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: Any) -> Any:
        index, n = operator.index(index), len(self)
        if not -n <= index < n:
            raise IndexError(f"there is no sample {index} in a dataset of {n}")
        index %= n
        which = int(np.searchsorted(self.ends, index, side="right"))
        return self.datasets[which][index - self._start(which)]

    def _start(self, which: int) -> int:
        return int(self.ends[which - 1]) if which else 0

    def take(self, indices: Any) -> Any:
        """Return the batch of the samples with these indices."""
        indices = np.asarray(indices)
        which = np.searchsorted(self.ends, indices, side="right")
        parts, places = [], []
        for one in np.unique(which):
            at = np.flatnonzero(which == one)
            parts.append(take(self.datasets[one], indices[at] - self._start(int(one))))
            places.append(at)
        return _merged(parts, np.argsort(np.concatenate(places)))


def _merged(parts: list[Any], order: Array) -> Any:
    """Return batches as one, with its samples in this order."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {key: _merged([one[key] for one in parts], order) for key in first}
    if isinstance(first, list) and first and isinstance(first[0], str | bytes):
        flat = [item for one in parts for item in one]
        return [flat[at] for at in order]
    if isinstance(first, tuple | list):
        columns = [_merged(list(column), order) for column in zip(*parts, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*columns)
        return tuple(columns) if isinstance(first, tuple) else columns
    shapes = [np.shape(one)[1:] for one in parts]
    if len(set(shapes)) > 1:
        raise DataError(
            f"ConcatDataset: samples have the shapes {', '.join(map(str, shapes))}, and are no array. Give datasets "
            "whose samples have one shape, or collate_fn=."
        )
    return np.concatenate(parts)[order]


def take(dataset: Any, indices: Any) -> Any:
    """Return a batch of a dataset, at once where it can give one."""
    whole = taker(dataset)
    if whole is not None:
        return whole(indices)
    from reactgrad.data._collate import default_collate

    return default_collate(samples(dataset, indices))


def taker(dataset: Any) -> Callable[[Any], Any] | None:
    """Return the method that takes whole batches. Only of a ``Dataset``: elsewhere ``take`` has other meanings."""
    if isinstance(dataset, np.ndarray):
        return lambda indices: dataset.take(indices, axis=0)
    if isinstance(dataset, Subset | ConcatDataset):
        below = [dataset.dataset] if isinstance(dataset, Subset) else dataset.datasets
        return dataset.take if all(taker(one) is not None for one in below) else None
    return getattr(dataset, "take", None) if isinstance(dataset, Dataset) else None


def samples(dataset: Any, indices: Any) -> list[Any]:
    """Return the samples with these indices, which are keys of other kinds where a sampler gives such."""
    numbers = indices.tolist() if isinstance(indices, np.ndarray) else list(indices)
    if hasattr(dataset, "__getitems__"):
        found = dataset.__getitems__(numbers)
        if len(found) != len(numbers):
            raise DataError(
                f"{type(dataset).__name__}.__getitems__ returned {len(found)} samples for {len(numbers)} indices. "
                "Let it return a sample for each."
            )
        return list(found)
    return [dataset[one] for one in numbers]


def random_split(dataset: Any, lengths: Sequence[float], rng: Any = 0) -> list[Subset]:
    """Return parts of a dataset, each a random subset that shares no sample with the others.

    Parameters
    ----------
    dataset
    lengths : sequence
        Numbers of samples that add up to the length of the dataset, or fractions that add up to 1.
    rng : int or numpy.random.Generator, default 0

    Raises
    ------
    DataError
        If the lengths do not add up.

    Examples
    --------
    >>> import reactgrad as rg
    >>> train, test = rg.data.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    n = len(dataset)
    sizes = list(lengths)
    if sizes and all(0 <= one <= 1 for one in sizes) and abs(sum(sizes) - 1) < 1e-6:
        shares = [int(n * one) for one in sizes]
        for at in range(n - sum(shares)):  # as PyTorch: one more for each of the first parts
            shares[at % len(shares)] += 1
        sizes = shares
    if sum(sizes) != n or any(one != int(one) or one < 0 for one in sizes):
        raise DataError(
            f"random_split: the lengths {lengths} do not add up to the {n} samples of the dataset. Give whole numbers "
            "that do, or fractions that add up to 1."
        )
    order = np.random.default_rng(rng).permutation(n)
    ends = np.cumsum(sizes).astype(int)
    return [Subset(dataset, part) for part in np.split(order, ends[:-1])]
