"""Axes taken together or apart, and new ones in front: ravel, flatten, unflatten, atleast_1d to 3d."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.backend._parts import regrouped
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import alias, like_shape, reshape, shape_attr, share_memory
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import normal_axis, size_of
from reactgrad.scheduler import safe_repr


def _infer_regroup(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis, count, lengths) = specs, attrs
    ndim = len(one.shape)
    at = normal_axis("unflatten", axis, ndim) if count else 0
    shape = regrouped(one.shape, at, count, lengths)
    group = one.shape[at : at + count]
    if None not in group:
        new = shape[at : at + len(lengths)]
        if size_of(group) != size_of(new):
            raise ShapeError(
                f"unflatten of axis {axis} of {one!r} to {lengths}: it has {size_of(group)} elements, "
                "which do not fill that shape."
            )
    return spec(shape, one.dtype, one.device)


REGROUP = Op(
    "regroup",
    _infer_regroup,
    (lambda g, ans, x, axis, count, lengths: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, *attrs: share_memory(x, x.reshape(regrouped(x.shape, *attrs))),
)


def _with_axes(shape: tuple[int | None, ...], count: int) -> tuple[int | None, ...]:
    """Return a shape with so many axes at least, as NumPy's ``atleast_1d``, ``atleast_2d`` or ``atleast_3d``."""
    if len(shape) >= count:
        return shape
    first = (1,) * ((count - len(shape)) // 2 if shape and count == 3 else count - len(shape))
    return first + shape + (1,) * (count - len(first) - len(shape))


# What it does is decided by the shape of the present value: a leaf that is a number may become an array.
AT_LEAST = Op(
    "at_least",
    lambda specs, attrs: spec(_with_axes(specs[0].shape, *attrs), specs[0].dtype, specs[0].device),
    (lambda g, ans, x, count: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, count: share_memory(x, x.reshape(_with_axes(x.shape, count))),
)


def ravel(a: Any, order: str = "C") -> Any:
    """Return the elements of `a` along one axis.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    order : str
        ``"C"``: the last axis runs fastest; ``"F"``: the first one.

    Returns
    -------
    Var
        A view where the memory allows it.

    Raises
    ------
    DTypeError
        For another order: ``"A"`` and ``"K"`` depend on how an array happens to lie in memory.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> rg.ravel(x, "F").value
    array([1, 3, 2, 4])
    """
    return reshape(node(a), -1, order=order)


@deferred
def flatten(x: Any, start_dim: int | str = 0, end_dim: int = -1, order: str = "C") -> Any:
    """Return `x` with neighbouring axes taken together to one.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a number becomes an array of one element.
    start_dim, end_dim : int
        The first and the last of these axes; by default all axes. Leading axes may have unknown lengths.
    order : str
        The order in which all elements are read, see `ravel`; it may also stand in first place, as in
        NumPy's method.

    Returns
    -------
    Var
        A view where the memory allows it.

    Raises
    ------
    ShapeError
        If the last axis stands before the first one.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((5, 2, 3)))
    >>> rg.flatten(x, 1).shape
    (5, 6)
    """
    x = node(x)
    if isinstance(start_dim, str):
        start_dim, order = 0, start_dim
    if order != "C":
        if (start_dim, end_dim) != (0, -1):
            raise ParameterError(
                f"flatten(order={safe_repr(order)}) takes all axes together, not some of them."
            )
        return ravel(x, order)
    if not x.ndim:
        return reshape(x, -1)
    first, last = (normal_axis("flatten", one, x.ndim) for one in (start_dim, end_dim))
    if last < first:
        raise ShapeError(f"flatten from axis {start_dim} to axis {end_dim}: it comes before.")
    if last == first:
        return alias(x)
    if last - first == x.ndim - 1:
        return reshape(x, -1)
    return apply(REGROUP, (x,), (first, last - first + 1, (-1,)))


@deferred
def unflatten(x: Any, axis: int, sizes: int | tuple[int, ...]) -> Any:
    """Return `x` with one axis taken apart into several.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    axis : int
        The axis; other axes may have unknown lengths.
    sizes : tuple of int
        The lengths of the new axes; one may be -1 and follows from the others.

    Returns
    -------
    Var
        A view where the memory allows it.

    Raises
    ------
    ShapeError
        If they do not fill the axis.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((5, 6)))
    >>> rg.unflatten(x, 1, (2, -1)).shape
    (5, 2, 3)
    """
    x = node(x)
    lengths = shape_attr("unflatten", tuple(sizes) if isinstance(sizes, list) else sizes)
    if lengths.count(-1) > 1 or any(n < -1 for n in lengths):
        raise ShapeError(
            f"unflatten to {safe_repr(sizes)}: lengths are not negative, except one -1."
        )
    return apply(REGROUP, (x,), (normal_axis("unflatten", axis, x.ndim), 1, lengths))


def copy(a: Any) -> Any:
    """Return a node of its own with the value of `a`. No element is copied, since no value ever changes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0])
    >>> rg.copy(x).value
    array([1., 2.])
    """
    return alias(node(a))


def _at_least(count: int, arrays: tuple[Any, ...]) -> Any:
    results = tuple([_one_at_least(node(a, *arrays), count) for a in arrays])
    return results[0] if len(results) == 1 else results


@deferred
def _one_at_least(a: Any, count: int) -> Any:
    return apply(AT_LEAST, (a,), (count,))


def atleast_1d(*arys: Any) -> Any:
    """Return values with at least one axis: numbers become arrays of one element.

    Parameters
    ----------
    *arys : Var or array_like
        Any shapes.

    Returns
    -------
    Var or tuple of Var
        Views; a tuple for several values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(1.0)
    >>> rg.atleast_1d(x).shape
    (1,)
    """
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Any:
    """Return values with at least two axes: new ones come first.

    Parameters
    ----------
    *arys : Var or array_like
        Any shapes.

    Returns
    -------
    Var or tuple of Var
        Views; a tuple for several values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0])
    >>> rg.atleast_2d(x).shape
    (1, 2)
    """
    return _at_least(2, arys)


def atleast_3d(*arys: Any) -> Any:
    """Return values with at least three axes: a row becomes (1, n, 1), a matrix (m, n, 1).

    Parameters
    ----------
    *arys : Var or array_like
        Any shapes.

    Returns
    -------
    Var or tuple of Var
        Views; a tuple for several values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0])
    >>> rg.atleast_3d(x).shape
    (1, 2, 1)
    """
    return _at_least(3, arys)
