"""Values joined: in rows, columns and blocks, and at the end of another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.backend._parts import Nest, block_keys, depth_of
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops import _conversion as _conversion  # with it OPS has all ops
from reactgrad.ops._deferred import deferred
from reactgrad.ops._join import CONCATENATE, concatenate, converted, put, sequence, stack, taken
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._operand import node, nodes_of
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.arrangement._order import moveaxis
from reactgrad.ops.arrangement._regroup import atleast_1d, atleast_2d, atleast_3d, flatten


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

    If none of them has the axis yet, one node stacks them at `stacked_at`. The elements of one node are joined
    without taking it apart, so that their number may change.
    """
    if isinstance(tup, Handle) and to in _NEW_AXES and np.ndim(tup):  # type: ignore[arg-type]
        return converted(name, _rows_joined(tup, to, axis), dtype, casting)
    values = [_keep(one) for one in sequence(name, tup)]
    if all(np.ndim(one) == ndim for one in values):
        joined = stack(values, stacked_at)
    else:
        joined = concatenate([to(one) for one in _nodes(values)], axis)
    return converted(name, joined, dtype, casting)


# The places of new axes that these functions give to an element without axes, with one, ..., behind axis 0.
_NEW_AXES: dict[Callable[..., Any], tuple[tuple[int, ...], ...]] = {
    atleast_1d: ((1,),),
    atleast_2d: ((1, 2), (1,)),
    atleast_3d: ((1, 2, 3), (1, 3), (3,)),
}


def _rows_joined(x: Any, to: Callable[..., Any], axis: int) -> Any:
    """Return the elements of a node along axis 0, once `to` has given them axes, joined along `axis`."""
    new = _NEW_AXES[to]
    if x.ndim <= len(new):
        x = expand_dims(x, new[x.ndim - 1])
    return flatten(moveaxis(x, 0, axis), axis, axis + 1)


def _keep(one: Any) -> Any:
    return node(one) if isinstance(one, list | tuple) else one


def _nodes(values: Sequence[Any]) -> list[Any]:
    """Return values as nodes; numbers lie on the device of the first node among them."""
    like: Any = next((one for one in values if isinstance(one, Handle)), None)
    if like is None:
        return nodes_of(*values)
    return [
        like._graph.const(np.asarray(one), device=like.device)
        if isinstance(one, int | float | complex)
        else node(one, like)
        for one in values
    ]


@deferred
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
    values = tup if isinstance(tup, Handle) and np.ndim(tup) else sequence("hstack", tup)
    flat = (np.ndim(values) < 3) if values is tup else np.ndim(_keep(values[0])) < 2
    return _joined("hstack", values, atleast_1d, 0, 0 if flat else 1, 0, dtype, casting)


@deferred
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


@deferred
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


@deferred
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


@deferred
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
    blocks = _nodes(blocks)
    ndim = max(depth, *[one.ndim for one in blocks])
    blocks = [
        expand_dims(one, tuple(range(ndim - one.ndim))) if one.ndim < ndim else one
        for one in blocks
    ]
    if depth == 1:
        return concatenate(blocks, -1)
    numbers = count()

    def numbered(nest: Any, level: int) -> Nest:
        return tuple([numbered(one, level - 1) for one in nest]) if level else next(numbers)

    return apply(BLOCK, blocks, (numbered(arrays, depth),))


def _infer_block(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    def joined(nest: Nest) -> Spec:
        if isinstance(nest, int):
            return specs[nest]
        return CONCATENATE.result(tuple(map(joined, nest)), (-depth_of(nest),))

    shape = joined(attrs[0]).shape
    return spec(shape, promote(specs), common_device("block", specs))


def _places(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> Callable[[int], Any]:
    return block_keys(attrs[0], [x.shape for x in operands]).__getitem__


# Blocks put together in one pass, where joining them axis by axis would copy most of them several times.
BLOCK = Op("block", _infer_block, variadic=taken(_places), variadic_jvp=put(_places))


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
