"""The edges over which gradients pass, with the node of what passes, and those where they stop."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from reactgrad.autodiff._edges import open_edges, sources
from reactgrad.autodiff._program import Program
from reactgrad.autodiff._tables import ZERO
from reactgrad.core._core import Core
from reactgrad.core._handles import slots_in_order, tidy
from reactgrad.nodes._op import CONST
from reactgrad.ops import DETACH

Stop = Literal["detached", "no_grad", "not_float", "pinned", "frozen", "no_rule", "zero"]


class Passage(NamedTuple):
    """The way of gradients through a graph, by the keys of nodes.

    Attributes
    ----------
    adjoints : list of (int, int)
        Nodes with their adjoints. A node that several gradients pass has several.
    passes : list of (int, int, int)
        Parent, child, and the node that is what the child contributes to the gradient of the parent.
    stops : list of (int, int, str)
        Parent, child, and why no gradient comes back from the child to the parent, which could have one.
    """

    adjoints: list[tuple[int, int]]
    passes: list[tuple[int, int, int]]
    stops: list[tuple[int, int, Stop]]


def passage(graph: Core) -> Passage:
    """Return the way of the gradients that live, and where gradients would stop; runs nothing."""
    with graph._lock:
        tidy(graph)
        topology = graph._scheduler.topology
        serial, number = topology.serial, topology.number
        adjoints: list[tuple[int, int]] = []
        passes: list[tuple[int, int, int]] = []
        programs: list[Any] = [one for one in graph._programs.in_order() if type(one) is Program]
        for program in programs:
            if program.unsure:
                continue
            for slot in program.adjoint:
                found = program.known(slot)
                if found is not None and found is not ZERO and serial[slot]:
                    adjoints.append((number(slot), number(found)))
            for (child, position), part in program._parts.items():
                if part is None or serial[part.slot] != part.serial or not serial[child]:
                    continue
                parent = sources(graph, child)[position]
                passes.append((number(parent), number(child), number(part.slot)))
        return Passage(adjoints, passes, _stops(graph))


def _stops(graph: Core) -> list[tuple[int, int, Stop]]:
    """Return the edges over which no gradient can come back, to parents that could have one."""
    host, number = graph._host, graph._scheduler.topology.number
    found: list[tuple[int, int, Stop]] = []
    for slot in slots_in_order(graph):
        if slot in host.owners:  # gradients of gradients have stops of their own
            continue
        pin = host.pins.get(slot)
        parents = sources(graph, slot) if pin is None else [one._slot for one in pin.parents]
        passing = {i for i, _ in open_edges(graph, slot)}
        for i, parent in enumerate(parents):
            spec = host.specs[parent]
            if host.ops[parent] is CONST or (spec is not None and not spec.differentiable):
                continue
            reason = _reason(graph, slot, i, parent, i in passing)
            if reason is not None:
                found.append((number(parent), number(slot), reason))
    return found


def _reason(graph: Core, slot: int, i: int, parent: int, passing: bool) -> Stop | None:
    """Return why no gradient passes an edge; ``None`` if one can."""
    host = graph._host
    op, closed = host.ops[slot], host.closed.get(slot, frozenset())
    if slot in host.pins:
        return "pinned"
    if closed is None:
        return "detached" if op is DETACH else "no_grad"
    if not passing:
        return "detached" if i in closed else "not_float"
    rules = getattr(op, "vjps", None)
    if not op.has_rules:
        return "no_rule"
    if rules and i < len(rules) and rules[i] is None:
        return "zero"
    return "frozen" if parent in host.frozen else None
