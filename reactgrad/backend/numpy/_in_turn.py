"""Kernels that are several calls, and these calls one by one in a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from reactgrad.scheduler import Calls, Row

Call = Callable[[], object]

# So many calls, with what they need some 300 bytes each, do not fit a second cache; of more the arrays do not, either.
LONG, LONGEST = 3000, 30000


class InTurn:
    """Calls that are made one after the other; a step like any other, that can be looked into."""

    __slots__ = ("calls", "code")

    def __init__(self, *calls: Call) -> None:
        self.calls = calls
        self.code: bytes | None  # see ``_instructions``; set when it is asked for

    def __call__(self) -> None:
        for call in self.calls:
            call()


class Unrolled(Calls):
    """The steps of a plan, with the calls of those that are several in their places.

    A loop over these is faster by what a Python function costs around each such step.

    Attributes
    ----------
    steps
        What it was made of.
    """

    __slots__ = ("_begins", "steps")

    def __init__(self, steps: list[Call]) -> None:
        self.steps = steps
        self._begins: list[int] = []  # where the calls of each step begin
        for step in steps:
            self._begins.append(len(self))
            self.extend(_calls(step))
        self.pays = LONG <= len(self) <= LONGEST

    def slots(self, slots: list[int]) -> list[int]:
        """For each call the one of `slots`, which has one for each step, that its step has."""
        found: list[int] = []
        for slot, step in zip(slots, self.steps, strict=True):
            found.extend([slot] * len(_calls(step)))
        return found

    def follow(self, places: Collection[int]) -> bool:
        """Some of the steps are others now; whether each has as many calls as the one before."""
        for at in places:
            begin = self._begins[at]
            end = self._begins[at + 1] if at + 1 < len(self._begins) else len(self)
            calls = _calls(self.steps[at])
            if len(calls) != end - begin:
                return False
            self[begin:end] = calls
        return True

    def laid_out(self) -> list[Row]:
        """Each call as a row, all arrays as new views: objects that are made in turn lie side by side."""
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
    """What to call in place of these steps, and for each call the slot of its step."""
    if len(steps) < LONG and InTurn not in set(map(type, steps)):
        return steps, slots
    calls = Unrolled(steps)
    return calls, calls.slots(slots)
