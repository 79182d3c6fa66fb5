"""Elements taken out and put in along an axis: delete, insert, trim_zeros."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from reactgrad._errors import DTypeError, IndexingError, ParameterError, SetError, ShapeError
from reactgrad.backend import Spec
from reactgrad.nodes._handle import Handle, apply, holds_handles
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._index import getitem
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import expand_dims, reshape
from reactgrad.ops._lengths import (
    INSERTED,
    KEPT,
    spread_along,
    with_least,
    with_length,
)
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import axis_of
from reactgrad.ops._shapes import normal_axes, normal_axis
from reactgrad.scheduler import safe_repr


def _along(x: Any, axis: int, key: Any) -> Any:
    return getitem(x, (*[slice(None)] * axis, key))


def _row(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    """Return a value and the axis from the front; without an axis its elements as one row."""
    if axis is None:
        return (arr if arr.ndim == 1 else reshape(arr, -1)), 0
    return arr, normal_axis(name, axis, arr.ndim)


def _index(name: str, obj: Any) -> Any:
    """Return which elements a caller means: a slice, or an array of integers or booleans."""
    if isinstance(obj, slice):
        return obj
    if isinstance(obj, Handle) or holds_handles([obj]):
        raise DTypeError(
            f"{name} at a Var: the place would change with its value, and the program does not. Index with it, "
            "x[i], choose by a mask, x[mask], or write x.at[i].set(...)."
        )
    found = np.asarray(obj)
    if not found.size and found.dtype.kind == "f":
        found = found.astype(np.intp)
    if found.dtype.kind not in "iub":
        raise DTypeError(
            f"{name} at {safe_repr(obj):.60}: places are integers, slices or booleans."
        )
    return found


def _length(x: Any, axis: int) -> int:
    length = x.shape[axis]
    if length is None:
        raise x._unknown_length()
    return length


def _checked(name: str, places: Any, least: int, most: int, x: Any, axis: int) -> None:
    wrong = places[(places < least) | (places > most)]
    if wrong.size:
        raise IndexingError(
            f"{name} at {wrong.flat[0]}: axis {axis} of {x.label!r} has length {_length(x, axis)}."
        )


@deferred
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Return `arr` without some elements along an axis.

    Parameters
    ----------
    arr : Var or array_like
        Any shape.
    obj : int, slice, or array_like of int or bool
        The elements to leave out.
    axis : int, optional
        By default the elements of `arr` are taken as one row.

    Returns
    -------
    Var

    Raises
    ------
    IndexingError
        If there is no such element.
    DTypeError
        If `obj` is a Var: ``arr[mask]`` chooses by values.
    ShapeError
        If booleans are not as many as elements, or the length of the axis is not known. Other places follow
        another length.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([10, 20, 30, 40])
    >>> rg.delete(x, 1).value
    array([10, 30, 40])
    >>> rg.delete(x, [0, -1]).value
    array([20, 30])
    """
    arr, axis = _row("delete", node(arr), axis)
    which = _index("delete", obj)
    if not isinstance(which, slice) and which.size == 1 and which.dtype.kind != "b":
        place = int(which.reshape(()))
        if arr.shape[axis] is not None:
            _checked("delete", which, -arr.shape[axis], arr.shape[axis] - 1, arr, axis)
        arr = with_least("delete", arr, axis, place + 1 if place >= 0 else -place)
        before = _along(arr, axis, slice(None, place))
        after = slice(place + 1, None)
        return before if place == -1 else concatenate([before, _along(arr, axis, after)], axis)
    if isinstance(which, slice):
        return _along(arr, axis, apply(KEPT, (arr,), (axis, _slice(which))))
    if which.dtype.kind == "b":
        length = _length(arr, axis)
        if which.shape != (length,):
            raise ShapeError(
                f"delete by booleans of shape {which.shape}: axis {axis} has {length} elements; give one each."
            )
        arr = with_length("delete by booleans", arr, axis, length)
        return _along(arr, axis, np.flatnonzero(~which))
    places = tuple(which.ravel().tolist())
    return _along(arr, axis, apply(KEPT, (arr,), (axis, places))) if places else arr


def _slice(one: slice) -> tuple[Any, ...]:
    ends = (one.start, one.stop, one.step)
    return ("slice", *[None if end is None else int(end) for end in ends])


