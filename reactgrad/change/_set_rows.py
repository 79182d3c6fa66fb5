"""Sets of a part of a leaf's value: the rows that it changes are noted, and only they need to run again."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import DTypeError, ImplicitValueError, SetError, ShapeError
from reactgrad.backend import Spec, read_value
from reactgrad.change._set import set_many, take_back
from reactgrad.core._held import announce
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import INPUT, PARAM
from reactgrad.scheduler import MOST_RANGES, SHARE, Ranges, block, count, safe_repr
from reactgrad.values._columns import MISSING
from reactgrad.values._fitting import _castable, cast
from reactgrad.values._quiet import quietly

if TYPE_CHECKING:
    from reactgrad.core._core import Core


_FLOAT64 = np.dtype(np.float64)


def write_rows(var: Handle, index: Any, values: Any) -> None:
    """Do what ``set_at`` does."""
    graph, slot = var._graph, var._slot
    with graph._lock:
        graph._scheduler.check_idle()
        found, buffer = _array_of(graph, var)
        part = _part(var, buffer, index)
        new = _fitting(var, found, part, values)
        rows = rows_at(index, found.shape)
        if (
            rows is None
            or graph._noted
            or graph._observers.calling is not None
            or slot in graph._host.cutoffs
            or found.kind != "cpu"
        ):
            whole = np.array(buffer)
            whole[index] = new
            set_many(graph, [(slot, whole)])
            return
        try:
            graph._scheduler.changed_in(slot, rows)
            graph._host.write_part(slot, index, new)
        except BaseException:  # without a call, see `Host.finish_writes`
            if graph._host.data[slot] is MISSING:
                graph._host.cut_slots = (slot,)
                graph._host.cut_values = (buffer,)
            graph._lock.acquire = graph._lock.mending
            take_back(graph._host, (slot,))
            raise
        if graph._observed:
            announce(graph, (slot,))


@block
def mutate_rows(var: Handle, rows: Any) -> Iterator[Any]:
    """Edit a copy of some rows of a leaf's array, which becomes that part of its value when the block ends."""
    graph = var._graph
    with graph._lock:  # what is set is what was read, with the edit
        owner = graph._lock.hold()
        try:
            _, buffer = _array_of(graph, var)
            part = np.array(_part(var, buffer, rows))
            yield part
            write_rows(var, rows, part)
        finally:
            graph._lock.drop(owner)


def _array_of(graph: Core, var: Handle) -> tuple[Spec, Any]:
    """Return spec and array of a leaf that may be set in part."""
    host, slot = graph._host, var._slot
    op, found, buffer = host.ops[slot], host.specs[slot], host.data[slot]
    if op is not INPUT and op is not PARAM:
        raise SetError(
            f"{var.label}.set_at(...): {var.label!r} is {host.describe_op(slot)}, and only inputs and params can be "
            f"set. For a new node with another part write {var.label}.at[index].set(values)."
        )
    if found is None or found.weak is not None or not found.shape or buffer is MISSING:
        raise SetError(
            f"{var.label}.set_at(...): {var.label!r} holds no array with an axis. Write {var.label}.set(value)."
        )
    return found, buffer


def _part(var: Handle, buffer: Any, index: Any) -> Any:
    """Return the part of an array at an index: a view, or a copy."""
    if type(index) is int and -len(buffer) <= index < len(buffer):
        return buffer[index]
    what = f"{var.label}, the part at {safe_repr(index):.40}"
    for one in index if type(index) is tuple else (index,):
        if isinstance(one, Handle):
            raise ImplicitValueError(
                f"{what}: the index is a Var, and a set does not follow it. Write {one.label}.value."
            )
    try:
        return buffer[index]
    except IndexError as error:
        raise IndexError(
            f"{what}: {error}. The leaf has the shape {buffer.shape}; write an index of a part of it."
        ) from None


def _fitting(var: Handle, found: Spec, part: Any, values: Any) -> Any:
    """Return values that fit a part of a leaf, in the leaf's dtype."""
    if type(values) is float:
        if found.dtype is _FLOAT64:
            return values
    elif type(values) is np.ndarray and values.dtype is found.dtype and values.shape == part.shape:
        return values
    what = f"{var.label}.set_at(...)"
    if isinstance(values, Handle):
        raise ImplicitValueError(
            f"{what} was given a Var. Write {values.label}.value to copy its present value."
        )
    given, new = read_value(values, what)
    if given is None or given.kind != "cpu":
        raise DTypeError(
            f"{what} was given {type(values).__name__} ({safe_repr(values):.60}), which is no number or array of "
            "NumPy. Write numbers, or an array made by np.asarray."
        )
    if given.weak is int and found.dtype.kind in "fc" and abs(new) > 1 << 1023:
        raise DTypeError(f"{what}: an integer of that size does not fit {found.dtype}.")
    if not np.can_cast(_castable(given, new), found.dtype, "same_kind"):
        raise DTypeError(
            f"{what}: the leaf holds {found.dtype} and was given {safe_repr(given)}: that would lose "
            "what the dtype cannot "
            f"hold. Convert it first, np.asarray(values).astype('{found.dtype}')."
        )
    try:
        fits = np.broadcast_shapes(np.shape(new), part.shape) == part.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{what}: values of shape {np.shape(new)} do not broadcast to the part at the index, of shape "
            f"{part.shape}. Write values of that shape, or another index."
        )
    if found.dtype.kind in "iu":
        return cast(what, new, found.dtype)
    return quietly(np.asarray(new).astype, found.dtype)


def rows_at(index: Any, shape: tuple[Any, ...]) -> Ranges | None:
    """Return the rows at an index that fits an array of this shape; ``None``: too many, or maybe all.

    Examples
    --------
    >>> rows_at(-1, (100, 3)), rows_at(slice(4, 8, 2), (100, 3)), rows_at([7, 3, 4], (100,))
    (((99, 100),), ((4, 5), (6, 7)), ((3, 5), (7, 8)))
    """
    length = shape[0]
    if type(index) is int:
        at = index % length
        return ((at, at + 1),) if length >= SHARE else None
    first = index
    if type(index) is tuple:
        if not index:
            return None
        first = index[0]
    rows: Ranges | None
    if isinstance(first, slice):
        begin, end, step = first.indices(length)
        if step < 0:
            begin, end, step = end + 1 + (begin - end - 1) % -step, begin + 1, -step
        if end <= begin:
            return ()
        rows = ((begin, end),) if step == 1 else _ranges(np.arange(begin, end, step))
    elif first is None or first is Ellipsis or isinstance(first, bool | np.bool_):
        return None
    else:
        try:
            at = operator.index(first) % length
            rows = ((at, at + 1),)
        except TypeError:
            array = np.asarray(first)
            if array.dtype.kind == "b":
                if array.shape != tuple(shape[: array.ndim]):
                    return None
                rows = _ranges(np.flatnonzero(array.any(tuple(range(1, array.ndim)))))
            elif not array.size:
                return ()
            elif array.dtype.kind in "iu":
                rows = _ranges(np.unique(array % length))
            else:
                return None
    return None if rows is None or count(rows) * SHARE > length else rows


def _ranges(rows: Any) -> Ranges | None:
    """Return ascending rows as ranges, ``None`` if these are too many."""
    if not rows.size:
        return ()
    breaks = np.flatnonzero(np.diff(rows) != 1)
    begins, ends = rows[[0, *(breaks + 1)]], rows[[*breaks, -1]] + 1
    found = zip(begins.tolist(), ends.tolist())
    return tuple(found) if len(begins) <= MOST_RANGES else None
