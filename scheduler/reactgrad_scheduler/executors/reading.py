"""Certain plans of nodes that read others while they run.

It is certain that such a node runs, but not what it reads. The plan *expects* it to read what it had read
when the plan was found. Nodes that were stale then run when the node reads them, by a plan of their own
inside of the node's step; if it does not read them this time, they do not run. A read that comes as
expected is only noted. At the first one that does not, and at the end of a node that has left one out,
all frames are *suspended* (see ``serial``), and the rest is planned as the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from reactgrad_scheduler.collector import CollectorPause
from reactgrad_scheduler.order import find_path
from reactgrad_scheduler.plan import Expected, Plan, Pull, Reading
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run

# Plans lie inside of each other at most this deep: each level takes some of Python's stack.
MAX_INSIDE = 16


def expect(scheduler: Reads, slots: Sequence[int]) -> Plan | None:
    """Return the plan of a read that needs these nodes, in which all read what they read the last time.

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
    """Return the plan of those nodes that have not run by then, and add them to ``expected``."""
    if not inside:
        return None
    order, dynamic, mark = expected.order, scheduler.dynamic, scheduler.staleness.mark
    parents, rank = scheduler.topology.parents, scheduler.topology.rank
    dropped = scheduler.dropped
    first = len(order)
    turns: list[int] = []
    readings: dict[int, Reading] = {}
    for slot in needed:
        if slot in order:  # it runs when an earlier node reads it
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
