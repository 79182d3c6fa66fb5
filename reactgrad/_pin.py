"""A value given to a computed node in place of what it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad import _respec
from reactgrad._errors import DTypeError, SetError, ShapeError
from reactgrad._host import Pin
from reactgrad._store import Leaf
from reactgrad.backend import own_copy, read_value

if TYPE_CHECKING:
    from reactgrad._graph import Graph
    from reactgrad._var import Var


def pin(graph: Graph, var: Var, value: Any) -> None:
    """Give `var` this value until it is unpinned; see ``Var.pin``."""
    host, scheduler, slot = graph._host, graph._scheduler, var._slot
    with graph._lock:
        scheduler.check_idle()
        if isinstance(host.ops[slot], Leaf):
            raise SetError(f"{var.name!r} is a leaf: give it a value with set, not with pin.")
        data = _fitting(graph, var, value)
        before = host.data[slot] if slot in host.pins else None
        scheduler.undo.note(
            (lambda: _put(graph, slot, before))
            if before is not None
            else (lambda: unpin(graph, var))
        )
        if slot not in host.pins:
            parents, fixed = scheduler.topology.parents[slot], scheduler.dynamic.get(slot)
            host.pins[slot] = Pin([graph._handle(parent) for parent in parents], fixed)
            scheduler.cut(slot)
            _put(graph, slot, data)
            _respec.rebuild_programs(graph, {slot})
        else:
            _put(graph, slot, data)
        graph._announce()


def unpin(graph: Graph, var: Var) -> None:
    """Let `var` be computed again; see ``Var.unpin``."""
    host, scheduler, slot = graph._host, graph._scheduler, var._slot
    with graph._lock:
        scheduler.check_idle()
        held = host.pins.get(slot)
        if held is None:
            return
        scheduler.mend(slot, tuple(parent._slot for parent in held.parents), held.fixed)
        del host.pins[slot]
        value = host.hand_out(slot)
        host.overwrite((slot,))
        host.discard(slot)
        host.moved(slot)
        scheduler.undo.note(lambda: pin(graph, var, value))
        _respec.rebuild_programs(graph, {slot})
        graph._announce()


def _put(graph: Graph, slot: int, data: Any) -> None:
    host = graph._host
    host.overwrite((slot,))
    host.discard(slot)
    host.data[slot] = data
    host.moved(slot)
    graph._scheduler.changed(slot)
    graph._observers.note((slot,))


def _fitting(graph: Graph, var: Var, value: Any) -> Any:
    """The value as the node stores its own: of its shape and dtype, where these are known."""
    what = f"pin of {var.name!r}"
    if hasattr(value, "_slot"):
        raise DTypeError(f"{what} was given a Var; pass its value, v.value.")
    found = graph._host.specs[var._slot]
    seen, new = read_value(value, what)
    if found is None:
        if isinstance(new, np.ndarray):
            new = new.copy()
            new.flags.writeable = False
            return new.view() if new.ndim else new[()]
        return value
    if seen is None or seen.shape != found.shape:
        raise ShapeError(
            f"{what} was given {seen or type(value).__name__}; the node's values are {found!r}."
        )
    if not np.can_cast(seen.dtype, found.dtype, "same_kind"):
        raise DTypeError(f"{what} was given {seen!r}; the node's values are {found!r}.")
    return own_copy(found, new)
