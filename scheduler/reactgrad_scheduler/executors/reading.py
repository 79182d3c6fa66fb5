"""Certain plans of nodes that read others while they run.

That a node runs is certain, what it reads is not: such a plan *expects* it to read what it had read when
the plan was found. What was stale then is run where the node reads it, by a plan of its own inside of the
node's step; what it does not ask for this time does not run. Reads that come as expected write nothing
but down that they were made; at the first one that does not, and at the end of a node that has left one
out, all frames are *suspended* (see ``serial``), and the rest is found out as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import get_ident
from typing import TYPE_CHECKING

from reactgrad_scheduler.collector import CollectorPause
from reactgrad_scheduler.errors import Later
from reactgrad_scheduler.executors.serial import UNKNOWN, run_certain, was_cancelled
from reactgrad_scheduler.order import find_path
from reactgrad_scheduler.plan import Expected, Plan, Pull, Reading
from reactgrad_scheduler.run import Run

if TYPE_CHECKING:
    from reactgrad_scheduler.scheduler import Scheduler

# So deeply plans may lie inside of each other: each takes some of Python's stack.
MAX_INSIDE = 16


def expect(scheduler: Scheduler, slots: Sequence[int]) -> Plan | None:
    """The plan of a read that needs these nodes, in which all read what they read the last time.

    ``None``: plans would lie too deep inside of each other.
    """
    order: dict[int, int] = {}
    with CollectorPause():
        plan = _part(scheduler, slots, Expected(order, frozenset()), MAX_INSIDE)
    if plan is not None:
        plan.finished = Run(list(plan.slots))
        plan.finished.seal(scheduler.topology.serial)
    return plan


def _part(
    scheduler: Scheduler, needed: Sequence[int], expected: Expected, inside: int
) -> Plan | None:
    """The plan of those of these nodes that have not been run by then; it joins what is `expected`."""
    if not inside:
        return None
    order, dynamic, mark = expected.order, scheduler.dynamic, scheduler.staleness.mark
    parents, rank = scheduler.topology.parents, scheduler.topology.rank
    dropped = scheduler.dropped
    first = len(order)
    turns: list[int] = []
    readings: dict[int, Reading] = {}
    for slot in needed:
        if slot in order:  # it is run where one of those before reads it
            continue
        turns.append(slot)
        fixed = dynamic.get(slot)
        if fixed is not None:
            operands, reads = parents[slot][:fixed], parents[slot][fixed:]
            begin = len(order)
            pulls: list[Pull] = []
            ready = [*operands]
            for read in reads:
                if read in order:
                    if order[read] < begin:
                        ready.append(read)
                elif not mark[read]:
                    if read not in dropped:
                        ready.append(read)
                elif rank[read] >= rank[slot]:
                    raise scheduler.cycle_error(find_path(scheduler.topology, slot, read))
                else:
                    below = scheduler.stale_ancestors((read,), but=order)
                    part = _part(scheduler, below, expected, inside - 1)
                    if part is None:
                        return None
                    pulls.append(Pull(read, part, len(order)))
            readings[slot] = Reading(reads, operands, begin, pulls, frozenset(ready))
        order[slot] = len(order)
    slots = tuple(islice(order, first, None)) if first else tuple(order)
    return Plan(slots, True, frozenset(slots), tuple(turns), readings, expected)


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
            operand = slot in scheduler.operands(node)
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
        if was_cancelled(scheduler, error) or not isinstance(error, Exception | Later):
            scheduler.break_read(error)
        raise
    finally:
        scheduler.lock.leave_gate()
