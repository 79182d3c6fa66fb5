"""The handles of nodes: one for each node, made when it is first asked for; and the end of nodes that no
handle and no other node keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reactgrad._errors import DTypeError
from reactgrad.core._core import Core, V
from reactgrad.nodes._handle import HandleRef
from reactgrad.nodes._op import Output
from reactgrad.values._columns import MISSING

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


def living(
    graph: Core[V], slots: Iterable[int], serials: Mapping[int, int], before: int
) -> list[V]:
    """Return the handles of those nodes that still have the given serials, and numbers below ``before``.

    A slot whose serial differs now belongs to another node; so does one whose row was taken over since.
    """
    with graph._lock:
        topology = graph._scheduler.topology
        serial, later = topology.serial, topology.numbers
        if later:
            slots = [slot for slot in slots if later.get(slot, 0) < before]
        return [handle(graph, s) for s in slots if serial[s] == serials[s]]


def refuse_tuple(graph: Core, slot: int, what: str) -> None:
    """Raise ``DTypeError`` for the node of a function that has several outputs."""
    op = graph._host.ops[slot]
    if getattr(op, "outputs", None) is not None:
        name = graph._host.label
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


def tidy(graph: Core) -> None:
    """Release the nodes whose handles have died and that nothing else keeps."""
    dropped, asked = graph._host.dropped, graph._asked
    orphans = graph._scheduler.orphans
    # Released gradients release nodes that they gave out, whose handles then die: hence the loop.
    while (dropped or orphans) and not graph._computing and graph._programs.building is None:
        host, children = graph._host, graph._scheduler.topology.children
        entries = graph._generations.entries
        while dropped:
            ref = dropped[0]  # removed only after the work below, which an interrupt may cut short
            slot = ref.slot
            if slot in asked.members:
                asked.clear()
            anchors = host.anchors.get(slot)
            if anchors and id(ref) in anchors:
                # First: once the anchor is taken out, nothing else leads here.
                orphans.append(slot)
                del anchors[id(ref)]
                if not anchors:
                    del host.anchors[slot]
            elif host.handles[slot] is ref:
                if not children[slot] or slot in entries:  # else it goes after its consumers
                    orphans.append(slot)
                host.handles[slot] = None
                if host.together:
                    host.part(slot)
            dropped.popleft()
        if orphans:
            graph._generations.park(graph)
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
