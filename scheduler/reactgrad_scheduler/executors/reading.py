"""Certain plans of nodes that read others while they run.

That a node runs is certain, what it reads is not: such a plan *expects* it to read what it read when the
plan was found. What was stale then is run where the node reads it, by a plan of its own inside of the
node's step; what it does not ask for this time does not run. Reads that come as expected write nothing
but down that they were made; at the first one that does not, and at the end of a node that has left one
out, all frames are *suspended* (see ``serial``), and the rest is found out as it goes.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

from reactgrad_scheduler.executors.serial import UNKNOWN, run_certain
from reactgrad_scheduler.plan import Expected, Plan, Pull, Reading
from reactgrad_scheduler.run import Run

if TYPE_CHECKING:
    from reactgrad_scheduler.scheduler import Scheduler

# So deeply plans may lie inside of each other: each takes some of Python's stack.
MAX_INSIDE = 16


def plan_of(scheduler: Scheduler, run: Run, left: frozenset[int]) -> Plan | None:
    """The plan that does what a certain run did; `left` are nodes that it left stale outside of it."""
    order = {slot: i for i, slot in enumerate(run.ran)}
    if len(order) < len(run.ran):
        return None
    plan = _part(scheduler, run, Expected(order, left), 0, len(run.ran), MAX_INSIDE)
    if plan is not None:
        plan.finished = Run(list(plan.slots))
        plan.finished.seal(scheduler.topology.serial)
    return plan


def _part(
    scheduler: Scheduler, run: Run, expected: Expected, begin: int, end: int, inside: int
) -> Plan | None:
    """The plan of what ran from `begin` to `end`."""
    if not inside:
        return None
    turns: list[int] = []
    readings: dict[int, Reading] = {}
    at = end
    while at > begin:
        at -= 1
        slot = run.ran[at]
        turns.append(slot)
        if slot not in scheduler.dynamic:
            continue
        pulls: list[Pull] = []
        for target, first, last in reversed(run.pulls.get(slot, ())):
            part = _part(scheduler, run, expected, first, last, inside - 1)
            if part is None or last != at:
                return None
            pulls.append(Pull(target, part, last))
            at = first
        operands = scheduler.operands(slot)
        reads = scheduler.topology.parents[slot][len(operands) :]
        readings[slot] = Reading(reads, operands, at, pulls[::-1])
    slots = tuple(run.ran[begin:end])
    return Plan(slots, True, frozenset(slots), tuple(turns[::-1]), readings, expected)


def note_read(scheduler: Scheduler, slot: int) -> bool:
    """Note that the function under way reads `slot`, if that can be had at once.

    ``False``: there is more to it, or the function is that of another thread, or of one of several that
    compute together, and nothing is noted.
    Needs no lock: nothing is looked at that another thread, let in by the function, could change.
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
        if not frame.active:  # what a node was built on is its parent anyway
            node = computing[frame.level - 1]
            if node == UNKNOWN:
                node = frame.under_way()
            operand = slot in scheduler.topology.parents[node]
            return operand and frame.stopping is None  # else it may be at another node
        at = frame.order.get(slot, -1)
        if at >= frame.done:
            _pull(scheduler, slot)
            if not frame.active or at >= frame.done:
                return False
        elif at < 0 and (mark[slot] or slot in frame.left):
            return False
        # Where another thread has suspended the frame by now, it has taken these reads over.
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


def _pull(scheduler: Scheduler, slot: int) -> None:
    """Run what the function under way is expected to need for its read of `slot`."""
    gate = scheduler.lock.knock()
    if gate is None:
        return
    gate.inside, gate.depth = get_ident(), 1
    try:
        frame = scheduler.frames[-1]
        if not frame.active or frame.position is not None or scheduler.too_deep():
            return
        reading = frame.plan.readings[frame.slot]
        if frame.at == len(reading.pulls) or reading.pulls[frame.at].target != slot:
            return
        pull = reading.pulls[frame.at]
        run = run_certain(scheduler, pull.plan)
        if run is None:
            frame.at += 1
            frame.done = pull.end
        else:
            scheduler.read_inside((slot,), run)
    finally:
        scheduler.lock.leave_gate()
