"""The last plans of each read, found again by the marks of their own nodes.

The plan cache (see ``plan``) finds a plan by the state of all marks: one look-up, which also gives the
marks that the read leaves. But an unrelated part of the graph may be in another state each time, and a
leaf may be set by programs that read different nodes. A former plan of a read is right again whenever all
of its nodes are stale, or may be, and all else that its targets need is clean. Checking these marks costs
less than finding the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reactgrad_scheduler.plan import Group, Plan

# Bounds: reads that came once, reads with plans, plans of a read, and nodes in all plans together.
MAX_SEEN = 4096
MAX_READS = 65536
MAX_PLANS_A_READ = 8
MAX_NODES = 250_000


class Latest:
    """The latest plans of each read that was made more than once, the last one first.

    A read is forgotten when one of its targets is gone.
    """

    __slots__ = ("_nodes", "_plans", "_seen")

    def __init__(self) -> None:
        self._plans: dict[int | Group, list[Plan]] = {}  # the latest read last
        self._seen: set[int] = set()  # hashes of reads that came once
        self._nodes = 0

    def __iter__(self) -> Iterator[Plan]:
        return (plan for plans in self._plans.values() for plan in plans)

    def of(self, read: int | Group) -> Sequence[Plan]:
        """Return the latest plans of this read, the last one first."""
        return self._plans.get(read, ())

    def keep(self, read: int | Group, plan: Plan) -> bool:
        """Note that a read has followed a plan. Return whether the plan is kept for the next time."""
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
        """Forget the plans of a read that will not be made again."""
        for plan in self._plans.pop(read, ()):
            self._let_go(plan)

    def _let_go(self, plan: Plan) -> None:
        self._nodes -= len(plan)
        plan.unbind()  # steps hold storage, and the journal may keep the plan for long
