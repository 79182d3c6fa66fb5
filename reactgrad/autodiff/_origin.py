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
    places = {
        adjoint: Origin(node, None, isinstance(program, Tangents))
        for node, adjoint in program.adjoint.items()
        if adjoint is not ZERO and topology.serial[adjoint] == program._serials[node]
    }
    for (node, position), part in program._parts.items():
        if part is not None and topology.serial[part.slot] == part.serial:
            place = Origin(node, next(s for i, s in program._edges[node] if i == position))
            # The rule that made a contribution says more than the sum that consists of it alone.
            if part.own or part.slot not in places:
                places[part.slot] = place
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
