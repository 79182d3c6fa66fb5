"""Plans in which versions decide, run as one loop over rows.

A plan that is not certain has nodes behind a cutoff: each runs only if its record differs from its
parents' present versions. The records of nodes that were clean when the read began hold the versions from
before the change; the records of the others are compared once, at the beginning. So if nothing else can
decide (no errors, no released values), a node runs if, and only if, one of its parents was replaced
before its turn, or its own record was *due* then. The loop notes only what was replaced. A run that
replaced all values, or most, is one entry in the journal, like that of a certain plan; any other one is
written into the tables at its end. When a step raises, or reads other nodes itself, the frame is
*suspended*: what has happened is written down, and the rest is run *checked* (see ``serial``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import filterfalse
from time import perf_counter

from reactgrad_scheduler.exceptions import is_interrupt
from reactgrad_scheduler.executors.serial import (
    Frame,
    abandon,
    bound_steps,
    conclude,
    interrupt,
    run_checked,
    run_openly,
    run_rest,
)
from reactgrad_scheduler.plan import UNCHANGED, Plan, Row, Step
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN
from reactgrad_scheduler.tables import UNKNOWN

# A run with this many nodes that were not replaced is still one entry of the journal.
FEW = 64


class Comparison(Frame):
    """A plan that is not certain, while it runs.

    Attributes
    ----------
    replaced
        Leaves and nodes of the plan whose value was replaced; at first also nodes that are due.
    ended
        True if the step of the node under way was called.
    run
        The record; set when the frame is suspended or ends.
    """

    run: Run

    def __init__(
        self, scheduler: Reads, plan: Plan, rows: Iterator[Row], level: int, replaced: set[int]
    ) -> None:
        # The base class counts the rows as if they were steps, and never calls them.
        super().__init__(scheduler, plan, rows, level, plan.slots)  # type: ignore[arg-type]
        self.replaced = replaced
        self.cut_off: list[int] = []
        self.skipped: list[int] = []
        self.ended = True

    def play(self, rows: Iterator[Row]) -> None:
        """Go through all nodes, or up to the one where the frame is suspended."""
        replaced, cut_off = self.replaced, self.cut_off
        untouched, replace, skip = replaced.isdisjoint, replaced.add, self.skipped.append
        overwrite, moves = self.scheduler.host.overwrite, self.scheduler.moves
        seen = len(moves)
        for slot, first, others, alone, step in rows:
            if first not in replaced and untouched(others):
                skip(slot)
                continue
            if alone:
                overwrite(alone)
            # If storage has moved, steps must be bound anew: go on node by node.
            if len(moves) != seen:
                self.suspend()
                self.ended = False
                return
            if step() is UNCHANGED:
                replaced.discard(slot)
                cut_off.append(slot)
            else:
                replace(slot)

    def suspend(self) -> None:
        """Write the progress into the tables, and stop the loop after this step."""
        scheduler = self.scheduler
        self._taken += len(list(self.steps))
        index = max(self.begun - 1, 0)
        scheduler.computing[self.level - 1] = self.plan.slots[index]
        self.position = index
        self.write_down(index)

    def write_down(self, end: int) -> None:
        """Write the outcome of the first nodes of the plan into the tables, and mark them."""
        scheduler = self.scheduler
        scheduler.staleness.flush()
        self._note(end)
        self._record()
        for slot in self.plan.slots[:end]:
            scheduler.staleness.put(slot, CLEAN)

    def conclude(self) -> Run | None:
        """Finish a complete run. Return its record; ``None`` if all values were replaced."""
        plan, kept = self.plan, (*self.skipped, *self.cut_off)
        if not kept:
            return None
        nodes = len(plan.slots)
        self._note(nodes)
        if len(kept) < max(FEW, nodes // 2):
            self.scheduler.versions.ran_in_part(plan, kept)
        else:  # few nodes ran; an entry in the journal would cost a visit of all nodes
            self._record()
        self.run.sealed = plan.finished.sealed
        return self.run

    def _note(self, end: int) -> None:
        """Make ``run`` show the outcome of the first nodes of the plan."""
        slots, skipped = self.plan.slots[:end], set(self.skipped)
        ran = list(filterfalse(skipped.__contains__, slots) if skipped else slots)
        self.run = Run(ran, self.cut_off.copy(), self.skipped)

    def _record(self) -> None:
        """Write versions and records of nodes that ran into the tables."""
        versions = self.scheduler.versions
        versions.settle()
        version, record, current = versions.version, versions.record, versions.current
        cut_off = set(self.run.cut_off)
        for slot in self.run.ran:
            if slot not in cut_off:
                version[slot] += 1
            record[slot] = current(slot)


def run_compared(scheduler: Reads, plan: Plan, replaced: set[int]) -> tuple[Run | None, bool]:
    """Run those nodes of a plan whose parents' versions have changed.

    Parameters
    ----------
    replaced
        The leaves that changed, and the nodes that are ``due``.

    Returns
    -------
    run, straight
        The record, ``None`` if all values were replaced and this must still be journaled; and whether the
        run went straight to its end, so that all nodes must be marked as planned.
    """
    if not _only_versions_decide(scheduler, plan):
        scheduler.versions.settle()
        scheduler.staleness.flush()
        return run_checked(scheduler, plan.slots), False
    try:
        rows = _bound_rows(scheduler, plan)
    except Exception as error:  # a node cannot be bound: its own run will find and note the error
        if is_interrupt(error):
            raise
        # The plan is run below, outside of this block, whose traceback keeps the bound steps alive.
        rows = None
    if rows is None:
        return run_openly(scheduler, plan), False
    frames, computing = scheduler.frames, scheduler.computing
    computing.append(UNKNOWN)
    todo = iter(rows)
    frame = Comparison(scheduler, plan, todo, len(computing), replaced)
    frames.append(frame)
    began = perf_counter()
    gate = scheduler.lock.open(len(computing)) if plan.lends else None
    try:
        try:
            frame.play(todo)
        finally:
            if gate is not None:
                scheduler.lock.close(gate)
            if scheduler.broken:
                scheduler.raise_broken(computing[-1])
    except BaseException as error:
        if frame.position is None:
            frame.suspend()
        assert frame.position is not None
        frames.remove(frame)
        run = frame.run
        interrupt(scheduler, plan, error, run)
        begin = frame.position + 1
    else:
        frames.pop()
        slot = computing.pop()
        if frame.position is not None:
            begin, run = frame.position, frame.run
            if frame.ended:
                outcome = UNCHANGED if slot in frame.cut_off else None
                conclude(scheduler, slot, outcome, run)
                begin += 1
            else:
                abandon(scheduler, (slot,))
        elif frame.stopping is not None and frame.stopped:
            begin = frame.begun
            frame.write_down(begin)
            run = frame.run
        else:
            finished = frame.conclude()
            (finished or plan.finished).seconds = perf_counter() - began
            return finished, True
    run_rest(scheduler, plan, run, begin)
    run.seconds = perf_counter() - began
    return run, False


def _only_versions_decide(scheduler: Reads, plan: Plan) -> bool:
    """Return whether nodes of this plan run if, and only if, their parents' versions have changed."""
    members = plan.members
    return (
        scheduler.stopwatch is None
        and (not scheduler.dropped or all_there(scheduler, plan))
        and (not scheduler.errors or members.isdisjoint(scheduler.errors))
        and (not scheduler.raises or members.isdisjoint(scheduler.raises))
        and (not scheduler.versions.forced or members.isdisjoint(scheduler.versions.forced))
        and (not scheduler.dynamic or members.isdisjoint(scheduler.dynamic))
    )


