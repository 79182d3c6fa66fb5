"""The scheduler: what to run, when, and what is known afterwards.

``Scheduler`` owns the tables and is the only one who changes several of them together. It knows
neither values nor kernels: those belong to its ``Host``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, NoReturn

from reactgrad_scheduler import executors, order
from reactgrad_scheduler.edit import Former, Link, Noted, Notes
from reactgrad_scheduler.errors import BusyError, Cancelled, CycleError
from reactgrad_scheduler.executors.serial import UNKNOWN, Frame
from reactgrad_scheduler.executors.stopwatch import Stopwatch
from reactgrad_scheduler.failure import StoredError
from reactgrad_scheduler.host import Course, Host
from reactgrad_scheduler.hot import Hot
from reactgrad_scheduler.lock import GraphLock
from reactgrad_scheduler.order import admit, cycle_through, find_path, way_back
from reactgrad_scheduler.overlay import Blank, Column, share
from reactgrad_scheduler.plan import Group, Key, Plan, PlanCache, Script, Transition
from reactgrad_scheduler.run import Run, Totals
from reactgrad_scheduler.staleness import CLEAN, FAILED, MAYBE, STALE, UNSETTLED, Staleness
from reactgrad_scheduler.topology import FEW, RANK_GAP, Topology
from reactgrad_scheduler.versions import JOURNAL_LIMIT, Leaves, Versions

if TYPE_CHECKING:
    from reactgrad_scheduler.executors.crew import Crew
    from reactgrad_scheduler.executors.threads import Threads

# Longest log of moved storage before it, and the plans that have read from it, are dropped.
MAX_MOVES = 4096

# So many nodes that read each other while they run share one of Python's stacks.
NODES_A_STACK = 40

_STALE_ONLY, _UNSETTLED = frozenset((STALE,)), frozenset(UNSETTLED)

# What state a read is in that the host does otherwise; a number like those of ``staleness``.
_APART = Random(0xA9A27).getrandbits(110)


class Scheduler:
    """Nodes, versions, staleness, plans and runs of one graph.

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
        self.frames: list[Frame] = []  # certain plans being run, innermost last
        # Of a frame whose function is under way that is expected to read: who notes what it reads.
        self.reader: Frame | None = None
        # Nodes being computed, innermost last; UNKNOWN for one that only its frame knows.
        self.computing: list[int] = []
        self.dynamic: dict[int, int] = {}  # nodes that read others: how many parents are fixed
        self.reads: dict[int, dict[int, None]] = {}  # what nodes being computed have read so far
        self.inner: dict[int, list[Run]] = {}  # reads made by nodes being computed
        # What stopped a read of nodes that are being computed.
        self.broken: dict[int, BaseException] = {}
        self.turn = 0  # number of the run under way, or of the last one
        self.cancelled = False  # whether the run under way shall stop before its next node
        self.orphans: list[int] = []  # nodes that may have lost whoever could reach them
        self.last_run = Run()
        self.news: tuple[int, ...] = ()  # leaves replaced between the last run and the one before
        self.totals = Totals()
        self.stopwatch: Stopwatch | None = None  # of the run under way, if someone watches
        self.distrust = False
        self.executor: Threads | None = None  # who runs what is not read by a node; None: serial
        self.crew: Crew | None = None  # the threads of the run under way, if they are several
        self.seconds: dict[int, float] = {}  # that nodes took the last time they ran in a crew
        self._journaled: Column[int] = (
            bytearray()
        )  # slots that the journal or a cached plan may name

    def fork(self, host: Host) -> Scheduler:
        """A scheduler of its own for the same nodes in the same state; plans are found anew.

        Whoever has kept a column has to look again: it may be another object now.
        """
        self.check_idle()
        self.attend()
        twin = Scheduler(host)
        twin.topology = self.topology.fork()
        twin.versions = self.versions.fork(twin.topology)
        try:
            twin.staleness = self.staleness.fork(twin.topology)
        finally:
            self._mark = self.staleness.mark
        twin._mark = twin.staleness.mark
        self.leaf, twin.leaf = share(self.leaf)
        twin.errors, twin.raises = self.errors.copy(), self.raises.copy()
        twin.error_count, twin.turn = self.error_count, self.turn
        twin.cycles = self.cycles.copy()
        twin.dropped = twin.staleness.dropped
        twin.dynamic = self.dynamic.copy()
        twin._journaled = Blank(len(self._journaled), 0)
        twin.distrust = self.distrust
        twin.executor = self.executor
        twin.seconds = self.seconds.copy()
        return twin

    # --- nodes -----------------------------------------------------------------------------

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

    # --- changes ---------------------------------------------------------------------------

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

    def changed(self, leaf: int) -> None:
        """The value of this leaf was replaced."""
        journal, staleness = self.versions.journal, self.staleness
        staleness.pending[leaf] = None  # first: whatever interrupts this, no version moves unseen
        self._journaled[leaf] = 1
        journal.append(leaf)
        if staleness.mark[leaf]:
            self._valued(leaf)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def changed_together(self, leaves: tuple[int, ...]) -> None:
        """The values of these leaves were replaced."""
        journal, staleness = self.versions.journal, self.staleness
        for leaf in leaves:
            staleness.pending[leaf] = None
            self._journaled[leaf] = 1
            if staleness.mark[leaf]:
                self._valued(leaf)
        journal.append(leaves)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def _valued(self, leaf: int) -> None:
        """A leaf has a value that had none."""
        self.staleness.put(leaf, CLEAN)
        self.forget_failure(leaf)

    def changed_again(self, leaves: Leaves) -> None:
        """As ``changed``, of leaves with values of which it was told before, all of them alive."""
        journal = self.versions.journal
        self.staleness.pending.update(leaves.slots)
        journal.append(leaves)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def touched(self, leaf: int) -> None:
        """Someone says that the value of this leaf changed."""
        self.changed(leaf)

    def invalidate(self, slot: int) -> None:
        """Make a computed node run again at its next read, whatever its parents' versions say."""
        self.attend()
        self._force((slot,))

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

    def unset(self, leaf: int) -> None:
        """A leaf lost its value: a change like any other, and reads that need it raise."""
        self.changed(leaf)
        self.attend()
        self.staleness.put(leaf, STALE)
        self.staleness.renew()

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

    def reparent(self, slot: int, operands: tuple[int, ...]) -> None:
        """Replace the operands of a computed node; it becomes stale.

        Raises
        ------
        CycleError
            If the graph would get a cycle; nothing has changed then.
        """
        former = Former()
        self.relink({slot: self.rewired(slot, operands)}, former)
        self.outdate(former)
        self.commit(former)

    def link(self, slot: int) -> Link:
        """What `slot` is computed from."""
        return Link(self.topology.parents[slot], self.dynamic.get(slot))

    def rewired(self, slot: int, operands: tuple[int, ...]) -> Link:
        """What `slot` is computed from if these are its operands; it keeps what it has read."""
        return self.link(slot).rewired(operands) if slot in self.dynamic else Link(operands)

    def relink(
        self, links: Mapping[int, Link], former: Former, *, reads_yield: bool = False
    ) -> None:
        """Let nodes be computed from others, all of them or none.

        Before anything is read follow either ``outdate`` and ``commit``, or ``salted``, or ``restore``, which
        may be called wherever this was interrupted. Nodes that lose their last consumer stay until then, if
        the caller holds them.

        Parameters
        ----------
        links
            Computed nodes with their new parents.
        former
            Takes in how they were; an empty one.
        reads_yield
            Whether reads that stand in the way, which nodes made while they ran, are forgotten.

        Raises
        ------
        CycleError
            If the graph would get a cycle; nothing has changed then.
        """
        self.attend()
        topology = self.topology
        while path := order.relink(topology, {slot: links[slot].parents for slot in links}, former):
            reader = self._reader(path, links)
            if reader is None or not reads_yield:
                raise self._refused_edge(path, reader)
            links = {**links, reader: Link((links.get(reader) or self.link(reader)).operands)}
        versions, dynamic = self.versions, self.dynamic
        for slot, link in links.items():
            former.rows[slot] = (
                dynamic.get(slot),
                versions.version[slot],
                versions.record[slot],
                slot in versions.forced,
                self.errors.get(slot),
                slot in self.dropped,
            )
            if link.fixed is not None:
                dynamic[slot] = link.fixed
            elif dynamic:
                dynamic.pop(slot, None)

    def _refused_edge(self, path: Sequence[int], reader: int | None) -> CycleError:
        """The error for a cycle; `reader`: a node on it that depends on the one before by what it read."""
        error = self.cycle_error(path)
        if reader is not None and self._mark[reader] in UNSETTLED:
            name = self.host.name(reader)
            error.add_note(
                f"{name!r} depends on the node before it here because its function read that one when it ran last, "
                f"and it is stale: if it does not read it any more, read {name!r} first, then edit."
            )
        return error

    def outdate(self, former: Former) -> None:
        """Nodes that ``relink`` has changed become stale, and plans are found anew."""
        former.outdated = True
        for slot in former.rows:
            self.versions.record[slot] = None
        self._force(former.rows)
        self.plans.clear()

    def _reader(self, path: Sequence[int], links: Mapping[int, Link]) -> int | None:
        """A node on a path that has the one before only because it read it."""
        for parent, slot in pairwise(path):
            if parent not in (links.get(slot) or self.link(slot)).operands:
                return slot
        return None

    def commit(self, former: Former, kind: str | None = "edit") -> None:
        """What ``relink`` has changed stays; `kind` says to listeners what it was."""
        parents = self.topology.parents
        left = [p for slot, old in former.parents.items() for p in old if p not in parents[slot]]
        if left:
            self.release(left)

    def restore(self, former: Former) -> None:
        """Take ``relink`` back; what was not read since is as it was, and was never stale.

        Before ``outdate`` also marks and plans are.
        """
        self.attend()
        versions, leaf = self.versions, self.leaf
        reached = self.topology.descendants(former.rows) if former.outdated else ()
        order.restore(self.topology, former)
        for slot, (fixed, *_) in former.rows.items():
            if fixed is None:
                self.dynamic.pop(slot, None)
            else:
                self.dynamic[slot] = fixed
        if not former.outdated:
            return
        self._doubt([slot for slot in reached if not leaf[slot]])
        for slot, (_, version, record, forced, error, dropped) in former.rows.items():
            versions.forced.discard(slot)
            self.forget_failure(slot)
            if versions.version[slot] != version:  # it ran meanwhile
                self._force((slot,))
                continue
            versions.record[slot] = record
            if forced:
                versions.forced.add(slot)
            if dropped:
                self.staleness.drop(slot)
            if isinstance(error, StoredError):
                self.errors[slot] = error
        self.staleness.renew()
        self.plans.clear()

    def given(self, slot: int) -> None:
        """The value of a computed node, which has no parents any more, is given from now on.

        It is clean; ``changed`` follows.
        """
        self.versions.record[slot] = ()
        self.versions.forced.discard(slot)
        self.staleness.restore(slot)
        self.staleness.put(slot, CLEAN)

    def cycle_error(self, path: Sequence[int], what: str = "edge") -> CycleError:
        """The error that names a cycle given as slots along the data."""
        names = " -> ".join(self.host.name(slot) for slot in path)
        return CycleError(
            f"this {what} would close a cycle: {names}. A node cannot depend on itself; use a "
            "snapshot() of the earlier value if that is what is meant.",
            self.host.living(path),
        )

    @contextmanager
    def transaction(self, give_back: Callable[[Noted], None]) -> Generator[None]:
        """Hold the lock for the block; if it raises, give back what was noted in it."""
        with self.lock:
            self.check_idle()
            with self.notes.transaction(give_back):
                yield

    # --- reads -----------------------------------------------------------------------------

    def refresh(self, targets: tuple[int, ...], retry: bool = False) -> Run:
        """Make `targets` clean, running exactly their stale ancestors.

        Nodes that raise stay stale with their descendants; the others run. Errors are in the
        returned run, not raised (see ``error_of``). With `retry` those that raised before run
        again where `targets` need them.
        """
        if self.computing:
            if self.too_deep():
                return self._refresh_elsewhere(targets, retry)
            return self._refresh_inside(targets, retry)
        if self.distrust:
            self.forget()
        self.turn += 1
        self.cancelled = False
        self.broken.clear()
        if len(self.moves) > MAX_MOVES:
            self.moves.clear()
            self.plans.unbind()
        staleness = self.staleness
        flushed = staleness.flushed
        pending = tuple(staleness.pending)
        self.news = (*flushed, *pending) if flushed else pending
        read = self.topology.serial[targets[0]] if len(targets) == 1 else self._group(targets)
        key: Key = (staleness.state, pending, read)
        transition = self.plans.get(key)
        gates = len(self.lock.gates)
        try:
            if transition is None or retry:
                run = self._make(targets, key, None, retry)
            elif not (plan := transition.plan).slots:
                if transition.marks:
                    self._arrive(transition)
                else:
                    staleness.pending.clear()
                run = plan.finished
            elif plan.script is None or self._follows(plan.script):
                run = self._replay(targets, transition)
            else:
                run = self._resolve(targets, key)
        except BaseException:
            self._clear_away(gates)
            raise
        self.last_run = run
        if flushed:
            flushed.clear()
        if self.orphans:
            self.release(())
        return run

    def _group(self, targets: tuple[int, ...]) -> Group:
        """What plans know these nodes as that are read together."""
        group = self.plans.known(targets)
        if group is None:
            for slot in targets:
                self._journaled[slot] = 1  # first: a group must not outlive its nodes
            group = self.plans.group(targets)
        return group

    def _clear_away(self, gates: int) -> None:
        """Nothing is computed any more, in whatever line around its steps a run was interrupted."""
        self.lock.abandon(gates)
        self.reader = None
        self.broken.clear()
        self.frames.clear()
        self.computing.clear()

    def _refresh_elsewhere(self, targets: tuple[int, ...], retry: bool) -> Run:
        """Read on a stack of its own: no chain of reads is too long (rule E5)."""
        runs: list[Run] = []
        errors: list[BaseException] = []

        def read() -> None:
            try:
                runs.append(self._refresh_inside(targets, retry))
            except BaseException as error:
                errors.append(error)

        self.lock.elsewhere(len(self.computing), read, self.cancel)
        if errors:
            raise errors.pop()
        return runs[0]

    def _refresh_inside(self, targets: tuple[int, ...], retry: bool) -> Run:
        """As ``refresh``, for the node that is being computed."""
        self.suspend()
        staleness = self.staleness
        read = self.topology.serial[targets[0]] if len(targets) == 1 else self._group(targets)
        key: Key = (staleness.state, tuple(staleness.pending), read)
        transition = self.plans.get(key)
        # A cycle is found and named where the plan is made; what is recorded is run node by node; and
        # others of a crew may be computing some of it.
        if transition and (
            self.crew is not None
            or not transition.plan.members.isdisjoint(self.computing)
            or transition.plan.script
            or (staleness.trace is not None and transition.plan.slots)
        ):
            transition = None
        run = self._make(targets, key, transition, retry)
        self._note_inside(run)
        return run

    def read_inside(self, targets: tuple[int, ...], run: Run) -> None:
        """What was expected to be run for a read inside of a node came otherwise."""
        self._settle(targets, run)
        self._count(run)
        self._note_inside(run)

    def _note_inside(self, run: Run) -> None:
        self.last_run = run
        self.inner.setdefault(self.computing[-1], []).append(run)
        self.totals.add(run, -1)  # it will be counted with the run of the node

    def too_deep(self) -> bool:
        """Whether a read inside of the node that is computed needs another one of Python's stacks."""
        return len(self.computing) % NODES_A_STACK == 0

    def _make(
        self,
        targets: tuple[int, ...],
        key: Key,
        transition: Transition | None,
        retry: bool,
    ) -> Run:
        """Run what is known to be the plan of a read, or what is found to be."""
        if retry:
            return self._retry(targets)
        if transition is None:
            return self._resolve(targets, key)
        if not transition.plan.slots:
            self._arrive(transition)
            return transition.plan.finished
        return self._replay(targets, transition)

    def _doubt_errors(self, targets: tuple[int, ...]) -> None:
        """Let errors up to ``retried`` not count, nor what was computed from them."""
        self.attend()
        mark, raises, retried = self.staleness.mark, self.raises, self.retried
        failed = [
            slot
            for slot in self.topology.ancestors(targets)
            if mark[slot] == FAILED and raises[slot].number <= retried
        ]
        for slot in failed:
            self.staleness.put(slot, MAYBE)
        self.staleness.doubt_below(failed)

    def seen(self, slot: int) -> int:
        """What a node that reads `slot` now would see: its version, or which error it raises."""
        if self.staleness.mark[slot] == FAILED:
            return -self.raises[slot].number
        return self.versions.version[slot]

    def seen_parents(self, slot: int) -> tuple[int, ...]:
        """What a node sees of its parents; errors only of those that it reads while it runs."""
        if self.raises and slot in self.dynamic:
            return tuple([self.seen(parent) for parent in self.topology.parents[slot]])
        return self.versions.current(slot)

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

    def _follows(self, script: Script) -> bool:
        """Whether a run can follow a script: not inside of a node, nor where each step is watched."""
        return not self.computing and self.stopwatch is None and script.fits()

    def _replay(self, targets: tuple[int, ...], transition: Transition) -> Run:
        plan = transition.plan
        try:
            if self.executor is not None and self.executor.shares(self, plan):
                run = self.executor.replay(self, plan)
            elif plan.certain:
                run = executors.serial.run_certain(self, plan)
            else:
                replaced = set(self.staleness.pending)
                if transition.marks:  # those that were clean have the same mark afterwards
                    moved = [slot for slot, _ in transition.marks if slot in plan.members]
                    replaced |= executors.compared.due(self, moved)
                run, straight = executors.compared.run_compared(self, plan, replaced)
                if straight and run is not None:
                    self.totals.add(run)
                    self._arrive(transition)
                    return run
        except BaseException:  # in whatever line around its steps
            executors.serial.cut_short(self, plan)
            raise
        if run is None:  # it ended as planned
            run = plan.finished
            journal = self.versions.journal
            journal.append(plan)
            if len(journal) > JOURNAL_LIMIT:
                self.versions.settle()
            if transition.marks:
                self._arrive(transition)
            else:
                self.staleness.pending.clear()
            if plan.script is not None:
                self.totals.rebuilt += len(run.rebuilt)
                if not plan.script.ended():
                    plan.steps = None
            return run
        self._settle(targets, run)
        self._count(run)
        return run

    def _run(
        self,
        targets: tuple[int, ...],
        slots: Sequence[int],
        executor: Threads | None,
    ) -> Run:
        """Run those of `slots`, in topological order, whose parents' versions moved.

        `executor`: with whom, ``None``: in this thread, or its crew.
        """
        if self.crew is not None:
            return self.crew.read(targets, slots, Run())
        if executor is not None:
            return executor.run(self, slots)
        return executors.serial.run_checked(self, slots)

    def _arrive(self, transition: Transition) -> None:
        """Mark what a plan leaves behind that went straight to its end."""
        staleness = self.staleness
        if transition.marks:
            for slot, mark in transition.marks:
                staleness.put(slot, mark)
            plan = transition.plan
            back = plan.members if plan.script is None else plan.script.back
            for slot in self.dropped.intersection(back):
                staleness.restore(slot)
        # Last: who reads without the lock must never see a node that is neither pending nor marked.
        staleness.pending.clear()

    def _settle(self, targets: tuple[int, ...], run: Run) -> None:
        """Go on where a node erased all marks while it ran: what was done has to be found again."""
        mark = self.staleness.mark
        erasures = -1
        while any(mark[target] in UNSETTLED for target in targets):
            if self.cancelled or erasures == self.erasures:
                break
            erasures = self.erasures
            again = self.stale_ancestors(targets)
            if self.crew is not None:
                self.crew.read(targets, again, run)
            else:
                executors.serial.run_checked(self, again, run=run)
            ran = {*run.ran, *run.rebuilt}
            run.skipped = [slot for slot in run.skipped if slot not in ran]

    def _count(self, run: Run) -> None:
        """Complete the record of a run, and add it to the totals."""
        run.seal(self.topology.serial)
        self.totals.add(run)

    def _retry(self, targets: tuple[int, ...]) -> Run:
        """Resolve a read for which errors of before do not count."""
        former, self.retried = self.retried, self.error_count
        try:
            self._doubt_errors(targets)
            run = self._resolve(targets, None)
        finally:
            self.retried = former
        run.retry = True
        return run

    def _resolve(self, targets: tuple[int, ...], key: Key | None) -> Run:
        """Find the plan by walking the marks, run it, and store it if the read repeats."""
        staleness = self.staleness
        group = key[2] if key is not None and isinstance(key[2], Group) else None
        were_clean = group if group and key and group.clean_in == key[0] else None
        repeats = False
        if self.computing:
            self.versions.settle()
        else:
            repeats = key is not None and self.plans.wants(key)
            # Nodes that read are slow to find out about.
            recorded = repeats or (key is not None and self.dynamic and self.plans.has_room)
            staleness.trace = {} if recorded else None
        reached = staleness.flush()
        # Of many that were clean, only those that the change has reached are looked at.
        found = self.plans.of_group(were_clean, reached) if were_clean else targets
        known = self._known_plan(key[2], targets, found) if key is not None else None
        slots = self.stale_ancestors(found) if known is None else [*known.slots]
        needed = self.under_way(slots)
        if needed is not None:
            self._refuse(needed, targets)
        surely = known.certain if known is not None else self._surely_run(slots)
        decided = not surely and self._may_run(slots)  # by versions
        read_nothing = self.dynamic.keys().isdisjoint(slots)
        # What the host releases in the course of this run is not wanted back at its end.
        dropped = [target for target in targets if target in self.dropped] if self.dropped else ()
        executor = self.executor
        with self.host.around(slots, targets) if self.crew is None else nullcontext() as course:
            shared = course is None and executor is not None and executor.pays(self, slots)
            # One node by itself, of which no plan is wanted or can be had, is run sooner than planned.
            alone = len(slots) == 1 and group is None and known is None
            alone = alone and (staleness.trace is None or self._reads_anew(slots[0]))
            if known is not None and not surely and course is None and not shared:
                assert key is not None
                return self._run_known(targets, key, repeats, known, reached)
            if slots and surely and course is None and not shared and not alone:
                plan = self._whole_plan(targets, slots) if known is None else known
                if plan is not None:
                    return self._run_whole(targets, key, repeats or bool(plan.readings), plan)
            if slots:
                self.versions.settle()
                run = self._run(targets, slots, executor if shared else None)
            else:
                run = Run()
                if group is not None:
                    group.clean_in = staleness.state
            self._settle(targets, run)
            rebuilt = self._rebuild_targets(dropped, run)
        self._count(run)
        if self.computing:
            return run
        self.totals.resolved += 1
        trace, staleness.trace = staleness.trace, None
        # A read does not rebuild its targets; what other nodes need is rebuilt by a checked run.
        if key is None or run.failed or rebuilt:
            return run
        # One that was cancelled, or in which marks were erased, does not show what the read leaves.
        if any(self._mark[slot] in UNSETTLED for slot in slots):
            return run
        # What a node reads is decided anew at every run, and what it reads may be cut off. Who replays a
        # plan sees neither who reads for the first time nor who does not read any more.
        read_nothing = read_nothing and self.dynamic.keys().isdisjoint(slots)
        if read_nothing and self.cycles.keys().isdisjoint(slots):
            plan = None
            if course is None:
                certain = surely and run.ran == slots and not (run.cut_off or run.rebuilt)
                if known is not None and known.certain == certain:
                    plan = known
                elif repeats or (decided and not alone):
                    plan = Plan.of(slots, self.topology.serial, certain=certain)
                if plan is not None and decided:
                    for slot in slots:
                        self._journaled[slot] = 1
                    self.plans.keep(key[2], plan)
            elif repeats and surely:
                plan = self._plan_with_script(run, slots, course)
            if repeats and plan is not None and trace is not None:
                self._store(key, plan, targets, self._moved(trace))
        return run

    def _reads_anew(self, slot: int) -> bool:
        """Whether a node that was never computed can have no operands but those that it reads itself."""
        return not (self.leaf[slot] or self.topology.parents[slot] or self.versions.version[slot])

    def _surely_run(self, slots: Sequence[int]) -> bool:
        """Whether all of these nodes run, whatever the ones before give."""
        return (
            _STALE_ONLY.issuperset(map(self._mark.__getitem__, slots))
            and self.staleness.cutoffs.isdisjoint(slots)
            and self.versions.forced.isdisjoint(slots)
        )

    def _may_run(self, slots: Sequence[int]) -> bool:
        """Whether versions decide, and nothing else, which of these nodes run."""
        marks = map(self._mark.__getitem__, slots)
        return _UNSETTLED.issuperset(marks) and self.versions.forced.isdisjoint(slots)

    def _whole_plan(self, targets: Sequence[int], slots: Sequence[int]) -> Plan | None:
        """The plan of nodes that surely run, before they ran one by one; ``None``: more than that decides."""
        if not self.plans.enabled or self.computing or self.cancelled:
            return None
        if self.dynamic.keys().isdisjoint(slots):
            plan = Plan.of(slots, self.topology.serial, certain=True)
        else:
            plan = executors.reading.expect(self, slots)
            if plan is None or not self._surely_run(plan.slots):
                return None
        if any(map(self.leaf.__getitem__, plan.slots)):  # those have no value
            return None
        return plan if self._runs_undisturbed(targets, plan) else None

    def _runs_undisturbed(self, targets: Sequence[int], plan: Plan) -> bool:
        """Whether nothing was raised or released, or is else to be looked at, where these nodes run."""
        apart = plan.members.isdisjoint
        return (
            apart(self.errors)
            and apart(self.raises)
            and apart(self.cycles)
            and (not self.dropped or self._there(targets, plan))
        )

    def _there(self, targets: Sequence[int], plan: Plan) -> bool:
        """Whether nothing has to be rebuilt for a read."""
        return self.dropped.isdisjoint(targets) and executors.compared.all_there(self, plan)

    def _known_plan(
        self, read: int | Group, targets: Sequence[int], found: Sequence[int]
    ) -> Plan | None:
        """Of the plans that this read has followed, the one whose nodes are just those that it needs now.

        That is so where all of them are stale, or may be, and all that they, and the targets, need
        besides is clean: no edge is another one since, or the plans were forgotten. `found`: all
        targets that may not be clean.
        """
        if self.computing or self.cancelled:
            return None
        marked = self._mark.__getitem__
        for plan in self.plans.latest(read):
            surely = self._surely_run(plan.slots)
            if (
                (surely if plan.certain else not surely and self._may_run(plan.slots))
                and plan.members.isdisjoint(self.dynamic)
                and not any(map(marked, plan.sources(self.topology.parents)))
                and plan.members.issuperset(filter(marked, found))
                and self._runs_undisturbed(targets, plan)
            ):
                return plan
        return None

    def _run_whole(
        self, targets: tuple[int, ...], key: Key | None, repeats: bool, plan: Plan
    ) -> Run:
        """Run a read all of whose nodes run, as a plan, which is stored if the read `repeats`."""
        for slot in plan.slots:
            self._journaled[slot] = 1
        kept = key is not None and not plan.readings and self.plans.keep(key[2], plan)
        run = self._replay(targets, Transition(plan, 0, ()))
        as_planned = run is plan.finished
        self.totals.resolved += 1
        if as_planned and self._left_clean(targets, key, repeats, plan):
            return run
        self.staleness.trace = None
        if not kept:
            plan.retire()
        if as_planned:
            self.versions.names(len(plan))  # which may be let go of at any time
        return run

    def _left_clean(
        self, targets: tuple[int, ...], key: Key | None, repeats: bool, plan: Plan
    ) -> bool:
        """All nodes of a plan have their values now; whether it was stored, as it is if the read `repeats`."""
        self.staleness.clean(plan.slots)
        if key is not None and isinstance(key[2], Group):
            key[2].clean_in = self.staleness.state
        trace, self.staleness.trace = self.staleness.trace, None
        if not repeats or key is None or trace is None:
            return False
        left = self._moved(trace)
        if plan.expected is not None:
            plan.expected.left = frozenset([slot for slot, mark in left if mark])
        self._store(key, plan, targets, left)
        return True

    def _run_known(
        self, targets: tuple[int, ...], key: Key, repeats: bool, plan: Plan, reached: Sequence[int]
    ) -> Run:
        """Run those nodes of a known plan whose parents' versions moved; `reached`: which were settled before."""
        before = plan.members.difference(reached)
        replaced = executors.compared.due(self, before).union(key[1])
        self.plans.keep(key[2], plan)
        try:
            run, straight = executors.compared.run_compared(self, plan, replaced)
        except BaseException:  # in whatever line around its steps
            executors.serial.cut_short(self, plan)
            raise
        self.totals.resolved += 1
        if not straight:
            self.staleness.trace = None
            assert run is not None
            self._settle(targets, run)
            self._count(run)
            return run
        if run is None:
            run = plan.finished
            self.versions.journal.append(plan)
            self.versions.names(len(plan))  # which may be let go of at any time
        else:
            self.totals.add(run)
        self._left_clean(targets, key, repeats, plan)
        return run

    def _plan_with_script(self, run: Run, slots: list[int], course: Course) -> Plan | None:
        """The plan of a run in whose course the host rebuilt and released values."""
        whole = len(run.ran) == len(slots) and self.dynamic.keys().isdisjoint(slots)
        script = course(run) if whole else None
        if script is None:
            return None
        plan = Plan.of(slots, self.topology.serial, certain=True)
        plan.script = script
        plan.finished.rebuilt = list(run.rebuilt)
        plan.finished.seal(self.topology.serial)
        return plan

    def _moved(self, trace: dict[int, int]) -> list[tuple[int, int]]:
        """The marks that differ from what they were when they were traced, and those of what was dropped."""
        mark = self._mark
        marks = [(s, mark[s]) for s, old in trace.items() if s >= 0 and mark[s] != old]
        return marks + [(~s, mark[~s]) for s in trace if s < 0]

    def _store(
        self, key: Key, plan: Plan, targets: tuple[int, ...], marks: Sequence[tuple[int, int]]
    ) -> None:
        for slot in (*plan.slots, *targets[:1]):  # those of a group are noted with it
            self._journaled[slot] = 1
        self.plans.put(key, Transition(plan, self.staleness.state, tuple(marks)))

    def _rebuild_targets(self, targets: Iterable[int], run: Run) -> bool:
        """Rebuild those of these nodes that are clean; whether there are any."""
        wanted = [t for t in targets if t in self.dropped and not self.staleness.mark[t]]
        if wanted:
            try:
                executors.serial.rebuild(self, wanted, run)
            except Cancelled:
                pass  # what was asked for and is still dropped tells
            except Exception as error:
                self.staleness.push(wanted[:1])
                executors.serial.fail(self, wanted[0], error, run, explained=True)
        return bool(wanted)

    def error_of(self, targets: Iterable[int], run: Run) -> Exception | None:
        """What the read that `run` records is to raise: the first error that `targets` have."""
        mark = self.staleness.mark
        stored = [self.raises[target] for target in targets if mark[target] == FAILED]
        raised, run.raised = run.raised, {}
        if not stored:
            return None
        first = min(stored, key=attrgetter("number"))
        error = raised.get(first.number) or first.again(self.turn)
        if self.computing:  # see there whether the node passes it on
            run.raised[first.number] = error
        return error

    def blocked(self, failed: Iterable[int], among: Container[int]) -> dict[int, StoredError]:
        """Which of the nodes `among` have no value because of what these failed nodes raised.

        With the error that each of them has: that of its first operand that has one, else its own,
        also where another one than the given nodes raised it. In topological order.
        """
        topology, mark, errors = self.topology, self.staleness.mark, self.errors
        self.staleness.flush()
        reached = topology.descendants(failed, mark.__getitem__)
        reached = [slot for slot in reached if slot in among]
        self.truly_stale(reached)  # whose marks go where versions match
        found: dict[int, StoredError] = {}
        for slot in topology.sort(topology.ancestors(reached, mark.__getitem__)):
            if mark[slot] == FAILED:
                found[slot] = self.raises[slot]
                continue
            for operand in self.operands(slot):
                if operand in found:
                    found[slot] = found[operand]
                    break
            else:
                if slot in errors and self._stands(slot, found):
                    found[slot] = errors[slot]
        return {slot: error for slot, error in found.items() if slot in among}

    def _stands(self, slot: int, known: Container[int]) -> bool:
        """Whether a node would raise what it raised; `known`: which of its parents have errors."""
        mark, parents = self.staleness.mark, self.topology.parents[slot]
        settled = all(not mark[parent] or parent in known for parent in parents)
        return settled and self.errors[slot].versions == self.seen_parents(slot)

    def stale_ancestors(
        self, targets: Iterable[int], *, read: bool = False, but: Container[int] = ()
    ) -> list[int]:
        """Marked nodes that `targets` need, in topological order; checks that it is one.

        Not beyond those of `but`, nor these.

        What nodes have read while they ran is left out unless `read` is given: they may read
        something else this time, and ask for it themselves. What those have read that raise their
        own error again still counts.
        """
        mark, parents, rank = self.staleness.mark, self.topology.parents, self.topology.rank
        dynamic = None if read else self.dynamic or None
        errors = self.errors
        found = {  # with their ranks
            target: rank[target] for target in targets if mark[target] and target not in but
        }
        reached = list(found)
        for slot in reached:  # which grows
            below = found[slot]
            sources = parents[slot]
            if (
                dynamic is not None
                and slot in dynamic
                and not (slot in errors and self.error(slot) is not None)
            ):
                sources = sources[: dynamic[slot]]
            for parent in sources:
                if mark[parent] and parent not in found and parent not in but:
                    above = found[parent] = rank[parent]
                    reached.append(parent)
                    if above >= below:
                        raise self.cycle_error(find_path(self.topology, slot, parent))
        reached.sort(key=found.__getitem__)
        return reached

    def operands(self, slot: int) -> tuple[int, ...]:
        """The parents that a node was built on, without those that it read while it ran."""
        parents = self.topology.parents[slot]
        return parents[: self.dynamic[slot]] if slot in self.dynamic else parents

    # --- what nodes read while they run ----------------------------------------------------------

    def depend(self, slot: int) -> None:
        """The node being computed reads `slot` (or a thread for it), and depends on it from now on.

        Raises
        ------
        CycleError
            If `slot` itself is being computed.
        """
        self.attend()
        if slot in self.computing:
            self._refuse(slot, (slot,))
        if self.retried:
            self._doubt_errors((slot,))
        for level in self.lock.levels(len(self.computing)):
            self.reads.setdefault(self.computing[level - 1], {})[slot] = None
        if self.crew is not None:
            self.crew.depend(slot)

    def break_read(self, error: BaseException) -> None:
        """A read of the node being computed was stopped by this: whatever it makes of that is no value of it."""
        self.attend()
        for level in self.lock.levels(len(self.computing)):
            self.broken[self.computing[level - 1]] = error

    def raise_broken(self, slot: int) -> None:
        """Raise what stopped a read of `slot`, which has been computed, if anything did."""
        error = self.broken.pop(slot, None)
        if error is not None:
            raise error

    def adopt_reads(self, slot: int) -> None:
        """Make what a node read in the run that just ended its parents, behind the fixed ones."""
        reads = self.reads.pop(slot, None)
        count = self.dynamic.get(slot)
        if reads is None and count is None:
            return
        former = self.topology.parents[slot]
        if reads is not None and count is not None and former[count:] == tuple(reads):
            return
        fixed = former if count is None else former[:count]
        parents = fixed + tuple([other for other in reads or () if other not in fixed])
        try:
            self._relink_reads(slot, len(fixed), former, parents)
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt: the tables must not contradict
                self.versions.record[slot] = None
                self._relink_reads(slot, len(fixed), former, parents)
            raise

    def _relink_reads(
        self, slot: int, fixed: int, former: tuple[int, ...], parents: tuple[int, ...]
    ) -> None:
        """Give a node its reads for parents, behind the fixed ones; doing it again does no more."""
        topology = self.topology
        if parents != former:
            ranks: dict[int, int] = {}
            for parent in parents[fixed:]:
                while path := cycle_through(topology, parent, slot):
                    self._forget_reads(path)
                admit(topology, parent, slot, ranks)
            self.orphans.extend(parent for parent in former if parent not in parents)
            topology.relink(slot, parents)
            if ranks:  # plans in another order
                self.renew()
            self.staleness.relinked(slot, former[fixed:], parents[fixed:])
        if len(parents) > fixed:
            self.dynamic[slot] = fixed
        else:
            self.dynamic.pop(slot, None)

    def _forget_reads(self, path: Sequence[int]) -> None:
        """Break a cycle through what a node had read that an operand's error keeps from running.

        No other edge can be part of it: all parents of a settled node are settled, and the node
        that is being computed is not.
        """
        for before, slot in pairwise(path):
            operands = self.operands(slot)
            if self.staleness.mark[slot] == FAILED and before not in operands:
                self.orphans.extend(self.topology.parents[slot][len(operands) :])
                self.topology.relink(slot, operands)
                del self.dynamic[slot]
                self.versions.record[slot] = None
                self.errors.pop(slot, None)  # but it still raises its operand's
                self.cycles.pop(slot, None)
                self.staleness.renew()
                return
        raise self.cycle_error(path)

    def under_way(self, slots: Iterable[int]) -> int | None:
        """The innermost node being computed that is one of these."""
        if self.computing:
            found = set(slots)
            return next((slot for slot in reversed(self.computing) if slot in found), None)
        return None

    def _refuse(self, slot: int, targets: tuple[int, ...]) -> NoReturn:
        """`slot` is being computed, and what the innermost such node reads now needs `slot`.

        That node gets to see an error, and has to see when it is outdated. It cannot depend on what
        it was refused, which would close the cycle in the tables, too. It depends on what leads
        round the cycle instead: on all that the nodes on it were computed from or have read so far.
        What else makes one of these run again, an edit or a touch, takes the error back by itself.
        """
        self.refuse(self.computing[self.computing.index(slot) :], targets, slot)

    def refuse(self, computing: list[int], targets: tuple[int, ...], slot: int) -> NoReturn:
        """Each of these nodes under way needs the next one, and the last one, which has asked for
        `targets`, the first; `slot` is that of them from which on this thread computes them.
        """
        self.lock.refuse(self.computing.index(slot) + 1)
        slot, reader = computing[0], computing[-1]
        # Against the data: who reads what; each of these needs the next one that is computed.
        asked = [tuple(self.reads.get(other, ())) for other in computing[:-1]] + [targets]
        path: list[int] = []
        for start, goals in zip([slot, *reversed(computing[1:])], reversed(asked), strict=True):
            path += self._way(start, reversed(goals))
        path.append(slot)
        members = set(path)
        reads = self.reads.setdefault(reader, {})
        for target in targets:
            reads.pop(target, None)
        for before, node in pairwise(path):
            if node == reader:
                continue
            sources = self.operands(node)
            if node in computing:
                sources += tuple(self.reads.get(node, ()))
            elif before not in sources:
                sources = self.topology.parents[node]
                sources = sources[: sources.index(before)]
            else:
                continue  # whatever the values, it needs the one before
            reads.update(dict.fromkeys(source for source in sources if source not in members))
        serials = {self.topology.serial[member] for member in members - {reader}}
        self.cycles[reader] = self.cycles.get(reader, frozenset()) | serials
        raise self.cycle_error(path, "read")

    def _way(self, start: int, goals: Iterable[int]) -> list[int]:
        """A path along the data from `start` to the first goal that waits for it.

        Against the data it goes as runs do: to an operand, or, where all of these are settled, to the
        first read that is not. What was read before that one is settled, and so does not need `start`.
        """
        parents, mark = self.topology.parents, self.staleness.mark
        for goal in goals:
            came = {goal: -1}
            stack = [goal]
            while stack:
                slot = stack.pop()
                if slot == start:
                    return way_back(came, slot)
                unsettled = [one for one in parents[slot] if mark[one] in UNSETTLED]
                operands = self.operands(slot)
                for one in [one for one in unsettled if one in operands] or unsettled[:1]:
                    if one not in came:
                        came[one] = slot
                        stack.append(one)
        return [start]

    # --- the truth -------------------------------------------------------------------------

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

    def cutoff_changed(self, slot: int, cuts: bool) -> None:
        """A recomputed `slot` may be called unchanged from now on, or may not any more.

        If it is stale, what is below it is not certain any more to run, or certain again.
        """
        self.attend()
        self.plans.clear()
        staleness = self.staleness
        mark, cutoffs = staleness.mark, staleness.cutoffs
        if cuts:
            cutoffs.add(slot)
        else:
            cutoffs.discard(slot)
        if mark[slot] == STALE and not cuts:
            staleness.push((slot,))
        elif mark[slot] == STALE:
            children = self.topology.children[slot]
            self._doubt(self.topology.descendants(children, lambda child: mark[child] == STALE))
        staleness.renew()

    def _doubt(self, slots: Iterable[int]) -> None:
        """Let versions decide on computed nodes, unless an operand makes sure that they run."""
        mark, cutoffs = self.staleness.mark, self.staleness.cutoffs
        for slot in self.topology.sort(slots):
            operands = self.operands(slot)
            certain = any(mark[one] == STALE and one not in cutoffs for one in operands)
            self.staleness.put(slot, STALE if certain else MAYBE)

    def version(self, slot: int) -> int:
        """How often the value of `slot` was replaced."""
        self.versions.settle()
        return self.versions.version[slot]

    def is_stale(self, slot: int) -> bool:
        """Whether a read of `slot` would find it out of date; runs nothing."""
        self.attend()
        return slot in self.stale_among((slot,))

    def stale_among(self, slots: Collection[int]) -> set[int]:
        """Those of these nodes that a read would find out of date; walks only behind cutoffs and errors."""
        staleness = self.staleness
        if staleness.pending:
            staleness.flush()
        mark = staleness.mark
        marked = [slot for slot in slots if mark[slot]]
        if not marked:
            return set()
        # The error of another operand may be in the way of what is stale for sure.
        open_to_doubt = UNSETTLED if self.raises else (MAYBE,)
        doubtful = [slot for slot in marked if mark[slot] in open_to_doubt]
        if not doubtful:
            return set(marked)
        self.truly_stale(doubtful)
        return {slot for slot in marked if mark[slot]}

    def truly_stale(self, targets: Iterable[int]) -> list[int]:
        """Stale ancestors-or-self of `targets` by versions, in topological order.

        Nodes that turn out to be as their parents left them are settled.
        """
        self.attend()
        mark = self.staleness.mark
        slots = self.stale_ancestors(targets, read=True)
        for slot in slots:
            if mark[slot] in UNSETTLED:
                standing = self.standing(slot)
                if standing not in UNSETTLED:
                    self.staleness.put(slot, standing)
        return [slot for slot in slots if mark[slot]]

    def standing(self, slot: int) -> int:
        """What its parents make of a node: which mark it gets where nothing runs.

        ``CLEAN`` or ``FAILED``: it is as they left it. ``STALE``: it has to run. ``MAYBE``: that
        depends on a parent that is not settled, and all others are as it saw them.
        """
        mark, errors, dynamic = self.staleness.mark, self.errors, self.dynamic
        parents, version = self.topology.parents[slot], self.versions.version
        reads: tuple[int, ...] = ()
        if slot in dynamic:
            count = dynamic[slot]
            parents, reads = parents[:count], parents[count:]
        now: list[int] = []
        failed: list[int] = []
        for parent in parents:
            if mark[parent]:
                if mark[parent] != FAILED:
                    return MAYBE
                failed.append(parent)
            now.append(version[parent])
        if failed:
            self.raises[slot] = self.raises[failed[0]]
            return FAILED
        stored = errors.get(slot) if errors else None
        known = self.versions.record[slot] if stored is None else stored.versions
        if known is None or (stored is None and slot in self.versions.forced):
            return STALE
        if not reads:
            if known != tuple(now):
                return STALE
        else:
            if known[: len(now)] != tuple(now) or len(known) != len(now) + len(reads):
                return STALE
            doubtful = False
            for parent, old in zip(reads, known[len(now) :], strict=True):
                if mark[parent] in UNSETTLED:
                    doubtful = True
                elif self.seen(parent) != old:
                    return STALE
            if doubtful:
                return MAYBE
        if stored is None:
            if self.raises:
                self.raises.pop(slot, None)
            return CLEAN
        if stored.number <= self.retried:
            return STALE
        self.raises[slot] = stored
        return FAILED

    def doubtful_read(self, slot: int) -> int | None:
        """The read on which it depends whether `slot` has to run; ``None`` if it is an operand.

        In the order in which it read: a change before may lead it elsewhere, and what it then does
        not read again must not run.
        """
        mark, parents = self.staleness.mark, self.topology.parents[slot]
        unsettled = next(parent for parent in parents if mark[parent] in UNSETTLED)
        return None if unsettled in self.operands(slot) else unsettled

    def unless_doubted(self, slot: int, mark: int) -> int:
        """`mark` for a node that has run, or ``MAYBE`` if it erased the marks of its parents."""
        if self.erasures:
            marks = self.staleness.mark
            if any(marks[parent] in UNSETTLED for parent in self.topology.parents[slot]):
                return MAYBE
        return mark

    def error(self, slot: int) -> Exception | None:
        """What a node itself raised and raises again, if it is settled (``is_stale`` settles)."""
        stored = self.errors.get(slot)
        failed = self.staleness.mark[slot] == FAILED and self.raises[slot] is stored
        return stored.error if stored is not None and failed else None
