"""Positions of the largest and smallest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import attrs_of, reduced_axes
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops.reductions._truth import own_dtypes

add_kernels(_reductions.register, on_host(_reductions.NAMES))

_INTP = np.dtype(np.intp)


def _op(name: str) -> Op:
    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,), (axis, keepdims) = specs, attrs
        if isinstance(axis, tuple):
            normal_axis(name, axis, len(one.shape))  # one axis, or all
        reduced = reduced_axes(name, axis, len(one.shape))
        if 0 in [one.shape[i] for i in reduced]:
            raise ShapeError(
                f"{name} over an axis of length 0 of {one!r}: there is no element to find."
            )
        if keepdims:
            shape = tuple(1 if i in reduced else n for i, n in enumerate(one.shape))
        else:
            shape = tuple(n for i, n in enumerate(one.shape) if i not in reduced)
        return spec(shape, _INTP, one.device)

    return Op(name, infer, loop_dtypes=own_dtypes)


def _apply(op: Op, a: Any, axis: Any, keepdims: bool) -> Any:
    return apply(op, (node(a),), attrs_of(axis, keepdims))


_ARGMAX, _ARGMIN, _NANARGMAX, _NANARGMIN = map(_op, ("argmax", "argmin", "nanargmax", "nanargmin"))


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the largest element along an axis: the first of equal ones. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, optional
        By default all elements are counted in a row.
    keepdims : bool
        Whether the axis stays, with length 1.

    Returns
    -------
    Var
        Integers.

    Raises
    ------
    ShapeError
        If there is no element.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.argmax([[1.0, 3.0], [5.0, 2.0]], axis=1)
    >>> y.value
    array([1, 0])
    """
    return _apply(_ARGMAX, a, axis, keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the smallest element along an axis: the first of equal ones. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, optional
        By default all elements are counted in a row.
    keepdims : bool
        Whether the axis stays, with length 1.

    Returns
    -------
    Var
        Integers.

    Raises
    ------
    ShapeError
        If there is no element.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.argmin([[1.0, 3.0], [5.0, 2.0]], axis=1)
    >>> y.value
    array([0, 1])
    """
    return _apply(_ARGMIN, a, axis, keepdims)


def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the largest element that is not NaN. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, optional
        By default all elements are counted in a row.
    keepdims : bool
        Whether the axis stays, with length 1.

    Returns
    -------
    Var
        Integers. Reading it raises ``ValueError`` where all elements are NaN, as NumPy does.

    Raises
    ------
    ShapeError
        If there is no element.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanargmax([1.0, float("nan"), 3.0])
    >>> y.item()
    2
    """
    return _apply(_NANARGMAX, a, axis, keepdims)


def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the smallest element that is not NaN. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, optional
        By default all elements are counted in a row.
    keepdims : bool
        Whether the axis stays, with length 1.

    Returns
    -------
    Var
        Integers. Reading it raises ``ValueError`` where all elements are NaN, as NumPy does.

    Raises
    ------
    ShapeError
        If there is no element.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanargmin([float("nan"), 1.0, 3.0])
    >>> y.item()
    1
    """
    return _apply(_NANARGMIN, a, axis, keepdims)
