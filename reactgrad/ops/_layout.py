"""Ops that only rearrange elements: transpose, reshape, broadcast_to, expand_dims, squeeze.

Their value is a view of the operand's value and costs nothing, unless a reshape has to copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._shapes import normal_axes, size_of
from reactgrad.scheduler import safe_repr


def _with_shape(one: Spec, shape: tuple[int | None, ...]) -> Spec:
    return spec(shape, one.dtype, one.device)


# --- transpose ---------------------------------------------------------------------------------


def _infer_transpose(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape, axes = specs[0].shape, attrs[0]
    if axes is None:
        return _with_shape(specs[0], shape[::-1])
    order = normal_axes("transpose", axes, len(shape))
    if len(order) != len(shape) or len(set(order)) != len(shape):
        raise ShapeError(
            f"transpose of {specs[0]!r} needs each of its {len(shape)} axes once, not {safe_repr(axes)}."
        )
    return _with_shape(specs[0], tuple(shape[i] for i in order))


def _transpose_rule(g: Any, ans: Any, x: Any, axes: tuple[int, ...] | None) -> Any:
    if axes is None:
        return transpose(g)
    ndim = len(axes)
    return transpose(g, tuple(int(i) for i in np.argsort([a % ndim for a in axes])))


TRANSPOSE = Op(
    "transpose",
    _infer_transpose,
    (_transpose_rule,),
    (LINEAR,),
    view=lambda x, axes: x.transpose(axes),
)


def transpose(x: Any, /, axes: tuple[int, ...] | int | None = None) -> Any:
    """Return `x` with its axes in another order.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axes : tuple of int, or int, optional
        The axes of `x` in their new order; by default reversed.

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
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.transpose([[1, 2, 3]])
    >>> y.shape
    (3, 1)
    """
    if axes is not None:
        axes = tuple(axes) if isinstance(axes, Iterable) else (axes,)
    return apply(TRANSPOSE, (x,), (axes,))


def swap_last(x: Any) -> Any:
    """Return `x` with its last two axes exchanged."""
    ndim = x.ndim
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


# --- reshape -----------------------------------------------------------------------------------


def _infer_reshape(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    old, new = specs[0], attrs[0]
    if new.count(-1) > 1:
        raise ShapeError(f"reshape to {new}: only one length can be -1.")
    if any(n is not None and n < -1 for n in new):
        raise ShapeError(f"reshape to {new}: a length cannot be negative, except one -1.")
    if not old.known or None in new:
        return _with_shape(old, tuple(None if n == -1 else n for n in new))
    size, fixed = size_of(old.shape), size_of([n for n in new if n != -1])  # type: ignore[arg-type]
    fits = (fixed and size % fixed == 0) if -1 in new else fixed == size
    if not fits:
        raise ShapeError(
            f"reshape of {old!r} to {new}: it has {size} elements, which do not fill that shape."
        )
    return _with_shape(old, tuple(size // fixed if n == -1 else n for n in new))


def share_memory(x: Any, view: Any) -> Any:
    """Return what a reshape of an array has returned, if it is a view; else ``None``.

    NumPy copies without notice where the layout allows no view; then the kernel does the copy.
    """
    return view if np.may_share_memory(view, x) or not x.size else None


RESHAPE = Op(
    "reshape",
    _infer_reshape,
    (lambda g, ans, x, shape: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, shape: share_memory(x, x.reshape(shape)),
)


def reshape(
    x: Any, /, shape: int | tuple[int, ...], order: str = "C", *, copy: bool | None = None
) -> Any:
    """Return the elements of `x` in another shape.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    shape : int or tuple of int
        With as many elements as `x`; one length may be -1 and follows from the others.
    order : str
        ``"C"``: elements are read and placed with the last axis running fastest; ``"F"``: the first one.
    copy : bool, optional
        Without a meaning here: values are never written in place.

    Returns
    -------
    Var
        A view where the memory allows it.

    Raises
    ------
    ShapeError
        If the elements do not fill the shape.
    DTypeError
        For another order: ``"A"`` and ``"K"`` depend on how an array happens to lie in memory.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.reshape([1, 2, 3, 4], (2, -1))
    >>> y.shape
    (2, 2)
    """
    lengths = shape_attr("reshape", shape)
    if order == "F":
        return transpose(apply(RESHAPE, (transpose(x),), (lengths[::-1],)))
    if order != "C":
        raise ParameterError(
            f"reshape(order={safe_repr(order)}): write 'C' or 'F'; another order would depend on how an array "
            "happens to lie in memory."
        )
    return apply(RESHAPE, (x,), (lengths,))


def like_shape(g: Any, x: Any) -> Any:
    """Return `g` reshaped to the shape of `x`."""
    shape = known_shape(x)
    return apply(RESHAPE_LIKE, (g, x)) if shape is None else reshape_to(g, shape)


def reshape_to(x: Any, shape: tuple[int | None, ...]) -> Any:
    """Return `x` reshaped to a shape some of whose lengths may not be known yet."""
    return apply(RESHAPE, (x,), (shape,))


def known_shape(x: Any) -> tuple[int | None, ...] | None:
    """Return the shape of `x`, or ``None`` if it is known only when `x` has a value."""
    found = x._graph._host.specs[x._slot]
    return None if found is None else found.shape


def _like_second(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[0].dtype, specs[0].device)


# For results of Python functions, whose shape is not known before they run: the second operand only
# gives the shape.
RESHAPE_LIKE = Op(
    "reshape_like", _like_second, (lambda g, ans, a, b: like_shape(g, a), None), (LINEAR, None)
)
BROADCAST_LIKE = Op(
    "broadcast_like", _like_second, (lambda g, ans, a, b: g, None), (LINEAR, None), broadcasts=True
)


def shape_attr(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape that a caller has written as a tuple of ints."""
    many = shape if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    try:
        lengths = tuple(int(n.__index__()) for n in many)
    except DTypeError:  # a Var: its text says what to write
        raise
    except (AttributeError, TypeError):
        raise DTypeError(
            f"{name}: a shape is an integer or a tuple of integers, not {safe_repr(shape):.60}."
        ) from None
    if any(abs(n) >= 2**63 for n in lengths):
        raise ShapeError(f"{name}: {safe_repr(shape):.60} is no shape that an array can have.")
    return lengths


