"""The handles of nodes: one for each node, made when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reactgrad._errors import DTypeError
from reactgrad.core._core import Core, V
from reactgrad.nodes._handle import HandleRef
from reactgrad.nodes._output import Output

_new = object.__new__


def new_var(graph: Core[V], slot: int) -> V:
    """Return a new handle of a node that has none.

    ``object.__new__`` in place of ``Var(...)`` saves the call of ``__init__``: this runs at every
    node that is built.
    """
    var = _new(graph._var)
    var._graph = graph
    var._slot = slot
    host = graph._host
    (ref := HandleRef(var, host.on_death)).slot = slot  # by which `on_death` finds the node
    host.handles[slot] = ref
    return var


def handle(graph: Core[V], slot: int) -> V:
    """Return the one Var of a node; make it if the node has none."""
    ref = graph._host.handles[slot]
    var = ref() if ref is not None else None
    # The ref may be dead and not processed by `tidy` yet: then the node lives on with a new handle.
    return new_var(graph, slot) if var is None else var


def living(graph: Core[V], slots: Iterable[int], serials: Mapping[int, int]) -> list[V]:
    """Return the handles of those nodes that still have the given serials.

    A slot whose serial differs now belongs to another node.
    """
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
