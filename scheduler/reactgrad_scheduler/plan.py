"""Plans, and the cache that finds the plan of a read without walking the graph.

A read is a *transition*: from a state of the marks, with a set of changed leaves, to the targets
read. Marks do not depend on what the kernels compute, so the same transition always plans the
same nodes and ends in the same marks. The cache maps (state, changed leaves, targets) to the plan
and to the marks that differ afterwards, usually none: a loop that sets and reads the same nodes
comes back to the state it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Protocol

from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.run import Run

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
        self.laid_out: list[tuple[Any, ...]] | None = (
            None  # the same calls, side by side; see ``hot``
        )
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
        self.tasks: Any = None  # for several threads
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
