"""Differences, and the integrals and slopes that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._calls import real_number, whole
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _unwrapped
from reactgrad.nodes._handle import Handle, apply, holds_handles
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._deferred import deferred, deferred_each, needs_axes
from reactgrad.ops._elementwise import multiply, not_equal, subtract
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import broadcast_to, expand_dims, reshape, spread_like
from reactgrad.ops._operand import beside, in_dtype, node
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import normal_axes, normal_axis
from reactgrad.scheduler import safe_repr

add_kernels(_unwrapped.register, on_host(("unwrap",)))


def part(x: Any, axis: int, start: int | None, stop: int | None = None) -> Any:
    """Return the part of `x` between two places along an axis, counted from either end."""
    if axis < 0:
        return x[(..., slice(start, stop), *[slice(None)] * (-axis - 1))]
    return x[(*[slice(None)] * axis, slice(start, stop))]


def _axis(name: str, axis: Any, ndim: int) -> int:
    """Return an axis as it is counted, so that it stays the last one of a value with more axes."""
    at = normal_axis(name, axis, ndim)
    return at - ndim if axis < 0 else at


def _beside(name: str, x: Any, value: Any, axis: int) -> Any:
    """Return what is put before or behind `x` along an axis: one number takes the place of one element."""
    dtype = np.result_type(x.dtype, value) if isinstance(value, int | float | complex) else None
    value = in_dtype(beside(value, x), dtype)
    if value.ndim == 0:
        if x.shape[axis] == 0:
            shape = [n or 0 for n in x.shape]
            shape[axis] = 1
            return broadcast_to(value, tuple(shape))
        return spread_like(value, part(x, axis, 0, 1))
    if value.ndim != x.ndim:
        raise ShapeError(
            f"{name} has {value.ndim} axes and the value {x.ndim}: give a number, or an array that fits "
            f"beside it along axis {axis}."
        )
    return value


@deferred
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the differences of neighbours along an axis, taken `n` times.

    Parameters
    ----------
    a : Var or array_like
        With at least one axis. Of booleans the result says where neighbours differ.
    n : int
        How many times; 0 returns `a`.
    axis : int
        The axis along which elements are neighbours.
    prepend, append : Var or array_like, optional
        Put before and behind `a` along the axis at first.

    Returns
    -------
    Var
        Shorter than `a` along the axis by `n`.

    Raises
    ------
    ShapeError
        If `a` has no axis, `n` is negative, or what is put beside `a` does not fit.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.diff([1.0, 4.0, 9.0], prepend=0.0)
    >>> y.value
    array([1., 3., 5.])
    """
    a = node(a, prepend, append)
    if whole("diff", "n", n, 0) == 0:
        return a
    if a.ndim == 0:
        raise ShapeError(
            "diff of a single number: it has no neighbours. It needs at least one axis."
        )
    axis = _axis("diff", axis, a.ndim)
    parts = [a]
    if prepend is not None and prepend is not np._NoValue:
        parts.insert(0, _beside("prepend", a, prepend, axis))
    if append is not None and append is not np._NoValue:
        parts.append(_beside("append", a, append, axis))
    if len(parts) > 1:
        a = concatenate(parts, axis)
    minus = not_equal if a.dtype == np.bool_ else subtract
    length = a.shape[axis]  # of no elements there are no differences, however often they are taken
    for _ in range(n if length is None else min(n, length)):
        a = minus(part(a, axis, 1), part(a, axis, None, -1))
    return a


