"""Elements taken by their numbers: take, take_along_axis, gather and index_select.

All of them are the op of ``x[indices]``, whose gradient adds up in one array, in place, however many of them
take from one value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import check_numbers
from reactgrad.nodes._handle import Handle, apply, stacked
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._index import GATHER
from reactgrad.ops._layout import known_shape
from reactgrad.ops._operand import flat, given, with_axis
from reactgrad.ops._places import along, rows_at
from reactgrad.ops._shapes import normal_axis
from reactgrad.scheduler import safe_repr

MODES = ("raise", "wrap", "clip")


def numbers_of(name: str, numbers: Any) -> Any:
    """Return integers that name elements, as a node or an array.

    Raises
    ------
    DTypeError
        If they are no integers.
    """
    if isinstance(numbers, Handle):
        return numbers
    numbers = stacked(numbers)
    if isinstance(numbers, Handle):
        return numbers
    array = np.asarray(numbers)
    if not array.size and array.dtype.kind == "f":
        array = array.astype(np.intp)
    if array.dtype.kind not in "iub":
        raise DTypeError(f"{name}: indices are integers, not {array.dtype}.")
    return array.astype(np.intp) if array.dtype.kind == "b" else array


def checked_axis(name: str, x: Any, axis: Any) -> int:
    """Return an axis as an int, after a check where the number of axes is known."""
    shape = known_shape(x) if isinstance(x, Handle) else np.shape(x)
    if shape is None:
        return normal_axis(name, axis, 64) - (64 if axis < 0 else 0)
    return normal_axis(name, axis, len(shape))


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """Return the elements, or the rows along an axis, at indices.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    indices : Var or array_like of int
        Any shape. A Var may change; each read then takes other elements.
    axis : int, optional
        The axis along which rows are taken; by default elements of the flattened array.
    mode : {"raise", "wrap", "clip"}
        The meaning of integers that are no index: an error, counting on from the other end, or the nearest
        index. In the mode ``"raise"`` negative ones count from the end.

    Returns
    -------
    Var
        The axis is replaced by those of `indices`. Gradients of repeated indices add up.

    Raises
    ------
    IndexingError
        If there is no such element; for a Var of indices when it is computed.
    DTypeError
        If indices are no integers.
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> table, rows = g.param([[1.0, 2.0], [3.0, 4.0]]), g.input([1, 1])
    >>> y = rg.take(table, rows, axis=0)
    >>> y.value
    array([[3., 4.],
           [3., 4.]])
    >>> rg.grad(y.sum(), table).value
    array([[0., 0.],
           [2., 2.]])
    """
    if mode not in MODES:
        raise ParameterError(f'take: mode={safe_repr(mode)} is none of "raise", "wrap" and "clip".')
    a = given(a)
    if axis is None:
        a, axis = flat(a), 0
    return _rows("take", a, indices, axis, mode)


def _rows(name: str, x: Any, indices: Any, axis: int, mode: str) -> Any:
    indices = numbers_of(name, indices)
    if isinstance(indices, Handle):
        found = indices._graph._host.specs[indices._slot]
        if found is not None and found.dtype.kind == "b":
            indices = astype(indices, np.intp)
    axis = checked_axis(name, x, axis)
    if mode == "raise":
        _check_fixed(x, indices, axis)
    return apply(GATHER, (x, indices), (rows_at(axis, mode),))


def _check_fixed(x: Any, numbers: Any, axis: int) -> None:
    """Raise ``IndexingError`` for fixed indices that are none, where the length is known already."""
    shape = known_shape(x) if isinstance(x, Handle) else x.shape
    if not isinstance(numbers, Handle) and shape is not None and shape[axis] is not None:
        check_numbers(numbers, shape, axis)


@deferred_each(without=("index",))
def index_select(x: Any, axis: int, index: Any) -> Any:
    """Return the rows along an axis at indices.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is one row.
    axis : int
        The axis.
    index : Var or array_like of int
        One axis, or a single number.

    Returns
    -------
    Var
        With as many rows as there are indices.

    Raises
    ------
    IndexingError
        If there is no such row.
    ShapeError
        If `index` has several axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.index_select([[1, 2, 3], [4, 5, 6]], 1, [2, 0])
    >>> y.value
    array([[3, 1],
           [6, 4]])
    """
    x, numbers = given(x), with_axis(numbers_of("index_select", index))
    one_axis("index_select", numbers)
    found = _rows("index_select", with_axis(x), numbers, axis, "raise")
    return found[0] if x.ndim == 0 else found


def one_axis(name: str, numbers: Any) -> None:
    """Raise ``ShapeError`` unless indices have one axis, as far as that is known."""
    shape = known_shape(numbers) if isinstance(numbers, Handle) else np.shape(numbers)
    if shape is not None and len(shape) != 1:
        raise ShapeError(
            f"{name}: the index has one axis, and not the shape {shape}; rg.take takes indices of any shape."
        )


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Return elements by their numbers along an axis, such as ``argsort`` and ``argmax`` give.

    Parameters
    ----------
    arr : Var or array_like
        At least one axis.
    indices : Var or array_like of int
        As many axes as `arr`; each number names an element of its own row along the axis. The lengths of other
        axes are those of `arr`, or 1.
    axis : int or None
        The axis; ``None`` takes `arr` as one row, and `indices` has one axis.

    Returns
    -------
    Var
        In the shape of `indices`, broadcast with the other axes of `arr`. Gradients of repeated indices add up.

    Raises
    ------
    IndexingError
        If there is no such element.
    ShapeError
        If the axes of `indices` do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([[3.0, 1.0], [5.0, 9.0]])
    >>> rg.take_along_axis(x, rg.argsort(x), axis=1).value
    array([[1., 3.],
           [5., 9.]])
    """
    arr = given(arr)
    if axis is None:
        arr, axis = flat(arr), 0
    return _along("take_along_axis", arr, indices, axis, short=False)


