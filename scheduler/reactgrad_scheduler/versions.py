"""Value versions, parent versions, and the journal that makes them free on hot paths.

``version[slot]`` counts how often the value of a node was replaced. ``record[slot]`` holds the versions
of its parents, in order, that it was last computed from (``None``: it was never computed, or must run
again whatever the versions are). These two columns are the truth; everything else in the scheduler only
saves work.

Writing two table rows for each node would cost as much as a small kernel. A replayed plan is therefore
one entry of the *journal*, and so is a set. ``settle()`` replays the journal into the tables before they
are read: all reads of the two columns come after a ``settle()``.
"""

from __future__ import annotations

from reactgrad_scheduler.overlay import Column, share
from reactgrad_scheduler.plan import Plan
from reactgrad_scheduler.topology import Topology


class Leaves:
    """Leaves that are replaced together again and again: one event, however many they are."""

    __slots__ = ("slots",)

    def __init__(self, slots: dict[int, None]) -> None:
        self.slots = slots


class Part:
    """An event: a plan ran from its first to its last node and replaced all values but these."""

    __slots__ = ("kept", "plan")

    def __init__(self, plan: Plan, kept: tuple[int, ...]) -> None:
        self.plan = plan
        self.kept = kept


# One event: a leaf was replaced; several leaves were replaced together; a plan ran from its first to its
# last node and replaced all values; or most of them.
Whole = int | tuple[int, ...] | Leaves | Plan
Event = Whole | Part

# The journal is settled when it has this many entries. That bounds its memory, and costs each run a few
# thousandths of settling. The second bound counts nodes that only the journal refers to.
JOURNAL_LIMIT = 2048
NAMED_LIMIT = 65536


class Versions:
    """The two columns, and the journal of events that they do not show yet."""

    __slots__ = (
        "_named",
        "_topology",
        "forced",
        "journal",
        "record",
        "replayed",
        "replays",
        "version",
    )

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.version: Column[int] = []
        self.record: Column[tuple[int, ...] | None] = []
        self.forced: set[int] = set()  # nodes that must run again whatever the versions are
        self.journal: list[Event] = []
        self._named = 0  # nodes in parts of the journal, and in runs of plans that are not stored
        self.replays = 0  # settled plans that ran from their first to their last node
        self.replayed = 0  # the number of nodes in all of them together

    def fork(self, topology: Topology) -> Versions:
        """Return separate tables with the same rows, for a fork of the topology."""
        self.settle()
        twin = Versions(topology)
        self.version, twin.version = share(self.version)
        self.record, twin.record = share(self.record)
        twin.forced = self.forced.copy()
        return twin

    def extend(self, rows: int) -> None:
        """Add free rows."""
        self.version.extend([0] * rows)
        self.record.extend([None] * rows)

    def remove(self, slot: int) -> None:
        """Clear the row of a node that is about to be removed."""
        self.version[slot] = 0
        self.record[slot] = None
        self.forced.discard(slot)

    def current(self, slot: int) -> tuple[int, ...]:
        """Return the present versions of the parents of ``slot``."""
        version = self.version
        return tuple([version[parent] for parent in self._topology.parents[slot]])

    def matches(self, slot: int) -> bool:
        """Return whether ``slot`` was computed from the present versions of its parents."""
        return self.record[slot] == self.current(slot) and slot not in self.forced

    def ran_in_part(self, plan: Plan, kept: tuple[int, ...]) -> None:
        """Note that a plan ran to its end, which made all of it clean, and replaced all but ``kept``."""
        self.journal.append(Part(plan, kept))
        self.names(len(kept))

    def names(self, nodes: int) -> None:
        """Note that the last entry refers to so many nodes that may be stored nowhere else."""
        self._named += nodes
        if len(self.journal) > JOURNAL_LIMIT or self._named > NAMED_LIMIT:
            self.settle()

    def settle(self) -> None:
        """Bring the tables up to date with the journal.

        Only the last entry of a plan decides its records, so earlier entries are only counted. Counts
        are added before the next record that could show them is written. If several plans hold one
        node, the last of them decides its record.
        """
        journal = self.journal
        if not journal:
            return
        version = self.version
        events: list[Whole] = [
            event.plan if isinstance(event, Part) else event for event in journal
        ]
        # Plans and `Leaves` compare by identity, slots and tuples of slots by value.
        last = {event: index for index, event in enumerate(events)}
        plans = [event for event in last if isinstance(event, Plan)]
        plans.sort(key=last.__getitem__)
        decides = {slot: plan for plan in plans for slot in plan.slots} if len(plans) > 1 else {}
        counted: dict[Whole, int] = {}
        for index, event in enumerate(events):
            part = journal[index]
            if isinstance(part, Part):  # it is counted below like a whole plan: correct for that
                for slot in part.kept:
                    version[slot] -= 1
                self.replays -= 1
                self.replayed -= len(part.plan)
            if last[event] != index:
                counted[event] = counted.get(event, 0) + 1
                continue
            for earlier, times in counted.items():
                self._grow(earlier, times)
            counted.clear()
            self._grow(event, 1)
            if isinstance(event, Plan):
                record, parents, now = self.record, self._topology.parents, version.__getitem__
                same: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal records share one tuple
                for slot in event.slots:
                    if decides.get(slot, event) is event:
                        current = tuple(map(now, parents[slot]))
                        record[slot] = same.setdefault(current, current)
        journal.clear()
        self._named = 0

    def leave_out(self, slots: frozenset[int]) -> None:
        """Bring the tables up to date, but for nodes whose versions are about to be reset.

        Runs of these nodes alone, most entries in a loop that builds them anew, are only counted.
        """
        rest: list[Event] = []
        for event in self.journal:
            if isinstance(event, Plan) and slots.issuperset(event.slots):
                self.replays += 1
                self.replayed += len(event.slots)
            else:
                rest.append(event)
        self.journal[:] = rest
        self.settle()

    def _grow(self, event: Whole, times: int) -> None:
        version = self.version
        if isinstance(event, int):
            version[event] += times
        else:
            slots = event if isinstance(event, tuple) else event.slots
            for slot in slots:
                version[slot] += times
            if isinstance(event, Plan):
                self.replays += times
                self.replayed += times * len(slots)
