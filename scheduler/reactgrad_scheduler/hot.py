"""Plans that are run again and again: their calls are laid out side by side in memory.

What the calls of a long plan need lies wherever it was made, and takes a look into a slower cache each
time. That is mended for a few plans that run often, since it takes about as long as twenty runs save.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from reactgrad_scheduler.collector import CollectorPause

if TYPE_CHECKING:
    from reactgrad_scheduler.plan import Plan

# A function and its arguments.
Row = tuple[Callable[..., object], *tuple[Any, ...]]

# After so many runs in which no step had to be bound anew.
OFTEN: Final = 16
# So many plans at a time. Who had to make room for another one waits for as many runs more.
MOST: Final = 8
REST: Final = 128


class Calls(list[Callable[[], object]]):
    """Calls that can be laid out.

    Attributes
    ----------
    pays
        Whether there are so many that they do not stay in a fast cache as they are.
    """

    __slots__ = ("pays",)

    pays: bool

    def laid_out(self) -> list[Row]:
        """The same calls, what they need side by side in their order."""
        raise NotImplementedError


class Hot:
    """The plans whose calls are laid out; it keeps none of them."""

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: WeakSet[Plan] = WeakSet()

    def lay_out(self, plan: Plan, calls: Calls) -> list[Row]:
        """Lay out the calls by which a plan is about to be run."""
        with CollectorPause():
            rows = calls.laid_out()
        self._make_room(plan)
        plan.laid_out = rows
        return rows

    def _make_room(self, plan: Plan) -> None:
        """Of those that are laid out, the one that has run least since the last time goes."""
        others = [one for one in self._plans if one.laid_out is not None and one is not plan]
        if len(others) >= MOST:
            least = min(others, key=lambda one: one.heat)
            least.cool()
            least.heat = -REST
            self._plans.discard(least)
            for one in others:
                one.heat = min(one.heat, OFTEN)
        self._plans.add(plan)
