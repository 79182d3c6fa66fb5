"""The fitness of genomes, computed here or by other processes: rows of arrays go there, and numbers come back."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.neat._genome import forget
from reactgrad.neat._rows import Pairs, from_bytes, to_bytes

Fitness = Callable[[Pairs, Any], Any]
Score = Callable[[Pairs, Any], None]

# How many pieces of a population each worker gets: one that is done early takes over from others.
_PIECES = 2
_END = 0


def fitness_of(fitness: Fitness, genomes: Pairs, config: Any) -> list[Any]:
    """Return what a fitness function gives to genomes, whether it returns numbers or sets them.

    Raises
    ------
    ShapeError
        If it returns an array that has not one number for each genome.
    """
    found = fitness(genomes, config)
    if found is None:
        return [genome.fitness for _, genome in genomes]
    values = np.asarray(found, dtype=float)
    if values.shape != (len(genomes),):
        raise rg.ShapeError(
            f"the fitness function returned an array of shape {values.shape} for {len(genomes)} "
            "genomes. Return one number for each, or None if it sets genome.fitness."
        )
    return values.tolist()


def here(fitness: Fitness) -> Score:
    """Return what sets the fitness of genomes in this process."""

    def score(genomes: Pairs, config: Any) -> None:
        _set(genomes, fitness_of(fitness, genomes, config))

    return score


def on_farm(farm: Any) -> Score:
    """Return what sets the fitness of genomes by a farm of ``Scorer``."""

    def score(genomes: Pairs, config: Any) -> None:
        with random_kept():
            shares = _shares(genomes, _PIECES * len(farm))
            found = farm.map([to_bytes(one) for one in shares], chunk=1)
            for share, values in zip(shares, found, strict=True):
                _set(share, values)

    return score


@contextmanager
def random_kept() -> Iterator[None]:
    """Give Python's random numbers back as they were: Dask draws some when it connects."""
    former = random.getstate()
    try:
        yield
    finally:
        random.setstate(former)


class Scorer:
    """A fitness function with its config, on its way to a worker. It takes genomes as bytes."""

    def __init__(self, fitness: Fitness, config: Any) -> None:
        self.fitness, self.config = fitness, config

    def __call__(self, data: Any) -> list[Any]:
        """Return the fitness of each genome."""
        forget(self.config.genome_config)
        return fitness_of(self.fitness, from_bytes(data), self.config)


class Ranks:
    """The first rank evolves; the others compute the fitness of their share, as often as it asks."""

    def __init__(self, group: Any, scorer: Scorer) -> None:
        self.group, self.scorer = group, scorer

    def score(self, genomes: Pairs, config: Any) -> None:
        """Set the fitness of genomes, on the first rank; all others are in ``serve``."""
        shares = [genomes[i :: self.group.size] for i in range(self.group.size)]
        pieces = [to_bytes(one) for one in shares]
        length = max(map(len, pieces))
        self._command(length)
        given = np.zeros((self.group.size, length), np.uint8)
        for row, piece in zip(given, pieces, strict=True):
            row[: len(piece)] = np.frombuffer(piece, np.uint8)
        self.group.move("scatter", given.reshape(-1), root=0)
        mine = fitness_of(self.scorer.fitness, shares[0], config)
        for share, values in zip(shares, self._gathered(mine), strict=True):
            _set(share, values)

    def serve(self) -> None:
        """Compute shares until the first rank ends."""
        while length := self._command(_END):
            given = np.zeros(self.group.size * length, np.uint8)
            self._gathered(self.scorer(self.group.move("scatter", given, root=0).data))

    def end(self) -> None:
        """Let the others go on behind ``serve``."""
        self._command(_END)

    def _command(self, length: int) -> int:
        """Return how long the pieces are that the first rank is about to send."""
        return int(self.group.move("broadcast", np.array([length]), root=0)[0])

    def _gathered(self, mine: list[Any]) -> list[list[Any]]:
        return self.group.all_gather_object(mine)


def _shares(genomes: Pairs, count: int) -> list[Pairs]:
    """Return genomes in at most so many parts, whose genomes lie far apart: neighbours are alike."""
    return [genomes[i::count] for i in range(min(count, len(genomes)))]


def _set(genomes: Pairs, values: Sequence[Any]) -> None:
    for (_, genome), value in zip(genomes, values, strict=True):
        genome.fitness = value


def warn_of_nan(genomes: Pairs) -> None:
    """Warn of genomes whose fitness is NaN, for which comparisons of neat-python's decide by chance."""
    lost = [key for key, genome in genomes if genome.fitness != genome.fitness]
    if lost:
        shown = ", ".join(map(str, lost[:5])) + (f" and {len(lost) - 5} more" if lost[5:] else "")
        warnings.warn(
            f"the fitness of {len(lost)} of {len(genomes)} genomes is NaN: {shown}. NaN is neither more nor less than "
            "another number, so such a genome may be taken for the best. Give it a low number instead, as "
            "np.nan_to_num(fitness, nan=-1e9).",
            rg.ReactgradWarning,
            stacklevel=6,
        )


def is_group(over: Any) -> bool:
    """Return whether this is a group of ranks, and no client of workers."""
    return isinstance(over, rg.distributed.Group)


def farm_of(function: Any, over: Any) -> Any:
    """Return a farm of a function on workers.

    Raises
    ------
    DTypeError
        If `over` is nothing to work on, or the function does not travel.
    """
    if not isinstance(over, int | rg.distributed.LocalHosts):
        _check_travels(function)
    with random_kept():
        return rg.distributed.FunctionFarm(function, over)


def _check_travels(function: Any) -> None:
    """Raise ``DTypeError`` with the reason if a function with its config cannot be pickled."""
    try:
        dumps = import_module("cloudpickle").dumps  # Dask brings it
    except ImportError:
        dumps = pickle.dumps
    try:
        dumps(function)
    except Exception as error:
        raise rg.DTypeError(
            f"the fitness function and the config do not travel to workers: {error}. Keep what cannot be "
            "pickled (files, locks, environments) out of them: make it inside the function."
        ) from error
