"""The nodes that a read would run, as far as they can be known without running anything."""

from __future__ import annotations

from collections.abc import Sequence

from reactgrad.core._core import Core
from reactgrad.scheduler import FAILED, UNSETTLED, is_interrupt
from reactgrad.values._columns import MISSING


def planned(graph: Core, targets: Sequence[int]) -> list[int]:
    """Return the nodes that a read of `targets` would run, parents first.

    Functions are assumed to read the same nodes as in their last run. Of a choice whose condition
    is up to date the branch that it will take is known.
    """
    scheduler, branches = graph._scheduler, graph._host.branches
    mark, parents = scheduler.staleness.mark, scheduler.topology.parents
    # A failed node raises its error again and does not run.
    stale = [slot for slot in scheduler.truly_stale(targets) if mark[slot] != FAILED]
    if branches.keys().isdisjoint(stale):
        return stale
    ordered: dict[int, None] = {}
    entered: set[int] = set()
    stack = [*reversed(targets)]
    while stack:
        slot = stack[-1]
        if slot in entered or mark[slot] not in UNSETTLED:
            stack.pop()
            if slot in entered:
                ordered[slot] = None  # after its parents
            continue
        entered.add(slot)
        sources = parents[slot]
        branch = _chosen(graph, slot)
        if branch is not None:
            scheduler.truly_stale((branch,))  # finds nodes that are clean behind a cutoff
            sources = (*scheduler.operands(slot), branch)
        stack += [source for source in reversed(sources) if source not in entered]
    return [*ordered]


def _chosen(graph: Core, slot: int) -> int | None:
    """Return the branch that a choice will take.

    Return ``None`` where the node is no choice or this is not known yet.
    """
    host = graph._host
    if slot not in host.branches or slot in host.pins:
        return None
    condition, first, second = host.branches[slot]
    value = host.data[condition]
    if graph._scheduler.staleness.mark[condition] or value is MISSING:
        return None
    try:
        return first if value else second
    except Exception as error:  # it has no truth value: the choice will raise the same
        if is_interrupt(error):
            raise
        return None
