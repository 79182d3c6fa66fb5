"""Products over axes."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import add_kernels
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import times
from reactgrad.ops._layout import like_shape, reshape
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import (
    Axis,
    attrs_of,
    axis_in_rule,
    put_back,
    reduction,
    started,
    sum,
    sum_dtype,
)
from reactgrad.ops._where import where as choose
from reactgrad.ops.reductions._scan import products, shifted

add_kernels(_reductions.register, on_host(_reductions.NAMES))


def _others(x: Any, axis: int) -> Any:
    """Return for each element the product of the other ones along an axis."""
    before, behind = products(x, axis), products(x, axis, reverse=True)
    return times(shifted(before, axis, 1.0), shifted(behind, axis, 1.0, reverse=True))


def _slopes(x: Any, axis: Axis) -> Any:
    """Return the derivative of the product by each element: the product of all other ones."""
    axis = axis_in_rule(x, axis)
    if axis is None:
        return like_shape(_others(reshape(x, -1), 0), x)
    if isinstance(axis, int):
        return _others(x, axis)
    slopes = None
    for one in axis:  # each element's row, and then the products of the rows
        others = _others(x, one)
        slopes = others if slopes is None else times(slopes, others)
        x = apply(PROD, (x,), (one, True))
    return slopes


def _rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    slopes, g = _slopes(x, axis), put_back(g, x, axis, keepdims)
    return g if slopes is None else times(g, slopes)


def _jvp(t: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    slopes = _slopes(x, axis)
    return t if slopes is None else sum(times(t, slopes), axis, keepdims=keepdims)


PROD = Op("prod", reduction("prod", sum_dtype, identity=True), (_rule,), (_jvp,))


def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product over axes; its gradient is exact where elements are 0, too.

    Parameters
    ----------
    a : Var or array_like
        Any shape; booleans and short integers multiply as int64.
    axis : int, tuple of int or None
        The axes to multiply over; ``None`` for all.
    dtype : dtype, optional
        In which to multiply.
    keepdims : bool
        Whether these axes stay, with length 1.
    initial : Var or array_like, optional
        A number by which the product is multiplied.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that count.

    Returns
    -------
    Var
        1 where there are no elements.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.prod([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> y.value
    array([ 2., 12.])
    """
    a = in_dtype(node(a, where, initial), dtype)
    if where is not True:
        a = choose(where, a, 1)
    y = in_dtype(apply(PROD, (a,), attrs_of(axis, keepdims)), dtype)
    return y if initial is None else y * started(y, initial)
