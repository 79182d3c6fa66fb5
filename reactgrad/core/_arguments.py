"""Vars or names as arguments: the nodes of a graph that they mean."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any

from reactgrad._errors import DTypeError, GraphError
from reactgrad.core._core import Core, V
from reactgrad.core._handles import handle, tidy
from reactgrad.core._names import UnknownNameError, by_label, by_name
from reactgrad.core._read_together import FEW
from reactgrad.core._var_list import VarList
from reactgrad.nodes._handle import Handle

_slot_of: Callable[[Any], int] = attrgetter("_slot")
_graph_of: Callable[[Any], Any] = attrgetter("_graph")


def named(graph: Core[V], name: str) -> V:
    """Return the node with this name.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    with graph._lock:
        tidy(graph)
        slot = by_name(graph, name)
        if slot is None:
            slot = by_label(graph, name)
        if slot is None:
            from difflib import get_close_matches  # slow to import, and only for this

            close = get_close_matches(str(name), graph._host.named, 3)
            known = ", ".join(close or sorted(graph._host.named)[:12]) or "none yet"
            raise UnknownNameError(
                f"no node of this graph has the name {name!r} ({'close' if close else 'names'}: "
                f"{known}). A name alone does not keep a node: hold its Var, or g.keep(var)."
            )
        return handle(graph, slot)


def var_of(graph: Core[V], var: Any) -> Any:
    """Return the node of this name. Return anything that is not a string as it is."""
    return named(graph, var) if isinstance(var, str) else var


def own_slot(graph: Core, var: Any, what: str) -> int:
    """Return the slot of a Var of this graph, or of the node with this name.

    Raises
    ------
    DTypeError
        If ``var`` is neither a Var nor a name; the message begins with ``what``.
    GraphError
        If the Var belongs to another graph, or no node has the name.
    """
    if isinstance(var, str):
        return named(graph, var)._slot
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
        raise GraphError(f"{what} was given a Var of another graph: {var.label!r}.{hint}")
    return var._slot


def own_each(graph: Core, variables: Collection[Any], what: str) -> list[int]:
    """Return the slots of Vars of this graph, in order, repetitions included."""
    try:  # the usual case without a Python call for each Var
        if set(map(_graph_of, variables)) == {graph}:
            return list(map(_slot_of, variables))
    except AttributeError:
        pass  # an argument is not a Var: the loop below names it in its error
    return [own_slot(graph, var, what) for var in variables]


def own_slots(graph: Core, variables: tuple[Any, ...], what: str) -> tuple[int, ...]:
    """Return the slots of ``own_each`` without repetitions.

    Long tuples are remembered: the same Vars given again cost one look-up.
    """

    # While handles that have died wait in `dropped`, what is remembered may be out of date.
    if len(variables) <= FEW or graph._host.dropped:
        return tuple(dict.fromkeys(own_each(graph, variables, what)))
    slots = graph._asked.find(variables)
    if slots is None:
        slots = tuple(dict.fromkeys(own_each(graph, variables, what)))
        graph._asked.remember(variables, slots)
    return slots
