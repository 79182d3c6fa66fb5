"""The nodes of a graph: their handles and names, which of them are there, and the end of those that nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from reactgrad._errors import DTypeError, GraphError
from reactgrad.change._change import forget_unseen
from reactgrad.change._rollback import note_name
from reactgrad.core._read_together import FEW
from reactgrad.core._rows import HandleRef
from reactgrad.graph._var import Var
from reactgrad.ops import Handle
from reactgrad.reading._run import VarList

if TYPE_CHECKING:
    from reactgrad.graph._graph import Graph

_new = object.__new__
_slot_of: Callable[[Any], int] = attrgetter("_slot")
_graph_of: Callable[[Any], Any] = attrgetter("_graph")


def new_var(graph: Graph, slot: int) -> Var:
    var = _new(Var)
    var._graph = graph
    var._slot = slot
    host = graph._host
    (ref := HandleRef(var, host.on_death)).slot = slot  # which it needs when `var` dies
    host.handles[slot] = ref
    return var


def handle(graph: Graph, slot: int) -> Var:
    """The one Var of a node."""
    ref = graph._host.handles[slot]
    var = ref() if ref is not None else None
    return graph._new_var(slot) if var is None else var


def live(graph: Graph, slots: Iterable[int], serials: Mapping[int, int]) -> list[Var]:
    with graph._lock:
        serial = graph._scheduler.topology.serial
        return [graph._handle(s) for s in slots if serial[s] == serials[s]]


def tidy(graph: Graph) -> None:
    """Free the nodes whose handles have died and that nothing else keeps."""
    dropped, asked = graph._host.dropped, graph._asked
    orphans = graph._scheduler.orphans
    # With the nodes that gradients gave out these go, and what they held in turn.
    while (dropped or orphans) and not graph._computing and graph._programs.building is None:
        host = graph._host
        while dropped:
            ref = dropped[0]  # until it was looked after
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


def check_name(graph: Graph, name: Any, slot: int | None) -> None:
    if name is None:
        return
    if not isinstance(name, str) or not name:
        raise GraphError(f"a name is a non-empty string, not {name!r:.60}.")
    graph._tidy()
    taken = by_name(graph, name)
    if taken is None or taken == slot:
        return
    while forget_unseen(graph, [taken]):  # what nobody sees keeps no name
        graph._tidy()
        if by_name(graph, name) is None:
            return
    raise GraphError(
        f"the name {name!r} is taken by another node of this graph; names are unique. "
        f"Choose another one, or g[{name!r}] to get that node."
    )


def set_name(graph: Graph, slot: int, name: str | None) -> None:
    host = graph._host
    check_name(graph, name, slot)
    note_name(graph, slot)
    former = host.name_of.pop(slot, None)
    if former is not None:
        del host.named[former]
    if name is not None:
        host.name_of[slot] = name
        host.named[name] = slot


def by_name(graph: Graph, name: str) -> int | None:
    """The node of this name, which it was given by somebody or by itself."""
    slot = graph._host.named.get(name)
    return by_given_name(graph, name) if slot is None else slot


def by_given_name(graph: Graph, name: Any) -> int | None:
    """The node whose name was made of its op and number, such as ``tanh_3``."""
    number = str(name).rstrip("_").rpartition("_")[2]
    if number.isdecimal() and int(number):  # free slots have the number 0
        slot = graph._scheduler.topology.find(int(number))
        if slot is not None and graph._host.name(slot) == name:
            return slot
    return None


def slots(graph: Graph) -> list[int]:
    """The slots of all nodes in order of creation."""
    removed = graph._host.removed
    return [slot for slot in graph._scheduler.topology.slots() if slot not in removed]


def own(graph: Graph, var: Any, what: str) -> int:
    """The slot of a Var of this graph, or of the node of this name."""
    if isinstance(var, str):
        return graph[var]._slot
    if not isinstance(var, Handle):
        several = isinstance(var, list | tuple | VarList)
        hint = " Pass them one by one, f(*vars)." if several else ""
        raise DTypeError(
            f"{what} takes Vars of this graph, or names, not {type(var).__name__}.{hint} A value "
            "becomes a node with g.input(value) or g.const(value)."
        )
    if var._graph is not graph:
        origin = any(ref() is var._graph for ref, _ in graph._lineage)
        hint = " Its twin in this fork is fork[var]." if origin else ""
        raise GraphError(f"{what} was given a Var of another graph: {var.name!r}.{hint}")  # type: ignore[attr-defined]
    return var._slot


def own_each(graph: Graph, variables: Collection[Any], what: str) -> list[int]:
    """The slots of Vars of this graph, one by one."""
    try:
        if set(map(_graph_of, variables)) == {graph}:
            return list(map(_slot_of, variables))
    except AttributeError:
        pass  # what is no Var is named below
    return [graph._own(var, what) for var in variables]


def own_all(graph: Graph, variables: tuple[Any, ...], what: str) -> tuple[int, ...]:
    """As ``own_each``, each once; many are looked up where the same were given before."""
    if len(variables) <= FEW or graph._host.dropped:
        return tuple(dict.fromkeys(own_each(graph, variables, what)))
    slots = graph._asked.find(variables)
    if slots is None:
        slots = tuple(dict.fromkeys(own_each(graph, variables, what)))
        graph._asked.remember(variables, slots)
    return slots
