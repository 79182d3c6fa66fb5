"""The params of one group and dtype, side by side: their values, gradients and moments in one array each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import index
from typing import Any

import numpy as np

from reactgrad._errors import GraphError, LoadError, ShapeError, UnsetError
from reactgrad.change._set_side_by_side import Written
from reactgrad.core._gradients import GradientBlock
from reactgrad.optim._arrays import Arrays, RememberingRule, Rule
from reactgrad.optim._compiled import CompiledRule
from reactgrad.values._columns import MISSING
from reactgrad.values._side_by_side import SideBySide

# Elements that are computed at a time. So many numbers, a dozen times, fit into the second cache.
CHUNK = 1 << 14

# A param of so many elements is a bucket of its own: to copy it costs more than to bind steps again.
LARGE = 1 << 16


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
    numbers : list of str
        The names of what it remembers for each param; see ``RememberingRule``.
    alone : bool
        True for a single large param. It works on the gradient itself, and exchanges its memory.
    leaves : Leaves
        The params, as the scheduler takes them where all are set together.
    step : int or None
        The number of steps that all params have made; ``None`` if these, or what is remembered of them, differ.
    now : tuple of numpy.ndarray
        The moments, each in one array.
    gradient : numpy.ndarray
        The gradients at the last step.
    """

    def __init__(
        self,
        params: Sequence[Any],
        names: Sequence[str],
        moments: Sequence[str],
        numbers: Sequence[str] = (),
    ) -> None:
        self.params, self.names, self.moments = list(params), list(names), list(moments)
        self.numbers = list(numbers)
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
        self.alone = len(params) == 1 and size >= LARGE
        # `backward` writes the gradients side by side, until another optimiser asks for them.
        shapes = [spec.shape for spec in self._specs]
        self._gathered = None if self.alone else GradientBlock(self.slots, shapes, dtype)
        if self._gathered is not None:
            host.gradients = host.gradients.apart()
            host.gradient_blocks.add(self._gathered)
        self.gradient = self._own_gradient = np.zeros(0, dtype)
        self.step: int | None = 0
        self._steps = np.zeros(len(self.slots), np.int64)
        self._left: tuple[float, ...] = (1.0,) * len(self.numbers)  # by all params, if they agree
        self._left_by: list[tuple[float, ...]] = []  # by each, if they do not
        self.now = tuple([np.zeros(size, dtype) for _ in moments])
        self._next = tuple([np.zeros(size, dtype) for _ in moments])
        self._values = np.empty(size, dtype)
        scratch = min(size, CHUNK)
        self._a, self._b = np.empty(scratch, dtype), np.empty(scratch, dtype)
        self.leaves = self.graph._scheduler.leaves(self.slots)
        self._everyone, self._span = range(len(self.slots)), ((0, size),)
        self._whole: dict[int, Arrays] = {}
        self._width = dtype.itemsize if dtype.char in "fd" else 0  # compiled rules do no others
        self._after: Any = None

    @property
    def steps(self) -> Any:
        """The number of steps of each param, as an array."""
        return self._steps if self.step is None else np.full(len(self.slots), self.step)

    def _remembered(self) -> list[tuple[float, ...]]:
        """Return the numbers that the last step of each param has left."""
        return self._left_by if self.step is None else [self._left] * len(self.slots)

    # --- what takes part in a step --------------------------------------------------------------

    @property
    def is_gathered(self) -> bool:
        """False while another optimiser has the gradients of its params in a block of its own."""
        return self.alone or self._gathered in self.graph._host.gradient_blocks

    @property
    def block_of_gradients(self) -> GradientBlock | None:
        """The block in which ``backward`` leaves the gradients; ``None`` for a large param alone."""
        return self._gathered

    @property
    def gathered(self) -> GradientBlock | None:
        """The block in which ``backward`` has left the gradients; ``None`` if it has not."""
        gathered = self._gathered
        return gathered if gathered in self.graph._host.gradients.blocks else None

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
        """Bring the gradients side by side. Return the numbers of the params that have one and are not frozen."""
        host = self.graph._host
        gradients, frozen = host.gradients, host.frozen
        array = gradients.blocks.get(self._gathered)
        if array is not None:  # `backward` has done it; frozen params are in no such block
            self.gradient = array
            return self._everyone
        self.gradient = self._own_gradient
        grads = gradients.alone if self.is_gathered else host.grads
        found: list[Any] = list(map(grads.get, self.slots))
        if frozen:
            found = [None if s in frozen else one for s, one in zip(self.slots, found, strict=True)]
        if self.alone:
            if found[0] is None:
                return ()
            self.gradient = np.ascontiguousarray(found[0], self._values.dtype).reshape(-1)
            return self._everyone
        if type(None) not in set(map(type, found)):
            if grads is gradients.alone:
                host.gradients = gradients.gathered(self._gathered, found)
                self.gradient = host.gradients.blocks[self._gathered]
                return self._everyone
            self._make_own()
            np.concatenate(found, axis=None, out=self.gradient)
            return self._everyone
        which = [i for i, one in enumerate(found) if one is not None]
        self._make_own()
        for i in which:
            self.gradient[self.bounds[i] : self.bounds[i + 1]] = np.ravel(found[i])
        return which

    def _make_own(self) -> None:
        """Make the array for gradients that lie in arrays of their own."""
        if not len(self._own_gradient):
            self._own_gradient = np.empty(self.bounds[-1], self._values.dtype)
        self.gradient = self._own_gradient

    def _parts(self, p: Any, start: int, stop: int, left: tuple[float, ...]) -> Arrays:
        """Return the arrays of a step between two places."""
        parts = Arrays(
            p[start:stop],
            self.gradient[start:stop],
            tuple([one[start:stop] for one in self.now]),
            tuple([one[start:stop] for one in self._next]),
            self._values[start:stop],
            self._a[: stop - start],
            self._b[: stop - start],
        )
        parts.numbers = left
        return parts

    # --- a step ----------------------------------------------------------------------------------

    def compute(self, which: Sequence[int], rule: Rule) -> Written:
        """Compute the new values and moments of these params beside the present ones.

        Parameters
        ----------
        rule : callable
            ``rule(step, arrays)`` writes ``arrays.out`` and ``arrays.new``; the first step is 1.
        """
        block = self.lie()
        if which is not self._everyone or self.step is None:
            return self._compute_some(block, which, rule)
        step, size, left = self.step + 1, self.bounds[-1], self._left
        in_one_pass = self._width and type(rule) is CompiledRule
        if in_one_pass or size <= CHUNK:
            # Values, moments and spare moments change places, so these are the same two again and again.
            known = self._whole.get(id(self.now))
            if (
                known is None
                or known.p is not block.array
                or known.g is not self.gradient
                or known.out is not self._values
            ):
                known = Arrays(
                    block.array, self.gradient, self.now, self._next, self._values, self._a, self._b
                )
                if not self.alone:  # such a large gradient must not live on
                    self._whole[id(self.now)] = known
            if in_one_pass:
                rule.in_one_pass(step, known.row(), self._width, size)
            else:
                known.numbers = left
                rule(step, known)
        else:
            for start in range(0, size, CHUNK):
                rule(step, self._parts(block.array, start, min(start + CHUNK, size), left))
        left = rule.after(step, left) if type(rule) is RememberingRule else left
        self._after = (self._next, step, None, left)
        return Written(block, self._values, which, self.leaves, self._span, self.alone)

    def _compute_some(self, block: SideBySide, which: Sequence[int], rule: Rule) -> Written:
        """Do what ``compute`` does where some params are left out, or have made fewer steps."""
        p, steps, bounds, left = block.array, self.steps, self.bounds, self._remembered()
        np.copyto(self._values, p)
        for new, old in zip(self._next, self.now, strict=True):
            np.copyto(new, old)
        spans: list[tuple[int, int]] = []
        after, left_after = steps.copy(), [*left]
        after[list(which)] += 1
        for (_, step, former), part in groupby(
            enumerate(which), lambda at: (at[1] - at[0], int(steps[at[1]]), left[at[1]])
        ):
            numbers = [i for _, i in part]
            first, last = bounds[numbers[0]], bounds[numbers[-1] + 1]
            for start in range(first, last, CHUNK):
                rule(step + 1, self._parts(p, start, min(start + CHUNK, last), former))
            if type(rule) is RememberingRule:
                now = rule.after(step + 1, former)
                left_after[numbers[0] : numbers[-1] + 1] = [now] * len(numbers)
            spans.append((first, last))
        leaves = self.graph._scheduler.leaves([self.slots[i] for i in which])
        self._after = (self._next, *_shared(after, left_after))
        return Written(block, self._values, which, leaves, spans, False)

    def accept(self) -> None:
        """Make the new moments the present ones; again, it does nothing."""
        new, *counts = self._after
        if self.now is not new:
            self._next, self.now = self.now, new
        self._count(*counts)

    def _count(self, step: int | None, steps: Any, left: Any) -> None:
        """Take over how far the params are; see ``_shared``."""
        self.step = step
        if step is None:
            self._steps, self._left_by = steps, left
        else:
            self._left = left

    def settle(self, left: Any) -> None:
        """Take other memory for new values if the params have moved into the former one.

        Parameters
        ----------
        left : numpy.ndarray or None
            The memory that they have left, if nobody sees it.
        """
        if self.block is not None and self.block.array is self._values:
            self._values = np.empty_like(self._values) if left is None else left

    def memento(self) -> Callable[[], None]:
        """Return a function that gives the moments their present values."""
        now = tuple([one.copy() for one in self.now])
        counts = self.step, self._steps, self._left_by if self.step is None else self._left

        def back() -> None:
            self.now = now
            self._count(*counts)
            self._whole.clear()

        return back

    # --- state of one param -----------------------------------------------------------------------

    def state(self, i: int) -> dict[str, Any]:
        """Return copies of what is remembered of one param, and the number of its steps."""
        start, stop = self.bounds[i], self.bounds[i + 1]
        shape = self._specs[i].shape
        found: dict[str, Any] = {"step": int(self.steps[i])}
        for name, one in zip(self.moments, self.now, strict=True):
            found[name] = one[start:stop].reshape(shape).copy()
        return found | dict(zip(self.numbers, self._remembered()[i], strict=True))

    def fits(self, i: int, state: dict[str, Any]) -> bool:
        """Return whether the moments of a state have the shape of a param."""
        return all(state[name].shape == self._specs[i].shape for name in self.moments)

    def read_state(self, i: int, state: Any) -> tuple[int, list[Any], tuple[float, ...]]:
        """Return what ``put_states`` takes, checked.

        Raises
        ------
        ShapeError
            If a moment has another shape than the param.
        """
        shape, arrays = self._specs[i].shape, []
        for name in self.moments:
            array = np.asarray(state[name])
            if array.dtype.kind not in "fiu":
                raise LoadError(
                    f"load_state_dict: {name} of {self.names[i]!r} is an array of {array.dtype}, and moments are "
                    "real numbers."
                )
            if array.shape != shape:
                raise ShapeError(
                    f"load_state_dict: {name} of {self.names[i]!r} has shape {array.shape}, and the param has "
                    f"{shape}. It was saved for another model."
                )
            arrays.append(array)
        step = index(state["step"])
        if step < 0:
            raise LoadError(f"load_state_dict: {self.names[i]!r} has made {step} steps.")
        numbers = tuple([float(state[name]) for name in self.numbers])
        if not np.isfinite(numbers).all():
            raise LoadError(
                f"load_state_dict: {', '.join(self.numbers)} of {self.names[i]!r} are {numbers}, and not finite."
            )
        return step, arrays, numbers

    def put_states(self, states: dict[int, tuple[int, list[Any], tuple[float, ...]]]) -> None:
        """Replace what is remembered of some params, of all of these or none."""
        now = tuple([one.copy() for one in self.now])
        steps, left = self.steps.copy(), [*self._remembered()]
        for i, (step, arrays, numbers) in states.items():
            steps[i], left[i] = step, numbers
            for one, array in zip(now, arrays, strict=True):
                one[self.bounds[i] : self.bounds[i + 1]] = array.reshape(-1)
        self.now = now
        self._count(*_shared(steps, left))
        self._whole.clear()


def _shared(steps: Any, left: list[tuple[float, ...]]) -> tuple[int | None, Any, Any]:
    """Return the step of all and what it has left, or ``None`` with both for each param where they differ."""
    if (steps == steps[0]).all() and left.count(left[0]) == len(left):
        return int(steps[0]), None, left[0]
    return None, steps, left


def carried(state: dict[str, Any], places: Sequence[int | None]) -> dict[str, Any]:
    """Return the state of a param whose elements come from these places; see ``Optimizer.resize``."""
    known = np.array([place is not None for place in places], bool)
    former = [place for place in places if place is not None]
    found = dict(state)
    for name, old in state.items():
        if isinstance(old, np.ndarray):
            found[name] = np.zeros(len(places), old.dtype)
            found[name][known] = old[former]
    return found
