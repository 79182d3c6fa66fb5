"""A Python function applied to the rows along an axis, or over axes in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactgrad._errors import ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._join import stack
from reactgrad.ops._layout import expand_dims, transpose
from reactgrad.ops._lengths import with_length
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops._split import unbind
from reactgrad.ops.arrangement._regroup import flatten, unflatten


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """Return the results of a function on each row along an axis, in the place of the axis.

    The function is called once a row, with a node, when this is called, not when values are read.

    Parameters
    ----------
    func1d : callable
        From a node with one axis to a node of any shape, the same for all rows.
    axis : int
        The axis of the rows.
    arr : Var or array_like
        All its lengths but that of the axis must be known.
    *args, **kwargs
        More arguments of `func1d`.

    Raises
    ------
    ShapeError
        If it is not known how many rows there are, or there are none; later, if their number changes.
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.apply_along_axis(lambda row: row.max() - row.min(), 1, [[1.0, 4.0], [2.0, 2.0]])
    >>> y.value
    array([3., 0.])
    """
    node: Any = arr if isinstance(arr, Handle) else graph_of((arr,)).const(arr)
    axis = normal_axis("apply_along_axis", axis, node.ndim)
    others = tuple(i for i in range(node.ndim) if i != axis)
    lengths = tuple(node.shape[i] for i in others)
    if None in lengths or 0 in lengths:
        raise ShapeError(
            f"apply_along_axis on a value of shape {node.shape}: it calls the function once a row, so that the "
            "number of rows must be known and more than 0. Write a function of the whole array instead."
        )
    for i in others:
        node = with_length("apply_along_axis", node, i, node.shape[i])
    moved = transpose(node, (*others, axis))
    rows = flatten(moved, 0, len(others) - 1) if others else expand_dims(node, 0)
    results = [func1d(row, *args, **kwargs) for row in unbind(rows)]
    joined = stack(results)
    inner = joined.ndim - 1
    apart = unflatten(joined, 0, lengths) if others else joined[0]
    order = [*range(axis), *range(len(others), len(others) + inner), *range(axis, len(others))]
    return transpose(apart, tuple(order))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: int | Sequence[int]) -> Any:
    """Return the result of a function applied over each of several axes in turn, which all stay.

    Parameters
    ----------
    func : callable
        ``func(node, axis)``; a result with one axis less gets it back with length 1.
    a : Var or array_like
    axes : int or sequence of int

    Raises
    ------
    ShapeError
        If the function returns another number of axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.apply_over_axes(rg.sum, [[1.0, 2.0], [3.0, 4.0]], [0, 1])
    >>> y.value
    array([[10.]])
    """
    node: Any = a if isinstance(a, Handle) else graph_of((a,)).const(a)
    for one in (axes,) if isinstance(axes, int) else axes:
        axis = normal_axis("apply_over_axes", one, node.ndim)
        found = func(node, axis)
        if found.ndim == node.ndim - 1:
            found = expand_dims(found, axis)
        if found.ndim != node.ndim:
            raise ShapeError(
                f"apply_over_axes: the function returned {found.ndim} axes for {node.ndim}; it must keep them, "
                "or remove the one that it was given."
            )
        node = found
    return node
