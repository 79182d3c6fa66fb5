"""Notes of an open transaction: the former state of everything that it changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from reactgrad.backend import Spec, own_copy
from reactgrad.core._definition import Definition
from reactgrad.core._handles import handle
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.core._core import Core


Noted = dict[Hashable, Any]

UNDO = "undo"  # the first part of keys of notes that are functions, called if the transaction fails

OF_SEED = ("seed", 0)  # the key of a note of the graph's seed, which is no node's


class Before:
    """A computed node as a transaction found it.

    ``held`` keeps its operands alive, so that the rollback finds them.
    """

    __slots__ = ("definition", "held", "spec", "value")

    def __init__(
        self, definition: Definition, found: Spec | None, value: Any, held: list[Any]
    ) -> None:
        self.definition = definition
        self.spec = found
        self.value = value  # of a pinned node; pinned values are never written in place
        self.held = held

    @classmethod
    def of(cls, graph: Core, slot: int) -> Before:
        """Return the present state of a node."""
        definition, host = Definition.of(graph, slot), graph._host
        value = MISSING if definition.pin is None else host.data[slot]
        held = [handle(graph, parent) for parent in definition.link.parents]
        return cls(definition, host.specs[slot], value, held)


def _key(graph: Core, what: str, slot: int) -> tuple[str, int]:
    # By serial, since another node may take the slot before the transaction ends.
    return what, graph._scheduler.topology.serial[slot]


def former_leaves(graph: Core, slots: Iterable[int]) -> dict[int, Any]:
    """Return spec and value of those leaves that the innermost transaction has not noted yet.

    Arrays are copied, since a set may write into them.
    """
    former: dict[int, Any] = {}
    for slot in slots:
        if graph._scheduler.notes.wants(_key(graph, "leaf", slot)):
            found, value = graph._host.specs[slot], graph._host.data[slot]
            plain = value is MISSING or found is None or found.weak is not None
            former[slot] = found, value if plain else own_copy(found, value)  # type: ignore[arg-type]
    return former


def note(graph: Core, what: str, slot: int, before: Any) -> None:
    """Note what a node had before, once it is certain to change; only the first such note counts.

    ``what`` is ``"leaf"``, ``"node"``, or the name of the host's table.
    """
    graph._scheduler.notes.note(_key(graph, what, slot), (slot, before))
