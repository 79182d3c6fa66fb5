"""Names of nodes: chosen ones, unique in a graph, and those made of op and number."""

from __future__ import annotations

from functools import partial
from typing import Any

from reactgrad._errors import GraphError
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.core._notes import note
from reactgrad.scheduler import safe_repr


class UnknownNameError(GraphError, KeyError):
    """No node of the graph has the name."""

    def __str__(self) -> str:
        return str(self.args[0])


def check_name(graph: Core, name: Any, slot: int | None) -> None:
    """Raise ``GraphError`` unless the node may have this name; ``None`` stands for no name.

    If only a node that the user cannot reach has the name, release that node.
    """
    if name is None:
        return
    if not isinstance(name, str) or not name:
        raise GraphError(f"a name is a non-empty string, not {safe_repr(name):.60}.")
    tidy(graph)
    taken = by_name(graph, name)
    if taken is None or taken == slot:
        return
    while graph._forget_unseen([taken]):  # a node that the user cannot reach keeps no name
        tidy(graph)
        if by_name(graph, name) is None:
            return
    raise GraphError(
        f"the name {name!r} is taken by another node of this graph; names are unique. "
        f"Choose another one, or g[{name!r}] to get that node. For a line that makes a leaf and runs "
        f"twice: g.input(value, name={name!r}, exist_ok=True)."
    )


def set_name(graph: Core, slot: int, name: str | None) -> None:
    """Set the name of a node; ``None`` takes it away. Raise ``GraphError`` if it is taken."""
    host = graph._host
    check_name(graph, name, slot)
    note(graph, "name_of", slot, host.name_of.get(slot))
    former = host.name_of.get(slot)
    graph._scheduler.wholly(
        partial(_rename, graph, slot, former, name), partial(_rename, graph, slot, name, former)
    )


def _rename(graph: Core, slot: int, old: str | None, new: str | None) -> None:
    """Replace the name of a node; it may have been replaced in part before."""
    host = graph._host
    host.name_of.pop(slot, None)
    if old is not None and host.named.get(old) == slot:
        del host.named[old]
    if new is not None:
        host.name_of[slot] = new
        host.named[new] = slot


def by_name(graph: Core, name: str) -> int | None:
    """Return the node with this name, chosen or made; ``None`` if there is none."""
    slot = graph._host.named.get(name)
    return by_given_name(graph, name) if slot is None else slot


def by_label(graph: Core, text: Any) -> int | None:
    """Return the node that a message or a picture has called so; ``None`` if there is none."""
    slot, number = graph._host.labels.get(text, (0, 0))
    alive = number and graph._scheduler.topology.number(slot) == number
    return slot if alive and graph._host.label(slot) == text else None


def by_given_name(graph: Core, name: Any) -> int | None:
    """Return the node whose name was made of its op and number, such as ``tanh_3``."""
    number = str(name).rstrip("_").rpartition("_")[2]  # ``Rows.name`` may have appended "_"
    if number.isdecimal() and int(number):  # free slots have the number 0
        host, slot = graph._host, graph._scheduler.topology.find(int(number))
        # Gradients may still need the row of a node that was removed.
        if slot is not None and slot not in host.removed and host.name(slot) == name:
            return slot
    return None
