"""The scheduler: what to run, when, and what is known afterwards.

``Scheduler`` owns the tables and is the only one who changes several of them together. It knows
neither values nor kernels: those belong to its ``Host``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from threading import RLock

from reactgrad_scheduler import executors
from reactgrad_scheduler.edit import UndoLog
from reactgrad_scheduler.errors import BusyError, Cancelled, CycleError
from reactgrad_scheduler.executors.serial import UNKNOWN, Frame, StoredError
from reactgrad_scheduler.executors.stopwatch import Stopwatch
from reactgrad_scheduler.host import Host
from reactgrad_scheduler.order import admit, cycle_through, find_path, place_between
from reactgrad_scheduler.plan import Key, Plan, PlanCache, Transition
from reactgrad_scheduler.run import Run, Totals
from reactgrad_scheduler.staleness import CLEAN, STALE, Staleness
from reactgrad_scheduler.topology import Topology
from reactgrad_scheduler.versions import JOURNAL_LIMIT, Versions

# Longest log of moved storage before it, and the plans that have read from it, are dropped.
MAX_MOVES = 4096


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

    def __init__(self, host: Host) -> None:
        self.host = host
        self.lock = RLock()
        self.topology = Topology()
        self.versions = Versions(self.topology)
        self.staleness = Staleness(self.topology)
        self.plans = PlanCache()
        self.undo = UndoLog()
        self.leaf = bytearray()
        self.errors: dict[int, StoredError] = {}
        self.error_count = 0
        self.erasures = 0  # how often all marks were erased
        self.dropped = self.staleness.dropped
        # Nodes whose value a cutoff kept, and its version: their parents have moved on, and it cannot
        # be computed again.
        self.kept: dict[int, int] = {}
        # Values that a rebuild under way has still to read, and one inside of it: how often.
        self.awaited: Counter[int] = Counter()
        self.locked: Counter[int] = Counter()
        self.moves: list[int] = []  # log of slots whose storage moved
        self.frames: list[Frame] = []  # certain plans being run, innermost last
        # Nodes being computed, innermost last; UNKNOWN for one that only its frame knows.
        self.computing: list[int] = []
        self.dynamic: dict[int, int] = {}  # nodes that read others: how many parents are fixed
        self.reads: dict[int, dict[int, None]] = {}  # what nodes being computed have read so far
        self.inner: list[Run] = []  # reads made by the node being computed
        self.cancelled = False  # whether the run under way shall stop before its next node
        self._orphans: list[int] = []  # parents that are no longer read
        self.last_run = Run()
        self.news: tuple[int, ...] = ()  # leaves replaced between the last run and the one before
        self.totals = Totals()
        self.stopwatch: Stopwatch | None = None  # of the run under way, if someone watches
        self.distrust = False
        self._journaled = bytearray()  # slots that the journal or a cached plan may name

    def fork(self, host: Host) -> Scheduler:
        """A scheduler of its own for the same nodes in the same state; plans are found anew."""
        self.check_idle()
        self.attend()
        twin = Scheduler(host)
        twin.topology = self.topology.copy()
        twin.versions = self.versions.copy(twin.topology)
        twin.staleness = self.staleness.copy(twin.topology)
        twin.leaf = self.leaf.copy()
        twin.errors = self.errors.copy()
        twin.dropped = twin.staleness.dropped
        twin.kept = self.kept.copy()
        twin.dynamic = self.dynamic.copy()
        twin._journaled = bytearray(len(self._journaled))
        twin.distrust = self.distrust
        return twin

    # --- nodes -----------------------------------------------------------------------------

    def add(self, parents: tuple[int, ...], *, leaf: bool = False, valued: bool = False) -> int:
        """Create a node and return its slot.

        Parameters
        ----------
        parents
            Slots of live nodes, in the order of the operands.
        leaf
            Whether its value is given rather than computed.
        valued
            Whether the leaf has its value already: then its version is 1, else 0.
        """
        slot = self.topology.add(parents)
        self.versions.add(slot)
        self.staleness.add(slot, CLEAN if valued else STALE)
        if slot == len(self.leaf):
            self.leaf.append(leaf)
            self._journaled.append(0)
        else:
            self.leaf[slot] = leaf
            self._journaled[slot] = 0
        if valued:
            self.versions.version[slot] = 1
        return slot

    def release(self, slots: Iterable[int]) -> None:
        """Free those of these nodes that nobody can reach, and what only they kept."""
        if self.computing:
            self._orphans.extend(slots)
            return
        topology = self.topology
        serial, children, parents = topology.serial, topology.children, topology.parents
        stack = list(slots)
        while stack:
            slot = stack.pop()
            if not serial[slot] or children[slot] or self.host.holds(slot):
                continue
            if self._journaled[slot]:
                self.versions.settle()
                self.plans.forget_target(slot)
            stack.extend(parents[slot])
            topology.remove(slot)
            self.staleness.remove(slot)
            self.errors.pop(slot, None)
            self.kept.pop(slot, None)
            self.dynamic.pop(slot, None)
            self.versions.forced.discard(slot)
            self.host.released(slot)

    # --- changes ---------------------------------------------------------------------------

    def check_idle(self) -> None:
        """Raise ``BusyError`` inside a running node: it must not change its own graph."""
        if self.computing:
            at = self.computing[-1]
            name = self.host.name(self.frames[-1].at() if at == UNKNOWN else at)
            raise BusyError(
                f"node {name!r} tried to change its own graph while the graph was computing it: "
                "a value that depends on the change could be half old and half new. Return the "
                "new value from the function, or make the change after the read."
            )

    def changed(self, *leaves: int) -> None:
        """The values of these leaves were replaced."""
        journal, pending, mark = self.versions.journal, self.staleness.pending, self.staleness.mark
        journal.append(leaves[0] if len(leaves) == 1 else leaves)
        for leaf in leaves:
            pending[leaf] = None
            self._journaled[leaf] = 1
            if mark[leaf]:  # it had no value
                self.staleness.put(leaf, CLEAN)
                self.errors.pop(leaf, None)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def touched(self, leaf: int) -> None:
        """Someone says that the value of this leaf changed."""
        self.changed(leaf)

    def invalidate(self, slot: int) -> None:
        """Make a computed node run again at its next read, whatever its parents' versions say."""
        self.attend()
        self.versions.forced.add(slot)
        self.errors.pop(slot, None)
        self.staleness.put(slot, STALE)
        self.staleness.push([slot])
        self.staleness.renew()

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

    def recomputable(self, slot: int) -> bool:
        """Whether the value of `slot` would come back the same if it was released."""
        return (
            not self.leaf[slot]
            and bool(self.topology.parents[slot])  # else it is pinned, or asks the world outside
            # A cutoff compares with the old value, however stale it is.
            and slot not in self.staleness.cutoffs
            and (slot not in self.kept or self.kept[slot] != self.version(slot))
        )

    def moved(self, slot: int) -> None:
        """The value of `slot` lives in other storage now; steps that use it bind again."""
        self.moves.append(slot)

    def reparent(self, slot: int, parents: tuple[int, ...]) -> None:
        """Replace the parents of a computed node; it becomes stale.

        Raises
        ------
        CycleError
            If the graph would get a cycle; nothing has changed then.
        """
        self.attend()
        topology = self.topology
        for parent in parents:
            path = cycle_through(topology, parent, slot)
            if path:
                raise self.cycle_error(path)
        for parent in parents:
            admit(topology, parent, slot)
        former = topology.parents[slot]
        topology.relink(slot, parents)
        self.touch_structure(slot)
        self.release([parent for parent in former if parent not in parents])

    def cut(self, slot: int) -> tuple[tuple[int, ...], int | None]:
        """Make a computed node one whose value is given, as if it had no parents.

        Returns what ``mend`` needs; the caller keeps those parents alive.
        """
        self.attend()
        parents, count = self.topology.parents[slot], self.dynamic.pop(slot, None)
        self.topology.relink(slot, ())
        self.versions.record[slot] = ()
        self.versions.forced.discard(slot)
        self.errors.pop(slot, None)
        self.staleness.restore(slot)
        self.staleness.put(slot, CLEAN)
        self.staleness.renew()
        self.plans.clear()
        return parents, count

    def mend(self, slot: int, parents: tuple[int, ...], count: int | None) -> None:
        """Take ``cut`` back; the node is stale then.

        Raises
        ------
        CycleError
            If its parents depend on it by now; nothing has changed then.
        """
        self.reparent(slot, parents)
        if count is not None:
            self.dynamic[slot] = count

    def touch_structure(self, slot: int) -> None:
        """The definition of `slot` changed: forget its record and every plan."""
        self.invalidate(slot)
        self.versions.record[slot] = None
        self.plans.clear()

    def place_between(self, slot: int, parent: int, child: int) -> None:
        """Rank a new node for insertion on the edge `parent` → `child`."""
        place_between(self.topology, slot, parent, child)

    def cycle_error(self, path: Sequence[int]) -> CycleError:
        """The error that names a cycle given as slots along the data."""
        names = " -> ".join(self.host.name(slot) for slot in path)
        return CycleError(
            f"this edge would close a cycle: {names}. A node cannot depend on itself; use a "
            "snapshot() of the earlier value if that is what is meant.",
            [self.host.handle(slot) for slot in path],
        )

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the lock for the block and take its changes back if it raises."""
        with self.lock:
            self.check_idle()
            with self.undo.transaction():
                yield

    # --- reads -----------------------------------------------------------------------------

    def refresh(self, targets: tuple[int, ...], *, retry: bool = False) -> Run:
        """Make `targets` clean, running exactly their stale ancestors.

        Nodes that raise stay stale with their descendants; the others run. Errors are in the
        returned run, not raised.
        """
        if self.distrust and not self.computing:
            self.forget()
        if not self.computing:
            self.cancelled = False
            if len(self.moves) > MAX_MOVES:
                self.moves.clear()
                self.plans.unbind()
        if self.frames:
            self._suspend()
        staleness, serial = self.staleness, self.topology.serial
        key: Key = (
            staleness.state,
            tuple(staleness.pending),
            tuple([serial[target] for target in targets]),
        )
        if not self.computing:
            flushed = staleness.flushed
            self.news = (*flushed, *key[1]) if flushed else key[1]
        transition = None if retry else self.plans.get(key)
        if transition and self.computing and not transition.plan.members.isdisjoint(self.computing):
            transition = None  # a cycle, found and named where the plan is made
        if transition is None:
            run = self._resolve(targets, key, retry)
        else:
            run = self._replay(transition)
        self.last_run = run
        if staleness.flushed and not self.computing:
            staleness.flushed.clear()
        if self.computing:
            self.inner.append(run)
            self.totals.add(run, -1)  # it will be counted with the run of the node
        if self._orphans and not self.computing:
            orphans, self._orphans = self._orphans, []
            self.release(orphans)
        return run

    def seen(self, slot: int) -> int:
        """What a node that reads `slot` now would see: its version, or which error it raises."""
        stored = self.errors.get(slot) if self.staleness.mark[slot] else None
        return self.versions.version[slot] if stored is None else -stored.number

    def seen_parents(self, slot: int) -> tuple[int, ...]:
        """What a node sees of its parents; errors only of those that it read while it ran."""
        if slot in self.dynamic:
            return tuple([self.seen(parent) for parent in self.topology.parents[slot]])
        return self.versions.current(slot)

    def cancel(self) -> None:
        """Stop the run under way before its next node; from any thread, without the lock.

        What has run stays, the rest stays stale, and the read raises ``Cancelled``.
        """
        self.cancelled = True
        for frame in list(self.frames):
            frame.stop()

    def _replay(self, transition: Transition) -> Run:
        plan = transition.plan
        if not plan.certain:
            self.versions.settle()
            self.staleness.flush()
            run = executors.serial.run_checked(self, plan.slots)
            self._count(run)
            return run
        run = executors.serial.run_certain(self, plan)
        if run is None:  # it ended as planned
            run = plan.finished
            if plan.slots:
                self.versions.journal.append(plan)
                if len(self.versions.journal) > JOURNAL_LIMIT:
                    self.versions.settle()
            staleness = self.staleness
            staleness.pending.clear()
            if transition.marks:
                for slot, mark in transition.marks:
                    staleness.put(slot, mark)
                for slot in self.dropped.intersection(plan.members):
                    staleness.restore(slot)
        else:
            self._count(run)
        return run

    def _count(self, run: Run) -> None:
        """Complete the record of a run, and add it to the totals."""
        run.seal(self.topology.serial)
        self.totals.add(run)

    def _resolve(self, targets: tuple[int, ...], key: Key, retry: bool) -> Run:
        """Find the plan by walking the marks, run it, and store it if the read repeats."""
        staleness = self.staleness
        self.versions.settle()
        worth = self.plans.wants(key) and not self.computing and not retry
        staleness.trace = {} if worth else None
        staleness.flush()
        slots = self.stale_ancestors(targets)
        forced = self.versions.forced
        certain = worth and all(
            staleness.mark[slot] == STALE and slot not in staleness.cutoffs and slot not in forced
            for slot in slots
        )
        # What the host releases in the course of this run is not wanted back at its end.
        dropped = [target for target in targets if target in self.dropped]
        run = executors.serial.run_checked(self, slots, retry=retry)
        rebuilt = self._rebuild_targets(dropped, run)
        run.retry = retry
        self._count(run)
        self.totals.resolved += not self.computing
        trace, staleness.trace = staleness.trace, None
        # What a node reads while it runs is decided anew at every run: no plan can hold it.
        fixed = not self.dynamic or self.dynamic.keys().isdisjoint(slots)
        # Nor does one rebuild its targets; what other nodes need is rebuilt by a checked run.
        if trace is not None and fixed and not run.failed and not rebuilt:
            certain = certain and len(run.ran) == len(slots) and not run.rebuilt
            self._store(key, targets, slots, certain, trace)
        return run

    def _store(
        self,
        key: Key,
        targets: tuple[int, ...],
        slots: list[int],
        certain: bool,
        trace: dict[int, int],
    ) -> None:
        staleness = self.staleness
        plan = Plan(tuple(slots), certain, frozenset(slots))
        plan.finished = Run(slots)
        plan.finished.seal(self.topology.serial)
        marks = [(s, staleness.mark[s]) for s, old in trace.items() if staleness.mark[s] != old]
        self.plans.put(key, Transition(plan, staleness.state, tuple(marks), targets))
        for slot in slots:
            self._journaled[slot] = 1
        for slot in targets:
            self._journaled[slot] = 1

    def _rebuild_targets(self, targets: Iterable[int], run: Run) -> bool:
        """Rebuild those of these nodes that are clean; whether there are any."""
        wanted = [t for t in targets if t in self.dropped and not self.staleness.mark[t]]
        if wanted:
            try:
                executors.serial.rebuild(self, wanted, run)
            except Cancelled:
                pass  # what was asked for and is still dropped tells
            except Exception as error:
                executors.serial.fail(self, wanted[0], error, run, explained=True)
                # Its value is lost: whatever it gives next is a change for what depends on it.
                self.versions.forced.add(wanted[0])
                self.staleness.push(wanted[:1])
        return bool(wanted)

    def error_again(self, run: Run) -> Exception:
        """The first error of a run as a fresh object: raising it adds no frames to the stored."""
        error = executors.serial.without_frames(run.errors[0])
        error.add_note(
            "raised before and not run again, since its parents are as they were; "
            "g.forward(..., retry=True) runs it again"
        )
        return error

    def stale_ancestors(self, targets: Iterable[int], *, read: bool = False) -> list[int]:
        """Marked nodes that `targets` need, in topological order; checks that it is one.

        What nodes have read while they ran is left out unless `read` is given: they may read
        something else this time, and ask for it themselves.
        """
        mark, parents, rank = self.staleness.mark, self.topology.parents, self.topology.rank
        dynamic = {} if read else self.dynamic
        found = {target for target in targets if mark[target]}
        stack = list(found)
        while stack:
            slot = stack.pop()
            below = rank[slot]
            sources = parents[slot]
            if slot in dynamic:
                sources = sources[: dynamic[slot]]
            for parent in sources:
                if mark[parent] and parent not in found:
                    found.add(parent)
                    stack.append(parent)
                    if rank[parent] >= below:
                        raise self.cycle_error(find_path(self.topology, slot, parent))
        for slot in self.computing:
            if slot in found:
                self._raise_read_cycle(slot, targets)
        return sorted(found, key=rank.__getitem__)

    def operands(self, slot: int) -> tuple[int, ...]:
        """The parents that a node was built on, without those that it read while it ran."""
        parents = self.topology.parents[slot]
        return parents[: self.dynamic[slot]] if slot in self.dynamic else parents

    # --- what nodes read while they run ----------------------------------------------------------

    def depend(self, slot: int) -> None:
        """The node being computed reads `slot`, and depends on it from now on.

        Raises
        ------
        CycleError
            If `slot` itself is being computed.
        """
        self.attend()
        if slot in self.computing:
            self._raise_read_cycle(slot, [slot])
        self.reads.setdefault(self.computing[-1], {})[slot] = None

    def adopt_reads(self, slot: int) -> None:
        """Make what a node read in the run that just ended its parents, behind the fixed ones."""
        reads = self.reads.pop(slot, None)
        count = self.dynamic.get(slot)
        if reads is None and count is None:
            return
        topology = self.topology
        former = topology.parents[slot]
        fixed = former if count is None else former[:count]
        # A read that was refused because it would close a cycle is not one to depend on.
        parents = fixed + tuple(
            [o for o in reads or () if o not in fixed and not cycle_through(topology, o, slot)]
        )
        if len(parents) > len(fixed):
            self.dynamic[slot] = len(fixed)
        else:
            self.dynamic.pop(slot, None)
        if parents != former:
            for parent in parents[len(fixed) :]:
                admit(topology, parent, slot)
            topology.relink(slot, parents)
            self.staleness.renew()
            self._orphans.extend(parent for parent in former if parent not in parents)

    def _raise_read_cycle(self, slot: int, targets: Iterable[int]) -> None:
        """`slot` is being computed, and what it reads, directly or not, needs `slot`."""
        for target in targets:
            path = find_path(self.topology, slot, target)
            if path:
                readers = self.computing[self.computing.index(slot) :]
                raise self.cycle_error(
                    [*path, *reversed([r for r in readers if r not in path[1:]])]
                )

    # --- the truth -------------------------------------------------------------------------

    def attend(self) -> None:
        """Bring marks, versions and records up to date, also in the middle of a run."""
        if self.frames:
            self._suspend()
        self.versions.settle()
        self.staleness.flush()

    def _suspend(self) -> None:
        frame = self.frames[-1]
        if frame.position is None:
            frame.suspend(self)

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

    def doubt(self) -> None:
        """What is certain may not be any more, since a cutoff came or went: look at versions."""
        self.attend()
        self.plans.clear()
        mark, leaf = self.staleness.mark, self.leaf
        self.staleness.doubt_all(
            slot for slot in range(len(mark)) if mark[slot] == STALE and not leaf[slot]
        )

    def version(self, slot: int) -> int:
        """How often the value of `slot` was replaced."""
        self.versions.settle()
        return self.versions.version[slot]

    def is_stale(self, slot: int) -> bool:
        """Whether a read of `slot` would find it out of date; runs nothing."""
        self.attend()
        return bool(self.staleness.mark[slot]) and slot in self.truly_stale([slot])

    def truly_stale(self, targets: Iterable[int]) -> list[int]:
        """Stale ancestors-or-self of `targets` by versions, in topological order.

        Nodes that a cutoff left marked but that match their parents' versions are unmarked.
        """
        self.attend()
        stale: dict[int, None] = {}
        mark, parents = self.staleness.mark, self.topology.parents
        for slot in self.stale_ancestors(targets, read=True):
            if (
                mark[slot] == STALE
                or any(parent in stale for parent in parents[slot])
                or not self.versions.matches(slot)
            ):
                stale[slot] = None
            else:
                self.staleness.put(slot, CLEAN)
        return list(stale)
