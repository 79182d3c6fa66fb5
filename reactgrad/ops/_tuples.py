"""Gradients of functions with several outputs: a share for each output, packed into one tuple."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import GradientError
from reactgrad.ops._layout import ALIAS


class Share:
    """A contribution to one output's part of a tuple of gradients or tangents."""

    __slots__ = ("gradient", "index")

    def __init__(self, gradient: Any, index: int) -> None:
        self.gradient = gradient
        self.index = index


class Pack:
    """The op of a node that puts its operands into a tuple, each at its place."""

    __slots__ = ("declared", "layout", "name", "outputs", "places", "position")

    def __init__(self, places: tuple[int, ...]) -> None:
        self.name = "pack"
        self.places = places
        self.position = {place: i for i, place in enumerate(places)}
        # As of a ``Lifted``: steps and builders read these three from all ops that are no ``Op``.
        self.declared = self.outputs = None
        self.layout = ()

    def call(self, arguments: list[Any]) -> Any:
        """Return the tuple, with ``None`` at places without an operand."""
        given = dict(zip(self.places, arguments, strict=True))
        return tuple([given.get(place) for place in range(max(self.places) + 1)])


def pack(parts: dict[int, Any]) -> Any:
    """Return a node for the tuple that has these nodes at these places."""
    graph = next(iter(parts.values()))._graph
    slots = [part._slot for part in parts.values()]
    return graph._add_computed(Pack(tuple(parts)), (), None, tuple(slots), ())


def shares(var: Any) -> dict[int, Any]:
    """Return the nodes that ``pack`` was given, by their places.

    Raises
    ------
    GradientError
        If ``pack`` did not make `var`: something other than its outputs uses the function's node.
    """
    graph, slot = var._graph, _packed(var)
    operands = map(graph._handle, graph._scheduler.operands(slot))
    return dict(zip(graph._host.ops[slot].places, operands, strict=True))


def share_of(var: Any, place: int) -> Any:
    """Return the node that ``pack`` was given for this place, ``None`` if none; raises the same."""
    graph, slot = var._graph, _packed(var)
    at = graph._host.ops[slot].position.get(place)
    return None if at is None else graph._handle(graph._scheduler.operands(slot)[at])


def _packed(var: Any) -> int:
    graph, slot = var._graph, var._slot
    ops = graph._host.ops
    while ops[slot] is ALIAS:
        slot = graph._scheduler.operands(slot)[0]
    if not isinstance(ops[slot], Pack):
        raise no_shares()
    return slot


def no_shares() -> GradientError:
    """Return the error for a gradient of a tuple that does not come from the outputs in it."""
    return GradientError(
        "a node is computed from all outputs of a function at once, as a tuple, and no gradient "
        "passes a tuple. Compute it from the outputs, which are nodes of their own."
    )
