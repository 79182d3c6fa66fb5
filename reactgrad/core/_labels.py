"""Labels: what pictures and messages call a node that nobody has named."""

from __future__ import annotations

from typing import Any

from reactgrad.nodes._label import Assigned, assigned
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import CONST, FEED, Leaf, Output
from reactgrad.nodes._site import scope_of
from reactgrad.ops import ALIAS

# Ops whose last attribute is the number of the part that the node is.
_PARTS = ("split", "unbind")
# What the nodes are called that hand an argument to the call of a module.
_ARGUMENT = {ALIAS: "into", FEED: "fed to"}


def label(rows: Any, slot: int) -> str:
    """Return the name of a node, or what its line assigns it to, unique in the graph.

    Of nodes with the same word the first that was asked for has it, as long as it lives; others
    have it with their number, ``h_17``. Return the made name, ``tanh_17``, where the line does not
    tell.
    """
    name = rows.name_of.get(slot)
    if name is not None:
        return name
    scope, number_of = scope_of(rows.sites[slot]), rows.scheduler.topology.number
    call = _call_of(rows, slot)
    word = f"{_ARGUMENT[rows.ops[slot]]} {call}" if call else _word(rows, slot)
    if word is None:
        return rows.name(slot)
    number, given = number_of(slot), rows.labels
    text, me = f"{scope}/{word}" if scope else word, (slot, number)
    for candidate in (text, f"{text}_{number}"):
        at, since = given.get(candidate, me)
        taken = at != slot and number_of(at) == since
        if not taken and candidate not in rows.named and not _is_made(rows, candidate, slot):
            if len(given) >= rows.most_labels:
                _forget_the_dead(rows)
            given[candidate] = me
            return candidate
    return rows.name(slot)


def _word(rows: Any, slot: int) -> str | None:
    """Return the word that the node's line assigns it to, if it is the node that is assigned."""
    op, site = rows.ops[slot], rows.sites[slot]
    if site is None or rows.scheduler.topology.serial[slot] <= rows.restored_serial:
        return None
    try:
        found = assigned(site)
    except (
        MemoryError,
        RecursionError,
    ):  # an error message must not fail for want of a better word
        return None
    if found is None or (slot in rows.owners and found.calls != "grad"):
        return None
    if isinstance(op, Output):
        operands = rows.scheduler.operands(slot)  # none while the output is pinned
        outputs = getattr(rows.ops[operands[0]], "outputs", None) if operands else None
        return _of_several(found, op.index, len(outputs or ()))
    if isinstance(op, Lifted):
        inner = op.INNER or found.calls == "backward"  # not what the line assigns
        return None if found.several or inner or op.outputs is not None else found.targets[0]
    if isinstance(op, Leaf):
        made = found.calls == op.name or (op is CONST and found.calls == "snapshot")
        return found.targets[0] if made else None
    if op.name in _PARTS and found.calls == op.name:
        return _of_several(found, rows.attrs[slot][-1], 0)
    if found.several or (found.calls != op.name and _is_inner(rows, slot)):
        return None
    return found.targets[0]


def _of_several(found: Assigned, index: Any, count: int) -> str | None:
    if found.several:
        at = index if isinstance(index, int) and index < len(found.targets) else -1
        return found.targets[at] if at >= 0 else None
    word = found.targets[0]
    return word if word is None or count == 1 else f"{word}[{index}]"


def _is_inner(rows: Any, slot: int) -> bool:
    """Return whether the call that has built a node has built another one of it, in any scope."""
    return any(_same_place(rows, slot, child) for child in rows.scheduler.topology.children[slot])


def _same_place(rows: Any, one: int, other: int) -> bool:
    first, second = rows.sites[one], rows.sites[other]
    return first is not None and second is not None and first[:2] == second[:2]


def _call_of(rows: Any, slot: int) -> str:
    """Return the module, below the node's own scope, whose call a node hands an argument to; empty if there is none.

    An argument is handed on by a stand-in, and an array comes from a leaf behind that.
    """
    op, children = rows.ops[slot], rows.scheduler.topology.children
    stand_ins = (slot,) if op is ALIAS else children[slot] if op is FEED else ()
    own = scope_of(rows.sites[slot])
    for stand_in in stand_ins:
        if rows.ops[stand_in] is ALIAS:
            for child in children[stand_in]:
                inside = scope_of(rows.sites[child]).removeprefix(own).lstrip("/")
                if inside and _same_place(rows, stand_in, child):
                    return inside.partition("/")[0]
    return ""


def _is_made(rows: Any, text: str, slot: int) -> bool:
    """Return whether this is the made name of another node."""
    number, topology = text.rpartition("_")[2], rows.scheduler.topology
    if not number.isdecimal() or not int(number) or int(number) == topology.number(slot):
        return False
    other = topology.find(int(number))
    return other is not None and rows.name(other) == text


def _forget_the_dead(rows: Any) -> None:
    number_of, given = rows.scheduler.topology.number, rows.labels
    for text in [text for text, (at, since) in [*given.items()] if number_of(at) != since]:
        given.pop(text, None)
    rows.most_labels = max(4096, 2 * len(given))
