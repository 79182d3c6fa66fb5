"""Pins: values given to computed nodes in place of what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ImplicitValueError, SetError, ShapeError
from reactgrad.backend import own_copy, own_object, read_value, refuse_one_shot
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.core._held import announce
from reactgrad.core._notes import Before, note
from reactgrad.core._rows import Pin
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import Leaf, Op
from reactgrad.scheduler import Link
from reactgrad.values._columns import MISSING, frozen_copy


def pin(var: Handle, /, value: Any) -> None:
    """Give a computed node a value of its own until ``unpin``: what-if on an intermediate.

    What it would be computed from does not run for it any more; gradients treat it as a leaf.

    Parameters
    ----------
    value : array_like or object
        Of the node's shape, and of a dtype that can be cast to its own; for a Python function
        without a declared result any object, as the function might return it. Arrays are copied.

    Raises
    ------
    SetError
        For leaves, which are set.
    ShapeError, DTypeError
        If the value does not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(2.0)
    >>> y = x * 3.0
    >>> z = y + 1.0
    >>> y.pin(10.0)
    >>> z.value
    np.float64(11.0)
    >>> y.unpin()
    >>> z.value
    np.float64(7.0)
    """
    graph, slot = var._graph, var._slot
    host = graph._host
    with graph._lock:
        graph._scheduler.check_idle()
        tidy(graph)
        if isinstance(host.ops[slot], Leaf):
            raise SetError(f"{var.label!r} is a leaf: give it a value with set, not with pin.")
        data = _fitting(graph, var, value)
        before = Before.of(graph, slot)
        with Change(graph, None) as change:
            if slot not in host.pins:
                held = Pin(before.held, before.definition.link.fixed)
                change.define({slot: before.definition._replace(link=Link(()), pin=held)})
            change.put(slot, data)
            change.follow()
            note(graph, "node", slot, before)
            graph._observers.note((slot,))
            graph._scheduler.changed(slot)
        announce(graph)


def unpin(var: Handle, /) -> None:
    """Let a pinned node be computed again; others are left as they are.

    Raises
    ------
    CycleError
        If its operands were made to depend on it while it was pinned; it stays pinned then.
    """
    graph, slot = var._graph, var._slot
    host = graph._host
    with graph._lock:
        graph._scheduler.check_idle()
        tidy(graph)
        held = host.pins.get(slot)
        if held is None:
            return
        before = Before.of(graph, slot)
        # Only its operands: what a function reads it finds again, since it runs in any case and may
        # read other nodes now.
        link = Link(Link(tuple([parent._slot for parent in held.parents]), held.fixed).operands)
        with Change(graph, "unpin") as change:
            change.define({slot: before.definition._replace(link=link, pin=None)})
            change.put(slot, MISSING)
            change.follow()
            note(graph, "node", slot, before)
        announce(graph)


def _fitting(graph: Core, var: Handle, value: Any) -> Any:
    """Return the value as the node would store it, in its shape and dtype where these are known."""
    what = f"pin of {var.label!r}"
    if hasattr(value, "_slot"):
        raise ImplicitValueError(f"{what} was given a Var; pass its value, v.value.")
    found, op = graph._host.specs[var._slot], graph._host.ops[var._slot]
    if found is None and not isinstance(op, Op):
        refuse_one_shot(what, value)
        return _as_returned(op, value)
    seen, new = read_value(value, what)
    if found is None:
        return frozen_copy(new)[()] if isinstance(new, np.ndarray) else own_object(value)
    if seen is None or seen.shape != found.shape:
        raise ShapeError(
            f"{what} was given {seen or type(value).__name__}; the node's values are {found!r}."
        )
    if not np.can_cast(seen.dtype, found.dtype, "same_kind"):
        raise DTypeError(f"{what} was given {seen!r}; the node's values are {found!r}.")
    return own_copy(found, new)


def _as_returned(op: Any, value: Any) -> Any:
    """Return the value as a function might have returned it: any object, but arrays as read-only
    copies.
    """
    if getattr(op, "outputs", None) is not None:
        return tuple(map(_kept, op.take_apart(value)))
    return _kept(value)


def _kept(value: Any) -> Any:
    return frozen_copy(value) if type(value) is np.ndarray else own_object(value)
