"""Axes in another order, and elements of axes in reverse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels
from reactgrad.backend._parts import flip_key
from reactgrad.backend.array_api import _arrangement as _standard
from reactgrad.backend.numpy import _arrangement
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import alias, transpose
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import axis_of
from reactgrad.ops._shapes import AxisError, normal_axes, normal_axis
from reactgrad.scheduler import safe_repr

add_kernels(_arrangement.register, _standard.register)


# --- axes in another order ---------------------------------------------------------------------


@deferred
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Return `a` with axes moved to other places; the others stay in their order.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    source, destination : int or sequence of int
        The axes, and for each its place in the result.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If there are not as many places as axes.
    AxisError
        If an axis does not exist, or is named twice.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 3, 4)))
    >>> rg.moveaxis(x, 0, -1).shape
    (3, 4, 2)
    """
    a = node(a)
    ndim = a.ndim
    sources = normal_axes("moveaxis", _axes(source), ndim)
    places = normal_axes("moveaxis", _axes(destination), ndim)
    if len(sources) != len(places):
        raise ShapeError(
            f"moveaxis: {len(sources)} axes cannot go to {len(places)} places; name one place for each."
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return transpose(a, tuple(order))


@deferred
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Return `a` with two axes exchanged.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis1, axis2 : int
        The axes.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 3, 4)))
    >>> rg.swapaxes(x, 0, -1).shape
    (4, 3, 2)
    """
    a = node(a)
    order = list(range(a.ndim))
    one, other = normal_axis("swapaxes", axis1, a.ndim), normal_axis("swapaxes", axis2, a.ndim)
    order[one], order[other] = other, one
    return transpose(a, tuple(order))


@deferred
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Return `a` with an axis moved back until it stands before another one; `moveaxis` is clearer.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis : int
        The axis to move.
    start : int
        The axis before which it stands in the end, by its present number; the number of axes for the end.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 3, 4)))
    >>> rg.rollaxis(x, 2).shape
    (4, 2, 3)
    """
    a = node(a)
    ndim, axis = a.ndim, normal_axis("rollaxis", axis, a.ndim)
    start = whole("rollaxis", "start", start)
    before = start + ndim if start < 0 else start
    if not 0 <= before <= ndim:
        raise AxisError(f"rollaxis: start={start} must be from {-ndim} to {ndim}.")
    return moveaxis(a, axis, before - 1 if axis < before else before)


def permute_dims(a: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Return `a` with its axes in another order: `transpose` by the name of the array API standard.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axes : tuple of int, optional
        The axes of `a` in their new order; by default reversed.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If `axes` does not name each axis once.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 3, 4)))
    >>> rg.permute_dims(x, (1, 2, 0)).shape
    (3, 4, 2)
    """
    return transpose(a, axes)


def _axes(given: Any) -> tuple[int, ...]:
    axes: Any = axis_of(tuple(given) if isinstance(given, Iterable) else given)
    return axes if isinstance(axes, tuple) else (axes,)


# --- in reverse --------------------------------------------------------------------------------


def _infer_flip(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    normal_axes("flip", attrs[0], len(specs[0].shape))
    return specs[0]


FLIP = Op(
    "flip",
    _infer_flip,
    (lambda g, ans, x, axes: apply(FLIP, (g,), (axes,)),),
    (LINEAR,),
    view=lambda x, axes: x[flip_key(x.ndim, axes)],
)


@deferred
def flip(m: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return `m` with the elements along axes in reverse order.

    Parameters
    ----------
    m : Var or array_like
        Any shape.
    axis : int or tuple of int, optional
        The axes; by default all.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    AxisError
        If `m` has no such axis, or one is named twice.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> rg.flip(x, 1).value
    array([[2, 1],
           [4, 3]])
    """
    m = node(m)
    axes = None if axis is None else _axes(axis)
    if not m.ndim:
        normal_axes("flip", axes, 0)
        return alias(m)
    return apply(FLIP, (m,), (axes,))


@deferred
def fliplr(m: Any) -> Any:
    """Return `m` with its columns in reverse order: `flip` along axis 1.

    Raises
    ------
    ShapeError
        If `m` has fewer than two axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> rg.fliplr(x).value
    array([[2, 1],
           [4, 3]])
    """
    return flip(_with_axes("fliplr", m, 2), 1)


@deferred
def flipud(m: Any) -> Any:
    """Return `m` with its rows in reverse order: `flip` along axis 0.

    Raises
    ------
    ShapeError
        If `m` has no axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> rg.flipud(x).value
    array([[3, 4],
           [1, 2]])
    """
    return flip(_with_axes("flipud", m, 1), 0)


def _with_axes(name: str, m: Any, count: int) -> Any:
    m = node(m)
    if m.ndim < count:
        raise ShapeError(f"{name} needs a value with at least {count} axes, not {m.ndim}.")
    return m


@deferred
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Return `m` turned by quarters in the plane of two axes, from the first one to the second one.

    Parameters
    ----------
    m : Var or array_like
        With at least two axes.
    k : int
        The number of quarters; negative ones turn back.
    axes : tuple of two int
        The plane.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If `axes` are not two different axes of `m`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> rg.rot90(x).value
    array([[2, 4],
           [1, 3]])
    """
    m = node(m)
    plane = normal_axes("rot90", _axes(axes), m.ndim)
    if len(plane) != 2:
        raise ShapeError(f"rot90 turns in the plane of two axes, not of {safe_repr(axes)}.")
    k = whole("rot90", "k", k) % 4
    if k == 0:
        return alias(m)
    if k == 2:
        return flip(m, plane)
    return swapaxes(flip(m, plane[1]), *plane) if k == 1 else flip(swapaxes(m, *plane), plane[1])