def all_there(scheduler: Reads, plan: Plan) -> bool:
    """Return whether no value that the nodes of this plan have or read was released."""
    apart = scheduler.dropped.isdisjoint
    return apart(plan.members) and apart(plan.sources(scheduler.topology.parents))


def due(scheduler: Reads, slots: Collection[int]) -> set[int]:
    """Return those nodes whose records differ from their parents' versions already, so that they will run.

    Given are nodes that were not clean before the change: their records may be older.
    """
    if not slots:
        return set()
    versions = scheduler.versions
    versions.settle()
    return {slot for slot in slots if not versions.matches(slot)}


def _bound_rows(scheduler: Reads, plan: Plan) -> list[Row]:
    """Return the rows of a plan, with steps bound to the present storage."""
    steps = plan.steps
    if steps is None or plan.moves_seen != len(scheduler.moves):
        steps = bound_steps(scheduler, plan)
    if plan.rows is None:
        plan.rows = [_row(scheduler, slot, step) for slot, step in zip(plan.slots, steps)]
    return plan.rows


def _row(scheduler: Reads, slot: int, step: Step) -> Row:
    # A node with a cutoff compares with its old value first; its step overwrites it afterwards.
    alone = () if slot in scheduler.staleness.cutoffs else (slot,)
    first, *others = (*scheduler.topology.parents[slot], slot)
    return slot, first, tuple(others), alone, step
