"""Plans, and the cache that finds the plan of a read without walking the graph.

A read is a *transition*: from a state of the marks, with a set of changed leaves, to the targets
read. Marks do not depend on what the kernels compute, so the same transition always plans the
same nodes and ends in the same marks. The cache maps (state, changed leaves, targets) to the plan
and to the marks that differ afterwards, usually none: a loop that sets and reads the same nodes
comes back to the state it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reactgrad_scheduler.run import Run

if TYPE_CHECKING:
    from reactgrad_scheduler.executors.straight import Tasks

Step = Callable[[], object]
Key = tuple[int, tuple[int, ...], tuple[int, ...]]

# A node of a plan in which versions decide: its slot, a call that takes its parents' versions from the
# table, and the slot again if whoever runs it is to announce that its value is overwritten.
Row = tuple[int, Callable[[Sequence[int]], tuple[int, ...]], tuple[int, ...]]

# What a step returns when its node's cutoff calls the new value unchanged.
UNCHANGED = object()

# Bounds of the cache: number of plans, and of the nodes in all of them together.
MAX_PLANS = 4096
MAX_PLANNED_NODES = 4_000_000


@dataclass(eq=False, slots=True)
class Plan:
    """The nodes that one read runs, in topological order; immutable but for its bound steps.

    ``certain``: every node runs, whatever the kernels give, because each has a parent that
    surely changed and none has a cutoff. Such a plan runs without looking at versions.
    """

    slots: tuple[int, ...]
    certain: bool
    members: frozenset[int]  # the same slots, for looking up
    steps: list[Step] | None = None
    step_slots: list[int] = field(default_factory=list[int])  # the slot that each step computes
    lends: bool = False  # whether a step runs code of the user; known with the steps
    rows: list[Row] | None = None  # where versions decide; made when it is first replayed
    tasks: Tasks | None = None  # for several threads
    shared: bool | None = None  # whether several threads run it, where that was asked for
    promised: float = 0.0  # seconds up to which it is not asked again
    moves_seen: int = 0  # how much of the log of moved storage the steps know
    finished: Run = field(default_factory=Run)  # what a run of all its nodes records

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(eq=False, slots=True)
class Transition:
    """A plan, and what the read does to the marks."""

    plan: Plan
    state: int  # the state afterwards
    marks: tuple[tuple[int, int], ...]  # (slot, mark afterwards) where it differs from before
    targets: tuple[int, ...]


class PlanCache:
    """Transitions by key, oldest first; the second sight of a key fills it.

    A read that happens once (a new expression, an unusual set of changes) leaves only its key.

    Attributes
    ----------
    get
        ``get(key)``: the transition of `key`, if it was stored.
    """

    __slots__ = ("_by_target", "_seen", "_transitions", "enabled", "get", "nodes")

    def __init__(self) -> None:
        self._transitions: dict[Key, Transition] = {}
        self.get = self._transitions.get
        self._seen: dict[Key, None] = {}
        self._by_target: dict[int, set[Key]] = {}
        self.nodes = 0
        self.enabled = True

    def __len__(self) -> int:
        return len(self._transitions)

    def wants(self, key: Key) -> bool:
        """Whether `key` comes for the second time, so that storing its transition pays."""
        if not self.enabled:
            return False
        if key in self._seen:
            del self._seen[key]
            return True
        if len(self._seen) >= MAX_PLANS:
            self._seen.clear()
        self._seen[key] = None
        return False

    def put(self, key: Key, transition: Transition) -> None:
        """Store, dropping the oldest ones beyond the bounds."""
        self.nodes += len(transition.plan)
        self._transitions[key] = transition
        for target in transition.targets:
            self._by_target.setdefault(target, set()).add(key)
        while len(self._transitions) > MAX_PLANS or (
            self.nodes > MAX_PLANNED_NODES and len(self._transitions) > 1
        ):
            self._discard(next(iter(self._transitions)))

    def forget_target(self, slot: int) -> None:
        """Drop the plans of a node that is going away: plans keep nothing alive."""
        for key in self._by_target.pop(slot, ()):
            self._discard(key)

    def unbind(self, slots: Set[int] | None = None) -> None:
        """Let go of bound steps, of all plans or of those with one of these slots.

        Steps hold on to the storage that they use.
        """
        for transition in self._transitions.values():
            plan = transition.plan
            if plan.steps is not None and (slots is None or not plan.members.isdisjoint(slots)):
                plan.steps = None

    def clear(self) -> None:
        """Forget everything."""
        self._transitions.clear()
        self._seen.clear()
        self._by_target.clear()
        self.nodes = 0

    def _discard(self, key: Key) -> None:
        transition = self._transitions.pop(key, None)
        if transition is None:
            return
        self.nodes -= len(transition.plan)
        for target in transition.targets:
            keys = self._by_target.get(target)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._by_target[target]
