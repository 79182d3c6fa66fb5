"""The edges that gradients may pass, from a node to its operands."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reactgrad.core._handles import handle
from reactgrad.nodes._op import PARAM
from reactgrad.nodes._reached import reached


def sources(graph: Any, slot: int) -> tuple[int, ...]:
    """Return the operands of a node for gradients.

    For a choice these include both branches, also the one not taken.
    """
    branches = graph._host.branches
    if branches and slot in branches and slot not in graph._host.pins:
        return branches[slot]
    return graph._scheduler.operands(slot)


def open_edges(graph: Any, slot: int) -> list[tuple[int, int]]:
    """Return the operands of `slot` to which gradients may pass, each behind its position."""
    host = graph._host
    parents = sources(graph, slot)
    if not parents:
        return []
    closed: Any = host.closed.get(slot, ())
    if closed is None:
        return []
    specs = host.specs
    if specs[slot] is not None and not specs[slot].differentiable:
        return []
    return [
        (i, parent)
        for i, parent in enumerate(parents)
        if i not in closed and (specs[parent] is None or specs[parent].differentiable)
    ]


def operand_vars(graph: Any, slot: int) -> tuple[Any, ...]:
    """Return the operands as they were written, detached where the edge is."""
    found = list(map(partial(handle, graph), sources(graph, slot)))
    for i in graph._host.closed.get(slot) or ():
        found[i] = found[i].detach()
    return tuple(found)


def wanted_leaves(graph: Any, slot: int) -> list[int]:
    """Return the trainable leaves that `slot` depends on over open edges, in order of creation."""
    ops, frozen = graph._host.ops, graph._host.frozen
    program = graph._programs.find(slot, None)
    # The program of `backward` knows its params: no walk.
    if program is not None and not program.unsure:
        return [at for at in program.params() if at not in frozen]
    found = reached([slot], lambda at: [parent for _, parent in open_edges(graph, at)])
    leaves = [at for at in found if ops[at] is PARAM and at not in frozen]
    return sorted(leaves, key=graph._scheduler.topology.serial.__getitem__)


def way_to(output: int, slot: int, edges: Mapping[int, Sequence[tuple[int, int]]]) -> list[int]:
    """Return a shortest path along the data from `slot` to the output. `edges` must contain one."""
    users: dict[int, int] = {}
    queue = deque([output])
    while slot not in users:
        at = queue.popleft()
        for _, source in edges[at]:
            if source not in users:
                users[source] = at
                queue.append(source)
    path = [slot]
    while path[-1] != output:
        path.append(users[path[-1]])
    return path
