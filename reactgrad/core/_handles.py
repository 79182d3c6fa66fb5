"""The handles of nodes: one a node, made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reactgrad._errors import DTypeError
from reactgrad.nodes._handle import HandleRef
from reactgrad.nodes._output import Output

if TYPE_CHECKING:
    from reactgrad.core._core import Core, V

_new = object.__new__


def new_var(graph: Core[V], slot: int) -> V:
    """Return a new handle of a node that has none."""
    var = _new(graph._var)
    var._graph = graph
    var._slot = slot
    host = graph._host
    (ref := HandleRef(var, host.on_death)).slot = slot  # which it needs when `var` dies
    host.handles[slot] = ref
    return var


def handle(graph: Core[V], slot: int) -> V:
    """The one Var of a node."""
    ref = graph._host.handles[slot]
    var = ref() if ref is not None else None
    return new_var(graph, slot) if var is None else var


def living(graph: Core[V], slots: Iterable[int], serials: Mapping[int, int]) -> list[V]:
    """Return the handles of those of these nodes that still have these serials."""
    with graph._lock:
        serial = graph._scheduler.topology.serial
        return [handle(graph, s) for s in slots if serial[s] == serials[s]]


def refuse_tuple(graph: Core, slot: int, what: str) -> None:
    """Raise ``DTypeError`` for the node of a function that has several outputs."""
    op = graph._host.ops[slot]
    if getattr(op, "outputs", None) is not None:
        name = graph._host.name
        children = graph._scheduler.topology.children[slot]
        outputs = [name(child) for child in children if isinstance(graph._host.ops[child], Output)]
        raise DTypeError(
            f"{what}: {name(slot)!r} is the tuple of all outputs of function {op.name!r}, which is "
            "no array and has no gradient. Use the outputs, which are nodes of their own, "
            f"{' and '.join(map(repr, outputs))}."
        )


def dtype_kind(graph: Core, slot: int) -> str:
    """Return the kind of dtype that a node has, ``""`` if that is not known."""
    found = graph._host.specs[slot]
    return "" if found is None else found.dtype.kind
