"""Variances, standard deviations and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import over, times
from reactgrad.ops._complex import conj, real
from reactgrad.ops._elementwise import equal, maximum, sqrt, square
from reactgrad.ops._layout import known_shape
from reactgrad.ops._operand import in_dtype, node, stretched
from reactgrad.ops._reduce import (
    Axis,
    attrs_of,
    counting,
    max,
    mean,
    min,
    put_back,
    reduced_axes,
    reduction,
    sum,
)
from reactgrad.ops._shapes import size_of
from reactgrad.ops._where import where as choose
from reactgrad.ops.reductions._truth import own_dtypes
from reactgrad.scheduler import safe_repr

add_kernels(_reductions.register, on_host(_reductions.NAMES))


def real_dtype(dtype: Any) -> Any:
    """Return the dtype of means of real numbers: that of the parts of complex ones, float64 for integers."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _infer_length(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    reduced_axes("length", attrs[0], len(specs[0].shape))
    return spec((), counting(real_dtype(specs[0].dtype)), specs[0].device)


LENGTH = Op("length", _infer_length, (None,), (None,), loop_dtypes=own_dtypes)


def length(x: Any, axis: Axis = None) -> Any:
    """Return the number of elements along axes as a node, which follows another shape."""
    return apply(LENGTH, (x,), (axis if axis is None or isinstance(axis, tuple) else (axis,),))


def _count(x: Any, axis: Axis, correction: float) -> Any:
    """Return the number of elements in a row less the correction; NaN where that leaves nothing.

    It is a node where the number is not known yet.
    """
    shape = known_shape(x)
    axes = None if shape is None else reduced_axes("var", axis, len(shape))
    if axes is None or None in [shape[i] for i in axes]:  # type: ignore[index]
        left = length(x, axis) - correction
        return choose(left <= 0.0, math.nan, left)
    left = size_of([shape[i] for i in axes]) - correction  # type: ignore[index]
    return float(left) if left > 0 else math.nan


def _apart(x: Any, axis: Axis) -> Any:
    """Return the differences from the mean, those of half floats in float32."""
    x = in_dtype(x, counting(x.dtype))
    return x - mean(x, axis, keepdims=True)


def _parts(x: Any, axis: Axis, correction: float) -> tuple[Any, Any]:
    return _apart(x, axis), _count(x, axis, correction)


def _by_std(g: Any, ans: Any) -> Any:
    """Return ``g / ans``, and 0 where all elements are the same: there is no direction to go, as in PyTorch."""
    wide = counting(ans.dtype)
    ans = in_dtype(ans, wide)
    return choose(equal(ans, 0), 0.0, over(in_dtype(g, wide), ans))


def deviation_ops(prefix: str, parts: Any) -> tuple[Op, Op]:
    """Return the ops of a variance and of its root.

    Parameters
    ----------
    prefix : str
        Before ``var`` and ``std`` in their names.
    parts
        ``parts(x, axis, correction)`` returns the differences from the mean, and what their squares are
        divided by: their quotient is the derivative of half the variance by each element.
    """

    def back(g: Any, x: Any, axis: Axis, keepdims: bool, correction: float) -> Any:
        apart, count = parts(x, axis, correction)
        apart = conj(apart) if apart.dtype.kind == "c" else apart
        g = put_back(in_dtype(g, counting(g.dtype)), x, axis, keepdims)
        if isinstance(count, float) and count == count:
            return times(g / count, apart)
        return times(
            g, apart / count
        )  # where the count is NaN, so is all but where no gradient arrives

    def along(t: Any, x: Any, axis: Axis, keepdims: bool, correction: float) -> Any:
        apart, count = parts(x, axis, correction)
        slopes = (conj(apart) if apart.dtype.kind == "c" else apart) / count
        found = times(in_dtype(t, counting(t.dtype)), slopes)
        return sum(real(found) if found.dtype.kind == "c" else found, axis, keepdims=keepdims)

    def var_rule(g: Any, ans: Any, x: Any, *attrs: Any) -> Any:
        return back(in_dtype(g, counting(g.dtype)) * 2.0, x, *attrs)

    def var_jvp(t: Any, ans: Any, x: Any, *attrs: Any) -> Any:
        return in_dtype(along(t, x, *attrs) * 2.0, ans.dtype)

    def std_rule(g: Any, ans: Any, x: Any, *attrs: Any) -> Any:
        return back(_by_std(g, ans), x, *attrs)

    def std_jvp(t: Any, ans: Any, x: Any, *attrs: Any) -> Any:
        return in_dtype(_by_std(along(t, x, *attrs), ans), ans.dtype)

    def op(name: str, rule: Any, jvp: Any) -> Op:
        infer = reduction(name, real_dtype, identity=True)
        return Op(name, infer, (rule,), (jvp,), loop_dtypes=own_dtypes)

    return op(f"{prefix}var", var_rule, var_jvp), op(f"{prefix}std", std_rule, std_jvp)


