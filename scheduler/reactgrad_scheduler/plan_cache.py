"""The plan cache: it finds the plan of a repeated read by one look-up."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterable, Sequence, Set
from itertools import islice
from random import Random

from reactgrad_scheduler.block import block
from reactgrad_scheduler.latest import Latest
from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.plan import Group, Key, Plan, Transition
from reactgrad_scheduler.topology import Topology

# Bounds of the cache: the number of plans, of keys that came once, and of the nodes in all plans.
MAX_PLANS = 65536
MAX_SEEN = 4096
MAX_PLANNED_NODES = 4_000_000
# So many transitions, and groups, and nodes in plans, are kept for the forks of a graph.
MAX_SHARED, MAX_SHARED_NODES = 256, 250_000

_random = Random(0)


class PlanCache:
    """Transitions by key, the oldest first. A transition is stored when its key comes for the second time.

    The cache of a fork begins with what that of its origin has, or will have, for nodes that both have: a read that
    repeats there repeats here. Equal states mean the same in both, since they share the random numbers of nodes,
    and an edit on either side moves to states that the other one never sees.

    A read that happens once (a new expression, an unusual set of changes) leaves only its key. Plans of
    nodes that read others are stored at once, as long as there is much room.

    Attributes
    ----------
    get
        ``get(key)``: the transition of ``key``, or ``None``.
    losses
        It grows whenever ``get`` may no longer return what it did.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_groups",
        "_groups_of",
        "_keys_of",
        "_members",
        "_seen",
        "_transitions",
        "enabled",
        "get",
        "kept",
        "losses",
        "nodes",
        "origin",
        "shared",
    )

    def __init__(self) -> None:
        self._transitions: dict[Key, Transition] = {}
        self.get: Callable[[Key], Transition | None] = self._transitions.get
        self._seen: set[int] = set()  # hashes of keys that came once
        self._keys_of: dict[int | Group, set[Key]] = {}  # keys of stored transitions, by their read
        self._groups: dict[tuple[int, ...], Group] = {}
        # By member. Most nodes are in one group only, and all members of a group share its 1-tuple.
        self._groups_of: dict[int, tuple[Group] | set[Group]] = {}
        self._members = 0  # of all groups
        # None before the first plan is kept, and after changes that marks do not show.
        self.kept: Latest | None = None
        self.nodes = self.losses = 0
        self.enabled = True
        # That of the graph that the own one was forked from; nodes with smaller serials are the same there.
        self.origin: weakref.ref[PlanCache] | None = None
        self._before = 0
        self.shared: Shared | None = None  # of its forks; None before the first read of one

    def follow(self, origin: PlanCache, topology: Topology) -> None:
        """Begin with the plans of the origin of a fork, whose nodes these are."""
        if self.enabled and origin.enabled:
            self.origin, self._before = weakref.ref(origin), topology.next_serial

    def from_origin(self, key: Key, journaled: Column[int]) -> Transition | None:
        """Return a transition of the origin as its own from now on, ``None`` if that has none for this key."""
        there, read = None if self.origin is None else self.origin(), key[2]
        if there is None or (
            read >= self._before
            if isinstance(read, int)
            else self._groups.get(read.slots) is not read
        ):
            return None
        found = there.get(key)
        if found is None and there.shared is not None:
            found = there.shared.transitions.get(key)
        own = None if found is None else found.twin()
        if own is not None:
            for slot in own.plan.slots:
                journaled[slot] = 1
            self.put(key, own)
        return own

    def offer(self, key: Key, transition: Transition) -> None:
        """Give the other forks of the origin a transition that was found here."""
        there = None if self.origin is None else self.origin()
        if (
            there is not None
            and there.shared is not None
            and (twin := transition.twin()) is not None
        ):
            there.shared.offer(key, twin)

    def group_from_origin(
        self, slots: tuple[int, ...], serial: Column[int], journaled: Column[int]
    ) -> Group | None:
        """Return a group of the origin as its own from now on, ``None`` if there is none of these nodes."""
        there = None if self.origin is None else self.origin()
        if there is None or any(serial[slot] >= self._before for slot in slots):
            return None
        group = there.known(slots)
        if group is None:
            there.shared = there.shared or Shared()
            group = there.shared.group(slots)
        for slot in slots:
            journaled[slot] = 1  # first: a group must not outlive its nodes
        return self.group(slots, group)

    def __len__(self) -> int:
        return len(self._transitions)

    @property
    def has_room(self) -> bool:
        """True if there is room for plans that may not pay."""
        return self.enabled and self.nodes < MAX_PLANNED_NODES // 16

    def wants(self, key: Key) -> bool:
        """Return whether ``key`` comes for the second time, so that storing its transition pays."""
        if not self.enabled:
            return False
        mark = hash(key)  # if two keys have one hash, a plan is stored too early: no harm
        if mark in self._seen:
            self._seen.remove(mark)
            return True
        there = None if self.origin is None else self.origin()
        if there is not None:
            there.shared = there.shared or Shared()
            if there.shared.came_before(mark):
                return True

        # Half is dropped at random: of more keys in turn than fit, some then repeat in time.
        if len(self._seen) >= MAX_SEEN:
            self._seen = set(_random.sample([*self._seen], MAX_SEEN // 2))
        self._seen.add(mark)
        return False

    def known(self, slots: tuple[int, ...]) -> Group | None:
        """Return the group of these nodes, or ``None`` if they were not read together before."""
        return self._groups.get(slots)

    def group(self, slots: tuple[int, ...], group: Group | None = None) -> Group:
        """Make a group of nodes, so that plans for reads of all of them are found by one look-up.

        ``group`` is that of the origin of a fork, if it has one.
        """
        group = group or Group(slots)
        if len(self._groups) >= MAX_PLANS or self._members > MAX_PLANNED_NODES:
            self.clear()
            self._groups.clear()
            self._groups_of.clear()
            self._members = 0
        groups_of, alone = self._groups_of, (group,)
        for slot in slots:
            others = groups_of.setdefault(slot, alone)
            if type(others) is set:
                others.add(group)
            elif others is not alone:
                groups_of[slot] = {*others, group}
        # Last: after an interrupt, no group may be found that not all of its members refer to.
        self._groups[slots] = group
        self._members += len(slots)
        return group

    def of_group(self, group: Group, slots: Iterable[int]) -> list[int]:
        """Return those of these nodes that belong to this group."""
        groups_of = self._groups_of
        return [slot for slot in slots if group in groups_of.get(slot, ())]

    def put(self, key: Key, transition: Transition) -> None:
        """Store a transition, in place of a former one, and drop the oldest beyond the bounds."""
        self._discard(key)
        transition.plan.repeats = True
        self.nodes += len(transition.plan)
        self._transitions[key] = transition
        self._keys_of.setdefault(key[2], set()).add(key)
        while len(self._transitions) > MAX_PLANS or (
            self.nodes > MAX_PLANNED_NODES and len(self._transitions) > 1
        ):
            self._discard(next(iter(self._transitions)))

    def bound(self, most: int) -> list[Plan]:
        """Return the last stored plans, at most so many, that are certain and have their calls."""
        plans = {
            id(one.plan): one.plan for one in islice(reversed(self._transitions.values()), most)
        }
        return [one for one in plans.values() if one.certain and one.fused is not None]

    def latest(self, read: int | Group) -> Sequence[Plan]:
        """Return plans that this read has followed, whatever the state was, the last one first."""
        return self.kept.of(read) if self.kept is not None and self.enabled else ()

    def keep(self, read: int | Group, plan: Plan) -> bool:
        """Note that a read has followed a plan. Return whether the plan is kept among its ``latest``."""
        if not self.enabled:
            return False
        if self.kept is None:
            self.kept = Latest()
        return self.kept.keep(read, plan)

    def forget_target(self, slot: int, serial: int) -> None:
        """Drop the plans and groups of a node that is about to be removed: plans keep no node alive."""
        groups = self._groups_of.pop(slot, ())
        for group in groups:
            if self._groups.pop(group.slots, None) is not None:
                self._members -= len(group.slots)
            for member in group.slots:
                others = self._groups_of.get(member, ())
                if type(others) is set:
                    others.discard(group)
                if not others or group in others:
                    self._groups_of.pop(member, None)
        for read in (serial, *groups):
            for key in self._keys_of.pop(read, ()):
                self._discard(key)
            if self.kept is not None:
                self.kept.forget(read)

    def unbind(self, slots: Set[int] | None = None) -> None:
        """Drop bound steps of all plans, or of those with one of these slots, and all latest plans.

        Steps keep the storage that they use alive.
        """
        kept, self.kept = self.kept, None  # dropped as a whole, so that the next call is cheap
        stored = [transition.plan for transition in self._transitions.values()]
        for plan in (*stored, *(kept or ())):
            bound = plan.steps is not None or plan.readings
            if bound and (slots is None or not plan.members.isdisjoint(slots)):
                plan.unbind()

    def close(self) -> None:
        """Neither find nor store plans from now on."""
        self.losses += 1
        self.enabled, self.get = False, _nothing

    @block
    def aside(self) -> Generator[None]:
        """Neither find nor store plans in the block."""
        former = self.enabled, self.get
        self.close()
        try:
            yield
        finally:
            self.enabled, self.get = former

    def clear(self) -> None:
        """Drop all plans."""
        self.losses += 1
        self.origin = self.shared = None
        self._transitions.clear()
        self._seen.clear()
        self._keys_of.clear()
        self.kept = None
        self.nodes = 0

    def _discard(self, key: Key) -> None:
        transition = self._transitions.pop(key, None)
        if transition is None:
            return
        self.losses += 1
        self.nodes -= len(transition.plan)
        keys = self._keys_of.get(key[2])
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._keys_of[key[2]]


class Shared:
    """Reads that the forks of a graph have made, for the next ones. The graph itself does not use them.

    A fork that ends has made each of its reads once or twice, and the next one makes the same. Threads may use this
    at the same time: each line is one look-up or one write.
    """

    __slots__ = ("_groups", "_nodes", "_seen", "transitions")

    def __init__(self) -> None:
        self.transitions: dict[Key, Transition] = {}
        self._nodes = 0  # of all their plans, at least
        self._groups: dict[tuple[int, ...], Group] = {}
        self._seen: dict[int, None] = {}

    def came_before(self, mark: int) -> bool:
        """Return whether a fork has made a read with this hash before."""
        if mark in self._seen:
            return True
        if len(self._seen) >= MAX_SEEN:
            self._seen = {}
        self._seen[mark] = None
        return False

    def offer(self, key: Key, transition: Transition) -> None:
        """Keep a transition, which no graph will write to."""
        if len(self.transitions) >= MAX_SHARED or self._nodes > MAX_SHARED_NODES:
            self.transitions, self._nodes = {}, 0
        self.transitions[key] = transition
        self._nodes += len(transition.plan)

    def group(self, slots: tuple[int, ...]) -> Group:
        """Return the group of these nodes, the same for all forks."""
        if len(self._groups) >= MAX_SHARED:
            self._groups = {}
        return self._groups.setdefault(slots, Group(slots))


def _nothing(key: Key) -> None:
    return None
