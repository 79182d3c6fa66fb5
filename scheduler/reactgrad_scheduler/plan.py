"""Plans, and the cache that finds the plan of a read without walking the graph.

A read is a *transition*: from a state of the marks, with a set of changed leaves, to the targets
read. Marks do not depend on what the kernels compute, so the same transition always plans the
same nodes and ends in the same marks. The cache maps (state, changed leaves, targets) to the plan
and to the marks that differ afterwards, usually none: a loop that sets and reads the same nodes
comes back to the state it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence, Set
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Protocol

from reactgrad_scheduler import hot
from reactgrad_scheduler.latest import Latest
from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.run import Run

if TYPE_CHECKING:
    from reactgrad_scheduler.executors.straight import Tasks

Step = Callable[[], object]


class Group:
    """Nodes that are read together, as long as all of them live; told apart by identity."""

    __slots__ = ("clean_in", "slots")

    def __init__(self, slots: tuple[int, ...]) -> None:
        self.slots = slots
        self.clean_in: int | None = None  # a state of the marks in which all of them are clean


# A state of the marks, the changed leaves, and who is read: the serial of a node, or several nodes.
Key = tuple[int, tuple[int, ...], int | Group]

# A node of a plan in which versions decide: its slot; whose change makes it run, its parents' or its own
# that came before (the first apart: mostly that is enough to look at); the slot again if whoever runs it
# is to announce that its value is overwritten; and its step.
Row = tuple[int, int, tuple[int, ...], tuple[int, ...], Step]

# What a step returns when its node's cutoff calls the new value unchanged.
UNCHANGED = object()

# Bounds of the cache: number of plans, of the nodes in all of them together, and of keys that came
# once.
MAX_PLANS = 65536
MAX_SEEN = 4096
MAX_PLANNED_NODES = 4_000_000


class Script(Protocol):
    """What the host does besides the steps of a plan, as it did when the plan was found.

    Attributes
    ----------
    back
        Nodes whose values were released when it began, and are there when it ends. All others are
        released as they were.
    """

    @property
    def back(self) -> Set[int]: ...

    def fits(self) -> bool:
        """Whether all is as it was then that marks do not show."""
        ...

    def bind(self, moves: Sequence[int], since: int | None) -> tuple[list[Step], list[int]]:
        """The steps and the slots that they compute.

        Parameters
        ----------
        moves
            The log of slots whose storage moved.
        since
            How much of it the steps know; ``None``: bind all of them.
        """
        ...

    def rescue(self, index: int) -> None:
        """The run stops at the node at `index`: put what is there where the tables expect it."""
        ...

    def ended(self) -> bool:
        """The run has ended as planned; whether its steps may stay bound."""
        ...


class Plan:
    """The nodes that one read runs, in topological order; immutable but for its bound steps.

    ``certain``: every node runs, whatever the kernels give, because each has a parent that
    surely changed and none has a cutoff. Such a plan runs without looking at versions.

    What nodes of a certain plan are expected to read while they run is in ``readings``; what is only
    run where a node reads it, directly before that node, is a plan of its own there.
    """

    __slots__ = (
        "__weakref__",
        "_sources",
        "call_slots",
        "certain",
        "expected",
        "finished",
        "fused",
        "heat",
        "laid_out",
        "lends",
        "members",
        "moves_seen",
        "places",
        "promised",
        "readings",
        "repeats",
        "rows",
        "script",
        "shared",
        "slots",
        "step_slots",
        "steps",
        "tasks",
        "turns",
    )

    def __init__(
        self,
        slots: tuple[int, ...],
        certain: bool,
        members: frozenset[int],
        turns: tuple[int, ...] = (),
        readings: dict[int, Reading] | None = None,
        expected: Expected | None = None,
        finished: Run | None = None,
    ) -> None:
        self.slots = slots
        self.certain = certain
        self.members: frozenset[int] = members  # the same slots, for looking up
        self.turns = turns  # those that have a turn of their own, if not all have
        self.readings: dict[int, Reading] = {} if readings is None else readings
        self.expected = expected  # where there are readings
        self.steps: list[Step] | None = None
        # What is called to run them all: the same steps, or others, or fewer, that do the same together.
        self.fused: list[Step] | None = None
        self.laid_out: list[hot.Row] | None = None  # the same calls, side by side; see ``hot``
        self.heat = 0  # how often it was run since a step was bound anew
        self.step_slots: list[int] = []  # the slot that each step computes
        # Where the step of each slot is; known when one was bound anew.
        self.places: dict[int, int] | None = None
        self.call_slots: list[int] = []  # the first slot of each of `fused`
        self.repeats = False  # whether it is stored, so that fusing its steps pays
        self.lends = False  # whether a step runs code of the user; known with the steps
        self.script: Script | None = None
        self._sources: frozenset[int] | None = None
        self.rows: list[Row] | None = None  # where versions decide; made of the steps when replayed
        self.tasks: Tasks | None = None  # for several threads
        self.shared: bool | None = None  # whether several threads run it, where that was asked for
        self.promised = 0.0  # seconds up to which it is not asked again
        self.moves_seen = 0  # how much of the log of moved storage the steps know
        # What a run of all its nodes records.
        self.finished = Run() if finished is None else finished

    @classmethod
    def of(cls, slots: Sequence[int], serial: Column[int], *, certain: bool) -> Plan:
        """A plan of these nodes, which is still to be bound."""
        run = Run(list(slots))
        run.seal(serial)
        return cls(tuple(slots), certain, frozenset(slots), finished=run)

    def retire(self) -> None:
        """It will not be run again: keep what the journal, which may have it for long, needs."""
        self.steps = self.fused = self.rows = self.tasks = None
        self.cool()
        self.step_slots = []
        self.places = self.expected = self._sources = None
        self.readings = {}
        self.members = frozenset()

    def __len__(self) -> int:
        return len(self.slots)

    def sources(self, parents: Column[tuple[int, ...]]) -> frozenset[int]:
        """What these nodes read of others; `parents`: of each slot."""
        if self._sources is None:
            read = {parent for slot in self.slots for parent in parents[slot]}
            self._sources = frozenset(read - self.members)
        return self._sources

    def rest(self, begin: int) -> Sequence[int]:
        """The nodes from this position on whose turn it is then."""
        if not self.turns:
            return self.slots[begin:]
        later = self.members.difference(self.slots[:begin])
        return [slot for slot in self.turns if slot in later]

    def cool(self) -> None:
        """Its calls are no more those that are laid out."""
        self.laid_out = None
        self.heat = 0

    def unbind(self) -> None:
        """Let go of the bound steps."""
        self.steps = self.fused = self.rows = None
        self.cool()
        for reading in self.readings.values():
            for pull in reading.pulls:
                pull.plan.unbind()


class Expected:
    """How far a plan whose nodes read others is expected to be where.

    Attributes
    ----------
    order
        The position of every node of the plan, with all that is run where it is read.
    left
        Nodes outside of it that the read leaves stale.
    """

    __slots__ = ("left", "order")

    def __init__(self, order: dict[int, int], left: frozenset[int]) -> None:
        self.order = order
        self.left = left


class Reading:
    """What a node is expected to read while it runs.

    Attributes
    ----------
    slots
        In the order in which it asks for them, without its operands.
    operands
        What it was built on.
    begin
        The position of the first node that is run because this one reads it, or of this one.
    pulls
        What it reads first of all, in order.
    ready
        Those of all of these that have their value when it begins.
    """

    __slots__ = ("begin", "operands", "pulls", "ready", "slots")

    def __init__(
        self,
        slots: tuple[int, ...],
        operands: tuple[int, ...],
        begin: int,
        pulls: list[Pull],
        ready: frozenset[int],
    ) -> None:
        self.slots = slots
        self.operands = operands
        self.begin = begin
        self.pulls = pulls
        self.ready = ready


class Pull:
    """A node that was stale when it was read, and what a read of it runs, up to position `end`."""

    __slots__ = ("end", "plan", "target")

    def __init__(self, target: int, plan: Plan, end: int) -> None:
        self.target = target
        self.plan = plan
        self.end = end


class Transition:
    """A plan, and what the read does to the marks."""

    __slots__ = ("marks", "plan", "state")

    def __init__(self, plan: Plan, state: int, marks: tuple[tuple[int, int], ...]) -> None:
        self.plan = plan
        self.state = state  # the state afterwards
        self.marks = marks  # (slot, mark afterwards) where it differs from before


_random = Random(0)


class PlanCache:
    """Transitions by key, oldest first; the second sight of a key fills it.

    A read that happens once (a new expression, an unusual set of changes) leaves only its key, but where
    nodes read others, and as long as there is much room.

    Attributes
    ----------
    get
        ``get(key)``: the transition of `key`, if it was stored.
    known
        ``known(slots)``: the group of these nodes, if they were read together before.
    """

    __slots__ = (
        "_groups",
        "_groups_of",
        "_keys_of",
        "_members",
        "_seen",
        "_transitions",
        "enabled",
        "get",
        "kept",
        "known",
        "nodes",
    )

    def __init__(self) -> None:
        self._transitions: dict[Key, Transition] = {}
        self.get: Callable[[Key], Transition | None] = self._transitions.get
        self._seen: set[int] = set()  # hashes of keys that came once
        self._keys_of: dict[int | Group, set[Key]] = {}  # of what was stored, by who is read
        self._groups: dict[tuple[int, ...], Group] = {}
        self.known: Callable[[tuple[int, ...]], Group | None] = self._groups.get
        # By member: most are in one group, and all members of it that are share its tuple.
        self._groups_of: dict[int, tuple[Group] | set[Group]] = {}
        self._members = 0  # of all groups
        # From the first on that is kept until something changes that only a state tells.
        self.kept: Latest | None = None
        self.nodes = 0
        self.enabled = True

    def __len__(self) -> int:
        return len(self._transitions)

    @property
    def has_room(self) -> bool:
        """Whether there is room for plans of which nobody knows yet whether they pay."""
        return self.enabled and self.nodes < MAX_PLANNED_NODES // 16

    def wants(self, key: Key) -> bool:
        """Whether `key` comes for the second time, so that storing its transition pays."""
        if not self.enabled:
            return False
        mark = hash(key)  # of two keys with one hash a plan is stored too early
        if mark in self._seen:
            self._seen.remove(mark)
            return True
        if len(self._seen) >= MAX_SEEN:  # by lot: of more keys in turn some come again in time
            self._seen = set(_random.sample([*self._seen], MAX_SEEN // 2))
        self._seen.add(mark)
        return False

    def group(self, slots: tuple[int, ...]) -> Group:
        """Make a group of nodes, so that plans of reads of all of them are found at once."""
        group = Group(slots)
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
        # Last: an interrupt leaves none that is found and does not know all of its members.
        self._groups[slots] = group
        self._members += len(slots)
        return group

    def of_group(self, group: Group, slots: Iterable[int]) -> list[int]:
        """Those of these nodes that are read in this group."""
        groups_of = self._groups_of
        return [slot for slot in slots if group in groups_of.get(slot, ())]

    def put(self, key: Key, transition: Transition) -> None:
        """Store, in place of what was stored before, dropping the oldest ones beyond the bounds."""
        self._discard(key)
        transition.plan.repeats = True
        self.nodes += len(transition.plan)
        self._transitions[key] = transition
        self._keys_of.setdefault(key[2], set()).add(key)
        while len(self._transitions) > MAX_PLANS or (
            self.nodes > MAX_PLANNED_NODES and len(self._transitions) > 1
        ):
            self._discard(next(iter(self._transitions)))

    def latest(self, read: int | Group) -> Sequence[Plan]:
        """Plans that this read has followed, whatever the state was, the latest first."""
        return self.kept.of(read) if self.kept is not None and self.enabled else ()

    def keep(self, read: int | Group, plan: Plan) -> bool:
        """A read has followed this plan; whether that is kept as one of its ``latest``."""
        if not self.enabled:
            return False
        if self.kept is None:
            self.kept = Latest()
        return self.kept.keep(read, plan)

    def forget_target(self, slot: int, serial: int) -> None:
        """Drop the plans and groups of a node that is going away: plans keep nothing alive."""
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
        """Let go of bound steps, of all plans or of those with one of these slots, and of the latest plans.

        Steps hold on to the storage that they use.
        """
        kept, self.kept = self.kept, None  # not to be looked through at every call
        stored = [transition.plan for transition in self._transitions.values()]
        for plan in (*stored, *(kept or ())):
            bound = plan.steps is not None or plan.readings
            if bound and (slots is None or not plan.members.isdisjoint(slots)):
                plan.unbind()

    def close(self) -> None:
        """Neither find nor store plans from now on."""
        self.enabled, self.get = False, _nothing

    @contextmanager
    def aside(self) -> Generator[None]:
        """Neither find nor store plans in the block."""
        former = self.enabled, self.get
        self.close()
        try:
            yield
        finally:
            self.enabled, self.get = former

    def clear(self) -> None:
        """Forget all plans."""
        self._transitions.clear()
        self._seen.clear()
        self._keys_of.clear()
        self.kept = None
        self.nodes = 0

    def _discard(self, key: Key) -> None:
        transition = self._transitions.pop(key, None)
        if transition is None:
            return
        self.nodes -= len(transition.plan)
        keys = self._keys_of.get(key[2])
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._keys_of[key[2]]


def _nothing(key: Key) -> None:
    return None