@deferred
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbours in a row of all elements.

    Parameters
    ----------
    ary : Var or array_like
        Any shape.
    to_end, to_begin : Var or array_like, optional
        Put behind and before the differences; their dtype must fit that of `ary`.

    Returns
    -------
    Var
        One row.

    Raises
    ------
    DTypeError
        If the dtype of `to_begin` or `to_end` does not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.ediff1d([1.0, 4.0, 9.0], to_begin=0.0)
    >>> y.value
    array([0., 3., 5.])
    """
    row = reshape(node(ary, to_end, to_begin), -1)
    apart = subtract(part(row, 0, 1), part(row, 0, None, -1))
    parts = [apart]
    for word, value in (("to_begin", to_begin), ("to_end", to_end)):
        if value is None:
            continue
        value = beside(value, row)
        if not np.can_cast(value.dtype, row.dtype, "same_kind"):
            raise DTypeError(
                f"ediff1d: {word} is {value.dtype}, which does not fit into {row.dtype}, the dtype of the "
                "differences; convert the array first, x.astype('float64')."
            )
        value = reshape(in_dtype(value, row.dtype), -1)
        parts.insert(0 if word == "to_begin" else len(parts), value)
    return concatenate(parts, 0) if len(parts) > 1 else apart


@deferred
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral of `y` along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Var or array_like
        With at least one axis.
    x : Var or array_like, optional
        Where `y` was taken: one row as long as the axis, or an array that broadcasts with `y`.
    dx : Var or float
        The distance of neighbours, without `x`.
    axis : int
        The axis to integrate over.

    Returns
    -------
    Var
        Without the axis.

    Raises
    ------
    AxisError
        If `y` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     area = rg.trapezoid([1.0, 2.0, 3.0], dx=0.5)
    >>> area.item()
    2.0
    """
    y = node(y, x, dx)
    axis = _axis("trapezoid", axis, y.ndim)
    if x is None:
        width = dx if isinstance(dx, int | float) else node(dx, y)
    else:
        x = node(x, y)
        if x.ndim == 1:
            width = diff(x)
            behind = tuple(range(1, y.ndim - axis % y.ndim))
            width = expand_dims(width, behind) if behind else width
        else:
            width = diff(x, axis=axis)
    first, second = part(y, axis, None, -1), part(y, axis, 1)
    if isinstance(width, int | float) and y.dtype.kind in "fc" and y.dtype.itemsize > 2:
        # Two sums without an array between them; half floats, whose sum could leave their dtype, go the long way.
        return (sum(first, axis) + sum(second, axis)) * (width * 0.5)
    return sum(multiply(width, second + first) / 2.0, axis)


# --- angles without jumps ----------------------------------------------------------------------------


def _infer_unwrap(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (_, axis, period) = specs, attrs
    normal_axis("unwrap", axis, len(one.shape))
    if one.dtype.kind == "c":
        raise DTypeError(f"unwrap of {one!r}: angles are real numbers.")
    return spec(one.shape, np.result_type(one.dtype, period), one.device)


# Whole periods are added, which do not change with the angles.
UNWRAP = Op("unwrap", _infer_unwrap, (lambda g, ans, p, *attrs: g,), (lambda t, ans, p, *attrs: t,))


def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: Any = 2 * math.pi
) -> Any:
    """Return angles with whole periods added, so that neighbours differ by half a period at most.

    Parameters
    ----------
    p : Var or array_like
        Angles, with at least one axis.
    discont : float, optional
        Differences up to this stay as they are; half a period at least.
    axis : int
        The axis to go along.
    period : float
        The period.

    Returns
    -------
    Var
        The gradient passes unchanged.

    Raises
    ------
    AxisError
        If `p` has no such axis.
    DTypeError
        If `discont` or `period` is no number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.unwrap([350.0, 10.0, 30.0], period=360.0)
    >>> y.value
    array([350., 370., 390.])
    """
    fixed = []
    for word, value in (("discont", discont), ("period", period)):
        if isinstance(value, Handle) or not isinstance(value, int | float | np.number | None):
            raise ParameterError(
                f"unwrap: {word}={safe_repr(value):.60}; it is a number, fixed when the node is built."
            )
        if value is not None:
            real_number("unwrap", word, value)
        integral = isinstance(value, int | np.integer)
        fixed.append(None if value is None else int(value) if integral else float(value))
    return apply(UNWRAP, (node(p),), (fixed[0], whole("unwrap", "axis", axis), fixed[1]))


# --- slopes ---------------------------------------------------------------------------------------------


