"""Averages with weights, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._calls import real_number
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.ops._clip import clip
from reactgrad.ops._complex import conj, imag, real
from reactgrad.ops._deferred import deferred, deferred_each
from reactgrad.ops._elementwise import maximum, sqrt
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import expand_dims, reshape, transpose
from reactgrad.ops._matmul import matmul
from reactgrad.ops._operand import in_dtype, node, stretched
from reactgrad.ops._reduce import Axis, axis_of, mean, sum
from reactgrad.ops._shapes import normal_axes
from reactgrad.ops.reductions._deviation import length
from reactgrad.scheduler import safe_repr


def _means(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, **options: Any
) -> Any:
    """Return the nest of results of ``average``."""
    return (None, None) if returned else None


@deferred_each(_means)
def average(
    a: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the average over axes, with weights.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis : int, tuple of int or None
        The axes to average over; ``None`` for all.
    weights : Var or array_like, optional
        In the shape of `a`, or of its averaged axes. By default all weigh the same.
    returned : bool
        Whether to return the sum of the weights, too.
    keepdims : bool
        Whether these axes stay, with length 1.

    Returns
    -------
    Var or tuple of Var
        The average; with `returned` also the sum of the weights in its shape. NaN or infinite where that
        is 0 (NumPy raises ``ZeroDivisionError``).

    Raises
    ------
    ShapeError
        If the shape of the weights is another one.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.average([1.0, 4.0], weights=[2.0, 1.0])
    >>> y.item()
    2.0
    """
    a, axis = node(a, weights), axis_of(axis)
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        if not returned:
            return found
        ones = stretched(a._graph.const(np.ones((), found.dtype)), a)
        return found, sum(ones, axis, keepdims=keepdims)
    weights = node(weights, a)
    kinds = [a.dtype, weights.dtype]
    if a.dtype.kind in "iub":
        kinds.append(np.dtype(np.float64))
    dtype = np.result_type(*kinds)
    weights = in_dtype(_beside_axes(a, axis, weights), dtype)
    scale = sum(weights, axis, keepdims=keepdims)
    found = sum(in_dtype(a, dtype) * weights, axis, keepdims=keepdims) / scale
    return (found, stretched(scale, found)) if returned else found


def _beside_axes(a: Any, axis: Axis, weights: Any) -> Any:
    """Return weights in a shape with as many axes as `a`."""
    if weights.ndim == a.ndim and all(
        None in (m, n) or m == n for m, n in zip(a.shape, weights.shape, strict=True)
    ):
        return weights
    if axis is None:
        raise ShapeError(
            f"average: weights of shape {weights.shape} for a value of shape {a.shape}; name the axes that "
            "they belong to, as axis=0."
        )
    axes = normal_axes("average", axis, a.ndim)
    lengths = tuple(a.shape[i] for i in axes)
    if len(lengths) != weights.ndim or any(
        None not in (m, n) and m != n for m, n in zip(lengths, weights.shape, strict=True)
    ):
        raise ShapeError(
            f"average: weights of shape {weights.shape} for the axes {axes} of lengths {lengths}."
        )
    order = tuple(int(i) for i in np.argsort(axes))
    if order != tuple(range(len(order))):
        weights = transpose(weights, order)
    new = tuple(i for i in range(a.ndim) if i not in axes)
    return stretched(expand_dims(weights, new) if new else weights, a)


@deferred
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Return the covariance matrix of variables.

    Parameters
    ----------
    m : Var or array_like
        Shape (variables, observations), or one variable.
    y : Var or array_like, optional
        More variables, in the same form.
    rowvar : bool
        Whether each row is a variable; else each column.
    bias : bool
        Whether to divide by the number of observations, and not by one less.
    ddof : int, optional
        What is taken from that number, in place of `bias`.
    fweights, aweights : Var or array_like, optional
        How often each observation occurs, and how much it weighs; not negative.
    dtype : dtype, optional
        In which to compute; at least float64 by default.

    Returns
    -------
    Var
        Shape (variables, variables); a number for one variable.

    Raises
    ------
    ShapeError
        If `m` has more than two axes, or the weights do not fit.
    DTypeError
        If `ddof` is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    >>> y.value
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    less = (0.0 if bias else 1.0) if ddof is None else real_number("cov", "ddof", ddof)
    if not less.is_integer():
        raise ParameterError(f"cov: ddof={safe_repr(ddof)}; it is an integer.")
    x = _variables("cov", m, y, rowvar, dtype, fweights, aweights)
    weights = _weights(x, fweights, aweights)
    if weights is None:
        apart = weighted = x - mean(x, 1, keepdims=True)
        factor = length(x, 1) - less
    else:
        total = sum(weights)
        apart = in_dtype(x - sum(x * weights, 1, keepdims=True) / total, x.dtype)
        weighted = apart * weights
        factor = total
        if less and aweights is None:
            factor = total - less
        elif less:
            apiece = sum(weights * in_dtype(node(aweights, x), weights.dtype))
            factor = total - apiece * less / total
    # As NumPy: a product with the reciprocal, which is infinite where no degree of freedom is left.
    share = 1.0 / maximum(factor, 0.0)
    product = matmul(apart, transpose(conj(weighted) if x.dtype.kind == "c" else weighted))
    found = in_dtype(product * share, product.dtype)
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(name: str, m: Any, y: Any, rowvar: bool, dtype: Any, *others: Any) -> Any:
    x = node(m, y, *others)
    parts = [x] if y is None else [x, node(y, x)]
    for i, one in enumerate(parts):
        if one.ndim > 2:
            raise ShapeError(f"{name} of a value with {one.ndim} axes: it takes one or two.")
        if one.ndim < 2:
            parts[i] = reshape(one, (1, -1))
        elif not rowvar and not (
            i and one.shape[0] == 1
        ):  # one row beside columns stays, as in NumPy
            parts[i] = transpose(one)
    if dtype is None:
        dtype = np.result_type(*[one.dtype for one in parts], np.float64)
    parts = [in_dtype(one, dtype) for one in parts]
    return parts[0] if len(parts) == 1 else concatenate(parts, 0)


def _weights(x: Any, fweights: Any, aweights: Any) -> Any:
    found = None
    for word, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        one = node(given, x)
        if word == "fweights" and one.dtype.kind not in "iub":
            raise DTypeError(f"cov: fweights of {one.dtype}; they are counts, of integers.")
        if one.ndim != 1 or (None not in (one.shape[0], x.shape[1]) and one.shape[0] != x.shape[1]):
            raise ShapeError(
                f"cov: {word} of shape {one.shape} for {x.shape[1]} observations; it is one row of that "
                "length."
            )
        found = in_dtype(one, float) if found is None else found * in_dtype(one, float)
    return found


@deferred
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Return the correlation coefficients of variables.

    Parameters
    ----------
    x, y, rowvar, dtype
        As `m`, `y`, `rowvar` and `dtype` of ``rg.cov``.

    Returns
    -------
    Var
        Shape (variables, variables), with values from -1 to 1; a number for one variable.

    Raises
    ------
    ShapeError
        If `x` has more than two axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    >>> y.value
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    deviation = sqrt(real(ops.diagonal(found)))
    found = found / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    if found.dtype.kind != "c":
        return clip(found, -1.0, 1.0)
    return clip(real(found), -1.0, 1.0) + clip(imag(found), -1.0, 1.0) * 1j
