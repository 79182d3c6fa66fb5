"""Plans in which versions decide, run as one loop over rows.

A plan that is not certain has nodes behind a cutoff: each runs only if its record does not hold its
parents' present versions. Where nothing else can decide (no errors, no released values) the loop
compares the two row by row and writes versions and records as it goes; marks wait for its end. When a
step raises, or reads other nodes itself, the frame is *suspended*: marks are brought up to date, and
the rest is run *checked* (see ``serial``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING

from reactgrad_scheduler.executors.serial import (
    Frame,
    abandon,
    bound_steps,
    conclude,
    interrupt,
    run_checked,
    run_rest,
)
from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.plan import UNCHANGED, Plan, Row, Step
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN

if TYPE_CHECKING:
    from reactgrad_scheduler.scheduler import Scheduler


class Comparison(Frame):
    """A plan that is not certain and that is being run.

    ``position`` is ``None`` while the marks know nothing of the run; after ``suspend`` it is the
    index of the node that is under way, or that was to be the next one (``ended`` is false then).
    """

    def __init__(self, scheduler: Scheduler, plan: Plan, level: int) -> None:
        super().__init__(scheduler, plan, iter(()), level, ())
        self.run = Run()
        self.ended = False
        self.outcome: object = None  # what the step returned in which it was suspended

    def play(self, rows: Sequence[Row], steps: Sequence[Step]) -> None:
        """Go through all nodes, or up to where it is suspended."""
        scheduler = self.scheduler
        versions, host, moves = scheduler.versions, scheduler.host, scheduler.moves
        version, record, overwrite = versions.version, versions.record, host.overwrite
        run, computing, seen = self.run, scheduler.computing, len(moves)
        for (slot, look, alone), step in zip(rows, steps, strict=True):
            now = look(version)
            if record[slot] == now:
                run.skipped.append(slot)
                continue
            computing[-1] = slot
            if alone:
                overwrite(alone)
            # Steps that use storage which moved are bound where their turn comes.
            if len(moves) != seen or scheduler.cancelled:
                self.suspend()
                return
            outcome = step()
            if self.position is not None:
                self.ended, self.outcome = True, outcome
                return
            if outcome is UNCHANGED:
                run.cut_off.append(slot)
            else:
                version[slot] += 1
            record[slot] = now
            run.ran.append(slot)

    def stop(self) -> None:
        """Nothing to be taken away: the loop looks at ``cancelled``."""

    def suspend(self) -> None:
        """Bring the marks up to date, and stop the loop after this step."""
        scheduler = self.scheduler
        self.position = self.plan.slots.index(scheduler.computing[-1])
        scheduler.versions.settle()
        scheduler.staleness.flush()
        put = scheduler.staleness.put
        for slot in (*self.run.ran, *self.run.skipped):
            put(slot, CLEAN)


def run_compared(scheduler: Scheduler, plan: Plan) -> tuple[Run, bool]:
    """Run those nodes of `plan` whose parents' versions moved.

    Returns
    -------
    run, straight
        What it did; whether it went straight to its end: then all nodes are to be marked as planned.
    """
    scheduler.versions.settle()
    if not _only_versions_decide(scheduler, plan):
        scheduler.staleness.flush()
        return run_checked(scheduler, plan.slots), False
    try:
        steps = bound_steps(scheduler, plan)
    except Exception:  # a node cannot be bound: found, and noted, where it is run by itself
        steps = None  # outside of this block, where the steps bound so far would be kept
    if steps is None:
        scheduler.staleness.flush()
        return run_rest(scheduler, plan, Run(), 0), False
    rows = plan.rows
    if rows is None:
        rows = plan.rows = [_row(scheduler, slot) for slot in plan.slots]
    frames, computing = scheduler.frames, scheduler.computing
    computing.append(plan.slots[0])
    frame = Comparison(scheduler, plan, len(computing))
    run = frame.run
    frames.append(frame)
    began = perf_counter()
    gate = scheduler.lock.open(len(computing)) if plan.lends else None
    try:
        try:
            frame.play(rows, steps)
        finally:
            if gate is not None:
                scheduler.lock.close(gate)
    except BaseException as error:
        if frame.position is None:
            frame.suspend()
        frames.remove(frame)
        interrupt(scheduler, plan, error, run)
        begin = (frame.position or 0) + 1
    else:
        frames.pop()
        slot = computing.pop()
        run.seconds = perf_counter() - began
        if frame.position is None:
            run.serials = plan.finished.serials
            return run, True
        begin = frame.position
        if frame.ended:
            conclude(scheduler, slot, frame.outcome, run)
            begin += 1
        else:
            abandon(scheduler, (slot,))
    run_rest(scheduler, plan, run, begin)
    run.seconds = perf_counter() - began
    return run, False


def _only_versions_decide(scheduler: Scheduler, plan: Plan) -> bool:
    """Whether nodes of this plan run if, and only if, their parents' versions moved."""
    apart = plan.members.isdisjoint
    return (
        scheduler.stopwatch is None
        and (not scheduler.dropped or _all_there(scheduler, plan))
        and apart(scheduler.errors)
        and apart(scheduler.raises)
        and apart(scheduler.versions.forced)
        and apart(scheduler.dynamic)
    )


def _all_there(scheduler: Scheduler, plan: Plan) -> bool:
    """Whether all values are there that the nodes of this plan have and read."""
    if plan.sources is None:
        parents = scheduler.topology.parents
        read = {parent for slot in plan.slots for parent in parents[slot]}
        plan.sources = frozenset(read - plan.members)
    apart = scheduler.dropped.isdisjoint
    return apart(plan.members) and apart(plan.sources)


def _row(scheduler: Scheduler, slot: int) -> Row:
    # A node with a cutoff sees its old value first, and is overwritten by its step.
    alone = () if slot in scheduler.staleness.cutoffs else (slot,)
    return slot, _look(scheduler.topology.parents[slot]), alone


def _look(parents: tuple[int, ...]) -> Callable[[Column[int]], tuple[int, ...]]:
    """A call that takes the versions of these nodes from the table."""
    if len(parents) > 1:
        return itemgetter(*parents)
    if not parents:
        return lambda version: ()
    (parent,) = parents
    return lambda version: (version[parent],)
