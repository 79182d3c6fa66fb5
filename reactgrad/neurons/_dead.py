"""Neurons that lead to nothing, found by their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def above(variables: Iterable[Any]) -> set[Any]:
    """Return these nodes and all that they are computed from."""
    found = set(variables)
    pending = list(found)
    while pending:
        for parent in pending.pop().parents:
            if parent not in found:
                found.add(parent)
                pending.append(parent)
    return found


def left_alone(start: Any, neuron_of: Callable[[Any], Any]) -> list[Any]:
    """Return the neuron of this node, and those that it alone was computed for, if nothing uses it.

    `neuron_of` gives the neuron of a node, ``None`` where there is none.
    """
    gone: list[Any] = []
    dead: set[Any] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        neuron = neuron_of(node)
        if neuron is None or neuron in gone:
            continue
        if any(child not in dead for child in neuron.users):
            continue
        gone.append(neuron)
        dead.update(neuron.own_nodes)
        pending += neuron.inputs
    return gone