def _slopes(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the nest of results of ``gradient``."""
    if axis is None:
        raise needs_axes("gradient", "Name the axes: rg.gradient(f, axis=0) or axis=(0, 1).")
    count = len(axis) if isinstance(axis, list | tuple) else 1
    return None if count == 1 else (None,) * count


@deferred_each(_slopes)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the slopes of a function given on a grid, by central differences (not derivatives of nodes).

    The derivative of a node by another is ``rg.grad``.

    Parameters
    ----------
    f : Var or array_like
        Values on a grid, with at least one axis.
    *varargs : Var, float or array_like
        Distances: one number for all axes; or for each axis a number, or the coordinates along it.
        1 by default.
    axis : int, tuple of int or None
        The axes along which to differentiate; ``None`` for all.
    edge_order : {1, 2}
        The order of the differences at both ends.

    Returns
    -------
    Var or tuple of Var
        In the shape of `f`; one for each axis, in a tuple if there are several.

    Raises
    ------
    ShapeError
        If there are too few elements, or the distances do not fit the axes.
    DTypeError
        If `edge_order` is another one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     slope = rg.gradient([1.0, 4.0, 9.0, 16.0], 0.5)
    >>> slope.value
    array([ 6.,  8., 12., 14.])
    """
    f = node(f, *varargs)
    if edge_order not in (1, 2):
        raise ParameterError(f"gradient: edge_order={safe_repr(edge_order)}; it is 1 or 2.")
    axes = normal_axes("gradient", axis, f.ndim)
    spacings = _spacings(f, axes, varargs)
    if f.dtype.kind not in "fc":
        f = in_dtype(f, float)
    slopes = [
        in_dtype(_slope(f, at, h, edge_order), f.dtype)
        for at, h in zip(axes, spacings, strict=True)
    ]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _spacings(f: Any, axes: Sequence[int], given: Sequence[Any]) -> list[Any]:
    """Return for each axis a number, or the differences of its coordinates."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise ShapeError(
            f"gradient along {len(axes)} axes with {len(given)} distances: give one number for all axes, or "
            "for each axis a number or its coordinates."
        )
    found = []
    for at, one in zip(axes, given, strict=True):
        if np.ndim(one) == 0:
            found.append(one)
            continue
        fixed = (
            one if isinstance(one, list | tuple | np.ndarray) and not holds_handles(one) else None
        )
        one = beside(one, f)
        length = f.shape[at]
        if one.ndim != 1 or (None not in (length, one.shape[0]) and one.shape[0] != length):
            raise ShapeError(
                f"gradient: coordinates of shape {one.shape} along axis {at}, which has length {length}; "
                "they are one row of that length."
            )
        apart = diff(in_dtype(one, float) if one.dtype.kind in "iu" else one)
        if fixed is not None and length:  # even distances take the shorter way, as in NumPy
            steps = np.diff(np.asarray(fixed, apart.dtype))
            if len(steps) and (steps == steps[0]).all():
                apart = steps[0].item()
        found.append(apart)
    return found


def _slope(f: Any, at: int, h: Any, edge_order: int) -> Any:
    length = f.shape[at]
    if length is not None and length < edge_order + 1:
        raise ShapeError(
            f"gradient along axis {at} of length {length}: it needs at least {edge_order + 1} elements for "
            f"edge_order={edge_order}."
        )

    def at_(i: int) -> Any:
        return part(f, at, i, None if i == -1 else i + 1)

    if np.ndim(h) == 0:
        middle = (part(f, at, 2) - part(f, at, None, -2)) / (2.0 * h)
        if edge_order == 1:
            first, last = (at_(1) - at_(0)) / h, (at_(-1) - at_(-2)) / h
        else:
            first = (at_(0) * -1.5 + at_(1) * 2.0 - at_(2) * 0.5) / h
            last = (at_(-3) * 0.5 - at_(-2) * 2.0 + at_(-1) * 1.5) / h
        return concatenate([first, middle, last], at)

    def along(x: Any) -> Any:
        behind = tuple(range(1, f.ndim - at))
        return expand_dims(x, behind) if behind else x

    before, after = along(part(h, 0, None, -1)), along(part(h, 0, 1))
    both = before + after
    middle = (
        part(f, at, None, -2) * (-after / (before * both))
        + part(f, at, 1, -1) * ((after - before) / (before * after))
        + part(f, at, 2) * (before / (after * both))
    )
    one, two = h[0], h[1] if edge_order == 2 else None
    other, end = h[-2] if edge_order == 2 else None, h[-1]
    if edge_order == 1:
        first, last = (at_(1) - at_(0)) / one, (at_(-1) - at_(-2)) / end
    else:
        first = (
            at_(0) * (-(2.0 * one + two) / (one * (one + two)))
            + at_(1) * ((one + two) / (one * two))
            - at_(2) * (one / (two * (one + two)))
        )
        last = (
            at_(-3) * (end / (other * (other + end)))
            - at_(-2) * ((end + other) / (other * end))
            + at_(-1) * ((2.0 * end + other) / (end * (other + end)))
        )
    return concatenate([first, middle, last], at)
