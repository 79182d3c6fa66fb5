"""A population of networks, each with observations of its own, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import ClassAttributes
from reactgrad.neat._phenotype import Phenotype, check_config
from reactgrad.neat._program import (
    FEED_FORWARD,
    RECURRENT,
    are_compiled,
    phenotype_of,
    play,
    program_of,
    read,
)


class Networks(ClassAttributes):
    """The networks of a population, each of which is given observations of its own.

    That is what control tasks need, where each network acts in an environment of its own. For a
    population on shared samples see ``evaluate``. Networks with memory keep a state for each genome
    and each sample. All of it is one call of a loop that was compiled with the package, without any
    graph; where there was no compiler, it is Python. Values have neat-python's bits.

    Parameters
    ----------
    genomes : iterable of neat.DefaultGenome, or of pairs of an id and a genome
        As neat-python gives them to a fitness function; or the dict of a population.
    config : neat.Config
    recurrent : bool, optional
        True for networks with memory; by default if the config has ``feed_forward = False``.

    Raises
    ------
    GenomeError
        If one is no network; see ``Network`` and ``RecurrentNetwork``.
    DTypeError
        If one is no genome.

    Examples
    --------
    >>> import neat as neat_python
    >>> import numpy as np
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(pop_size=3)
    >>> population = neat_python.Population(config, seed=1).population
    >>> networks = neat.Networks(population, config)
    >>> networks.activate([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]).shape  # a row for each network
    (3, 1)
    >>> networks.activate(np.ones((3, 5, 2))).shape  # five observations for each
    (3, 5, 1)
    """

    def __init__(self, genomes: Any, config: Any, recurrent: bool | None = None) -> None:
        check_config(config)
        if isinstance(genomes, Mapping):
            genomes = genomes.values()
        elif not isinstance(genomes, Iterable):
            several = "population.population" if hasattr(genomes, "population") else "[genome]"
            raise rg.DTypeError(
                f"Networks takes several genomes, not {genomes!r:.60}. Give all of them: {several}."
            )
        if recurrent is None:
            recurrent = not getattr(config.genome_config, "feed_forward", True)
        kind = RECURRENT if recurrent else FEED_FORWARD
        settings = config.genome_config
        self._begin(
            [read(kind, one[1] if type(one) is tuple else one, config) for one in genomes],
            (len(settings.input_keys), len(settings.output_keys)),
            kind,
        )

    def _begin(self, programs: list[Any], counts: tuple[int, int], kind: int) -> None:
        self._programs, self._kind = tuple(programs), kind
        self._counts = counts
        self._lock = RLock()
        # For each genome the slots of each of its samples; where they are not all compiled, a
        # program for each sample.
        self._state: Any = None
        self._samples: int | None = None
        self._is_compiled = are_compiled(programs)
        self._owns = any(one.owns for one in programs)
        slots = [one.slots for one in programs] if kind == RECURRENT else [0] * len(programs)
        self._ends = np.cumsum([0, *slots])

    def __len__(self) -> int:
        """Return the number of networks."""
        return len(self._programs)

    def __repr__(self) -> str:
        word = "recurrent" if self._kind == RECURRENT else "feed-forward"
        inputs, outputs = self._counts
        return f"<Networks: {len(self)} {word} ones, {inputs} inputs, {outputs} outputs>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the networks compute, and no state."""
        known = [phenotype_of(one) for one in self._programs]
        return _again, (known, self._counts, self._kind)

    def activate(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the outputs of each network for its own observations.

        Networks with memory make one step.

        Parameters
        ----------
        X : array_like of shape (genomes, inputs) or (genomes, samples, inputs)

        Returns
        -------
        array of shape (genomes, outputs) or (genomes, samples, outputs)

        Raises
        ------
        ShapeError
            If there is not a row for each network; or, with memory, if there are not as many
            samples as at the step before.
        DTypeError
            If something is no number.

        Examples
        --------
        See ``Networks``.
        """
        given = self._rows(X)
        count, samples, _ = given.shape
        out = np.empty((count, samples, self._counts[1]))
        with self._lock:
            if self._kind == RECURRENT and self._samples not in (None, samples):
                raise rg.ShapeError(
                    f"the networks are in the middle of {self._samples} sequences each and were given "
                    f"{samples} samples. Give one for each sequence, or begin anew with "
                    "networks.reset()."
                )
            if self._is_compiled:
                self._play(given, out)
            else:
                self._step(given, out)
            object.__setattr__(self, "_samples", samples)
        return out if np.ndim(X) == 3 else out[:, 0]

    def _play(self, given: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        state = self._state
        if state is None:
            state = np.zeros(self._ends[-1] * given.shape[1])
        elif self._owns:  # a function of the user may fail: then no network has made the step
            state = state.copy()
        play(self._programs, given, state, out, given.shape[1])
        object.__setattr__(self, "_state", state)

    def _step(self, given: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        samples = given.shape[1]
        state = self._state
        if self._kind == FEED_FORWARD:
            state = [[one] * samples for one in self._programs]
        elif state is None:
            known = [phenotype_of(one) for one in self._programs]
            state = [[program_of(RECURRENT, one) for _ in range(samples)] for one in known]
        former: list[tuple[Any, int, list[list[float]]]] = []
        if self._owns and self._state is not None:
            every = [one for several in state for one in several]
            former = [(one, one.active, [one.bank(0), one.bank(1)]) for one in every]
        try:
            for i, (several, rows) in enumerate(zip(state, given.tolist(), strict=True)):
                for k, (program, row) in enumerate(zip(several, rows, strict=True)):
                    out[i, k] = program.activate(row)
        except BaseException:  # then no network has made the step
            for program, active, banks in former:
                program.resume(active, banks)
            raise
        self._state = state if self._kind == RECURRENT else None

    def reset(self, which: Any = None) -> None:
        """Set networks with memory back to 0, all of them or some.

        Parameters
        ----------
        which : array_like of bool, shape (genomes,) or (genomes, samples), optional
            Those whose episode has ended.

        Raises
        ------
        ShapeError
            If there is not one for each network.

        Examples
        --------
        >>> import neat as neat_python
        >>> import numpy as np
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config(pop_size=2, feed_forward=False)
        >>> networks = neat.Networks(neat_python.Population(config, seed=1).population, config)
        >>> first = networks.activate(np.ones((2, 2)))
        >>> networks.reset([True, False])
        >>> networks.activate(np.ones((2, 2)))[0] == first[0]
        array([ True])
        """
        with self._lock:
            if which is None:
                self._state = self._samples = None
                return
            mask = np.asarray(which, dtype=bool)
            samples = self._samples
            if mask.shape not in ((len(self),), (len(self), samples)):
                raise rg.ShapeError(
                    f"networks.reset was given an array of shape {mask.shape}. Give a bool for each of the "
                    f"{len(self)} networks, or for each of their samples."
                )
            if self._state is None or samples is None or self._kind == FEED_FORWARD:
                return
            each = np.broadcast_to(mask[:, None] if mask.ndim == 1 else mask, (len(self), samples))
            for i in np.flatnonzero(each.any(axis=1)).tolist():
                if self._is_compiled:
                    first, last = self._ends[i] * samples, self._ends[i + 1] * samples
                    self._state[first:last].reshape(samples, -1)[each[i]] = 0.0
                else:
                    for k in np.flatnonzero(each[i]).tolist():
                        self._state[i][k].reset()

    def _rows(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the observations as an array of shape (genomes, samples, inputs)."""
        inputs, _ = self._counts
        shapes = f"({len(self)}, {inputs}) or ({len(self)}, samples, {inputs})"
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise rg.ShapeError(
                f"the observations that were given make no array: {error}. Give one of shape {shapes}."
            ) from None
        if array.dtype.kind not in "fiub":
            raise rg.DTypeError(
                f"the observations that were given are no real numbers but {array.dtype}. Give an array "
                f"of floats of shape {shapes}."
            )
        if array.ndim not in (2, 3) or array.shape[0] != len(self) or array.shape[-1] != inputs:
            raise rg.ShapeError(
                f"there are {len(self)} networks of {inputs} inputs, and they were given an array of shape "
                f"{array.shape}. Give one of shape {shapes}."
            )
        if array.ndim == 2:
            array = array[:, None]
        return np.ascontiguousarray(array, dtype=np.float64)


def _again(known: list[Phenotype], counts: tuple[int, int], kind: int) -> Networks:
    self = object.__new__(Networks)
    self._begin([program_of(kind, one) for one in known], counts, kind)
    return self
