"""The params of one group and dtype, side by side: their values, gradients and moments in one array each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from reactgrad._errors import GraphError, ShapeError, UnsetError
from reactgrad.change._set_side_by_side import Written
from reactgrad.scheduler import Leaves
from reactgrad.values._columns import MISSING
from reactgrad.values._side_by_side import SideBySide

# Elements that are computed at a time. So many numbers, a dozen times, fit into the second cache.
CHUNK = 1 << 14


class Arrays(NamedTuple):
    """The arrays that a rule works on: parts of flat arrays of equal length.

    Attributes
    ----------
    p, g : numpy.ndarray
        Params and gradients, for reading.
    old : tuple of numpy.ndarray
        The moments before the step, for reading.
    new : tuple of numpy.ndarray
        The moments after it, to be written.
    out : numpy.ndarray
        The params after it, to be written.
    a, b : numpy.ndarray
        Scratch memory.
    """

    p: Any
    g: Any
    old: tuple[Any, ...]
    new: tuple[Any, ...]
    out: Any
    a: Any
    b: Any


class Run(NamedTuple):
    """Params next to each other that take a step together, since they took as many before."""

    first: int
    last: int
    start: int
    stop: int
    step: int


class Bucket:
    """The params of one group and dtype.

    A step writes new values and new moments beside the present ones, and then exchanges them: an error
    in between has changed nothing.

    Attributes
    ----------
    params : list of Var
        The params.
    names : list of str
        What their state is saved by.
    moments : list of str
        The names of what the optimiser remembers for each element.
    steps : numpy.ndarray
        How many steps each param has taken.
    now : tuple of numpy.ndarray
        The moments, each in one array.
    gradient : numpy.ndarray
        The gradients at the last step.
    """

    def __init__(self, params: Sequence[Any], names: Sequence[str], moments: Sequence[str]) -> None:
        self.params, self.names, self.moments = list(params), list(names), list(moments)
        self.graph: Any = params[0]._graph
        host = self.graph._host
        self.slots = tuple([one._slot for one in params])
        self._specs = [host.specs[slot] for slot in self.slots]
        for param, slot in zip(params, self.slots, strict=True):
            if host.data[slot] is MISSING:
                raise UnsetError(
                    f"optimiser: {param.label!r} has no value yet, so there is nothing to train. Write "
                    f"{param.label}.set(value) first."
                )
        sizes = [spec.nbytes // spec.dtype.itemsize for spec in self._specs]
        self.bounds = [0, *np.cumsum(sizes).tolist()]
        size, dtype = self.bounds[-1], self._specs[0].dtype
        self.block: SideBySide | None = None
        self.gradient = np.zeros(size, dtype)
        self.steps = np.zeros(len(self.slots), np.int64)
        self.now = tuple([np.zeros(size, dtype) for _ in moments])
        self._next = tuple([np.zeros(size, dtype) for _ in moments])
        self._values = np.empty(size, dtype)
        scratch = min(size, CHUNK)
        self._a, self._b = np.empty(scratch, dtype), np.empty(scratch, dtype)
        self._all = Leaves(dict.fromkeys(self.slots))
        self._known: tuple[Any, list[Run], Leaves] | None = None

    # --- what takes part in a step --------------------------------------------------------------

    def lie(self) -> SideBySide:
        """Return the params' memory, laid side by side if they lie elsewhere by now."""
        host, block = self.graph._host, self.block
        if block is not None and block.lies_in(host):
            return block
        for param, slot, found in zip(self.params, self.slots, self._specs, strict=True):
            if param._graph is not self.graph:
                raise GraphError(
                    "optimiser: one of its params was removed from the graph. Make a new optimiser of those that "
                    "are left; load_state_dict(old.state_dict(), strict=False) keeps their moments."
                )
            now = host.specs[slot]
            if now is None or now.shape != found.shape or now.dtype != found.dtype:
                raise ShapeError(
                    f"optimiser: {param.label!r} was {found!r} and is {now!r} now, which its moments do not fit. "
                    "Make a new optimiser after params change their shape."
                )
        self.block = SideBySide(host, self.slots)
        return self.block

    def gather(self) -> Sequence[int]:
        """Copy the gradients side by side. Return the numbers of the params that have one and are not frozen."""
        host = self.graph._host
        grads, frozen = host.grads, host.frozen
        found: list[Any] = [grads.get(slot) for slot in self.slots]
        if frozen:
            found = [None if s in frozen else one for s, one in zip(self.slots, found, strict=True)]
        if None not in map(_none, found):
            np.concatenate(found, axis=None, out=self.gradient)
            return range(len(found))
        which = [i for i, one in enumerate(found) if one is not None]
        for i in which:
            self.gradient[self.bounds[i] : self.bounds[i + 1]] = np.ravel(found[i])
        return which

    def _runs(self, which: Sequence[int]) -> tuple[list[Run], Leaves]:
        steps, bounds = self.steps, self.bounds
        if len(which) == len(self.slots) and (steps == steps[0]).all():
            return [Run(0, len(which), 0, bounds[-1], int(steps[0]) + 1)], self._all
        runs: list[Run] = []
        for (_, step), part in groupby(enumerate(which), lambda at: (at[1] - at[0], steps[at[1]])):
            numbers = [i for _, i in part]
            first, last = numbers[0], numbers[-1] + 1
            runs.append(Run(first, last, bounds[first], bounds[last], int(step) + 1))
        leaves = self._all
        if len(which) < len(self.slots):
            leaves = Leaves(dict.fromkeys([self.slots[i] for i in which]))
        return runs, leaves

    # --- a step ----------------------------------------------------------------------------------

    def compute(self, which: Sequence[int], rule: Callable[[int, Arrays], None]) -> Written:
        """Compute the new values and moments of these params beside the present ones.

        Parameters
        ----------
        rule : callable
            ``rule(step, arrays)`` writes ``arrays.out`` and ``arrays.new``; the first step is 1.
        """
        block = self.lie()
        p, g, out = block.array, self.gradient, self._values
        runs, leaves = self._runs(which)
        if leaves is not self._all:
            np.copyto(out, p)
            for new, old in zip(self._next, self.now, strict=True):
                np.copyto(new, old)
        for run in runs:
            for start in range(run.start, run.stop, CHUNK):
                stop = min(start + CHUNK, run.stop)
                rule(
                    run.step,
                    Arrays(
                        p[start:stop],
                        g[start:stop],
                        tuple([one[start:stop] for one in self.now]),
                        tuple([one[start:stop] for one in self._next]),
                        out[start:stop],
                        self._a[: stop - start],
                        self._b[: stop - start],
                    ),
                )
        self._stepped = self.steps.copy()
        for run in runs:
            self._stepped[run.first : run.last] += 1
        spans = [(run.start, run.stop) for run in runs]
        self._after = (self._next, self._stepped)
        return Written(block, out, which, leaves, spans)

    def accept(self) -> None:
        """Make the new moments the present ones; again, it does nothing."""
        new, steps = self._after
        if self.now is not new:
            self._next, self.now = self.now, new
        self.steps = steps

    def gave_memory(self) -> None:
        """Take other memory for new values, since the params lie in the former one by now."""
        if self.block is not None and self.block.array is self._values:
            self._values = np.empty_like(self._values)

    # --- state of one param -----------------------------------------------------------------------

    def state(self, i: int) -> dict[str, Any]:
        """Return copies of the moments of one param, and the number of its steps."""
        start, stop = self.bounds[i], self.bounds[i + 1]
        shape = self._specs[i].shape
        found: dict[str, Any] = {"step": int(self.steps[i])}
        for name, one in zip(self.moments, self.now, strict=True):
            found[name] = one[start:stop].reshape(shape).copy()
        return found

    def read_state(self, i: int, state: Any) -> tuple[int, list[Any]]:
        """Return what ``put_state`` takes, checked.

        Raises
        ------
        ShapeError
            If a moment has another shape than the param.
        """
        shape, arrays = self._specs[i].shape, []
        for name in self.moments:
            array = np.asarray(state[name])
            if array.shape != shape:
                raise ShapeError(
                    f"load_state_dict: {name} of {self.names[i]!r} has shape {array.shape}, and the param has "
                    f"{shape}. It was saved for another model."
                )
            arrays.append(array)
        return int(state["step"]), arrays

    def put_states(self, states: dict[int, tuple[int, list[Any]]]) -> None:
        """Replace the moments of some params, of all of these or none."""
        now = tuple([one.copy() for one in self.now])
        steps = self.steps.copy()
        for i, (step, arrays) in states.items():
            steps[i] = step
            for one, array in zip(now, arrays, strict=True):
                one[self.bounds[i] : self.bounds[i + 1]] = array.reshape(-1)
        self.now, self.steps = now, steps


def _none(one: Any) -> Any:
    return None if one is None else 0