VAR, STD = deviation_ops("", _parts)


def masked_var(
    x: Any, axis: Axis, keepdims: bool, correction: float, mask: Any, average: Any = None
) -> Any:
    """Return the variance of chosen elements, or about a given mean; that of half floats in float32.

    Parameters
    ----------
    mask : Var or None
        Booleans in the shape of `x`; ``None`` for all elements.
    average : Var, optional
        The mean, with the reduced axes at length 1.
    """
    x = in_dtype(x, counting(x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)))
    wide = real_dtype(x.dtype)
    ones = stretched(x._graph.const(np.ones((), wide)), x) if mask is None else in_dtype(mask, wide)
    count = sum(ones, axis, keepdims=keepdims)
    if mask is not None:
        x = choose(mask, x, 0)
    if average is None:
        average = sum(x, axis, keepdims=True) / sum(ones, axis, keepdims=True)
    apart = x - average
    if mask is not None:
        apart = choose(mask, apart, 0)
    squares = square(apart) if x.dtype.kind != "c" else real(apart * conj(apart))
    return sum(squares, axis, keepdims=keepdims) / maximum(count - correction, 0)


def root(variance: Any) -> Any:
    """Return the square root of a variance; where that is 0, so is the gradient, as that of ``std``."""
    nothing = equal(variance, 0)
    return choose(nothing, 0.0, sqrt(choose(nothing, 1.0, variance)))


def correction_of(name: str, ddof: Any, correction: Any) -> float:
    """Return what is taken from the count of elements, given under one of its two names."""
    if correction is not None:
        if ddof != 0:
            raise ParameterError(
                f"{name}: correction= and ddof= are two names of one argument; give one."
            )
        ddof = correction
    if isinstance(ddof, Handle) or not isinstance(ddof, int | float | np.number):
        raise ParameterError(
            f"{name}: ddof={safe_repr(ddof):.60}; it is a number, fixed when the node is built."
        )
    return float(ddof)


def _deviation(
    op: Op,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    average: Any,
    correction: Any,
) -> Any:
    fixed = correction_of(op.name, ddof, correction)
    axis, keepdims = attrs_of(axis, keepdims)
    if where is True and average is None:
        if dtype is not None:
            a = in_dtype(node(a), dtype)
        return in_dtype(apply(op, (a,), (axis, keepdims, fixed)), dtype)
    a = in_dtype(node(a, where, average), dtype)
    mask = None if where is True else stretched(in_dtype(node(where, a), bool), a)
    about = None if average is None else node(average, a)
    found = masked_var(a, axis, keepdims, fixed, mask, about)
    if dtype is None:
        dtype = real_dtype(a.dtype if about is None else np.result_type(a.dtype, about.dtype))
    return in_dtype(root(found) if op is STD else found, dtype)


def var(
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
    """Return the variance over axes.

    Parameters
    ----------
    a : Var or array_like
        Any shape; integers give float64, half floats are computed in float32.
    axis : int, tuple of int or None
        The axes of a row; ``None`` for all.
    dtype : dtype, optional
        In which to compute.
    ddof, correction : float
        What is taken from the number of elements before the sum of squares is divided by it; two names
        of one argument, those of NumPy and of the array API.
    keepdims : bool
        Whether these axes stay, with length 1.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that count.
    mean : Var or array_like, optional
        The mean, with the axes at length 1. The variance is then about it, and gradients pass to it.

    Returns
    -------
    Var
        The mean of the squared absolute deviations from the mean.

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        If `ddof` is no number, or `correction` is given, too.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.var([1.0, 3.0, 5.0], ddof=1)
    >>> y.item()
    4.0
    """
    return _deviation(VAR, a, axis, dtype, ddof, keepdims, where, mean, correction)


def std(
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
    """Return the standard deviation over axes: the square root of ``var``.

    Where all elements of a row are the same the deviation is 0, and so is its gradient, as in PyTorch.

    Parameters
    ----------
    a : Var or array_like
        Any shape; integers give float64, half floats are computed in float32.
    axis : int, tuple of int or None
        The axes of a row; ``None`` for all.
    dtype : dtype, optional
        In which to compute.
    ddof, correction : float
        What is taken from the number of elements before the sum of squares is divided by it.
    keepdims : bool
        Whether these axes stay, with length 1.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that count.
    mean : Var or array_like, optional
        The mean, with the axes at length 1, about which to take the deviations.

    Returns
    -------
    Var

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        If `ddof` is no number, or `correction` is given, too.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.std([1.0, 3.0, 5.0], ddof=1)
    >>> y.item()
    2.0
    """
    return _deviation(STD, a, axis, dtype, ddof, keepdims, where, mean, correction)


def ptp(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Return the range over axes: the largest element less the smallest one.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.

    Returns
    -------
    Var
        Of the dtype of `a`.

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
    ...     y = rg.ptp([[1.0, 4.0], [3.0, 3.0]], axis=1)
    >>> y.value
    array([3., 0.])
    """
    a = node(a)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)
