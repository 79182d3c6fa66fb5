"""Steps that are several calls of NumPy, and plans that make such calls one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad.scheduler import Calls, Row

Call = Callable[[], object]

# Between these numbers of calls it pays to lay them out in order (`laid_out`): the objects of the calls, some
# 300 bytes each, no longer fit a second-level cache. With more calls the arrays do not fit it, either.
LONG, LONGEST = 3000, 30000


class InTurn:
    """A step that makes several calls one after the other. A plan may make them itself instead."""

    __slots__ = ("calls", "code")

    def __init__(self, *calls: Call) -> None:
        self.calls = calls
        self.code: bytes | None  # instructions of the register machine; set when first needed

    def __call__(self) -> None:
        for call in self.calls:
            call()


class Joined:
    """A step that joins arrays along an axis.

    Attributes
    ----------
    values, out
        The arrays, all with the axes of the result, and the result.
    code : bytes or None
        Instructions of the register machine; set when first needed.
    """

    __slots__ = ("_axis", "_concatenate", "code", "out", "values")

    def __init__(
        self, concatenate: Callable[..., Any], values: Sequence[Any], out: Any, axis: int
    ) -> None:
        self._concatenate, self._axis = concatenate, axis
        self.values, self.out = values, out
        self.code: bytes | None

    def __call__(self) -> None:
        self._concatenate(self.values, self._axis, self.out)

    def copies(self) -> Iterator[tuple[Any, Any]]:
        """Yield each part of the result with the array that is copied there, empty ones left out."""
        before = (slice(None),) * (self._axis % self.out.ndim)
        end = 0
        for value in self.values:
            begin, end = end, end + value.shape[len(before)]
            if value.size:
                yield self.out[(*before, slice(begin, end))], value


class Unrolled(Calls):
    """The calls of a plan's steps in a row, where each ``InTurn`` is replaced by its calls.

    A loop over these saves one Python call for each such step.

    Attributes
    ----------
    steps
        The steps as they were given.
    """

    __slots__ = ("_begins", "steps")

    def __init__(self, steps: list[Call]) -> None:
        self.steps = steps
        self._begins: list[int] = []  # where the calls of each step begin
        for step in steps:
            self._begins.append(len(self))
            self.extend(_calls(step))
        self.pays = LONG <= len(self) <= LONGEST
        self.patience = 0

    def slots(self, slots: list[int]) -> list[int]:
        """Return for each call the slot of its step; `slots` has one slot for each step."""
        found: list[int] = []
        for slot, step in zip(slots, self.steps, strict=True):
            found.extend([slot] * len(_calls(step)))
        return found

    def follow(self, places: Collection[int]) -> bool:
        """Take over the new steps at `places` of ``steps``. Return whether that was possible.

        It is not if a new step has another number of calls than the one before.
        """
        for at in places:
            begin = self._begins[at]
            end = self._begins[at + 1] if at + 1 < len(self._begins) else len(self)
            calls = _calls(self.steps[at])
            if len(calls) != end - begin:
                return False
            self[begin:end] = calls
        return True

    def laid_out(self) -> list[Row]:
        """Return each call as a row of a function and its arguments, with new views for all arrays.

        Objects that are made one after the other lie side by side in memory, so a loop over the rows
        reads memory in order.
        """
        views: dict[int, Any] = {}
        rows: list[Row] = []
        for step in self:
            if type(step) is not partial or step.keywords:
                rows.append((step,))
                continue
            arguments: list[Any] = []
            for argument in step.args:
                if type(argument) is np.ndarray:
                    view = views.get(id(argument))
                    if view is None:
                        view = views[id(argument)] = argument.view()
                    argument = view
                arguments.append(argument)
            rows.append((step.func, *arguments))
        return rows


def _calls(step: Call) -> tuple[Call, ...]:
    return step.calls if type(step) is InTurn else (step,)


def unrolled(slots: list[int], steps: list[Call]) -> tuple[list[Call], list[int]]:
    """Return the calls to make in place of these steps, and for each call the slot of its step."""
    if len(steps) < LONG and InTurn not in set(map(type, steps)):
        return steps, slots
    calls = Unrolled(steps)
    return calls, calls.slots(slots)
