"""The end of a failed transaction: everything that it had changed returns to what it was.

These are values, definitions, pins, names, cutoffs, ``frozen`` and hooks. The first change of each
in a transaction notes how it was before. Everything is restored together, since the states in
between need not fit each other; nothing is refused, and versions only grow (rules E7 and E10 of the
design).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from reactgrad.change._change import Change, note_manner
from reactgrad.change._set import set_cutoff
from reactgrad.core._definition import Definition
from reactgrad.core._notes import OF_SEED, UNDO, Before, Noted
from reactgrad.scheduler import Link
from reactgrad.values._columns import MISSING
from reactgrad.values._facts import put

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def give_back(graph: Core, noted: Noted) -> None:
    """Restore everything that was noted."""
    graph._host.cut_slots = graph._host.cut_values = ()  # a set that was cut short is undone, too
    if OF_SEED in noted:
        graph._seed = noted[OF_SEED]
    for (what, _), before in noted.items():  # type: ignore[misc]
        if what == "removed":
            before.revive(graph)
        elif what == UNDO:
            before()
    _give_back_names(graph, list(_of(graph, noted, "name_of")))
    for slot, rule in _of(graph, noted, "cutoffs"):
        set_cutoff(graph, slot, rule)
    host = graph._host
    for slot, (frozen, grad) in _of(graph, noted, "frozen"):
        put(host.frozen, slot, frozen)
        if grad is not None:
            host.grads[slot] = grad
    for slot, hooks in _of(graph, noted, "after_grad"):
        put(host.after_grad, slot, hooks)
    _give_back_values(
        graph,
        dict(_of(graph, noted, "node")),
        dict(_of(graph, noted, "leaf")),
        dict(_of(graph, noted, "hooks")),
    )


def _of(graph: Core, noted: Noted, kind: str) -> Iterator[tuple[int, Any]]:
    """Yield what was noted of this kind for nodes that still live, with their slots."""
    serial = graph._scheduler.topology.serial
    for (what, number), entry in noted.items():  # type: ignore[misc]
        if what == kind and serial[entry[0]] == number:
            yield entry


def _give_back_names(graph: Core, names: list[tuple[int, str | None]]) -> None:
    """Restore names."""
    host = graph._host
    for slot, _ in names:  # all names go first, for nodes may have exchanged theirs
        name = host.name_of.pop(slot, None)
        if name is not None:
            del host.named[name]
    for slot, name in names:
        if name is not None:
            host.name_of[slot] = name
            host.named[name] = slot


def _give_back_values(
    graph: Core, nodes: dict[int, Before], leaves: dict[int, Any], hooks: dict[int, Any]
) -> None:
    """Restore definitions, pins, values of leaves and hooks, in one change that refuses nothing."""
    if not nodes and not leaves and not hooks:
        return
    host, scheduler = graph._host, graph._scheduler
    specs = {slot: found for slot, (found, _) in leaves.items() if found is not host.specs[slot]}
    specs |= {slot: node.spec for slot, node in nodes.items() if node.definition.pin is not None}
    pinned = {slot for slot, node in nodes.items() if node.definition.pin is not None}
    unpinned = {slot for slot in nodes if slot in host.pins} - pinned
    with Change(graph, lenient=True) as change:
        change.define({slot: _now(graph, slot, node) for slot, node in nodes.items()}, specs)
        for slot in pinned | unpinned:
            change.put(slot, nodes[slot].value)
        graph._observers.note((*pinned, *leaves))
        for slot in pinned:
            scheduler.changed(slot)
        for slot, (found, kept) in leaves.items():
            if kept is MISSING:
                host.overwrite((slot,))
                host.discard(slot)
                scheduler.unset(slot)
            else:
                host.write_leaf(slot, found, kept, adopt=False)
                scheduler.changed(slot)
        for slot, former in hooks.items():
            change.enter(host.hooks, slot, former)
        change.follow()
    note_manner(
        graph, [slot for slot, (_, kept) in leaves.items() if kept is not MISSING], "rollback"
    )


def _now(graph: Core, slot: int, node: Before) -> Definition:
    """Return the former definition, with what the node has read since as its reads."""
    former, pin = node.definition, graph._host.pins.get(slot)
    if former.pin is not None:
        return former
    link = graph._scheduler.link(slot)
    if pin is not None:
        link = Link(tuple([parent._slot for parent in pin.parents]), pin.fixed)
    return former._replace(link=link.rewired(former.link.operands))
