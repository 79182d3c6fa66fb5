"""Reductions and scans that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.ops._elementwise import isnan, logical_and, logical_not
from reactgrad.ops._operand import in_dtype, node, stretched
from reactgrad.ops._reduce import Axis, attrs_of, mean, sum
from reactgrad.ops._where import where as choose
from reactgrad.ops.reductions._deviation import correction_of, masked_var, real_dtype, root
from reactgrad.ops.reductions._product import prod
from reactgrad.ops.reductions._scan import cumprod, cumsum


def _filled(a: Any, number: int, *others: Any) -> Any:
    """Return a node with NaN replaced by a number; integers have none."""
    a = node(a, *others)
    return choose(isnan(a), number, a) if a.dtype.kind in "fc" else a


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
    a = node(a, where)
    if a.dtype.kind in "fc":
        where = _numbers(a, where)
    return mean(a, axis, keepdims=keepdims, dtype=dtype, where=where)


def _var(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    average: Any,
    correction: Any,
) -> tuple[Any, Any]:
    """Return the variance and the dtype that the caller has asked for."""
    fixed = correction_of(name, ddof, correction)
    a = in_dtype(node(a, where, average), dtype)
    mask = stretched(_numbers(a, where), a)
    about = None if average is None else node(average, a)
    axis, keepdims = attrs_of(axis, keepdims)
    found = masked_var(a, axis, keepdims, fixed, mask, about)
    # Where no degree of freedom is left NumPy's result is NaN, not infinite.
    count = sum(in_dtype(mask, np.int64), axis, keepdims=keepdims)
    found = choose(count <= fixed, np.nan, found)
    return found, np.dtype(dtype) if dtype is not None else real_dtype(a.dtype)


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
    found, dtype = _var("nanvar", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return in_dtype(found, dtype)


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
    found, dtype = _var("nanstd", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return in_dtype(root(found), dtype)
