"""Archives of a search, by behaviour: novelty search, and quality-diversity by MAP-Elites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes

Array = np.ndarray[Any, Any]


class NoveltyArchive(OwnAttributes):
    """Behaviours that were new when they were seen (Lehman and Stanley, 2011).

    The novelty of a behaviour is its mean distance to the nearest ones, among those of its generation and
    of the archive. It takes the place of fitness.

    Parameters
    ----------
    neighbours : int
        How many nearest ones.
    added : int
        How many of each generation join the archive: the most novel ones.
    capacity : int, optional
        The oldest ones leave an archive of more than these.

    Examples
    --------
    >>> from reactgrad import neat
    >>> archive = neat.NoveltyArchive(neighbours=2, added=1)
    >>> archive.score([[0.0], [0.1], [5.0]])
    array([2.55, 2.5 , 4.95])
    >>> archive.score([[5.0], [2.0]])  # 5.0 is known by now
    array([1.5, 3. ])
    >>> len(archive)
    2
    """

    def __init__(self, neighbours: int = 15, added: int = 3, capacity: int | None = None) -> None:
        for name, value, least in (
            ("neighbours", neighbours, 1),
            ("added", added, 0),
            ("capacity", 1 if capacity is None else capacity, 1),
        ):
            if type(value) is not int or value < least:
                raise rg.ParameterError(
                    f"NoveltyArchive({name}={value!r:.60}): it is a number, {least} or more."
                )
        self.neighbours, self.added, self.capacity = neighbours, added, capacity
        self.behaviours: Array = np.empty((0, 0))

    def __len__(self) -> int:
        """Return the number of behaviours."""
        return len(self.behaviours)

    def __repr__(self) -> str:
        return f"<NoveltyArchive: {len(self)} behaviours>"

    def score(self, behaviours: Any, *, add: bool = True) -> Array:
        """Return the novelty of each behaviour of a generation; the most novel ones join the archive.

        Parameters
        ----------
        behaviours : array_like of shape (genomes, numbers)
        add : bool
            False to leave the archive as it is.

        Returns
        -------
        array of shape (genomes,)

        Raises
        ------
        ShapeError
            If behaviours have another number of numbers than before.
        DTypeError
            If they are no finite numbers.
        """
        new = _rows(behaviours, "behaviours")
        if len(self) and new.shape[1] != self.behaviours.shape[1]:
            raise rg.ShapeError(
                f"the archive holds behaviours of {self.behaviours.shape[1]} numbers and was given some of "
                f"{new.shape[1]}. Give the same each time."
            )
        known = np.concatenate([new, self.behaviours]) if len(self) else new
        nearest = min(self.neighbours, len(known) - 1)
        scores = np.zeros(len(new))
        if nearest:
            for i, one in enumerate(new):
                distances = np.sqrt(np.square(known - one).sum(axis=1))
                distances[i] = np.inf
                scores[i] = np.partition(distances, nearest - 1)[:nearest].mean()
        if add and self.added:
            best = np.sort(np.argsort(-scores, kind="stable")[: self.added])
            grown = np.concatenate([self.behaviours, new[best]]) if len(self) else new[best]
            self.behaviours = grown if self.capacity is None else grown[-self.capacity :]
        return scores


class MapElites(OwnAttributes):
    """The best solution for each kind of behaviour: a grid of elites (Mouret and Clune, 2015).

    Parameters
    ----------
    bounds : sequence of pairs
        The least and the greatest value of each number of a behaviour; what lies outside counts as on
        the edge.
    cells : int or sequence of int
        Into how many parts each is divided.

    Attributes
    ----------
    elites : dict
        For each cell, a tuple of places, the fitness, the behaviour and the solution.

    Examples
    --------
    >>> from reactgrad import neat
    >>> elites = neat.MapElites([(0.0, 1.0), (0.0, 1.0)], cells=4)
    >>> elites.add([[0.1, 0.1], [0.2, 0.2], [0.9, 0.1]], [1.0, 3.0, 2.0], ["a", "b", "c"])
    array([ True,  True,  True])
    >>> elites.add([[0.1, 0.1]], [2.0], ["d"])  # "b" is better
    array([False])
    >>> len(elites), elites.coverage, elites.qd_score, elites.best.solution
    (2, 0.125, 5.0, 'b')
    """

    def __init__(self, bounds: Any, cells: int | Sequence[int] = 10) -> None:
        self.bounds = _rows(bounds, "bounds")
        if self.bounds.shape[1] != 2 or not (self.bounds[:, 0] < self.bounds[:, 1]).all():
            raise rg.ShapeError(
                "MapElites(bounds): give the least and the greatest value of each number of a behaviour, "
                "[(0.0, 1.0), (-5.0, 5.0)]."
            )
        count = len(self.bounds)
        self.cells = (cells,) * count if isinstance(cells, int) else tuple(cells)
        if len(self.cells) != count or not all(type(one) is int and one > 0 for one in self.cells):
            raise rg.ShapeError(
                f"MapElites(cells={cells!r:.60}): a number of parts, or one for each of the {count} numbers."
            )
        self.elites: dict[tuple[int, ...], Elite] = {}

    def __len__(self) -> int:
        """Return the number of cells with an elite."""
        return len(self.elites)

    def __iter__(self) -> Iterator[Elite]:
        """Iterate over the elites."""
        return iter(self.elites.values())

    def __repr__(self) -> str:
        return f"<MapElites: {len(self)} of {np.prod(self.cells)} cells>"

    @property
    def coverage(self) -> float:
        """The share of cells with an elite."""
        return len(self) / float(np.prod(self.cells))

    @property
    def qd_score(self) -> float:
        """The sum of the fitnesses of all elites."""
        return float(sum(one.fitness for one in self))

    @property
    def best(self) -> Elite:
        """The elite with the greatest fitness.

        Raises
        ------
        UnsetError
            If there is none yet.
        """
        if not self.elites:
            raise rg.UnsetError("elites.best: there is none yet. Give some to elites.add first.")
        return max(self, key=lambda one: one.fitness)

    def place(self, behaviour: Any) -> tuple[int, ...]:
        """Return the cell of a behaviour."""
        return self._places(_rows([behaviour], "behaviours"))[0]

    def add(self, behaviours: Any, fitnesses: Any, solutions: Sequence[Any]) -> Array:
        """Let solutions take the cells of their behaviours from less fit ones.

        Parameters
        ----------
        behaviours : array_like of shape (solutions, numbers)
        fitnesses : array_like of shape (solutions,)
        solutions : sequence
            Anything, such as copies of genomes.

        Returns
        -------
        array of bool
            True for each that was fitter than what its cell held.

        Raises
        ------
        ShapeError
            If there is not one of each.
        DTypeError
            If something is no finite number.
        """
        given = _rows(behaviours, "behaviours")
        values = _rows([fitnesses], "fitnesses")[0]
        if not len(given) == len(values) == len(solutions) or given.shape[1] != len(self.cells):
            raise rg.ShapeError(
                f"elites.add was given behaviours of shape {given.shape}, {len(values)} fitnesses and "
                f"{len(solutions)} solutions. Give {len(self.cells)} numbers and a fitness for each solution."
            )
        taken = np.zeros(len(given), bool)
        for i, place in enumerate(self._places(given)):
            held = self.elites.get(place)
            if held is None or values[i] > held.fitness:
                self.elites[place] = Elite(float(values[i]), given[i].copy(), solutions[i])
                taken[i] = True
        return taken

    def sample(self, count: int, rng: Any = None) -> list[Any]:
        """Return solutions of elites that are drawn at random, to be mutated.

        Parameters
        ----------
        count : int
        rng : int or numpy.random.Generator, optional
        """
        if not self.elites:
            raise rg.UnsetError("elites.sample: there is none yet. Give some to elites.add first.")
        held = list(self)
        drawn = np.random.default_rng(rng).integers(len(held), size=count)
        return [held[i].solution for i in drawn]

    def _places(self, given: Array) -> list[tuple[int, ...]]:
        low, high = self.bounds.T
        counts = np.array(self.cells)
        found = np.floor((given - low) / (high - low) * counts)
        return [tuple(one) for one in np.clip(found, 0, counts - 1).astype(int).tolist()]


class Elite:
    """The best solution of a cell.

    Attributes
    ----------
    fitness : float
    behaviour : array
    solution : object
    """

    __slots__ = ("behaviour", "fitness", "solution")

    def __init__(self, fitness: float, behaviour: Array, solution: Any) -> None:
        self.fitness, self.behaviour, self.solution = fitness, behaviour, solution

    def __repr__(self) -> str:
        return f"<Elite: fitness {self.fitness:.4g}, {self.solution!r:.40}>"


def _rows(values: Any, what: str) -> Array:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise rg.ParameterError(f"{what} are arrays of numbers: {error}.") from None
    if found.ndim != 2:
        raise rg.ShapeError(
            f"{what} were given as an array of shape {np.shape(values)}. Give a row of numbers for each."
        )
    if not np.isfinite(found).all():
        raise rg.ParameterError(f"{what} are finite numbers, and some are NaN or infinite.")
    return found
