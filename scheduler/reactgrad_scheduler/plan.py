"""Plans, and the transitions by which the plan of a read is found without walking the graph.

A read is a *transition*: from a state of the marks, with a set of changed leaves, to targets that are
read. Marks do not depend on what kernels compute, so the same transition always plans the same nodes and
ends in the same marks. The cache maps (state, changed leaves, targets) to the plan and to the marks that
differ afterwards, usually none: a loop that sets and reads the same nodes comes back to the state that it
started from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Protocol

from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.run import Run

Step = Callable[[], object]


class Group:
    """Nodes that are read together, as long as all of them live; compared by identity."""

    __slots__ = ("clean_in", "slots")

    def __init__(self, slots: tuple[int, ...]) -> None:
        self.slots = slots
        # A state of the marks in which all of them are clean. Forks share groups: equal states are equal marks there.
        self.clean_in: int | None = None


# A state of the marks; the changed leaves; the read: the serial of a node, or a group.
Key = tuple[int, tuple[int, ...], int | Group]

# A node of a plan in which versions decide: its slot; the nodes whose change makes it run, its parents and
# itself, if it was due before (the first one apart: checking that is mostly enough); its slot again if the
# host must be told that its value is overwritten; and its step.
Row = tuple[int, int, tuple[int, ...], tuple[int, ...], Step]

# The result of a step whose node's cutoff finds the new value unchanged.
UNCHANGED = object()


class Script(Protocol):
    """The work of the host besides the steps of a plan, as it was when the plan was found.

    Attributes
    ----------
    back
        Nodes whose values were released when the run began, and are there when it ends. All other
        released nodes stay so.
    """

    @property
    def back(self) -> Set[int]: ...

    def fits(self) -> bool:
        """Return whether everything that marks do not show is as it was then."""
        ...

    def bind(self, moves: Sequence[int], since: int | None) -> tuple[list[Step], list[int]]:
        """Return the steps, and the slots that they compute.

        Parameters
        ----------
        moves
            The log of slots whose storage moved.
        since
            The length of the part of the log that the steps follow already; ``None``: bind all steps.
        """
        ...

    def rescue(self, index: int) -> None:
        """Put values where the tables expect them, since the run stops at the node at ``index``."""
        ...

    def ended(self) -> bool:
        """Note that the run has ended as planned. Return whether its steps may stay bound."""
        ...


class Plan:
    """The nodes that one read runs, in topological order; immutable except for its bound steps.

    If it is ``certain``, every node runs, whatever the kernels give: each has a parent that certainly
    changed, and none has a cutoff. Such a plan runs without comparing versions.

    ``readings`` has the nodes that nodes of a certain plan are expected to read while they run. Nodes
    that run only because a node reads them are a plan of their own there, run when it reads them.
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
        "ways",
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
        self.members: frozenset[int] = members  # the same slots, as a set
        self.turns = turns  # nodes with a turn of their own, if not all have one
        self.readings: dict[int, Reading] = {} if readings is None else readings
        self.expected = expected  # set if there are readings
        self.steps: list[Step] | None = None
        # The calls that run all nodes: the steps, or other or fewer calls that do the same together.
        self.fused: list[Step] | None = None
        self.laid_out: list[tuple[Any, ...]] | None = (
            None  # the same calls, side by side; see ``hot``
        )
        self.heat = 0  # the number of runs since a step was bound anew
        self.step_slots: list[int] = []  # the slot that each step computes
        # The position of each slot's step; made when one is first bound anew.
        self.places: dict[int, int] | None = None
        self.call_slots: list[int] = []  # the first slot of each call in `fused`
        self.repeats = False  # True once it is stored, so that fusing its steps pays
        self.lends = False  # True if a step runs user code; known once steps are bound
        self.script: Script | None = None
        self._sources: frozenset[int] | None = None
        self.rows: list[Row] | None = None  # where versions decide; made from the steps on replay
        self.tasks: Any = None  # its parts, for several threads
        self.shared: bool | None = None  # whether several threads run it; None: not decided yet
        self.promised = 0.0  # if it takes no more seconds than this, that is not decided anew
        self.ways: dict[Any, Any] | None = None  # to run it in part, see ``dirty``
        self.moves_seen = 0  # the length of the log of moved storage that the steps follow
        # The record of a run of all its nodes.
        self.finished = Run() if finished is None else finished

    @classmethod
    def of(cls, slots: Sequence[int], serial: Column[int], *, certain: bool) -> Plan:
        """Return a plan of these nodes, not bound yet."""
        run = Run(list(slots))
        run.seal(serial)
        return cls(tuple(slots), certain, frozenset(slots), finished=run)

    def twin(self) -> Plan | None:
        """Return the same plan for a fork, not bound yet; ``None`` if it holds more than nodes."""
        if (
            not self.certain
            or self.turns
            or self.readings
            or self.script is not None
            or self.expected
        ):
            return None
        run = Run(list(self.finished.ran))
        run.sealed = self.finished.sealed
        plan = Plan(self.slots, True, self.members, finished=run)
        plan._sources = self._sources
        return plan

    def take_calls(
        self, calls: list[Step], call_slots: list[int], step_slots: list[int], moves: int
    ) -> None:
        """Take calls without the steps that they were made from; if memory moves, all steps are bound."""
        self.fused, self.call_slots, self.step_slots = calls, call_slots, step_slots
        self.moves_seen = moves

    def retire(self) -> None:
        """Drop all that only a run needs; the journal may keep the plan itself for long."""
        self.steps = self.fused = self.rows = self.tasks = self.ways = None
        self.cool()
        self.step_slots = []
        self.places = self.expected = self._sources = None
        self.readings = {}
        self.members = frozenset()

    def __len__(self) -> int:
        return len(self.slots)

    def sources(self, parents: Column[tuple[int, ...]]) -> frozenset[int]:
        """Return the other nodes that these nodes read; ``parents``: the column of parents."""
        if self._sources is None:
            read = {parent for slot in self.slots for parent in parents[slot]}
            self._sources = frozenset(read - self.members)
        return self._sources

    def rest(self, begin: int) -> Sequence[int]:
        """Return the nodes from this position on that have a turn of their own then."""
        if not self.turns:
            return self.slots[begin:]
        later = self.members.difference(self.slots[:begin])
        return [slot for slot in self.turns if slot in later]

    def cool(self) -> None:
        """Drop the laid-out calls, since the calls are others now."""
        self.laid_out = None
        self.heat = 0

    def unbind(self) -> None:
        """Drop the bound steps."""
        self.steps = self.fused = self.rows = self.ways = None
        self.cool()
        for reading in self.readings.values():
            for pull in reading.pulls:
                pull.plan.unbind()


