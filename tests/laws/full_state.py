"""All that is known of the nodes of a graph, to compare before and after what must change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.core._handles import tidy
from reactgrad.values._columns import MISSING


def full_state(graph: rg.Graph) -> dict[str, Any]:
    """Values (the objects and their bytes), versions, records, staleness, edges with their order, ranks,
    names, flags, errors, and the adjoints of all gradients."""
    with graph._lock:
        tidy(graph)
        host, scheduler = graph._host, graph._scheduler
        scheduler.attend()
        topology, versions = scheduler.topology, scheduler.versions
        serial = topology.serial
        nodes = {}
        for slot in topology.slots():
            data = host.data[slot]
            nodes[serial[slot]] = {
                "name": host.name(slot),
                "version": versions.version[slot],
                "record": versions.record[slot],
                "stale": scheduler.is_stale(slot),
                "forced": slot in versions.forced,
                "dropped": slot in scheduler.dropped,
                "error": id(scheduler.errors.get(slot)),
                "parents": [serial[parent] for parent in topology.parents[slot]],
                "children": sorted(serial[child] for child in topology.children[slot]),
                "rank": topology.rank[slot],
                "reads": scheduler.dynamic.get(slot),
                "op": (id(host.ops[slot]), id(host.attrs[slot])),
                "spec": host.specs[slot],
                "value": None if data is MISSING else (id(data), np.asarray(data).tobytes()),
                "view": id(host._view_of.get(slot)),
                "closed": host.closed.get(slot),
                "pinned": slot in host.pins,
                "grad": id(host.gradients.of(slot)),
                "cutoff": host.cutoffs.get(slot),
                "frozen": slot in host.frozen,
                "kept": slot in host.kept,
                "branches": host.branches.get(slot),
            }
        programs = [
            (
                dict(program.adjoint),
                dict(program._edges),
                dict(program._parts),
                dict(program._own),
                {slot: var._slot for slot, var in program.all_given().items()},
            )
            for program in graph._programs.in_order()
        ]
        return {"nodes": nodes, "names": dict(host.named), "programs": programs}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Where two states differ, in words."""
    found = []
    old, new = before["nodes"], after["nodes"]
    found += [f"node {number} is gone" for number in old.keys() - new.keys()]
    found += [f"node {number} is new" for number in new.keys() - old.keys()]
    for number in old.keys() & new.keys():
        for what, was in old[number].items():
            if new[number][what] != was:
                found.append(f"node {number}, {what}: {was!r:.100} -> {new[number][what]!r:.100}")
    found += [what for what in ("names", "programs") if before[what] != after[what]]
    return found
