"""Reads that nodes make while they are computed: runs inside of a run."""

from __future__ import annotations

from threading import get_ident

from reactgrad_scheduler.executors.serial import run_certain, was_cancelled
from reactgrad_scheduler.finding import Finding
from reactgrad_scheduler.mending import is_stray
from reactgrad_scheduler.plan import Key
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.tables import UNKNOWN

# So many nodes that read each other while they run share one Python stack; deeper reads get a new one.
NODES_A_STACK = 40


class ReadsInside(Finding):
    """The storey of the scheduler for reads that a node makes while it is computed."""

    def _refresh_elsewhere(self, targets: tuple[int, ...], retry: bool) -> Run:
        """Make a read in another thread, whose stack is fresh: chains of reads may be long (rule E5)."""
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
        """Do what ``refresh`` does, for the node that is being computed."""
        self.suspend()
        staleness = self.staleness
        read = self.topology.serial[targets[0]] if len(targets) == 1 else self._group(targets)
        key: Key = (staleness.state, tuple(staleness.pending), read)
        transition = self.plans.get(key)
        # A plan is not replayed if nodes of it are being computed: making it anew finds the cycle and
        # its path. Nor while marks are traced, or if a crew may be computing some of its nodes.
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
        """Finish a read inside of a node that did not run as its plan expected."""
        self._settle(targets, run)
        self._count(run)
        self._note_inside(run)

    def _note_inside(self, run: Run) -> None:
        self.last_run = run
        self.inner.setdefault(self.computing[-1], []).append(run)
        self.totals.add(run, -1)  # it is counted again as a part of the run of the node

    def too_deep(self) -> bool:
        """Return whether a read inside of the node being computed needs another Python stack."""
        return len(self.computing) % NODES_A_STACK == 0


def note_read(scheduler: ReadsInside, slot: int) -> bool:
    """Note that the function under way reads ``slot``, if the value is there. Return whether it was noted.

    ``False``, with nothing noted: the read needs more, or it comes from another thread, or a crew is
    computing. No lock is needed: nothing is read here that another thread, let in by the function, could
    change.
    """
    lock, frames = scheduler.lock, scheduler.frames
    try:
        gate = lock.gates[-1]
        frame = frames[-1] if frames else None
    except IndexError:  # this is another thread
        return False
    computing = scheduler.computing
    if (
        scheduler.crew is not None
        or gate.owner != get_ident()
        or gate.level != len(computing)
        or slot in scheduler.dropped
        or scheduler.retried
    ):
        return False
    mark = scheduler.staleness.mark
    if frame is not None and frame.position is None:
        if not frame.active:  # only an operand needs no note: it is a parent anyway
            node = computing[int(frame.level) - 1]
            if node == UNKNOWN:
                node = int(frame.under_way())
            operand = slot in scheduler.operands(node)
            return operand and frame.stopping is None  # after `stop` another node may be under way
        at = frame.order.get(slot, -1)
        if at >= frame.done:
            _pull(scheduler, slot)
            if not frame.active or at >= frame.done:
                return False
        elif at < 0 and (mark[slot] or slot in frame.left):
            return False
        # If another thread has suspended the frame by now, it has taken over this dict of reads.
        frame.reads[slot] = None
        return True
    if mark[slot] or scheduler.staleness.pending or not gate.level:
        return False
    node = computing[gate.level - 1]
    reads = scheduler.reads.get(node)
    if reads is None:
        reads = scheduler.reads.setdefault(node, {})
    reads[slot] = None
    return True


def _pull(scheduler: ReadsInside, slot: int) -> None:
    """Run the plan that the function under way is expected to need for its read of ``slot``."""
    gate = scheduler.lock.knock()
    if gate is None:
        return
    gate.inside, gate.depth = get_ident(), 1
    try:
        frame = scheduler.frames[-1]
        if not frame.active or frame.position is not None or scheduler.too_deep():
            return
        reading = frame.reading
        if frame.at == len(reading.pulls) or reading.pulls[frame.at].target != slot:
            return
        pull = reading.pulls[frame.at]
        scheduler.reader = None
        run = run_certain(scheduler, pull.plan)
        if run is None:
            frame.at += 1
            frame.done = pull.end
            scheduler.reader = frame
        else:
            scheduler.read_inside((slot,), run)
    except BaseException as error:
        if was_cancelled(scheduler, error) or is_stray(error):
            scheduler.break_read(error)
        raise
    finally:
        scheduler.lock.leave_gate()
