"""The nodes that a read would run, as far as they can be known without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactgrad.core._core import Core
from reactgrad.nodes._op import Leaf
from reactgrad.scheduler import FAILED, UNSETTLED, is_interrupt
from reactgrad.values._columns import MISSING


def planned(graph: Core, targets: Sequence[int]) -> list[int]:
    """Return the nodes that a read of `targets` would run, parents first; see ``planned_and_unset``."""
    return planned_and_unset(graph, targets)[0]


def planned_and_unset(graph: Core, targets: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the nodes that a read would run, parents first, and the inputs without a value that it needs.

    An input does not run, and what is computed from one without a value cannot, nor what is computed from a node that
    has failed: a read raises its error again. Functions are assumed to read the same nodes as in their last run. Of a
    choice whose condition is up to date the branch that it will take is known.
    """
    scheduler, branches = graph._scheduler, graph._host.branches
    mark, parents = scheduler.staleness.mark, scheduler.topology.parents
    found = scheduler.truly_stale(targets)
    stale = [slot for slot in found if mark[slot] != FAILED]
    if branches.keys().isdisjoint(stale):
        return _able(graph, stale, found)
    found = [*found]
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
            # Which also finds nodes that are clean behind a cutoff.
            found += scheduler.truly_stale((branch,))
            sources = (*scheduler.operands(slot), branch)
        stack += [source for source in reversed(sources) if source not in entered]
    return _able(graph, [*ordered], dict.fromkeys(found))


def _able(graph: Core, stale: list[int], found: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the nodes of `stale`, parents first, that wait for nothing, and the leaves of `found`: they have no value.

    `found` has the failed nodes, too.
    """
    ops, scheduler = graph._host.ops, graph._scheduler
    mark, operands = scheduler.staleness.mark, scheduler.topology.parents
    waiting = {slot for slot in found if mark[slot] == FAILED}
    unset = [slot for slot in found if isinstance(ops[slot], Leaf)]
    waiting.update(unset)
    if not waiting:
        return stale, unset
    able = []
    for slot in stale:
        if slot in waiting:
            continue
        branch = _chosen(graph, slot)
        sources = operands[slot] if branch is None else (*scheduler.operands(slot), branch)
        if waiting.isdisjoint(sources):
            able.append(slot)
        else:
            waiting.add(slot)
    return able, unset


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
