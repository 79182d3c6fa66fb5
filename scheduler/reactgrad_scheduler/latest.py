"""The plans that each read followed last, to be found by the marks of their own nodes.

The plan cache (see ``plan``) knows a read by the state of all marks: one lookup, and also what the read leaves
is known. But a part of the graph that has nothing to do with a read may be in another state each time, and a
leaf may be set by many who read different things. What was the plan of a read is so again wherever all of its
nodes are stale, or may be, and nothing else that its targets need: whoever looks at these marks need not find the
plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactgrad_scheduler.plan import Group, Plan

# Bounds: reads that came once, those that have plans, plans of each of them, and nodes in all plans together.
MAX_SEEN = 4096
MAX_READS = 65536
MAX_PLANS_A_READ = 8
MAX_NODES = 250_000


class Latest:
    """Plans by who was read, the latest first; of reads that were made more than once.

    A read that has plans is forgotten with its targets.
    """

    __slots__ = ("_nodes", "_plans", "_seen")

    def __init__(self) -> None:
        self._plans: dict[int | Group, list[Plan]] = {}  # the latest read last
        self._seen: set[int] = set()  # hashes of reads that came once
        self._nodes = 0

    def __iter__(self) -> Iterator[Plan]:
        return (plan for plans in self._plans.values() for plan in plans)

    def of(self, read: int | Group) -> Sequence[Plan]:
        """The plans that this read has followed."""
        return self._plans.get(read, ())

    def keep(self, read: int | Group, plan: Plan) -> bool:
        """This read has followed that plan; whether it may come again, and the plan is kept for that."""
        plans = self._plans.pop(read, None)
        if plans is None:
            if hash(read) not in self._seen:
                if len(self._seen) >= MAX_SEEN:
                    self._seen.clear()
                self._seen.add(hash(read))
                return False
            self._seen.remove(hash(read))
            if len(self._plans) >= MAX_READS:
                self.forget(next(iter(self._plans)))
            plans = []
        self._plans[read] = plans
        if plan in plans:
            plan.repeats = True
            plans.remove(plan)
        else:
            self._nodes += len(plan)
        plans.insert(0, plan)
        if len(plans) > MAX_PLANS_A_READ:
            self._let_go(plans.pop())
        while self._nodes > MAX_NODES and len(self._plans) > 1:
            self.forget(next(iter(self._plans)))
        return True

    def forget(self, read: int | Group) -> None:
        """Nobody will make this read again."""
        for plan in self._plans.pop(read, ()):
            self._let_go(plan)

    def _let_go(self, plan: Plan) -> None:
        self._nodes -= len(plan)
        plan.unbind()  # the journal may have it for long, and steps hold storage
