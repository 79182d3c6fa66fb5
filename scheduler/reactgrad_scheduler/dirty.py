"""Dirty rows: the rows of a value that have changed, so that only these need to be computed again.

The core of dirty regions. A leaf that was set in part leaves a *record*: its version before, its version
after, and the rows in between which the two differ. A node is computed *in part* if, for each parent, records
lead from the version that the node was computed from to the version that the parent has now: then no other
row of the parent has changed, and the rule of the node's op says which of its own rows these reach. The node
gets a record in turn, so the rows travel through the plan. In all other cases the node is computed as a whole.

Records are accelerators like marks and plans (rule E16): erase any of them, and the node that would have used
it is computed as a whole, with the same bits. So whatever is unsure erases them: a run that did not end as
planned, an error, an interrupt, a set in a transaction. Versions are the truth here, too: a record says which
versions it leads between, so a change that nobody noted cannot be bridged.

There are two ways to find what changed for a plan:

- *by marks*, in a loop that sets and reads: all nodes of the plan were clean before the pending leaves changed,
  so each was computed from the versions before. What changed is what the pending leaves say (``Staleness.pending``).
- *by versions*, in all other cases: the journal is settled, and each record of a node is compared with the
  versions of its parents.

Invariants, see ``check``: ranges ascend, with gaps between them, and are at most ``MOST_RANGES``; the records of a
node lead from each version to the next one, without gaps, and never beyond its present version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from reactgrad_scheduler.host import Host
from reactgrad_scheduler.plan import Plan, Step
from reactgrad_scheduler.ranges import Ranges, joined, well_formed
from reactgrad_scheduler.staleness import Staleness
from reactgrad_scheduler.topology import Topology
from reactgrad_scheduler.versions import Versions

# So many records are kept of a node, so many nodes have some, and so many ways to run a plan are remembered.
MOST_RECORDS, MOST_NODES, MOST_WAYS = 8, 65536, 64


class Scheduled(Protocol):
    """The tables of a scheduler that are read here."""

    host: Host
    topology: Topology
    versions: Versions
    staleness: Staleness
    dropped: set[int]
    moves: list[int]
    computing: list[int]
    crew: Any
    stopwatch: Any


class Record(NamedTuple):
    """The rows in which two versions of a value differ at most."""

    old: int
    new: int
    rows: Ranges


class Way:
    """The calls that run a plan of which only some rows have changed.

    Attributes
    ----------
    rows
        The rows to compute of each node that is computed in part; all other nodes are computed as a whole.
    read
        Of such other nodes: the rows of their only operand that have changed. A sum of all rows need not read more.
    calls, slots
        The calls that do it, and the slot that each computes; valid for storage at ``moves_seen``.
    move
        ``move(rows)`` makes these calls compute other rows, where all of ``rows`` and ``read`` are the same range
        and would be the same for any other range of that length. Else ``None``.
    """

    __slots__ = ("at", "calls", "key", "move", "moves_seen", "read", "rows", "slots")

    def __init__(self, rows: dict[int, Ranges], read: dict[int, Ranges], moves_seen: int) -> None:
        self.rows = rows
        self.read = read
        self.calls: list[Step] | None = None  # not bound yet
        self.slots: list[int] = []
        self.moves_seen = moves_seen
        self.move: Callable[[Ranges], object] | None = None
        self.key: tuple[int, ...] = ()  # of all ranges of one length
        both = {*rows.values(), *read.values()}
        self.at: Ranges = (
            both.pop() if len(both) == 1 else ()
        )  # the range of all of them, if it is one

    def place(self, rows: Ranges) -> None:
        """Let the calls compute these rows from now on."""
        if rows != self.at:
            assert self.move is not None
            self.at = ()  # after an interrupt it is not used again
            self.move(rows)
            self.rows = dict.fromkeys(self.rows, rows)
            self.at = rows


class Dirty:
    """The records of one graph: made by its first set of rows, and kept from then on.

    Attributes
    ----------
    records
        By slot, the oldest first.
    """

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records: dict[int, list[Record]] = {}

    def note(self, slot: int, old: int, new: int, rows: Ranges) -> None:
        """Note that these two versions of a value, of which the second is present, differ in these rows only."""
        records = self.records.get(slot)
        if records is None or records[-1].new != old:
            if len(self.records) >= MOST_NODES:
                self.records.clear()
            self.records[slot] = [Record(old, new, rows)]
            return
        records.append(Record(old, new, rows))
        if len(records) > MOST_RECORDS:
            del records[0]

    def between(self, slot: int, old: int, new: int) -> Ranges | None:
        """Return the rows in which two versions of a value differ at most, ``None`` if that is not known."""
        if old == new:
            return ()
        records = self.records.get(slot, ())
        if not records or records[-1].new != new:
            return None
        found: Ranges | None = ()
        for record in reversed(records):
            found = joined(found, record.rows)
            if found is None or record.old == old:
                return found
        return None

    def erase(self, scheduler: Scheduled) -> None:
        """Erase all records, and let all leaves that are pending count as changed as a whole."""
        self.records.clear()
        pending = scheduler.staleness.pending
        for leaf in pending:
            pending[leaf] = None

    def note_pending(self, scheduler: Scheduled) -> None:
        """Make records of the leaves that are pending, which are about to be marked."""
        pending, versions = scheduler.staleness.pending, scheduler.versions
        if any(pending.values()):
            versions.settle()
            for leaf, change in pending.items():
                if change is not None:
                    now = versions.version[leaf]
                    self.note(leaf, now - change[0], now, change[1])

    def way(self, scheduler: Scheduled, plan: Plan, by_marks: bool) -> Way | None:
        """Return how to run a certain plan in part, ``None`` to run it as a whole.

        ``by_marks``: all nodes of the plan were clean before the pending leaves changed.
        """
        if not (self.records or any(scheduler.staleness.pending.values())):
            return None
        if not self._fits(scheduler, plan):
            return None
        if by_marks:
            changed = self._changed_by_marks(scheduler, plan)
        else:
            self.note_pending(scheduler)
            changed = self._changed_by_versions(scheduler, plan)
        if not any(changed.values()):
            return None
        ways = plan.ways
        if ways is None or len(ways) > MOST_WAYS:
            ways = plan.ways = {}
        span, key = _span(changed)
        way = ways.get(key) if span else None
        if way is not None and way.moves_seen == len(scheduler.moves) and way.at:
            way.place(span)
            return way
        exact = tuple(changed.items())
        way = ways.get(exact)
        if way is None or way.moves_seen != len(
            scheduler.moves
        ):  # the rows of views hang on their place
            rows, read = self._spread(scheduler, plan, changed)
            way = ways[exact] = Way(rows, read, len(scheduler.moves))
            if span and way.at == span:
                way.key = key
        return way if way.rows or way.read else None

    @staticmethod
    def _fits(scheduler: Scheduled, plan: Plan) -> bool:
        """Return whether nothing but steps is run for this plan, on values that are all there and in trust."""
        forced = (
            scheduler.versions.forced
        )  # to be computed as a whole, whatever their parents' rows are
        return not (
            (forced and not forced.isdisjoint(plan.slots))
            or scheduler.computing
            or scheduler.dropped
            or scheduler.crew is not None
            or scheduler.stopwatch is not None
            or plan.script is not None
            or plan.readings
        )

    @staticmethod
    def _changed_by_marks(scheduler: Scheduled, plan: Plan) -> dict[int, Ranges | None]:
        sources = plan.sources(scheduler.topology.parents)
        return {
            leaf: change and change[1]
            for leaf, change in scheduler.staleness.pending.items()
            if leaf in sources
        }

    def _changed_by_versions(self, scheduler: Scheduled, plan: Plan) -> dict[int, Ranges | None]:
        """Return what has changed of the parents of the plan's nodes since these were computed.

        For parents in the plan that is besides what will change when they run.
        """
        versions, parents = scheduler.versions, scheduler.topology.parents
        versions.settle()
        version, record = versions.version, versions.record
        changed: dict[int, Ranges | None] = {}
        for slot in plan.slots:
            seen = record[slot]
            whole = seen is None or len(seen) != len(parents[slot])
            for i, parent in enumerate(parents[slot]):
                rows = None if whole else self.between(parent, seen[i], version[parent])  # type: ignore[index]
                if rows is None:
                    changed[parent] = None
                elif rows and (former := changed.get(parent, ())) is not None:
                    changed[parent] = joined(former, rows)
        return changed

    @staticmethod
    def _spread(
        scheduler: Scheduled, plan: Plan, changed: Mapping[int, Ranges | None]
    ) -> tuple[dict[int, Ranges], dict[int, Ranges]]:
        """Return ``rows`` and ``read`` of a ``Way``."""
        parents, rows_of = scheduler.topology.parents, scheduler.host.rows_of
        found: dict[int, Ranges] = {}
        read: dict[int, Ranges] = {}
        for slot in plan.slots:
            reached: list[Ranges | None] = []
            for parent in parents[slot]:
                rows = changed.get(parent, ())
                if rows is not None and parent in plan.members:
                    new = found.get(parent)
                    rows = None if new is None else joined(rows, new)
                reached.append(rows)
            rows = rows_of(slot, reached)
            if rows is not None:
                found[slot] = rows
            elif len(reached) == 1 and reached[0] is not None:
                read[slot] = reached[0]
        return found, read

    def note_run(self, scheduler: Scheduled, way: Way) -> None:
        """Make records of a run that has ended as planned and is about to be journaled."""
        versions = scheduler.versions
        versions.settle()
        for slot, rows in way.rows.items():
            now = versions.version[slot]
            self.note(slot, now, now + 1, rows)

    def check(self, scheduler: Scheduled, slots: Iterable[int]) -> str:
        """Return what contradicts the invariants, ``""`` if nothing does; versions must be settled."""
        live = set(slots)
        for slot, records in self.records.items():
            if slot not in live:
                return f"free slot {slot} has a record of rows"
            if not 0 < len(records) <= MOST_RECORDS:
                return f"slot {slot} has {len(records)} records of rows"
            if records[-1].new > scheduler.versions.version[slot]:
                return f"slot {slot} has a record of rows beyond its version"
            for before, after in pairwise(records):
                if before.new != after.old:
                    return f"records of rows of slot {slot} do not follow each other"
            for record in records:
                if not (record.old < record.new and well_formed(record.rows)):
                    return f"slot {slot} has the record {record!r}"
        for leaf, change in scheduler.staleness.pending.items():
            if change is not None and not (change[0] > 0 and well_formed(change[1])):
                return f"slot {leaf} is pending with the rows {change!r}"
        return ""


def _span(changed: Mapping[int, Ranges | None]) -> tuple[Ranges, tuple[int, ...]]:
    """Return the one range in which all sources have changed that have not changed as a whole.

    Besides, return the key of the same sources for any range of that length. Without such a range: ``(), ()``.
    """
    spans = {*changed.values()}
    spans.discard(None)
    if len(spans) != 1:
        return (), ()
    rows = spans.pop()
    if rows is None or len(rows) != 1:
        return (), ()
    ((begin, end),) = rows
    return rows, (end - begin, *[slot if one else ~slot for slot, one in changed.items()])
