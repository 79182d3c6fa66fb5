"""The forward node that a gradient node belongs to, for messages."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from reactgrad.autodiff._forward import Tangents
from reactgrad.autodiff._tables import ZERO


class Origin(NamedTuple):
    """A forward node, and the position of the operand that its rule was asked for.

    ``None`` stands for the node's adjoint, or its tangent in forward mode.
    """

    slot: int
    operand: int | None
    tangent: bool = False


def origin(graph: Any, slot: int) -> Origin | None:
    """Return the origin of `slot`, a node that a gradient program has built.

    Return ``None`` for other nodes.
    """
    topology, owners = graph._scheduler.topology, graph._host.owners
    number = owners.get(slot)
    program = next((p for p in graph._programs.in_order() if p.number == number), None)
    if number is None or program is None:
        return None
    places = _places(graph, program)
    # A rule may build several nodes: follow them to the contribution.
    queue, seen = deque([slot]), {slot}
    while queue:
        at = queue.popleft()
        if at in places:
            return places[at]
        more = [c for c in topology.children[at] if c not in seen and owners.get(c) == number]
        seen.update(more)
        queue += more
    return None


def origins(graph: Any) -> dict[int, int]:
    """Return, for each node that a gradient program has built, the forward node that it belongs to."""
    topology, owners = graph._scheduler.topology, graph._host.owners
    found: dict[int, int] = {}
    for program in graph._programs.in_order():
        mine = {slot: place.slot for slot, place in _places(graph, program).items()}
        mine = {slot: node for slot, node in mine.items() if owners.get(slot) == program.number}
        # A rule may build several nodes: they belong where the contribution does that they lead to.
        queue = deque(mine)
        while queue:
            at = queue.popleft()
            for parent in topology.parents[at]:
                if parent not in mine and owners.get(parent) == program.number:
                    mine[parent] = mine[at]
                    queue.append(parent)
        found.update(mine)
    return found


def _places(graph: Any, program: Any) -> dict[int, Origin]:
    """Return the origins of the adjoints of a program, and of the contributions that they are summed up of."""
    serial = graph._scheduler.topology.serial
    places = {
        adjoint: Origin(node, None, isinstance(program, Tangents))
        for node, adjoint in program.adjoint.items()
        if adjoint is not ZERO and serial[adjoint] == program._serials[node]
    }
    for (node, position), part in program._parts.items():
        if part is not None and serial[part.slot] == part.serial:
            place = Origin(node, next(s for i, s in program._edges[node] if i == position))
            # The rule that made a contribution says more than the sum that consists of it alone.
            if part.own or part.slot not in places:
                places[part.slot] = place
    return places
