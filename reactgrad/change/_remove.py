"""Removal of nodes from their graph.

The Var of a removed node is useless: a ``Grave`` takes the place of its graph and raises on every
use. So operations on live Vars need not check for removed ones.

The row of the node stays while an open transaction may bring the node back, or gradients that were
built on it need it. Until then its slot stands in ``Host.removed``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from reactgrad._errors import EditError
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.core._held import removed
from reactgrad.core._names import set_name
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import listed


class Grave:
    """Takes the place of the graph in the Var of a removed node."""

    __slots__ = ("removed",)

    def __init__(self, name: str) -> None:
        self.removed = name

    def __getattr__(self, name: str) -> NoReturn:
        raise EditError(
            f"{self.removed!r} was removed from its graph by g.remove, so this Var is of no use any "
            "more. Build the node anew from what it was computed from."
        )


class Removal:
    """A removed node that a transaction may still bring back."""

    __slots__ = ("kept", "programs", "var")

    def __init__(self, var: Any, programs: Any, kept: bool) -> None:
        self.var = var
        self.programs = programs
        self.kept = kept

    def revive(self, graph: Core) -> None:
        """Make the Var usable again. Its name is restored separately."""
        var = self.var
        graph._host.removed.discard(var._slot)
        _point(var, graph)
        if self.programs is not None:
            var._programs = self.programs
        if self.kept:
            graph._host.kept[var._slot] = var


def _with_users(graph: Core, slots: Iterable[int]) -> str:
    """Return the names of the nodes that may be removed together with these."""
    host, topology = graph._host, graph._scheduler.topology
    found = dict.fromkeys(slots)
    stack = [*found]
    while stack and len(found) <= 8:
        slot = stack.pop()
        for user in (*topology.children[slot], *host.branch_users.get(slot, ())):
            if user not in found and user not in host.removed and user not in host.owners:
                found[user] = None
                stack.append(user)
    if len(found) > 8:
        return "..."
    return listed(host.label(slot) for slot in reversed(topology.sort(found)))


def check_unused(graph: Core, slots: dict[int, Any]) -> None:
    """Raise ``EditError`` if nodes that stay are computed from one of these."""
    host, topology = graph._host, graph._scheduler.topology
    for slot in slots:
        found = dict.fromkeys([*topology.children[slot], *host.branch_users.get(slot, ())])
        for other, pin in host.pins.items():
            if any(parent._slot == slot for parent in pin.parents):
                found[other] = None
        users = [
            handle(graph, other)
            for other in found
            # Gradients keep the rows that they need alive.
            if other not in slots and other not in host.removed and other not in host.owners
        ]
        if users:
            name, shown = host.label(slot), ", ".join(repr(user.label) for user in users[:8])
            more = f" and {len(users) - 8} more" if len(users) > 8 else ""
            first = users[0].label
            if slot in host.branches.get(users[0]._slot, ())[1:]:
                way = f"A choice keeps its branches: build another one in place of {first!r}"
            else:
                way = f"Let these take it from elsewhere first, {first}.replace_parent(...)"
            raise EditError(
                f"{name!r} cannot be removed: {shown}{more} would lose an operand. {way}, or remove "
                f"all that depends on it, too: g.remove({_with_users(graph, slots)}). Nothing was changed."
            )


def bury(graph: Core, var: Any, change: Change) -> None:
    """Take a node that nothing uses out of the graph; its row is freed by ``settle``."""
    host, slot = graph._host, var._slot
    shown, name = host.label(slot), host.name_of.get(slot)
    programs = getattr(var, "_programs", None)
    removal = Removal(var, programs, slot in host.kept)

    def back() -> None:
        removal.revive(graph)
        graph._removals[:] = [one for one in graph._removals if one is not removal]
        if name is not None:
            host.name_of[slot], host.named[name] = name, slot

    change.back_by(back)
    graph._scheduler.notes.note(("removed", graph._scheduler.topology.serial[slot]), removal)
    set_name(graph, slot, None)
    host.kept.pop(slot, None)
    if programs is not None:
        del var._programs
    host.removed.add(slot)
    # It is not set together with other leaves any longer.
    host.part(slot)
    _point(var, Grave(shown))
    graph._removals.append(removal)


def settle(graph: Core) -> None:
    """Call the observers of removed nodes, and free the rows that no transaction can bring back.

    Raises
    ------
    ExceptionGroup
        The errors that observers raised.
    """
    if not graph._removals or graph._scheduler.notes:
        return
    removals, graph._removals = graph._removals, []
    host = graph._host
    for one in removals:
        for entry in (one.programs or {}).values():
            if isinstance(entry, tuple):
                entry[1].stay()  # gradients that it gave out stay, and follow new shapes
    gone = list(dict.fromkeys(one.var._slot for one in removals if type(one.var._graph) is Grave))
    removals.clear()  # releases the gradients that only these outputs kept
    try:
        for slot in gone:
            removed(graph, slot)
    finally:
        for slot in gone:
            host.handles[slot] = None
            for entry in host.twin_programs.pop(slot, {}).values():
                if isinstance(entry, tuple):
                    entry[1].stay()  # in a fork only this table has held it so far
        graph._scheduler.release(gone)


def _point(var: Handle, graph: Core | Grave) -> None:
    """Set the graph of a Var and of its detached view."""
    view: Any = getattr(var, "_detached", lambda: None)()
    for one in (var, view):
        if one is not None:
            one._graph = graph  # type: ignore[assignment]