def gather(x: Any, axis: int, index: Any) -> Any:
    """Return elements by their numbers along an axis, as ``torch.gather`` does.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is a row of one element.
    axis : int
        The axis.
    index : Var or array_like of int
        As many axes as `x`. Other axes may be shorter than those of `x`, and then stand for their beginning;
        ``take_along_axis`` repeats those of length 1.

    Returns
    -------
    Var
        In the shape of `index`. Gradients of repeated indices add up.

    Raises
    ------
    IndexingError
        If there is no such element.
    ShapeError
        If the axes of `index` do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.gather([[1, 2], [3, 4]], 1, [[0, 0], [1, 0]])
    >>> y.value
    array([[1, 1],
           [4, 3]])
    """
    index = numbers_of("gather", index)
    found = _along("gather", with_axis(x), with_axis(index), axis, short=True)
    return found[0] if np.ndim(index) == 0 else found


def _along(name: str, x: Any, indices: Any, axis: int, *, short: bool) -> Any:
    numbers = numbers_of(name, indices)
    axis = checked_axis(name, x, axis)
    same_axes(name, x, numbers)
    _check_fixed(x, numbers, axis)
    return apply(GATHER, (x, numbers), (along(axis, short),))


def same_axes(name: str, x: Any, numbers: Any) -> None:
    """Raise ``ShapeError`` unless indices have as many axes as `x`, as far as both are known."""
    known = [known_shape(one) if isinstance(one, Handle) else np.shape(one) for one in (x, numbers)]
    if None not in known and len(known[0]) != len(known[1]):  # type: ignore[arg-type]
        raise ShapeError(
            f"{name}: indices of shape {known[1]} for a value of shape {known[0]}; they have as many axes as "
            "the value. rg.take(x, indices, axis) takes whole rows by indices of any shape."
        )