class Expected:
    """The positions of nodes in a plan whose nodes read others.

    Attributes
    ----------
    order
        The position of every node of the plan, including nodes that run when they are read.
    left
        Nodes outside of the plan that the read leaves stale.
    """

    __slots__ = ("left", "order")

    def __init__(self, order: dict[int, int], left: frozenset[int]) -> None:
        self.order = order
        self.left = left


class Reading:
    """The reads that a node is expected to make while it runs.

    Attributes
    ----------
    slots
        The nodes that it reads, in order, without its operands.
    operands
        The nodes that it was built on.
    begin
        The position of the first node that runs because this one reads it, or of this one.
    pulls
        Reads of nodes that are stale then, in order.
    ready
        Nodes among all of these that have their value when it begins.
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
    """The read of a stale node, with the plan that it runs, which ends before position ``end``."""

    __slots__ = ("end", "plan", "target")

    def __init__(self, target: int, plan: Plan, end: int) -> None:
        self.target = target
        self.plan = plan
        self.end = end


class Transition:
    """A plan, with its effect on the marks."""

    __slots__ = ("marks", "plan", "state")

    def __init__(self, plan: Plan, state: int, marks: tuple[tuple[int, int], ...]) -> None:
        self.plan = plan
        self.state = state  # the state after the read
        self.marks = marks  # (slot, mark after the read) where it differs from before

    def twin(self) -> Transition | None:
        """Return the same transition for a fork; ``None`` if its plan holds more than nodes."""
        plan = self.plan.twin()
        return None if plan is None else Transition(plan, self.state, self.marks)
