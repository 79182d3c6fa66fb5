"""The scheduler: the decision what runs and when, and the record of it.

``Scheduler`` owns the tables and is the only class that changes several of them together. It knows
neither values nor kernels: those belong to its ``Host``.
"""

from __future__ import annotations

from weakref import ref

from reactgrad_scheduler import executors, order
from reactgrad_scheduler.host import Host
from reactgrad_scheduler.overlay import Blank, share
from reactgrad_scheduler.plan import Key, Transition
from reactgrad_scheduler.reads_inside import ReadsInside
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.versions import Leaves

# The longest log of moved storage. Beyond it the log is cleared, and all plans are unbound.
MAX_MOVES = 4096


# A fork takes along what is known of so many edited nodes; it must not cost more in a large graph.
MOST_EDITED = 1000


class Repeat:
    """A read of some nodes that is made again and again after the same changes: it finds its plan without a look-up.

    Invariant: where ``known`` returns a key, the cache of plans has ``transition`` for it.

    Parameters
    ----------
    events : list of Leaves
        The sets before the read, in order. They, and nothing else, must have changed anything since the last read.
    """

    __slots__ = ("_events", "_key", "_losses", "transition")

    def __init__(self, events: list[Leaves]) -> None:
        self._events = events
        self._key: Key | None = None
        self._losses = 0
        self.transition: Transition | None = None

    def known(self, scheduler: Scheduler) -> Key | None:
        """Return the key of the read that is about to be made; ``None`` if it must be looked up."""
        key, staleness = self._key, scheduler.staleness
        if (
            key is not None
            and staleness.state == key[0]
            and scheduler.plans.losses == self._losses
            and len(staleness.pending) == len(key[1])
            and scheduler.versions.journal[-len(self._events) :] == self._events
            and not staleness.flushed
        ):
            return key
        return None

    def note(self, scheduler: Scheduler, key: Key, transition: Transition | None) -> None:
        """Remember what was looked up, if it is found by these sets alone."""
        self._key = None
        if (
            transition is not None
            and self._events
            and scheduler.versions.journal[-len(self._events) :] == self._events
            and len(key[1]) == len({slot for leaves in self._events for slot in leaves.slots})
        ):
            self._losses, self.transition, self._key = scheduler.plans.losses, transition, key


class Scheduler(ReadsInside):
    """Nodes, versions, staleness, plans and runs of one graph: the whole of it.

    The rules of ``Tables`` hold for every method.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.lock.mending.of = ref(self)

    def fork(self, host: Host) -> Scheduler:
        """Return a separate scheduler for the same nodes in the same state, without plans.

        Columns of this scheduler may be other objects afterwards, so aliases must be read again.
        """
        self.check_idle()
        self.attend()
        twin = Scheduler(host)
        twin.topology = self.topology.fork()
        twin.versions = self.versions.fork(twin.topology)
        try:
            twin.staleness = self.staleness.fork(twin.topology)
        finally:  # the column was replaced by an overlay: aliases must follow, also after an error
            self._mark = self.staleness.mark
        twin._mark = twin.staleness.mark
        self.leaf, twin.leaf = share(self.leaf)
        twin.errors, twin.raises = self.errors.copy(), self.raises.copy()
        twin.error_count, twin.turn = self.error_count, self.turn
        twin.fleeting = self.fleeting
        twin.cycles = self.cycles.copy()
        twin.edited = self.edited.copy() if len(self.edited) <= MOST_EDITED else {}
        twin.dropped = twin.staleness.dropped
        twin.dynamic = self.dynamic.copy()
        twin._journaled = Blank(len(self._journaled), 0)
        twin.plans.follow(self.plans, twin.topology)
        twin.distrust = self.distrust
        twin.executor = self.executor
        twin.seconds = self.seconds.copy()
        return twin

    def refresh(
        self, targets: tuple[int, ...], retry: bool = False, repeat: Repeat | None = None
    ) -> Run:
        """Make ``targets`` clean by running exactly their stale ancestors.

        Nodes that raise stay stale with their descendants; the others run. Errors are in the returned
        run, not raised (see ``error_of``). With ``retry``, nodes that had raised before run again if
        ``targets`` need them. A ``repeat`` remembers the plan of a read that is made again and again.
        """
        if self.computing:
            if self.too_deep():
                return self._refresh_elsewhere(targets, retry)
            return self._refresh_inside(targets, retry)
        if self.distrust:
            self.forget()
        if self.fleeting:
            self._forget_fleeting()
        self.turn += 1
        self.cancelled = False
        self.broken.clear()
        if len(self.moves) > MAX_MOVES:
            self._moves_before += len(self.moves)
            self.moves.clear()
            self.plans.unbind()
        staleness = self.staleness
        flushed = staleness.flushed
        key = None if repeat is None else repeat.known(self)
        if key is None or repeat is None:
            read = self.topology.serial[targets[0]] if len(targets) == 1 else self._group(targets)
            key = (staleness.state, tuple(staleness.pending), read)
            transition = self.plans.get(key)
            if transition is None and self.plans.origin is not None and not retry:
                transition = self.plans.from_origin(key, self._journaled)
            if repeat is not None:
                repeat.note(self, key, transition)
        else:
            transition = repeat.transition
        last = self.last_run
        if last.ran or last.failed:
            if self.earlier:
                self.earlier.clear()
        elif self.news:
            self.earlier.update(dict.fromkeys(self.news))
        self.news = (*flushed, *key[1]) if flushed else key[1]
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
        if flushed:  # not after an interrupt: they are still `news` for the next run
            flushed.clear()
        if self.orphans:
            self.release(())
        return run

    def was_left(self) -> bool:
        """Return whether the thread that holds the lock has left its work without releasing it.

        An interrupt between the acquisition and the line after it does that. Blocks of users hold the
        lock, too, and so does what has called the running code.
        """
        return not (self.lock.owners or self.notes or self.crew or self.host.is_inside())

    def mend(self, inside: bool) -> None:
        """Undo or finish what a stray error has cut short, and put everything in doubt that follows from it.

        If it is ``inside`` of the thread's own work, which must end first, it does nothing yet.
        """
        under_way = self.lock.gates or self.computing or self.frames or self.unfinished
        if self.crew is not None or (inside and (under_way or self.host.is_building())):
            return
        try:
            self.lock.as_usual(mended=True)
            self._clear_away(0)
            self.reads.clear()
            self.inner.clear()
            self.awaited.clear()
            self.locked.clear()
            self.retried = 0
            self.undo()
            self.host.rest()
            self.give_up([*self.topology.parked])
            order.mend(self.topology)
            # Rows that were filled or cleared only in part; nothing may be built on them.
            self.release([slot for slot in self.topology.slots() if not self.host.holds(slot)])
            self.notes.finish()
            self.forget()
            self.host.mend()
            self._distrust_kept()
        except BaseException:
            self.lock.acquire = self.lock.mending
            raise

    def _distrust_kept(self) -> None:
        """Count values of nodes with a cutoff as replaced, unless versions show that they were not.

        See ``distrust_values``.
        """
        cutoffs = [slot for slot in self.staleness.cutoffs if not self.leaf[slot]]
        if cutoffs:
            self.truly_stale(cutoffs)
            executors.serial.distrust_values(self, cutoffs)

    def _clear_away(self, gates: int) -> None:
        """Reset the state of computing, wherever an interrupt has stopped a run."""
        self.lock.abandon(gates)
        self.erase_rows()
        self.reader = None
        self.broken.clear()
        self.frames.clear()
        self.computing.clear()
