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
from typing import TYPE_CHECKING

from reactgrad_scheduler.collector import CollectorPause
from reactgrad_scheduler.order import find_path
from reactgrad_scheduler.plan import Expected, Plan, Pull, Reading
from reactgrad_scheduler.run import Run

if TYPE_CHECKING:
    from reactgrad_scheduler.reads import Reads

# So deeply plans may lie inside of each other: each takes some of Python's stack.
MAX_INSIDE = 16


def expect(scheduler: Reads, slots: Sequence[int]) -> Plan | None:
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


def _part(scheduler: Reads, needed: Sequence[int], expected: Expected, inside: int) -> Plan | None:
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