# --- broadcast_to ------------------------------------------------------------------------------


def _infer_broadcast(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    old, new = specs[0].shape, attrs[0]
    fits = len(old) <= len(new) and all(
        m == n or m == 1 or m is None or n is None
        for m, n in zip(old[::-1], new[::-1], strict=False)
    )
    if not fits or any(n is not None and n < 0 for n in new):
        raise ShapeError(
            f"broadcast_to: {specs[0]!r} cannot become {new}; every length must be the same or 1 "
            "before, counted from the last axis."
        )
    return _with_shape(specs[0], new)


BROADCAST_TO = Op(
    "broadcast_to",
    _infer_broadcast,
    (lambda g, ans, x, shape: g,),
    (LINEAR,),
    broadcasts=True,
    view=lambda x, shape: np.broadcast_to(x, shape),
)


def broadcast_to(x: Any, /, shape: int | tuple[int, ...]) -> Any:
    """Return `x` repeated along new axes and axes of length 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape that broadcasts to `shape`.
    shape : int or tuple of int
        The new shape.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If `x` does not broadcast to `shape`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.broadcast_to([1, 2], (2, 2))
    >>> y.value
    array([[1, 2],
           [1, 2]])
    """
    return apply(BROADCAST_TO, (_in_memory(x),), (shape_attr("broadcast_to", shape),))


def _in_memory(x: Any) -> Any:
    """Return a Python number as an array without axes: a number has no memory that a view could show."""
    if isinstance(x, Handle):
        found = x._graph._host.specs[x._slot]
        return x if found is None or found.weak is None else apply(EXPAND_DIMS, (x,), ((),))
    return np.asarray(x) if isinstance(x, int | float | complex) else x


def spread(g: Any, x: Any) -> Any:
    """Return `g` broadcast to the shape of `x`."""
    shape = known_shape(x)
    if shape is None or known_shape(g) is None:
        return spread_like(g, x)
    return spread_to(g, shape)


def spread_like(g: Any, x: Any) -> Any:
    """Return `g` broadcast to the shape that the value of `x` has once it is computed."""
    return apply(BROADCAST_LIKE, (g, x))


def spread_to(g: Any, shape: tuple[int | None, ...]) -> Any:
    """Return `g` broadcast to a shape some of whose lengths may not be known yet."""
    return g if g.shape == shape else apply(BROADCAST_TO, (g,), (shape,))


# --- expand_dims, squeeze ----------------------------------------------------------------------


def _infer_expand(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    axes = attrs[0]
    ndim = len(specs[0].shape) + len(axes)
    at = normal_axes("expand_dims", axes, ndim)
    rest = iter(specs[0].shape)
    return _with_shape(specs[0], tuple(1 if i in at else next(rest) for i in range(ndim)))


EXPAND_DIMS = Op(
    "expand_dims",
    _infer_expand,
    (lambda g, ans, x, axes: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, axes: np.expand_dims(x, axes),
)


def expand_dims(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """Return `x` with new axes of length 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axis : int or tuple of int
        The places of the new axes in the result.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    AxisError
        If the result has no such axis, or one is named twice.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.expand_dims([1, 2], 0)
    >>> y.shape
    (1, 2)
    """
    return apply(EXPAND_DIMS, (x,), (tuple(axis) if isinstance(axis, tuple | list) else (axis,),))


def _infer_squeeze(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape, axis = specs[0].shape, attrs[0]
    if axis is None:
        return _with_shape(specs[0], tuple(n for n in shape if n != 1))
    at = normal_axes("squeeze", axis, len(shape))
    for i in at:
        if shape[i] not in (1, None):
            raise ShapeError(
                f"squeeze: axis {i} of {specs[0]!r} has length {shape[i]}; only axes of length 1 "
                "can be left out. Index it, x[..., 0], to take one element."
            )
    return _with_shape(specs[0], tuple(n for i, n in enumerate(shape) if i not in at))


SQUEEZE = Op(
    "squeeze",
    _infer_squeeze,
    (lambda g, ans, x, axis: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, axis: np.squeeze(x, axis),
)


def squeeze(x: Any, /, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return `x` without axes of length 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axis : int or tuple of int, optional
        The axes to remove; by default all of length 1.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If one of the axes has another length.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.squeeze([[1, 2]])
    >>> y.shape
    (2,)
    """
    return apply(SQUEEZE, (x,), (tuple(axis) if isinstance(axis, list) else axis,))


# --- alias -------------------------------------------------------------------------------------

ALIAS = Op(
    "alias",
    lambda specs, attrs: _with_shape(specs[0], specs[0].shape),
    (lambda g, ans, x: g,),
    (lambda t, ans, x: t,),
    view=lambda x: x[...],
)


def alias(x: Any) -> Any:
    """Return a new node that has the value of `x`, without a copy."""
    return apply(ALIAS, (x,))
