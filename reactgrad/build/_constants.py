"""Constants: numbers and arrays in expressions, and nodes filled with one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import Spec, own_copy, spec
from reactgrad.core._core import Core
from reactgrad.core._handles import new_var
from reactgrad.core._rows import number_key
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST
from reactgrad.ops import alias, spread_like, spread_to


def _constant(graph: Core, found: Spec, value: Any) -> int:
    """Return the slot of a constant. Equal Python numbers share one."""
    host = graph._host
    key = None
    if found.weak is not None:
        key = number_key(value)
        slot = host.numbers.get(key)
        if slot is None and graph._generations.spare_numbers:
            slot = graph._generations.number_back(graph, key)
        if slot is not None:
            return slot
    data = value if key is not None else own_copy(found, value)
    slot = _new_const(graph, found, data)
    if key is not None:
        host.numbers[key] = slot
    return slot


def _new_const(graph: Core, found: Spec, data: Any) -> int:
    # An orphan until something uses it: if an error comes first, it is released.
    graph._scheduler.orphans.append(slot := graph._scheduler.add((), leaf=True, valued=True))
    graph._host.add_node(slot, CONST, (), found, data, None)
    return slot


def full(graph: Core, found: Spec, number: float) -> Handle:
    """Return a constant array of one element with the dtype and device of ``found``."""
    one = spec((1,) * len(found.shape), found.dtype, found.device)
    with graph._lock:
        return new_var(graph, _new_const(graph, one, own_copy(one, number)))


def zeros_like(graph: Core, var: Any) -> Handle:
    """Return zeros for the gradient of ``var``.

    The node is no leaf, and never becomes stale as long as the shape is known.
    """
    found = graph._host.specs[var._slot] or spec((None,), var.dtype)
    if found.dtype.kind != "f":  # a condition or a count, as its computed value has shown
        found = spec(found.shape, np.dtype(np.float64), found.device)
    if found.known:
        return zeros(graph, found)
    return spread_like(full(graph, spec((), found.dtype, found.device), 0.0), var)


def zeros(graph: Core, found: Spec) -> Handle:
    """Return a node of zeros with this shape, dtype and device; it is never a leaf."""
    zero = full(graph, found, 0.0)
    spread = spread_to(zero, found.shape)
    return alias(zero) if spread is zero else spread
