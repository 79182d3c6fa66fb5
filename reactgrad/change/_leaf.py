"""Leaves as users change them: set, touched, edited in a block, frozen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from reactgrad._errors import GradientError, SetError
from reactgrad.change._set import set_many, write_one_plainly
from reactgrad.core._held import announce
from reactgrad.core._notes import note_frozen
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._leaf import CONST, PARAM, Leaf
from reactgrad.nodes._output import Output
from reactgrad.values._storage import MISSING

H = TypeVar("H", bound=Handle)


def set_value(var: Handle, value: Any, copy: bool = True) -> None:
    """Replace the value of an input or param.

    Parameters
    ----------
    value : array_like or object
        Cast to the leaf's dtype if nothing but precision can be lost. In place of a Python number
        a number stays what it is, as where it stands in a formula: ops compute with integers
        after ``x.set(2)`` (unless gradients were asked for), with floats after ``x.set(2.0)``.
        Another shape is checked against all that depends on the leaf before anything changes. What
        followed from the last shapes, four to sixteen of them, gradients and plans included, is kept
        for when they come again, until nodes are built, edited, or listed (``len(g)``, ``g.nodes``,
        a picture).
    copy : bool
        ``False`` adopts a contiguous array of the leaf's dtype that owns its memory, which
        becomes read-only, instead of copying it; others are copied. Views of it that were made
        before remain writable, which NumPy cannot change: write to none of them.

    Raises
    ------
    SetError
        If this is a constant or a computed node.
    ShapeError, DTypeError
        If the value does not fit the leaf or what depends on it; nothing has changed then.
    BusyError
        If a node of the graph is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> x.set([3.0, 4.0])
    >>> x.value, x.value_version
    (array([3., 4.]), 2)
    """
    graph = var._graph
    if not write_one_plainly(graph, var._slot, value, not copy):
        with graph._lock:
            set_many(graph, ((var._slot, value),), adopt=not copy)


def touch(var: Any) -> None:
    """Assume that the value changed: what depends on it runs again at its next read.

    A computed node runs again itself, for example a function that reads a file.

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
            raise SetError(f"{var.name!r} is a constant: it never changes.")
        if isinstance(op, Leaf):
            if host.data[var._slot] is MISSING:
                raise SetError(f"{var.name!r} has no value yet; set it first.")
            graph._scheduler.touched(var._slot)
            announce(graph, (var._slot,))
        else:
            # Of one output the function is what runs again.
            node = var.parents[0] if isinstance(op, Output) and not var.pinned else var
            if node.pinned:
                raise SetError(f"{node.name!r} is pinned: pin it to another value, or unpin it.")
            graph._scheduler.invalidate(node._slot)
            announce(graph)


@contextmanager
def mutate(var: Any) -> Iterator[Any]:
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
        raise SetError(f"{var.name!r} cannot be edited: only inputs and params can.")
    found = graph._host.specs[var._slot]
    if found is None or (found.weak is not None and graph._host.data[var._slot] is MISSING):
        raise SetError(f"{var.name!r} holds no array to edit; write {var.name}.set(value).")
    with graph._lock:  # what is set is what was read, with the edit
        array = var.numpy()
        yield array
        set_value(var, array)


def freeze(var: H) -> H:
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
        note_frozen(var._graph, var._slot)
        var._graph._host.frozen.add(var._slot)
        var._graph._host.grads.pop(var._slot, None)
    return var


def unfreeze(var: H) -> H:
    """Make a frozen param trainable again; returns it."""
    with var._graph._lock:
        _check_param(var, "unfreeze")
        note_frozen(var._graph, var._slot)
        var._graph._host.frozen.discard(var._slot)
    return var


def _check_param(var: Handle, what: str) -> None:
    if var._graph._host.ops[var._slot] is not PARAM:
        raise GradientError(
            f"{what}: {var.name!r} is no param, and only params are trained. Use detach() to "
            "stop a gradient at another node."
        )
