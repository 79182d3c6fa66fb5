"""Changes of a leaf beside a set: touch, a block that edits its array, freeze. Sets are in ``_set``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from reactgrad._errors import GradientError, SetError
from reactgrad.change._draws import redraw
from reactgrad.core._held import announce
from reactgrad.core._notes import note
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST, PARAM, Leaf, Op, Output
from reactgrad.scheduler import block
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.core._rows import Rows

H = TypeVar("H", bound=Handle)


def touch(var: Any, /) -> None:
    """Assume that the value changed: what depends on it runs again at its next read.

    A computed node runs again itself, for example a function that reads a file. A draw of random numbers
    draws others.

    Raises
    ------
    SetError
        If this is a constant, a pinned node or an output of one, or a leaf without a value.
    """
    graph = var._graph
    with graph._lock:
        graph._scheduler.check_idle()
        host = graph._host
        op = host.ops[var._slot]
        if op is CONST:
            raise SetError(f"{var.label!r} is a constant: it never changes.")
        if isinstance(op, Leaf):
            if host.data[var._slot] is MISSING:
                raise SetError(f"{var.label!r} has no value yet; set it first.")
            graph._scheduler.touched(var._slot)
            announce(graph, (var._slot,))
        else:
            # Of one output the function is what runs again.
            node = var.parents[0] if isinstance(op, Output) and not var.pinned else var
            if node.pinned:
                raise SetError(f"{node.label!r} is pinned: pin it to another value, or unpin it.")
            if isinstance(op, Op) and op.key is not None:
                redraw(var.parents[op.key])
                return
            graph._scheduler.invalidate(node._slot)
            announce(graph)


@block
def mutate(var: Any, /) -> Iterator[Any]:
    """Edit a copy of the array of a leaf, which becomes its value when the block ends.

    An exception inside leaves the value as it was.

    Raises
    ------
    SetError
        If this is a constant or a computed node.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> with x.mutate() as a:
    ...     a[0] = 5.0
    >>> x.value
    array([5., 2.])
    """
    graph = var._graph
    op = graph._host.ops[var._slot]
    if op is CONST or not isinstance(op, Leaf):
        raise SetError(f"{var.label!r} cannot be edited: only inputs and params can.")
    found = graph._host.specs[var._slot]
    if found is None or (found.weak is not None and graph._host.data[var._slot] is MISSING):
        raise SetError(f"{var.label!r} holds no array to edit; write {var.label}.set(value).")
    with graph._lock:  # what is set is what was read, with the edit
        owner = graph._lock.hold()
        try:
            array = var.numpy()
            yield array
            var.set(array)
        finally:
            graph._lock.drop(owner)


def freeze(var: H, /) -> H:
    """Take a param out of training: no ``.grad``; gradients still pass to what is before it.

    Returns
    -------
    Var
        Itself.

    Raises
    ------
    GradientError
        If this is not a param.
    """
    with var._graph._lock:
        _check_param(var, "freeze")
        host, slot = var._graph._host, var._slot
        note(var._graph, "frozen", slot, (slot in host.frozen, host.grads.get(slot)))
        var._graph._scheduler.wholly(
            partial(_freeze, host, slot),
            partial(_unfreeze, host, slot, slot in host.frozen, host.grads.get(slot)),
        )
    return var


def unfreeze(var: H, /) -> H:
    """Make a frozen param trainable again; returns it."""
    with var._graph._lock:
        _check_param(var, "unfreeze")
        host, slot = var._graph._host, var._slot
        note(var._graph, "frozen", slot, (slot in host.frozen, host.grads.get(slot)))
        host.frozen.discard(slot)
    return var


def _freeze(host: Rows, slot: int) -> None:
    host.frozen.add(slot)
    host.grads.pop(slot, None)


def _unfreeze(host: Rows, slot: int, frozen: bool, grad: Any) -> None:
    """Undo ``_freeze``."""
    if not frozen:
        host.frozen.discard(slot)
    if grad is not None:
        host.grads[slot] = grad


def _check_param(var: Handle, what: str) -> None:
    if var._graph._host.ops[var._slot] is not PARAM:
        raise GradientError(
            f"{what}: {var.label!r} is no param, and only params are trained. Use detach() to "
            "stop a gradient at another node."
        )
