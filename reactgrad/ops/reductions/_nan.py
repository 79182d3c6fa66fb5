"""Reductions and scans that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import isnan, logical_and, logical_not
from reactgrad.ops._operand import in_dtype, node, stretched
from reactgrad.ops._reduce import Axis, attrs_of, counting, mean, reduction, sum
from reactgrad.ops._where import where as choose
from reactgrad.ops.reductions._deviation import (
    correction_of,
    deviation_ops,
    masked_var,
    real_dtype,
    root,
    std,
    var,
)
from reactgrad.ops.reductions._product import prod
from reactgrad.ops.reductions._scan import cumprod, cumsum
from reactgrad.ops.reductions._truth import own_dtypes

add_kernels(_reductions.register, on_host(_reductions.NAMES))


_RULE = (lambda g, ans, x, number: choose(isnan(x), 0.0, g),)

WITHOUT_NAN = Op(
    "without_nan",
    lambda specs, attrs: spec(specs[0].shape, specs[0].dtype, specs[0].device),
    _RULE,
    _RULE,
    elementwise=True,
)


def _infer_count(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    wide = counting(real_dtype(specs[0].dtype))
    return reduction("count_numbers", lambda dtype: wide, identity=True)(specs, attrs)


# How many elements are no NaN, as a float.
COUNT = Op("count_numbers", _infer_count, (None,), (None,), loop_dtypes=own_dtypes)


def _filled(a: Any, number: int, *others: Any) -> Any:
    """Return a node with NaN replaced by a number; integers have none."""
    a = node(a, *others)
    return apply(WITHOUT_NAN, (a,), (float(number),)) if a.dtype.kind in "fc" else a


@deferred
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, dtype, keepdims, initial, where
        As of ``rg.sum``.

    Returns
    -------
    Var
        0 where all elements are NaN.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nansum([1.0, float("nan"), 3.0])
    >>> y.item()
    4.0
    """
    a = _filled(a, 0, where, initial)
    return sum(a, axis, keepdims=keepdims, dtype=dtype, initial=initial, where=where)


@deferred
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, dtype, keepdims, initial, where
        As of ``rg.prod``.

    Returns
    -------
    Var
        1 where all elements are NaN.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanprod([2.0, float("nan"), 3.0])
    >>> y.item()
    6.0
    """
    a = _filled(a, 1, where, initial)
    return prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


@deferred
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the running sum along an axis, with NaN taken as 0.

    Parameters
    ----------
    a, axis, dtype
        As of ``rg.cumsum``.

    Returns
    -------
    Var

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nancumsum([1.0, float("nan"), 3.0])
    >>> y.value
    array([1., 1., 4.])
    """
    return cumsum(_filled(a, 0), axis, dtype)


@deferred
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the running product along an axis, with NaN taken as 1.

    Parameters
    ----------
    a, axis, dtype
        As of ``rg.cumprod``.

    Returns
    -------
    Var

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nancumprod([2.0, float("nan"), 3.0])
    >>> y.value
    array([2., 2., 6.])
    """
    return cumprod(_filled(a, 1), axis, dtype)


def _numbers(a: Any, where: Any) -> Any:
    """Return which elements are no NaN, and chosen."""
    mask = logical_not(isnan(a))
    return mask if where is True else logical_and(mask, in_dtype(node(where, a), bool))


@deferred
def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Any:
    """Return the mean over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, dtype, keepdims, where
        As of ``rg.mean``.

    Returns
    -------
    Var
        NaN where all elements are.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanmean([1.0, float("nan"), 3.0])
    >>> y.item()
    2.0
    """
    a = in_dtype(node(a, where), dtype)
    if a.dtype.kind not in "fc":
        return mean(a, axis, keepdims=keepdims, dtype=dtype, where=where)
    if where is not True:
        return mean(a, axis, keepdims=keepdims, where=_numbers(a, where))
    return in_dtype(_mean(a, *attrs_of(axis, keepdims)), a.dtype)


def _mean(a: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the mean of the numbers among floats; of half floats in float32."""
    a = in_dtype(a, counting(a.dtype))
    return sum(_filled(a, 0), axis, keepdims=keepdims) / apply(COUNT, (a,), (axis, keepdims))


def _parts(a: Any, axis: Axis, correction: float) -> tuple[Any, Any]:
    a = in_dtype(a, counting(a.dtype))
    left = apply(COUNT, (a,), (axis, True)) - correction
    return choose(isnan(a), 0.0, a - _mean(a, axis, True)), choose(left <= 0.0, np.nan, left)


NANVAR, NANSTD = deviation_ops("nan", _parts)


def _deviation(
    op: Op, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, options: Any
) -> Any:
    where, average, correction = options
    a = in_dtype(node(a, where, average), dtype)
    if a.dtype.kind not in "fc":  # integers have no NaN
        plain = std if op is NANSTD else var
        return plain(
            a, axis, None, ddof, keepdims=keepdims, where=where, mean=average, correction=correction
        )
    fixed = correction_of(op.name, ddof, correction)
    axis, keepdims = attrs_of(axis, keepdims)
    if where is True and average is None:
        return in_dtype(apply(op, (a,), (axis, keepdims, fixed)), dtype)
    mask = stretched(_numbers(a, where), a)
    about = None if average is None else node(average, a)
    found = masked_var(a, axis, keepdims, fixed, mask, about)
    # Where no degree of freedom is left NumPy's result is NaN, not infinite.
    count = sum(in_dtype(mask, np.int64), axis, keepdims=keepdims)
    found = choose(count <= fixed, np.nan, found)
    return in_dtype(root(found) if op is NANSTD else found, dtype or real_dtype(a.dtype))


@deferred
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Return the variance over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, dtype, ddof, keepdims, where, mean, correction
        As of ``rg.var``.

    Returns
    -------
    Var
        NaN where at most `ddof` elements are left.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanvar([1.0, float("nan"), 3.0])
    >>> y.item()
    1.0
    """
    return _deviation(NANVAR, a, axis, dtype, ddof, keepdims, (where, mean, correction))


@deferred
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Return the standard deviation over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, dtype, ddof, keepdims, where, mean, correction
        As of ``rg.std``.

    Returns
    -------
    Var
        NaN where at most `ddof` elements are left.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanstd([1.0, float("nan"), 3.0])
    >>> y.item()
    1.0
    """
    return _deviation(NANSTD, a, axis, dtype, ddof, keepdims, (where, mean, correction))
