"""Largest and smallest elements: other names, and those that leave NaN out."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import add_kernels
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import over
from reactgrad.ops._elementwise import equal, isnan, maximum, minimum
from reactgrad.ops._operand import in_dtype
from reactgrad.ops._reduce import (
    Axis,
    counting,
    extremum_from,
    max,
    min,
    put_back,
    reduction,
    sum,
)
from reactgrad.ops._where import where as choose

add_kernels(_reductions.register, on_host(_reductions.NAMES))

amax, amin = max, min


def _shares(dtype: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the derivative by each element: ties share it, and of NaN alone there is none."""
    chosen = in_dtype(equal(x, put_back(ans, x, axis, keepdims)), counting(dtype))
    return over(chosen, sum(chosen, axis, keepdims=True))


def _rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    return put_back(g, x, axis, keepdims) * _shares(g.dtype, ans, x, axis, keepdims)


def _jvp(t: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    shares = _shares(t.dtype, ans, x, axis, keepdims)
    return in_dtype(sum(t * shares, axis, keepdims=keepdims), t.dtype)


def _op(name: str) -> Op:
    return Op(name, reduction(name, lambda dtype: dtype, identity=False), (_rule,), (_jvp,))


_NANMAX, _NANMIN = _op("nanmax"), _op("nanmin")


def _larger(y: Any, start: Any) -> Any:
    return choose(isnan(y), start, maximum(y, start))


def _smaller(y: Any, start: Any) -> Any:
    return choose(isnan(y), start, minimum(y, start))


def nanmax(
    a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Any:
    """Return the largest element over axes that is not NaN; equal ones share the gradient evenly.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    initial : Var or array_like, optional
        A lower bound of the result.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that count. Needs `initial`.

    Returns
    -------
    Var
        NaN where all elements are.

    Raises
    ------
    ShapeError
        If there is no element to choose.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanmax([1.0, float("nan"), 3.0])
    >>> y.item()
    3.0
    """
    return extremum_from(_NANMAX, _larger, a, axis, keepdims, initial, where)


def nanmin(
    a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Any:
    """Return the smallest element over axes that is not NaN; equal ones share the gradient evenly.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    initial : Var or array_like, optional
        An upper bound of the result.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that count. Needs `initial`.

    Returns
    -------
    Var
        NaN where all elements are.

    Raises
    ------
    ShapeError
        If there is no element to choose.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanmin([1.0, float("nan"), 3.0])
    >>> y.item()
    1.0
    """
    return extremum_from(_NANMIN, _smaller, a, axis, keepdims, initial, where)
