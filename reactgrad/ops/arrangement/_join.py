"""Values joined: in rows, columns and blocks, and at the end of another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.ops._join import concatenate, converted, sequence, stack
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._operand import node
from reactgrad.ops.arrangement._regroup import atleast_1d, atleast_2d, atleast_3d


def _joined(
    name: str,
    tup: Any,
    to: Callable[..., Any],
    ndim: int,
    axis: int,
    stacked_at: int,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return values joined along `axis` once they have `ndim` axes.

    If none of them has the axis yet, one node stacks them at `stacked_at`.
    """
    values = [_keep(one) for one in sequence(name, tup)]
    if all(np.ndim(one) == ndim for one in values):
        joined = stack(values, stacked_at)
    else:
        joined = concatenate([to(node(one, *values)) for one in values], axis)
    return converted(name, joined, dtype, casting)


def _keep(one: Any) -> Any:
    return node(one) if isinstance(one, list | tuple) else one


def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Return values joined along axis 1, those of one axis along it.

    Parameters
    ----------
    tup : sequence of Var or array_like
        Of the same shape except along that axis.
    dtype : dtype_like, optional
        The dtype of the result; by default the common one.
    casting : str
        NumPy's rule for that conversion.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1], [2]])
    >>> rg.hstack([x, x]).value
    array([[1, 1],
           [2, 2]])
    """
    values = sequence("hstack", tup)
    flat = np.ndim(_keep(values[0])) < 2
    return _joined("hstack", values, atleast_1d, 0, 0 if flat else 1, 0, dtype, casting)


def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Return values joined along axis 0, each row of one axis as one row.

    Parameters
    ----------
    tup : sequence of Var or array_like
        Of the same shape except along that axis.
    dtype : dtype_like, optional
        The dtype of the result; by default the common one.
    casting : str
        NumPy's rule for that conversion.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.vstack([x, x]).value
    array([[1, 2],
           [1, 2]])
    """
    return _joined("vstack", tup, atleast_2d, 1, 0, 0, dtype, casting)


def dstack(tup: Sequence[Any]) -> Any:
    """Return values joined along axis 2; matrices lie behind each other.

    Parameters
    ----------
    tup : sequence of Var or array_like
        Of the same shape except along that axis.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.dstack([x, x]).value
    array([[[1, 1],
            [2, 2]]])
    """
    return _joined("dstack", tup, atleast_3d, 2, 2, 2)


def column_stack(tup: Sequence[Any]) -> Any:
    """Return rows as the columns of a matrix; matrices among them are joined as they are.

    Parameters
    ----------
    tup : sequence of Var or array_like
        Of the same number of rows.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If these differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.column_stack([x, 10 * x]).value
    array([[ 1, 10],
           [ 2, 20]])
    """

    def column(x: Any) -> Any:
        return expand_dims(atleast_1d(x), 1) if x.ndim < 2 else x

    return _joined("column_stack", tup, column, 1, 1, 1)


def concat(
    arrays: Sequence[Any],
    /,
    axis: int | None = 0,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return values joined along an axis: `concatenate` by the name of the array API standard.

    Parameters
    ----------
    arrays : sequence of Var or array_like
        Of the same shape except along `axis`.
    axis : int or None
        ``None`` joins the flattened values.
    dtype : dtype_like, optional
        The dtype of the result; by default the common one.
    casting : str
        NumPy's rule for that conversion.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ, or a value has no axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.concat([x, [3]]).value
    array([1, 2, 3])
    """
    return concatenate(arrays, axis, dtype=dtype, casting=casting)


def block(arrays: Any) -> Any:
    """Return a value put together from nested lists of blocks.

    Parameters
    ----------
    arrays : nested list of Var or array_like
        The innermost lists are joined along the last axis, the next ones along the axis before, and so on.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If lists are empty, nested to different depths, or their blocks do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2]])
    >>> rg.block([[x, x], [10 * x, 0 * x]]).value
    array([[ 1,  2,  1,  2],
           [10, 20,  0,  0]])
    """
    depth = _depth(arrays)
    if depth == 0:
        return node(arrays)
    blocks = list(_blocks(arrays, depth))
    ndim = max(depth, *[np.ndim(one) for one in blocks])

    def joined(nest: Any, level: int) -> Any:
        if level == depth:
            one = node(nest, *blocks)
            new = ndim - one.ndim
            return expand_dims(one, tuple(range(new))) if new else one
        return concatenate([joined(one, level + 1) for one in nest], level - depth)

    return joined(arrays, 0)


def _depth(nest: Any) -> int:
    depth = 0
    while isinstance(nest, list):
        if not nest:
            raise ShapeError("block: a list of blocks is empty.")
        nest, depth = nest[0], depth + 1
    return depth


def _blocks(nest: Any, depth: int) -> Any:
    """Yield the blocks of a nest of lists, all of which lie equally deep."""
    if isinstance(nest, tuple):
        raise ShapeError("block: nest lists, not tuples, as NumPy wants it.")
    if isinstance(nest, list) != bool(depth):
        raise ShapeError("block: blocks are nested to different depths.")
    if not depth:
        yield nest
        return
    if not nest:
        raise ShapeError("block: a list of blocks is empty.")
    for one in nest:
        yield from _blocks(one, depth - 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Return `arr` with `values` at its end.

    Parameters
    ----------
    arr, values : Var or array_like
        Of the same shape except along `axis`.
    axis : int, optional
        By default both are taken as rows.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.append(x, [[3], [4]]).value
    array([1, 2, 3, 4])
    """
    return concatenate((arr, values), axis)
