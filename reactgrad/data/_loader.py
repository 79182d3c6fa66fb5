"""Batches of a dataset, epoch after epoch, and the place in them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Never

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._habits import unknown_keyword
from reactgrad.data._batch_rng import batch_of
from reactgrad.data._collate import default_collate
from reactgrad.data._dataset import ArrayDataset, Subset, samples, taker
from reactgrad.data._errors import DataError
from reactgrad.data._samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    count,
)
from reactgrad.data._workers import prefetched
from reactgrad.scheduler import safe_repr, shortened

# Rows are taken for several batches at once, up to this many bytes: batches are then cut off at almost no cost.
# Below the size from which an allocator asks the system for memory, and gives it back, at the cost of page faults.
CHUNK_BYTES = 3 << 15
MOST_WORKERS = 1024
_ARGUMENTS = (
    *("dataset", "batch_size", "shuffle", "rng", "drop_last", "collate_fn", "workers"),
    *("sampler", "batch_sampler"),
)


class _Place:
    """The place of the newest iterator: its epoch, what the epoch was drawn from, and batches given so far."""

    __slots__ = ("batch", "epoch", "finished", "sampler", "seed")

    def __init__(self, epoch: int, seed: int, batch: int, sampler: Any) -> None:
        self.epoch = epoch
        self.seed = seed
        self.batch = batch
        self.sampler = sampler
        self.finished = False


class DataLoader(OwnAttributes):
    """Iterates over a dataset in batches; each iteration is one epoch.

    The order of an epoch, and what is drawn from ``batch_rng`` in it, depend on `rng` and the number of epochs before
    it. ``state_dict`` holds the place in the middle of an epoch; a loader that has loaded it goes on with the batch
    that would have been next.

    Parameters
    ----------
    dataset
        Anything with ``__len__`` and ``__getitem__``, or else with ``__iter__``, whose samples come in its order.
    batch_size : int, default 1
        ``None``: samples one by one, as they are.
    shuffle : bool, default False
        Give each epoch an order of its own.
    rng : int or numpy.random.Generator, default 0
        The source of all that is random.
    drop_last : bool, default False
        Leave out a last batch that is not full.
    collate_fn : callable, optional
        Makes a batch of a list of samples; default ``default_collate``. Without it, arrays are taken at once.
    workers : int, default 0
        Threads that load batches ahead. The batches are the same with any number.
    sampler, batch_sampler : iterable, optional
        Gives the indices of an epoch, one by one or in lists, in place of `shuffle` or of all that makes batches.

    Raises
    ------
    DataError
        If the arguments do not fit each other, or the dataset is none.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> dataset = rg.data.ArrayDataset(np.arange(10.0), np.arange(10))
    >>> loader = rg.data.DataLoader(dataset, batch_size=4, shuffle=True, rng=0)
    >>> len(loader), [len(x) for x, y in loader]
    (3, [4, 4, 2])

    Stop after the first batch of the second epoch, and go on elsewhere:

    >>> batches = iter(loader)
    >>> x, y = next(batches)
    >>> state = loader.state_dict()
    >>> other = rg.data.DataLoader(dataset, batch_size=4, shuffle=True, rng=0)
    >>> other.load_state_dict(state)
    >>> all((a[0] == b[0]).all() for a, b in zip(batches, other, strict=True))
    True
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        rng: Any = 0,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        workers: int = 0,
        *,
        sampler: Any = None,
        batch_sampler: Any = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise unknown_keyword("DataLoader", unknown, _ARGUMENTS)
        self.dataset = dataset
        self.batch_size = (
            None if batch_size is None else count("DataLoader", "batch_size", batch_size)
        )
        self.shuffle = bool(shuffle)
        self.drop_last = bool(drop_last)
        self.collate_fn = collate_fn
        self.workers = _whole(workers)
        self._generator = np.random.default_rng(rng)
        self._indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        self._check(sampler, batch_sampler)
        if self._indexed and sampler is None and batch_sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and sampler is not None and self.batch_size is not None:
            batch_sampler = BatchSampler(sampler, self.batch_size, self.drop_last)
        self.batch_sampler = batch_sampler
        self._place: _Place | None = None
        self._resumed: Mapping[str, Any] | None = None

    def _check(self, sampler: Any, batch_sampler: Any) -> None:
        dataset = self.dataset
        if not self._indexed:
            kind = type(dataset).__name__
            if not hasattr(dataset, "__iter__"):
                raise DataError(
                    f"DataLoader: a {kind} has neither __len__ and __getitem__ nor __iter__, and is no dataset. Give "
                    "rg.data.ArrayDataset(X, y) for arrays."
                )
            for name, given in (
                ("shuffle=True", self.shuffle),
                ("sampler=", sampler is not None),
                ("batch_sampler=", batch_sampler is not None),
                (f"workers={self.workers}", self.workers > 0),
            ):
                if given:
                    raise DataError(
                        f"DataLoader: {name} needs samples by their index, and a {kind} only iterates over them. Leave "
                        "it out, or give the dataset __len__ and __getitem__."
                    )
            return
        if sampler is not None and self.shuffle:
            raise DataError(
                "DataLoader: shuffle=True and sampler= both say the order. Leave one out: "
                "rg.data.RandomSampler(dataset) is the sampler that shuffles."
            )
        if batch_sampler is not None and (
            sampler is not None or self.shuffle or self.drop_last or self.batch_size != 1
        ):
            raise DataError(
                "DataLoader: batch_sampler= gives whole batches. Leave out batch_size, shuffle, drop_last and sampler."
            )
        if self.batch_size is None and self.drop_last:
            raise DataError(
                "DataLoader: drop_last=True drops batches, and batch_size=None has none."
            )

    # --- an epoch -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 0: the one under way, or else the next one."""
        if self._resumed is not None:
            return self._resumed["epoch"]
        place = self._place
        return 0 if place is None else place.epoch + place.finished

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if self.sampler is not None:
            return len(self.sampler)
        raise TypeError(
            f"a {type(self.dataset).__name__} only iterates, so its DataLoader has no length"
        )

    def __iter__(self) -> Iterator[Any]:
        source = self._source()
        resumed, self._resumed = self._resumed, None
        if resumed is not None and resumed["sampler"] is not None and source is not None:
            source.load_state_dict(resumed["sampler"])
        if resumed is not None and resumed["seed"] is not None:
            place = _Place(resumed["epoch"], resumed["seed"], resumed["batch"], resumed["sampler"])
        else:
            former = self._place
            epoch = former.epoch + 1 if former is not None else 0
            if resumed is not None:
                epoch = resumed["epoch"]
            place = _Place(epoch, int(self._generator.integers(1 << 62)), 0, _state_of(source))
        self._place = place
        return self._epoch(place)

    def _source(self) -> Any:
        """Return what says the order and has a state of its own, if anything does."""
        if not self._indexed:
            source = self.dataset
        else:
            source = self.batch_sampler if self.batch_sampler is not None else self.sampler
        return source if hasattr(source, "load_state_dict") else None

    def _epoch(self, place: _Place) -> Iterator[Any]:
        """Iterate over the batches of an epoch from its place on, and move the place along."""
        rng = np.random.default_rng(place.seed)
        rows = self._rows()
        if rows is not None and not self.workers and isinstance(self.sampler, Sampler):
            yield from self._cut(rows, self.sampler.epoch(rng), place)
        else:
            for batch in self._loaded(place, rng):
                # Before it is given: a state that is saved in the loop has this batch behind it.
                place.batch += 1
                yield batch
        place.finished = True

    def _rows(self) -> tuple[ArrayDataset, Any] | None:
        """Return the arrays whose rows are batches, and the indices into them, if the dataset is no more."""
        if self.collate_fn is not None or self.batch_size is None:
            return None
        dataset, indices = self.dataset, None
        while type(dataset) is Subset:
            indices = dataset.indices if indices is None else dataset.indices[indices]
            dataset = dataset.dataset
        whole = isinstance(dataset, ArrayDataset) and type(dataset).take is ArrayDataset.take
        return (dataset, indices) if whole else None

    def _cut(self, rows: tuple[ArrayDataset, Any], order: Any, place: _Place) -> Iterator[Any]:
        """Iterate over batches of arrays, taken in chunks of several batches."""
        (dataset, indices), size = rows, self.batch_size
        assert size is not None
        if indices is not None:
            order = indices[order]
        stop = len(order) - len(order) % size if self.drop_last else len(order)
        row = sum(one.nbytes for one in dataset.arrays) // max(len(dataset), 1)
        chunk = max(CHUNK_BYTES // max(row * size, 1), 1) * size
        plain = dataset.transform is None and dataset.target_transform is None
        for begin in range(place.batch * size, stop, chunk):
            arrays = dataset.gather(order[begin : min(begin + chunk, stop)])
            end = min(chunk, stop - begin)
            if plain:
                full = end - end % size
                for batch in zip(*[_batches(one[:full], size) for one in arrays], strict=True):
                    place.batch += 1
                    yield batch
                if full < end:
                    place.batch += 1
                    yield tuple([one[full:] for one in arrays])
                continue
            for at in range(0, end, size):
                number = (begin + at) // size
                with _noted(place, number, None), batch_of(place.seed, number):
                    batch = dataset.finish(tuple([one[at : at + size] for one in arrays]))
                place.batch += 1
                yield batch

    def _loaded(self, place: _Place, rng: np.random.Generator) -> Iterator[Any]:
        """Iterate over batches that are loaded one by one, by threads if there are any."""
        tasks = itertools.islice(enumerate(self._tasks(rng)), place.batch, None)
        fetch = self._fetch()

        def load(number: int, task: Any) -> Any:
            with _noted(place, number, task), batch_of(place.seed, number):
                return fetch(task)

        if self.workers:
            yield from prefetched(tasks, load, self.workers)
            return
        for number, task in tasks:
            yield load(number, task)

    def _tasks(self, rng: np.random.Generator) -> Iterator[Any]:
        """Iterate over the indices of batches; over the samples themselves where there are no indices."""
        if not self._indexed:
            if self.batch_size is None:
                yield from self.dataset
            else:
                yield from BatchSampler(self.dataset, self.batch_size, self.drop_last).batches()
        elif isinstance(self.batch_sampler, BatchSampler):
            yield from self.batch_sampler.batches(rng)
        elif self.batch_sampler is not None:
            yield from self.batch_sampler
        elif isinstance(self.sampler, Sampler):
            yield from self.sampler.epoch(rng).tolist()
        else:
            assert self.sampler is not None
            yield from self.sampler

    def _fetch(self) -> Callable[[Any], Any]:
        """Return the function from a task to a batch."""
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_size is None and self.batch_sampler is None:
            same = collate if collate is not None else _itself
            return same if not self._indexed else lambda index: same(dataset[index])
        made = collate if collate is not None else default_collate
        if not self._indexed:
            return made
        whole = taker(dataset)
        if whole is not None and collate is None:
            return lambda indices: whole(np.asarray(indices))
        return lambda indices: made(samples(dataset, indices))

    # --- its place ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the place of the newest iterator, and the states of what is random.

        The batch that was given last counts as used.
        """
        if self._resumed is not None:
            return dict(self._resumed)
        place = self._place
        state: dict[str, Any] = {"epoch": self.epoch, "batch": 0, "seed": None}
        state["sampler"] = _state_of(self._source())
        if place is not None and not place.finished:
            state.update(batch=place.batch, seed=place.seed, sampler=place.sampler)
        state["generator"] = self._generator.bit_generator.state
        state["settings"] = self._settings()
        return state

    def _settings(self) -> dict[str, Any]:
        """Return the settings that a place has a meaning for."""
        return {
            "samples": len(self.dataset) if hasattr(self.dataset, "__len__") else None,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def check_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raise if ``load_state_dict`` would refuse this state."""
        names = ("epoch", "batch", "seed", "sampler", "generator", "settings")
        if not isinstance(state, Mapping):
            raise DataError(
                f"loader.load_state_dict takes what loader.state_dict() returned, not {type(state).__name__}."
            )
        missing = [one for one in names if one not in state]
        if missing:
            raise DataError(
                f"loader.load_state_dict: {', '.join(missing)} missing. Give what loader.state_dict() returned."
            )
        for name, here in self._settings().items():
            there = state["settings"].get(name)
            if here != there:
                raise DataError(
                    f"loader.load_state_dict: the state is that of a loader with {name}={there}, and this one has "
                    f"{name}={here}, so the place would be another one. Make the loader with {name}={there}."
                )
        for name in ("epoch", "batch"):
            if not isinstance(state[name], int) or state[name] < 0:
                raise DataError(
                    f"loader.load_state_dict: {name} is {state[name]!r:.40}, and has to be a number of 0 or more."
                )
        try:
            most = len(self)
        except TypeError:  # it only iterates
            most = state["batch"]
        if state["batch"] > most:
            raise DataError(
                f"loader.load_state_dict: {state['batch']} batches were given, and an epoch has {most}."
            )
        kind = self._generator.bit_generator.state["bit_generator"]
        saved = state["generator"]
        there = saved.get("bit_generator") if isinstance(saved, Mapping) else saved
        if there != kind:
            raise DataError(
                f"loader.load_state_dict: the state is that of a {there!s:.40}, and this "
                f"loader draws from a {kind}. Make the loader with a generator of that kind as rng=."
            )
        try:
            type(self._generator.bit_generator)(0).state = state["generator"]
        except Exception as error:
            raise DataError(
                f"loader.load_state_dict: the state of the generator is damaged: {type(error).__name__}: {error}"
            ) from error

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned: the next iteration goes on from there.

        Raises
        ------
        DataError
            If it is the state of a loader with other settings or another length; nothing has changed then.
        """
        self.check_state_dict(state)
        self._generator.bit_generator.state = state["generator"]
        self._resumed = dict(state)

    def __repr__(self) -> str:
        settings = [f"batch_size={self.batch_size}"]
        settings += [name for name in ("shuffle", "drop_last") if getattr(self, name)]
        return f"DataLoader({self.dataset!r:.80}, {', '.join(settings)})"


class _noted:
    """Adds to an exception which batch was being loaded. A class: cheaper than a generator for each batch."""

    __slots__ = ("number", "place", "task")

    def __init__(self, place: _Place, number: int, task: Any) -> None:
        self.place = place
        self.number = number
        self.task = task

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception):
            error.add_note(
                f"While the DataLoader loaded batch {self.number} of epoch {self.place.epoch}"
                f"{_shown(self.task)}."
            )


def _shown(task: Any) -> str:
    """Return the samples of a task, for a note."""
    if isinstance(task, np.ndarray):
        task = task.tolist()
    if isinstance(task, list) and all(isinstance(one, int | str) for one in task):
        return f", samples {shortened(str(task), 200)}"
    return f", sample {task}" if isinstance(task, int) else ""


def _batches(rows: np.ndarray[Any, Any], size: int) -> Iterable[np.ndarray[Any, Any]]:
    """Return what iterates over full batches of rows, without a slice of Python's for each."""
    return rows.reshape(len(rows) // size, size, *rows.shape[1:])


def _itself(sample: Any) -> Any:
    return sample


def _state_of(source: Any) -> Any:
    return None if source is None else source.state_dict()


def _whole(workers: Any) -> int:
    try:
        number = operator.index(workers)
    except TypeError:
        number = -1
    if not 0 <= number <= MOST_WORKERS:
        raise DataError(
            f"DataLoader: workers={safe_repr(workers):.60} is no number of threads. Give 0, or a few."
        )
    return number
