"""What a failed transaction gives back: values, definitions, pins, names, cutoffs, ``frozen``, hooks.

The first change of each in a transaction notes how it was before. Everything is given back
together, since the states in between need not fit each other; nothing is refused, and versions only
grow (rules E7 and E10).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from reactgrad.backend import Spec, own_copy
from reactgrad.change._change import Change, Definition
from reactgrad.scheduler import Link
from reactgrad.values._store import MISSING

if TYPE_CHECKING:
    from reactgrad.graph._graph import Graph

Noted = dict[Hashable, Any]


class Before:
    """A computed node as a transaction found it; keeps what it was computed from alive."""

    __slots__ = ("definition", "held", "spec", "value")

    def __init__(
        self, definition: Definition, found: Spec | None, value: Any, held: list[Any]
    ) -> None:
        self.definition = definition
        self.spec = found
        self.value = value  # of a pinned node; these are never written in place
        self.held = held

    @classmethod
    def of(cls, graph: Graph, slot: int) -> Before:
        """The present state."""
        definition, host = Definition.of(graph, slot), graph._host
        value = MISSING if definition.pin is None else host.data[slot]
        held = [graph._handle(parent) for parent in definition.link.parents]
        return cls(definition, host.specs[slot], value, held)


def _key(graph: Graph, what: str, slot: int) -> tuple[str, int]:
    return what, graph._scheduler.topology.serial[slot]


def former_leaves(graph: Graph, slots: Iterable[int]) -> dict[int, Any]:
    """Shape and value of those of these leaves that the innermost transaction has not noted yet."""
    former: dict[int, Any] = {}
    for slot in slots:
        if graph._scheduler.notes.wants(_key(graph, "leaf", slot)):
            found, value = graph._host.specs[slot], graph._host.data[slot]
            plain = value is MISSING or found is None or found.weak is not None
            former[slot] = found, value if plain else own_copy(found, value)  # type: ignore[arg-type]
    return former


def note_leaf(graph: Graph, slot: int, former: Any) -> None:
    """The value of a leaf is changed for certain."""
    graph._scheduler.notes.note(_key(graph, "leaf", slot), (slot, former))


def note_node(graph: Graph, slot: int, before: Before) -> None:
    """The definition of a node, or its pin, has changed."""
    graph._scheduler.notes.note(_key(graph, "node", slot), (slot, before))


def note_name(graph: Graph, slot: int) -> None:
    """The name of a node is about to change."""
    graph._scheduler.notes.note(_key(graph, "name", slot), (slot, graph._host.name_of.get(slot)))


def note_cutoff(graph: Graph, slot: int) -> None:
    """The cutoff of a node is about to change."""
    graph._scheduler.notes.note(_key(graph, "cutoff", slot), (slot, graph._host.cutoffs.get(slot)))


def note_frozen(graph: Graph, slot: int) -> None:
    """A param is about to be frozen or unfrozen."""
    host = graph._host
    before = slot in host.frozen, host.grads.get(slot)
    graph._scheduler.notes.note(_key(graph, "frozen", slot), (slot, before))


def note_hooks(graph: Graph, slot: int, table: dict[int, Any], before: Any) -> None:
    """The hooks of a node in this table of the host have changed."""
    what = "hooks" if table is graph._host.hooks else "after_grad"
    graph._scheduler.notes.note(_key(graph, what, slot), (slot, before))


def give_back(graph: Graph, noted: Noted) -> None:
    """Make everything as it was when it was noted."""
    for (what, _), removal in noted.items():  # type: ignore[misc]
        if what == "removed":
            removal.revive(graph)
    _give_back_names(graph, list(_of(graph, noted, "name")))
    for slot, rule in _of(graph, noted, "cutoff"):
        graph._set_cutoff(slot, rule)
    host = graph._host
    for slot, (frozen, grad) in _of(graph, noted, "frozen"):
        (host.frozen.add if frozen else host.frozen.discard)(slot)
        if grad is not None:
            host.grads[slot] = grad
    for slot, hooks in _of(graph, noted, "after_grad"):
        host.after_grad[slot] = hooks
    _give_back_values(
        graph,
        dict(_of(graph, noted, "node")),
        dict(_of(graph, noted, "leaf")),
        dict(_of(graph, noted, "hooks")),
    )


def _of(graph: Graph, noted: Noted, kind: str) -> Iterator[tuple[int, Any]]:
    """What was noted of this kind for nodes that still live, by slot."""
    serial = graph._scheduler.topology.serial
    for (what, number), entry in noted.items():  # type: ignore[misc]
        if what == kind and serial[entry[0]] == number:
            yield entry


def _give_back_names(graph: Graph, names: list[tuple[int, str | None]]) -> None:
    host = graph._host
    for slot, _ in names:  # first, for they may have been exchanged
        name = host.name_of.pop(slot, None)
        if name is not None:
            del host.named[name]
    for slot, name in names:
        if name is not None:
            host.name_of[slot] = name
            host.named[name] = slot


def _give_back_values(
    graph: Graph, nodes: dict[int, Before], leaves: dict[int, Any], hooks: dict[int, Any]
) -> None:
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


def _now(graph: Graph, slot: int, node: Before) -> Definition:
    """The former definition, with what the node has read since: it will be asked about these."""
    former, pin = node.definition, graph._host.pins.get(slot)
    if former.pin is not None:
        return former
    link = graph._scheduler.link(slot)
    if pin is not None:
        link = Link(tuple([parent._slot for parent in pin.parents]), pin.fixed)
    return former._replace(link=link.rewired(former.link.operands))
