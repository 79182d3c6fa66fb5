"""Changes of a leaf beside a set: touch, a block that edits its array, other random numbers, freeze."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from reactgrad._errors import GradientError, ParameterError, SetError
from reactgrad.backend import device_of
from reactgrad.change._change import note_manner
from reactgrad.change._set import set_many
from reactgrad.core._handles import tidy
from reactgrad.core._held import announce
from reactgrad.core._notes import OF_SEED, note
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST, KEY, PARAM, Leaf, Op, Output
from reactgrad.scheduler import block, safe_repr
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.core._core import Core
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
            note_manner(graph, (var._slot,), "touch")
            announce(graph, (var._slot,))
        else:
            # Of one output the function is what runs again.
            node = var.parents[0] if isinstance(op, Output) and not var.pinned else var
            if node.pinned:
                raise SetError(f"{node.label!r} is pinned: pin it to another value, or unpin it.")
            if isinstance(op, Op) and op.key is not None:
                _redraw(var.parents[op.key])
                return
            graph._scheduler.invalidate(node._slot)
            announce(graph)


def set_at(var: Any, /, index: Any, values: Any) -> None:
    """Replace a part of the value of an input or param: ``x.set_at(3, row)``, ``x.set_at((rows, 2), column)``.

    What depends on the leaf is stale afterwards, as after ``set``. But a read computes only the *rows* (along the
    first axis) that the change reaches, as far as each op computes row by row: elementwise ops, sums over the
    last axes, softmax and others, and the same in gradients. All other nodes are computed as a whole, and so is
    everything where more than a tenth of the rows has changed. The results have the same bits either way.

    Parameters
    ----------
    index : int, slice, array_like, or a tuple of them
        What NumPy takes between brackets. Rows of zero length change nothing, but count as a change.
    values : array_like
        Broadcast to the part at the index, and cast as ``set`` does.

    Raises
    ------
    SetError
        If this is no input or param that holds an array with an axis.
    IndexError
        If the index does not fit.
    ShapeError, DTypeError
        If the values do not fit the part; nothing has changed then.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(np.zeros((1000, 2)), name="x")
    >>> y = rg.exp(x)
    >>> first = y.value
    >>> x.set_at(7, 1.0)
    >>> y.value[7].round(3).tolist(), g.last_run.rows[y]
    ([2.718, 2.718], ((7, 8),))
    """
    from reactgrad.change._set_rows import write_rows  # imported late: few programs use it

    write_rows(var, index, values)


def mutate(var: Any, /, rows: Any = None) -> AbstractContextManager[Any]:
    """Edit a copy of the array of a leaf, which becomes its value when the block ends.

    An exception inside leaves the value as it was.

    Parameters
    ----------
    rows : int, slice or array_like, optional
        Edit a copy of ``x.value[rows]`` only, which becomes that part of the value, as with ``set_at``: a read then
        computes only what these rows reach.

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
    >>> with x.mutate(rows=slice(1, 2)) as part:
    ...     part[:] = 7.0
    >>> x.value
    array([5., 7.])
    """
    if rows is not None:
        from reactgrad.change._set_rows import mutate_rows

        return mutate_rows(var, rows)
    return _mutate(var)


@block
def _mutate(var: Any) -> Iterator[Any]:
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


def _redraw(key: Any) -> None:
    """Let the draw with this key draw other numbers: the next ones of its node."""
    graph, slot = key._graph, key._slot
    words = words_of(graph, slot)
    words[3] += np.uint64(1)
    set_many(graph, [(slot, words)])


def words_of(graph: Core, slot: int) -> Any:
    """Return a copy of a key, which lies on the device of its draws."""
    found = graph._host.specs[slot]
    assert found is not None  # a key is an array
    return device_of(found.device).to_numpy(graph._host.data[slot])


def reseed(graph: Core, /, seed: int) -> None:
    """Give the graph another seed: all random nodes draw anew at their next read.

    They draw what they would have drawn in a graph with this seed from the start, so that the same seed
    gives the same numbers again. In a transaction that fails nothing has changed.

    Parameters
    ----------
    seed : int
        At least 0.

    Raises
    ------
    DTypeError
        If it is no such integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph(rng=7)
    >>> with g:
    ...     x = rg.random.normal((2,))
    >>> first = x.value
    >>> g.reseed(8)
    >>> other = x.value
    >>> g.reseed(7)
    >>> (x.value == first).all(), (other == first).any()
    (np.True_, np.False_)
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(
            f"g.reseed({safe_repr(seed):.40}): the seed is an integer of at least 0."
        )
    from reactgrad.build._key import seed_words  # imported late: few programs draw

    with graph._lock:
        graph._scheduler.check_idle()
        tidy(graph)
        host = graph._host
        words = seed_words(int(seed))
        keys = [slot for slot, op in enumerate(host.ops) if op is KEY and slot not in host.removed]
        graph._scheduler.notes.note(OF_SEED, graph.seed)
        set_many(
            graph,
            [(slot, np.array([*words, words_of(graph, slot)[2], 0], np.uint64)) for slot in keys],
        )
        graph._seed = int(seed)


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
        note(var._graph, "frozen", slot, (slot in host.frozen, host.gradients.of(slot)))
        var._graph._scheduler.wholly(
            partial(_freeze, host, slot),
            partial(_unfreeze, host, slot, slot in host.frozen, host.gradients.of(slot)),
        )
    return var


def unfreeze(var: H, /) -> H:
    """Make a frozen param trainable again; returns it."""
    with var._graph._lock:
        _check_param(var, "unfreeze")
        host, slot = var._graph._host, var._slot
        note(var._graph, "frozen", slot, (slot in host.frozen, host.gradients.of(slot)))
        host.frozen.discard(slot)
    return var


def _freeze(host: Rows, slot: int) -> None:
    host.frozen.add(slot)
    host.drop_grad(slot)


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
