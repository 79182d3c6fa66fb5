"""The tables of one graph: nodes, versions, marks, errors, plans, and what is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from reactgrad_scheduler.edit import Notes
from reactgrad_scheduler.errors import BusyError, CycleError
from reactgrad_scheduler.failure import StoredError
from reactgrad_scheduler.host import Host
from reactgrad_scheduler.hot import Hot
from reactgrad_scheduler.lock import GraphLock
from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.plan_cache import PlanCache
from reactgrad_scheduler.run import Run, Totals
from reactgrad_scheduler.staleness import CLEAN, STALE, Staleness
from reactgrad_scheduler.topology import FEW, RANK_GAP, Topology
from reactgrad_scheduler.versions import Versions

# What state a read is in that the host does otherwise; a number like those of ``staleness``.
_APART = Random(0xA9A27).getrandbits(110)


# Stands in the list of nodes being computed for the node that a running frame is at.
UNKNOWN = -1


class Tables:
    """The tables of one graph's scheduler, and what changes several of them in one step.

    Callers hold ``lock`` around every call. Methods that change or inspect more than the marks
    begin with ``attend``, which brings the tables up to date.

    Parameters
    ----------
    host
        Owner of the values.

    Attributes
    ----------
    distrust : bool
        Whether every read first forgets all marks and plans (rule E16). For tests: slow, and
        without any effect on values, versions and what runs.
    """

    hot: Hot | None = None  # from the first plan on that is long

    def __init__(self, host: Host) -> None:
        self.host = host
        self.lock = GraphLock(self._admit)
        self.topology = Topology()
        self.versions = Versions(self.topology)
        self.staleness = Staleness(self.topology)
        self._mark = self.staleness.mark
        self.plans = PlanCache()
        self.notes = Notes()
        self.leaf: Column[int] = bytearray()
        self.errors: dict[int, StoredError] = {}  # what nodes raised
        self.raises: dict[int, StoredError] = {}  # what failed nodes raise: also operands' errors
        self.error_count = 0
        self.retried = 0  # errors up to this number do not count in the read under way
        # Of nodes that were refused a read: serials of the nodes on the cycle it would have closed.
        self.cycles: dict[int, frozenset[int]] = {}
        self.erasures = 0  # how often all marks were erased
        self.dropped = self.staleness.dropped
        # Values that a rebuild under way has still to read, and one inside of it: how often.
        self.awaited: Counter[int] = Counter()
        self.locked: Counter[int] = Counter()
        self.moves: list[int] = []  # log of slots whose storage moved
        self.frames: list[
            Any
        ] = []  # certain plans being run, innermost last: ``executors.serial.Frame``
        # Of a frame whose function is under way that is expected to read: who notes what it reads.
        self.reader: Any = None
        # Nodes being computed, innermost last; UNKNOWN for one that only its frame knows.
        self.computing: list[int] = []
        self.dynamic: dict[int, int] = {}  # nodes that read others: how many parents are fixed
        self.reads: dict[int, dict[int, None]] = {}  # what nodes being computed have read so far
        self.inner: dict[int, list[Run]] = {}  # reads made by nodes being computed
        # What stopped a read of nodes that are being computed.
        self.broken: dict[int, BaseException] = {}
        self.turn: int = 0  # number of the run under way, or of the last one
        self.cancelled = False  # whether the run under way shall stop before its next node
        self.orphans: list[int] = []  # nodes that may have lost whoever could reach them
        self.last_run = Run()
        self.news: tuple[int, ...] = ()  # leaves replaced between the last run and the one before
        self.totals = Totals()
        self.stopwatch: Any = (
            None  # ``executors.Stopwatch`` of the run under way, if someone watches
        )
        self.distrust = False
        self.executor: Any = (
            None  # ``Threads`` that run what is not read by a node; ``None``: serial
        )
        self.crew: Any = (
            None  # the threads of the run under way, if they are several: ``executors.crew.Crew``
        )
        self.seconds: dict[int, float] = {}  # that nodes took the last time they ran in a crew
        self._journaled: Column[int] = (
            bytearray()
        )  # slots that the journal or a cached plan may name

    def add(self, parents: tuple[int, ...], *, leaf: bool = False, valued: bool = False) -> int:
        """Create a node after all others, and return its slot.

        Parameters
        ----------
        parents
            Slots of live nodes, in the order of the operands.
        leaf
            Whether its value is given rather than computed.
        valued
            Whether the leaf has its value already: then its version is 1, else 0.
        """
        topology = self.topology
        if not topology.free:
            self._extend(topology.block())
        free, serial = topology.free, topology.next_serial
        topology.next_serial = serial + 1
        slot = free[-1]
        topology.rank[slot] = serial * RANK_GAP
        topology.serial[slot], free[-1:] = serial, ()  # in one step, see `Topology.remove`
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
            self.orphans.append(slot)
            raise

    def _extend(self, rows: int) -> None:
        """Add free rows to all tables; those of the topology come last, and let them be used."""
        self.versions.extend(rows)
        self.staleness.extend(rows)
        self.leaf.extend([0] * rows)
        self._journaled.extend([0] * rows)
        self.host.extend(rows)
        self.topology.extend(rows)

    def release(self, slots: Iterable[int]) -> None:
        """Free those of these nodes that nobody can reach, and what only they kept.

        What an interrupt leaves is freed at the next call.
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
            if self.seconds:
                self.seconds.pop(slot, None)
            self.host.released(slot)
            orphans[-1:] = (*parents[slot], slot)
            topology.remove(slot)

    def check_idle(self) -> None:
        """Raise ``BusyError`` inside a running node: it must not change its own graph.

        Who came in without being known to belong here waits outside until it may.
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
        """Nodes that were refused a read because of a cycle through these, and so on from them."""
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
        """Forget what `slot` raised, and what it was refused, since it runs again."""
        self.errors.pop(slot, None)
        self.raises.pop(slot, None)
        self.cycles.pop(slot, None)

    def drop(self, slots: Iterable[int]) -> None:
        """The values of these computed nodes were released (rule E17)."""
        children = self.topology.children
        users: set[int] = set()
        for slot in slots:
            self.staleness.drop(slot)
            users.add(slot)
            users.update(children[slot])
        self.plans.unbind(users)

    def moved(self, slot: int) -> None:
        """The value of `slot` lives in other storage now; steps that use it bind again."""
        self.moves.append(slot)

    def cycle_error(self, path: Sequence[int], what: str = "edge") -> CycleError:
        """The error that names a cycle given as slots along the data."""
        names = " -> ".join(self.host.name(slot) for slot in path)
        return CycleError(
            f"this {what} would close a cycle: {names}. A node cannot depend on itself; use a "
            "snapshot() of the earlier value if that is what is meant.",
            self.host.living(path),
        )

    def cancel(self, turn: int | None = None) -> None:
        """Stop the run under way before its next node; from any thread, without the lock.

        What has run stays, the rest stays stale, and the read raises ``Cancelled``. With `turn`:
        only if that is the number of the run under way.
        """
        if turn is not None and (turn != self.turn or not self.computing):
            return
        self.cancelled = True
        for frame in list(self.frames):
            frame.stop()

    @contextmanager
    def apart(self) -> Generator[None]:
        """Reads in the block follow plans of their own: the host does what marks do not show."""
        self.salted(_APART)
        try:
            yield
        finally:
            self.salted(_APART)

    def salted(self, salt: int) -> None:
        """Move to a state with plans of its own, and, called again, back."""
        self.staleness.salted(salt)
        self.plans.kept = None

    def renew(self) -> None:
        """Something happened that marks do not show: plans are found anew."""
        self.staleness.renew()
        self.plans.kept = None

    def operands(self, slot: int) -> tuple[int, ...]:
        """The parents that a node was built on, without those that it read while it ran."""
        parents = self.topology.parents[slot]
        return parents[: self.dynamic[slot]] if slot in self.dynamic else parents

    def attend(self) -> None:
        """Bring marks, versions and records up to date, also in the middle of a run."""
        if self.frames:
            self.suspend()
        if self.versions.journal:
            self.versions.settle()
        if self.staleness.pending:
            self.staleness.flush()

    def _admit(self, target: int | None, level: int, certain: int) -> bool:
        """Whether a thread may come in that wants to read `target` for the node at `level`.

        Not, if that is being computed, and so not finished yet, by a node that may not wait for it.
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
        """Let the tables know how far the frames have got, the outermost one first."""
        if self.frames and self.frames[-1].position is None:
            for frame in self.frames:
                if frame.position is None:
                    frame.suspend()

    def forget(self) -> None:
        """Erase all marks and plans; versions alone then decide what runs (rule E16)."""
        self.attend()
        self.erasures += 1
        self.plans.clear()
        leaf = self.leaf
        self.staleness.doubt_all(slot for slot in self.topology.slots() if not leaf[slot])

    def counted(self) -> Totals:
        """What all runs did together, up to now."""
        self.attend()
        return self.totals.with_replays(self.versions.replays, self.versions.replayed)

    def version(self, slot: int) -> int:
        """How often the value of `slot` was replaced."""
        self.versions.settle()
        return self.versions.version[slot]
