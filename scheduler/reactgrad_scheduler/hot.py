"""Hot plans: the calls of plans that run often are laid out side by side in memory.

The data of the calls of a long plan lies wherever it was made, so each call waits for a slower cache. A
copy in the order of the plan corrects that. It takes about the time that twenty runs save, so it is
made for a few plans only.

A host may have a better form for calls that run often, ``Calls.compiled``; those are not laid out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

from reactgrad_scheduler.collector import CollectorPause
from reactgrad_scheduler.plan import Plan

# A function and its arguments.
Row = tuple[Callable[..., object], *tuple[Any, ...]]

# A plan is laid out after this many runs in which no step had to be bound anew.
OFTEN: Final = 16
# The number of plans at a time. A plan that made room for another one waits for ``REST`` more runs.
MOST: Final = 8
REST: Final = 128


class Calls(list[Callable[[], object]]):
    """Calls that can be laid out.

    Attributes
    ----------
    pays
        True if there are so many that they do not stay in a fast cache as they are.
    patience
        After so many more runs they are compiled; 0 for those that are not.
    """

    __slots__ = ("patience", "pays")

    pays: bool
    patience: int

    def compiled(self, slots: list[int]) -> tuple[list[Callable[[], object]], list[int]]:
        """Return fewer calls that do the same, and the slot of each one's first step.

        ``slots`` has one for each step of the plan.
        """
        raise NotImplementedError

    def laid_out(self) -> list[Row]:
        """Return the same calls, with their data side by side in their order."""
        raise NotImplementedError


class Hot:
    """The plans whose calls are laid out, referred to weakly."""

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: WeakSet[Plan] = WeakSet()

    def lay_out(self, plan: Plan, calls: Calls) -> list[Row]:
        """Lay out the calls of a plan that is about to run, and return them."""
        with CollectorPause():
            rows = calls.laid_out()
        self._make_room(plan)
        plan.laid_out = rows
        return rows

    def _make_room(self, plan: Plan) -> None:
        """If too many plans are laid out, cool the one that has run least since the last time."""
        others = [one for one in self._plans if one.laid_out is not None and one is not plan]
        if len(others) >= MOST:
            least = min(others, key=lambda one: one.heat)
            least.cool()
            least.heat = -REST
            self._plans.discard(least)
            for one in others:
                one.heat = min(one.heat, OFTEN)
        self._plans.add(plan)