@deferred
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Return `arr` with values put in before some elements along an axis.

    Parameters
    ----------
    arr : Var or array_like
        Any shape.
    obj : int, slice, or array_like of int or bool
        The elements before which to insert, by their places in `arr`.
    values : Var or array_like
        Of a shape that fits; converted to the dtype of `arr`.
    axis : int, optional
        By default the elements of `arr` are taken as one row.

    Returns
    -------
    Var

    Raises
    ------
    IndexingError
        If there is no such place.
    DTypeError
        If `obj` is a Var.
    ShapeError
        If the values do not fit, or a length that is needed is not known.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([10, 20, 30])
    >>> rg.insert(x, 1, 15).value
    array([10, 15, 20, 30])
    >>> rg.insert(x, [0, 3], [1, 2]).value
    array([ 1, 10, 20, 30,  2])
    """
    arr, axis = _row("insert", node(arr, values), axis)
    values = node(values, arr)
    if values.dtype != arr.dtype:
        values = astype(values, arr.dtype)
    if values.ndim < arr.ndim:
        values = expand_dims(values, tuple(range(arr.ndim - values.ndim)))
    while values.ndim > arr.ndim and values.shape[0] == 1:  # as NumPy assigns
        values = values[0]
    which, length = _index("insert", obj), arr.shape[axis]
    if isinstance(which, slice):  # there are values for as many places as it has now
        arr = with_length("insert at a slice", arr, axis, _length(arr, axis))
        which = np.arange(*which.indices(_length(arr, axis)))
    if which.dtype.kind == "b":
        if which.ndim != 1:
            raise ShapeError("insert: booleans that choose places are a row.")
        which = np.flatnonzero(which)
    if which.ndim > 1:
        raise ShapeError(
            f"insert: places are an integer or a row of them, not of shape {which.shape}."
        )
    if length is not None:
        _checked("insert", which, -length, length, arr, axis)
    places, count = tuple(which.ravel().tolist()), which.size
    if count == 1:
        (place,) = places
        if not which.ndim:  # NumPy's broadcasting of a single place: the first axis goes there
            order = [*range(1, axis + 1), 0, *range(axis + 1, values.ndim)]
            values = values.transpose(order)
        if values.shape[axis] is None:
            raise values._unknown_length()
        new = spread_along("insert", values, arr, axis, values.shape[axis])
        if not place:
            return concatenate([new, arr], axis)
        arr = with_least("insert", arr, axis, abs(place))
        before, after = slice(None, place), slice(place, None)
        return concatenate([_along(arr, axis, before), new, _along(arr, axis, after)], axis)
    if not count:
        return arr
    # The values stand behind all of `arr` first, and an index brings both into their order.
    both = concatenate([arr, spread_along("insert", values, arr, axis, count)], axis)
    return _along(both, axis, apply(INSERTED, (arr,), (axis, places)))


def _infer_trimmed(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    normal_axis("trim_zeros", attrs[0], len(specs[0].shape))


# The numbers of the elements along an axis between zeros at its ends: how many shows only in the values.
TRIMMED = Op("trimmed", _infer_trimmed, (None,), (None,))


@deferred
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Return `filt` without the zeros at the ends of its axes.

    Parameters
    ----------
    filt : Var or array_like
        With at least one axis.
    trim : str
        ``"f"`` trims the front, ``"b"`` the back, ``"fb"`` both.
    axis : int or tuple of int, optional
        The axes to trim; by default all.

    Returns
    -------
    Var
        Its shape shows only when `filt` has been computed.

    Raises
    ------
    DTypeError
        For another `trim`.
    AxisError
        If `filt` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([0.0, 1.0, 0.0, 2.0, 0.0])
    >>> rg.trim_zeros(x).value
    array([1., 0., 2.])
    """
    filt = node(filt)
    ends = "".join(sorted(trim.lower())) if isinstance(trim, str) else ""
    if ends not in ("f", "b", "bf"):
        raise ParameterError(f"trim_zeros(trim={safe_repr(trim)}): write 'f', 'b' or 'fb'.")
    ndim = filt.ndim
    result = filt
    for at in normal_axes("trim_zeros", axis_of(axis), ndim):
        result = result[(*[slice(None)] * at, apply(TRIMMED, (filt,), (at, ends)))]
    return result


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> NoReturn:
    """Refuse: NumPy's function writes into its argument, and a value never changes.

    Raises
    ------
    SetError
        Always; its message says what to write.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 2)))
    >>> i = np.arange(2)
    >>> x.at[i, i].set(1.0).value
    array([[1., 0.],
           [0., 1.]])
    """
    name = a.label if isinstance(a, Handle) else "a"
    raise SetError(
        f"np.fill_diagonal({name}, ...) would change a value in place. Write i = np.arange(n); "
        f"y = {name}.at[i, i].set(v), a new node, for n, the shorter length."
    )
