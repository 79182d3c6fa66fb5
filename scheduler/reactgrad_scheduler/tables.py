"""The tables of one graph: nodes, versions, marks, errors, plans, and what is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from reactgrad_scheduler.block import block
from reactgrad_scheduler.edit import Edited, Notes
from reactgrad_scheduler.errors import BusyError, CycleError
from reactgrad_scheduler.failure import StoredError
from reactgrad_scheduler.host import Host
from reactgrad_scheduler.hot import Hot
from reactgrad_scheduler.lock import GraphLock
from reactgrad_scheduler.mending import is_stray
from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.plan_cache import PlanCache
from reactgrad_scheduler.run import Run, Totals
from reactgrad_scheduler.staleness import CLEAN, STALE, Staleness
from reactgrad_scheduler.texts import listed
from reactgrad_scheduler.topology import FEW, RANK_GAP, Topology
from reactgrad_scheduler.versions import Versions

if TYPE_CHECKING:
    from reactgrad_scheduler.dirty import Dirty

# Added to the state while the host works differently from what marks show; see ``Tables.apart``.
_APART = Random(0xA9A27).getrandbits(110)


# In the list of nodes being computed: the node that a running frame is at, known to the frame only.
UNKNOWN = -1


class Tables:
    """The tables of one graph's scheduler, with the steps that change several of them together.

    Callers hold ``lock`` around every call. Methods that change or inspect more than the marks
    begin with ``attend``, which brings the tables up to date.

    Parameters
    ----------
    host
        The owner of the values.

    Attributes
    ----------
    distrust : bool
        True if every read first forgets all marks and plans (rule E16). For tests: it is slow, and has
        no effect on values, versions and which nodes run.
    """

    hot: Hot | None = None  # None before the first long plan

    def __init__(self, host: Host) -> None:
        self.host = host
        self.lock = GraphLock(self._admit)
        self.topology = Topology()
        self.versions = Versions(self.topology)
        self.staleness = Staleness(self.topology)
        self._mark = self.staleness.mark
        self.plans = PlanCache()
        self.notes = Notes()
        # For each change under way, the call that undoes or finishes it; see ``mending``.
        self.unfinished: list[Callable[[], object]] = []
        self.leaf: Column[int] = bytearray()
        self.errors: dict[int, StoredError] = {}  # by slot: the node's own error
        # Of all failed nodes: their own error, or that of an operand.
        self.raises: dict[int, StoredError] = {}
        self.fleeting = False  # True if errors are stored that the next read does not raise again
        self.error_count = 0
        self.retried = 0  # errors up to this number do not count in the read under way
        # Of nodes that were refused a read: serials of the nodes on the cycle that it would have closed.
        self.cycles: dict[int, frozenset[int]] = {}
        self.erasures = 0  # the number of times that all marks were erased
        self.dropped = self.staleness.dropped
        # Counters of values that a rebuild under way has still to read, and that must not be released
        # because a rebuild inside of it reads them.
        self.awaited: Counter[int] = Counter()
        self.locked: Counter[int] = Counter()
        self.most_rebuilt = 0.0  # a read that has rebuilt more locks all values that it awaits
        self.moves: list[int] = []  # log of slots whose storage moved
        self._moves_before = 0  # entries that the log had before it was cleared
        # Certain plans being run, innermost last: ``executors.serial.Frame``.
        self.frames: list[Any] = []
        # The frame whose function is running and is expected to read: it records the reads.
        self.reader: Any = None
        # Nodes being computed, innermost last; UNKNOWN for one that only its frame knows.
        self.computing: list[int] = []
        self.dynamic: dict[int, int] = {}  # of nodes that read others: the number of operands
        self.reads: dict[int, dict[int, None]] = {}  # reads so far of nodes being computed
        self.inner: dict[int, list[Run]] = {}  # runs of reads made by nodes being computed
        # Errors that stopped a read of nodes that are being computed.
        self.broken: dict[int, BaseException] = {}
        self.turn: int = 0  # number of the run under way, or of the last one
        self.cancelled = False  # True if the run under way must stop before its next node
        self.orphans: list[int] = []  # nodes that may be unreachable now
        self.last_run = Run()
        self.news: tuple[int, ...] = ()  # leaves replaced between the last run and the one before
        self.earlier: dict[int, None] = {}  # and before that, if the runs since had nothing to do
        self.totals = Totals()
        # ``executors.Stopwatch`` of the run under way, if there are listeners.
        self.stopwatch: Any = None
        self.distrust = False
        # Records of rows that have changed; `None` before the first set of rows.
        self.dirty: Dirty | None = None
        # ``Threads`` for reads outside of nodes; ``None``: nodes run one after the other.
        self.executor: Any = None
        # The threads of the run under way, if there are several: ``executors.crew.Crew``.
        self.crew: Any = None
        # Edited nodes as they were before, if they had been computed; an entry may be out of date.
        self.edited: dict[int, Edited] = {}
        self.seconds: dict[int, float] = {}  # times of nodes when they last ran in a crew
        # 1 for slots that the journal or a cached plan may hold.
        self._journaled: Column[int] = bytearray()

    def add(self, parents: tuple[int, ...], *, leaf: bool = False, valued: bool = False) -> int:
        """Create a node after all others, and return its slot.

        Parameters
        ----------
        parents
            Slots of live nodes, in the order of the operands.
        leaf
            True if its value is given rather than computed.
        valued
            True if the leaf has its value already; its version is then 1, else 0.
        """
        topology = self.topology
        if not topology.free:
            self._extend(topology.block())
        free, serial = topology.free, topology.next_serial
        topology.next_serial = serial + 1
        slot = free[-1]
        topology.rank[slot] = serial * RANK_GAP
        # In one step, so that an interrupt leaves the row either live or free.
        topology.serial[slot], free[-1:] = serial, ()
        try:
            if parents:
                topology.parents[slot] = parents
                children = topology.children
                for parent in parents:
                    known = children[parent]
                    if not known:
                        children[parent] = (slot,)
                    elif type(known) is tuple and len(known) < FEW and known[-1] != slot:
                        children[parent] = (*known, slot)
                    elif type(known) is dict and not topology.shared:
                        known[slot] = None
                    else:
                        topology.attach(parent, slot)
            if leaf:
                self.leaf[slot] = 1
                if valued:
                    self.staleness.put(slot, CLEAN)
                    self.versions.version[slot] = 1
            return slot
        except BaseException:
            # An edge may be missing: the node goes with the next release.
            self.orphans.append(slot)
            raise

    def _extend(self, rows: int) -> None:
        """Add free rows to all tables. The topology comes last, since it makes the rows usable."""
        self.versions.extend(rows)
        self.staleness.extend(rows)
        self.leaf.extend([0] * rows)
        self._journaled.extend([0] * rows)
        self.host.extend(rows)
        self.topology.extend(rows)

    def release(self, slots: Iterable[int]) -> None:
        """Free those of these nodes that nothing can reach, and nodes that only they kept.

        After an interrupt, the next call frees the rest.
        """
        orphans = self.orphans
        orphans.extend(slots)
        if self.computing:
            return
        topology = self.topology
        serial, children, parents = topology.serial, topology.children, topology.parents
        while orphans:
            slot = orphans[-1]
            if not serial[slot] or children[slot] or self.host.holds(slot):
                orphans.pop()
                continue
            if self._journaled[slot]:
                self.versions.settle()
                self.plans.forget_target(slot, serial[slot])
            self.versions.remove(slot)
            self.staleness.remove(slot)
            self.leaf[slot] = self._journaled[slot] = 0
            self.forget_failure(slot)
            self.dynamic.pop(slot, None)
            if self.dirty is not None:
                self.dirty.records.pop(slot, None)
            if self.seconds:
                self.seconds.pop(slot, None)
            self.host.released(slot)
            # In this order: an interrupt leaves the node in the list until its row is free.
            orphans[-1:] = (*parents[slot], slot)
            topology.remove(slot)

    # --- parked rows: of nodes that are gone, kept for nodes like them --------------------------------
    #
    # Such a row has the serial 0, as a free one, and stands in no list of consumers but those of other
    # parked rows: nothing can reach it, so nobody sees it. But it is not free. It keeps its parents, its
    # steps and its places in plans. ``take`` makes it a node again, with the former serial, by which plans
    # know it, and a number of its own in the order of creation; see ``Topology.number``.

    def park(
        self,
        computed: Sequence[int],
        given: Sequence[int],
        members: frozenset[int],
        edges: Iterable[tuple[int, int]],
    ) -> None:
        """Park computed nodes, and leaves, whose values stay; ``members`` are at least these nodes.

        ``edges`` are those that lead to them from nodes which are not parked, as (parent, node).
        """
        topology, versions = self.topology, self.versions
        versions.leave_out(members)
        self.staleness.as_new(computed)
        self.staleness.as_new(given)
        version, record, serial = versions.version, versions.record, topology.serial
        for parent, slot in edges:
            topology.detach(parent, slot)
        for slot in computed:
            version[slot] = 0
            record[slot] = None
        if self.dirty is not None:
            for slot in computed:
                self.dirty.records.pop(slot, None)
        parked = topology.parked
        for slot in (*computed, *given):
            parked[slot], serial[slot] = serial[slot], 0

    def take(self, slot: int, number: int) -> None:
        """Make a parked row a node again: stale, at version 0, above all others, with a new node's number."""
        topology = self.topology
        children = topology.children
        for parent in topology.parents[slot]:  # mostly the first consumer: `attach` written out
            if children[parent]:
                topology.attach(parent, slot)
            else:
                children[parent] = (slot,)
        topology.rank[slot] = number * RANK_GAP
        topology.numbers[slot] = number
        if self.leaf[slot]:
            self.staleness.put(slot, CLEAN)
        topology.serial[slot] = topology.parked.pop(slot)

    def take_together(
        self, slots: Sequence[int], numbers: Sequence[int], edges: Iterable[tuple[int, int]]
    ) -> None:
        """Do what ``take`` does for each of these rows; ``edges`` are those that lead to them from others."""
        topology = self.topology
        children, rank, serial, parked = (
            topology.children,
            topology.rank,
            topology.serial,
            topology.parked,
        )
        for parent, slot in edges:
            if children[parent]:
                topology.attach(parent, slot)
            else:
                children[parent] = (slot,)
        topology.numbers.update(zip(slots, numbers, strict=True))
        for slot, number in zip(slots, numbers, strict=True):
            rank[slot] = number * RANK_GAP
            if self.leaf[slot]:
                self.staleness.put(slot, CLEAN)
            serial[slot] = parked.pop(slot)

    def give_up(self, slots: Sequence[int]) -> None:
        """Let rows be released, those of them that are parked, by the next ``release``."""
        topology = self.topology
        for slot in slots:
            if slot in topology.parked:
                if self.leaf[slot]:
                    self.staleness.put(slot, CLEAN)
                topology.serial[slot] = topology.parked.pop(slot)
        self.orphans[:0] = slots  # `release` may be under way, at the last of them

    def check_idle(self) -> None:
        """Raise ``BusyError`` inside of a running node, which must not change its own graph.

        A thread that came through a gate but is not known to belong to the node waits outside instead.
        """
        if self.lock.gates and self.lock.go_outside():
            return
        if self.computing:
            at = self.computing[-1]
            name = self.host.name(self.frames[-1].under_way() if at == UNKNOWN else at)
            raise BusyError(
                f"node {name!r} tried to change its own graph while the graph was computing it: "
                "a value that depends on the change could be half old and half new. Return the "
                "new value from the function, or make the change after the read."
            )

    def _force(self, slots: Collection[int]) -> None:
        if self.cycles:
            slots = [*slots, *self._refused_for(slots)]
        self.versions.forced.update(slots)
        mark, failing = self.staleness.mark, self.errors or self.raises or self.cycles
        for each in slots:
            if failing:
                self.forget_failure(each)
            if mark[each] != STALE:
                self.staleness.put(each, STALE)
        self.staleness.push(slots)
        self.staleness.renew()

    def _refused_for(self, slots: Iterable[int]) -> list[int]:
        """Return nodes that were refused a read because of a cycle through these, and so on from them."""
        found: list[int] = []
        stack = list(slots)
        while stack:
            serial = self.topology.serial[stack.pop()]
            for refused in [other for other, cycle in self.cycles.items() if serial in cycle]:
                del self.cycles[refused]
                found.append(refused)
                stack.append(refused)
        return found

    def forget_failure(self, slot: int) -> None:
        """Forget the error of ``slot`` and the read that it was refused, since it runs again."""
        self.errors.pop(slot, None)
        self.raises.pop(slot, None)
        self.cycles.pop(slot, None)

    def drop(self, slots: Iterable[int]) -> None:
        """Note that the values of these computed nodes were released (rule E17)."""
        children = self.topology.children
        users: set[int] = set()
        for slot in slots:
            self.staleness.drop(slot)
            users.add(slot)
            users.update(children[slot])
        self.plans.unbind(users)

    def moved(self, slot: int) -> None:
        """Note that the value of ``slot`` lies in other storage: steps that use it are bound again."""
        self.moves.append(slot)

    def moves_in_all(self) -> int:
        """Return how often storage has moved, for ``moves_since``."""
        return self._moves_before + len(self.moves)

    def moves_since(self, count: int) -> list[int] | None:
        """Return the slots whose storage has moved since there were so many moves; ``None``: not known any more."""
        begin = count - self._moves_before
        return None if begin < 0 else self.moves[begin:]

    def cycle_error(self, path: Sequence[int], what: str = "edge") -> CycleError:
        """Return the error for a cycle, given as slots along the data."""
        names = listed([self.host.name(slot) for slot in path], " -> ")
        return CycleError(
            f"this {what} would close a cycle: {names}. A node cannot depend on itself; use a "
            "snapshot() of the earlier value if that is what is meant.",
            self.host.living(path),
        )

    def cancel(self, turn: int | None = None) -> None:
        """Stop the run under way before its next node; from any thread, without the lock.

        Nodes that have run keep their values, the rest stays stale, and the read raises ``Cancelled``.
        With ``turn``, this happens only if the run under way has that number.
        """
        if turn is not None and (turn != self.turn or not self.computing):
            return
        self.cancelled = True
        for frame in list(self.frames):
            frame.stop()

    @block
    def apart(self) -> Generator[None]:
        """Give reads in the block plans of their own, since the host does what marks do not show."""
        self.salted(_APART)
        try:
            yield
        finally:
            self.salted(_APART)

    def salted(self, salt: int) -> None:
        """Move to a state with plans of its own; a second call with the same ``salt`` moves back."""
        self.staleness.salted(salt)
        self.plans.kept = None

    def renew(self) -> None:
        """Find all plans anew, since something changed that marks do not show."""
        self.staleness.renew()
        self.plans.kept = None

    def operands(self, slot: int) -> tuple[int, ...]:
        """Return the parents that a node was built on, without those that it read while it ran."""
        parents = self.topology.parents[slot]
        return parents[: self.dynamic[slot]] if slot in self.dynamic else parents

    def attend(self) -> None:
        """Bring marks, versions and records up to date, also in the middle of a run."""
        if self.frames:
            self.suspend()
        if self.versions.journal:
            self.versions.settle()
        if self.staleness.pending:
            if self.dirty is None:  # the call of `_flush` is saved
                self.staleness.flush()
            else:
                self._flush()

    def _flush(self) -> list[int]:
        """Turn the pending changes into marks, and their rows into records."""
        if self.dirty is not None:
            self.dirty.note_pending(self)
        return self.staleness.flush()

    def erase_rows(self) -> None:
        """Forget which rows have changed: what depends on them is computed as a whole."""
        if self.dirty is not None:
            self.dirty.erase(self)

    def _admit(self, target: int | None, level: int, certain: int) -> bool:
        """Return whether a thread may come in to read ``target`` for the node at ``level``.

        It may not if that needs a node which is being computed and cannot finish before this read.
        """
        self.suspend()
        computing = self.computing
        if not level <= len(computing) or (level and not self.host.lends(computing[level - 1])):
            return False
        under_way = computing[certain:]
        if not under_way:
            return True
        if target is None:
            return True
        self.attend()
        mark = self.staleness.mark
        needed = self.topology.ancestors([target], lambda slot: mark[slot])
        return needed.isdisjoint(under_way)

    def suspend(self) -> None:
        """Write the progress of all frames into the tables, from the outermost one inwards."""
        if self.frames and self.frames[-1].position is None:
            for frame in self.frames:
                if frame.position is None:
                    frame.suspend()

    def forget(self) -> None:
        """Erase all marks and plans; versions alone then decide what runs (rule E16)."""
        self.attend()
        self.erasures += 1
        self.erase_rows()
        self.plans.clear()
        leaf = self.leaf
        self.staleness.doubt_all(slot for slot in self.topology.slots() if not leaf[slot])

    def wholly(self, change: Callable[[], object], undo: Callable[[], object]) -> None:
        """Make a change as a whole, or not at all: ``undo`` must work wherever ``change`` is cut short."""
        at = len(self.unfinished)
        try:
            self.unfinished.append(undo)
            change()
        except BaseException:
            self.undo(at)
            raise
        del self.unfinished[at:]

    def undo(self, at: int = 0) -> None:
        """Undo the changes under way but the first ``at``, the last one first.

        If it is cut short, the next call goes on.
        """
        unfinished = self.unfinished
        while len(unfinished) > at:
            try:
                unfinished[-1]()
            except Exception as error:
                if not is_stray(error):  # it would fail again and again
                    del unfinished[-1:]
                raise
            del unfinished[-1:]

    def counted(self) -> Totals:
        """Return the totals over all runs up to now."""
        self.attend()
        return self.totals.with_replays(self.versions.replays, self.versions.replayed)

    def version(self, slot: int) -> int:
        """Return how often the value of ``slot`` was replaced."""
        self.versions.settle()
        return self.versions.version[slot]
