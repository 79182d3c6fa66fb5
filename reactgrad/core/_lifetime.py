"""The end of nodes that no handle and no other node keeps."""

from __future__ import annotations

from collections.abc import Iterable

from reactgrad.core._core import Core
from reactgrad.values._columns import MISSING


def tidy(graph: Core) -> None:
    """Release the nodes whose handles have died and that nothing else keeps."""
    dropped, asked = graph._host.dropped, graph._asked
    orphans = graph._scheduler.orphans
    # Released gradients release nodes that they gave out, whose handles then die: hence the loop.
    while (dropped or orphans) and not graph._computing and graph._programs.building is None:
        host = graph._host
        while dropped:
            ref = dropped[0]  # removed only after the work below, which an interrupt may cut short
            if ref.slot in asked.members:
                asked.clear()
            if host.anchor_refs.pop(id(ref), None) is not None:
                host.anchors[ref.slot] -= 1
                if not host.anchors[ref.slot]:
                    del host.anchors[ref.slot]
                    orphans.append(ref.slot)
            elif host.handles[ref.slot] is ref:
                orphans.append(ref.slot)
                host.handles[ref.slot] = None
                if host.together:
                    host.part(ref.slot)
            dropped.popleft()
        graph._scheduler.release(())
        if graph._shapes.serials:
            graph._shapes.bury(graph)


def slots_in_order(graph: Core) -> list[int]:
    """Return the slots of all nodes in order of creation."""
    removed = graph._host.removed
    return [slot for slot in graph._scheduler.topology.slots() if slot not in removed]


def release_values(graph: Core, slots: Iterable[int]) -> None:
    """Release the values of clean nodes that can be computed again."""
    scheduler, host = graph._scheduler, graph._host
    scheduler.attend()
    mark = scheduler.staleness.mark
    # A transaction that fails gives values back, and what they show must be as it was.
    release = host.release if scheduler.notes else host.reclaim
    release(
        [
            slot
            for slot in slots
            if not mark[slot] and host.data[slot] is not MISSING and host.recomputable(slot)
        ]
    )
