"""Medians, percentiles and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, register_anywhere, spec
from reactgrad.backend.numpy import _order_statistics
from reactgrad.backend.numpy._through_host import through_host
from reactgrad.nodes._handle import Handle, apply, stacked
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._chain import times
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._operand import beside, in_dtype, node
from reactgrad.ops._reduce import Axis, attrs_of, reduced_axes, sum
from reactgrad.ops._shapes import common_device
from reactgrad.ops.reductions._truth import own_dtypes
from reactgrad.scheduler import safe_repr

add_kernels(_order_statistics.register)
for _name in _order_statistics.NAMES:
    register_anywhere(_name, through_host(_name))

METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    one, q = specs[0], specs[1]
    name, axis, method, keepdims, _ = attrs
    axes = reduced_axes(name, axis, len(one.shape))
    if one.dtype.kind == "c" and not name.endswith("median"):
        raise DTypeError(f"{name} of {one!r}: complex numbers have no order.")
    if 0 in [one.shape[i] for i in axes] and name in ("quantile", "percentile"):
        raise ShapeError(f"{name} over an axis of length 0 of {one!r}: there is no element.")
    if keepdims:
        shape = tuple(1 if i in axes else n for i, n in enumerate(one.shape))
    else:
        shape = tuple(n for i, n in enumerate(one.shape) if i not in axes)
    if name.endswith("median"):
        dtype = one.dtype if one.dtype.kind in "fc" else np.dtype(np.float64)
        return spec(shape, dtype, one.device)
    sample = 0.5 if q.weak is not None else np.full(1, 0.5, q.dtype)
    row = np.ones(2, one.dtype)
    weights = {} if len(specs) == 2 else {"weights": np.ones(2)}
    dtype = getattr(np, name)(row, sample, method=method, **weights).dtype
    return spec((*q.shape, *shape), dtype, common_device(name, specs))


def _like(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[0].dtype, specs[0].device)


def _like_result(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    found = _infer(specs[1:], attrs[:5])
    return spec(found.shape, specs[0].dtype, found.device)


# A quantile is linear in the elements of its row as long as their order stays, and so is its slope in q: these two
# ops are the linear map and its adjoint, for which the row and q only say which elements count. The last attribute
# says how often the map is differentiated by q; twice gives 0.
def _at(op: Op, t: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
    return apply(op, (t, *operands), attrs)


def _slanted(attrs: Attrs) -> bool:
    """Return whether a map changes with q; quantiles of other methods are steps, as roundings are."""
    return (
        attrs[5] == 0 and attrs[2] in _order_statistics.SLANTS and not attrs[0].endswith("median")
    )


def _by_q(g: Any, slope: Any, q: Any) -> Any:
    """Return the gradient of q: all results of one q are summed."""
    found = times(g, slope)
    behind = tuple(range(q.ndim, found.ndim))
    return sum(found, behind) if behind else found


def _along_q(t: Any, slope: Any, q: Any) -> Any:
    behind = tuple(range(q.ndim, slope.ndim))
    return times(expand_dims(t, behind) if behind else t, slope)


def _back_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    g, *of = operands

    def rule(i: int, h: Any) -> Any:
        if i == 0:
            return _at(ALONG, h, of, attrs)
        if i == 2 and _slanted(attrs):
            return _by_q(g, _at(ALONG, h, of, (*attrs[:5], 1)), of[1])
        return None

    return rule


def _back_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    g, *of = operands

    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return _at(BACK, t, of, attrs)
        if i == 2 and _slanted(attrs):
            return _at(BACK, _along_q(t, g, of[1]), of, (*attrs[:5], 1))
        return None

    return rule


def _along_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    along, *of = operands

    def rule(i: int, g: Any) -> Any:
        if i == 0:
            return _at(BACK, g, of, attrs)
        if i == 2 and _slanted(attrs):
            return _by_q(g, _at(ALONG, along, of, (*attrs[:5], 1)), of[1])
        return None

    return rule


def _along_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    along, *of = operands

    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return _at(ALONG, t, of, attrs)
        if i == 2 and _slanted(attrs):
            return _along_q(t, _at(ALONG, along, of, (*attrs[:5], 1)), of[1])
        return None

    return rule


BACK = Op(
    "quantile_back", _like, variadic=_back_rule, variadic_jvp=_back_jvp, loop_dtypes=own_dtypes
)
ALONG = Op(
    "quantile_along",
    _like_result,
    variadic=_along_rule,
    variadic_jvp=_along_jvp,
    loop_dtypes=own_dtypes,
)


def _slope(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> Any:
    x = in_dtype(operands[0], ans.dtype)
    return apply(ALONG, (x, *operands), (*attrs, 1))


def _rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    def rule(i: int, g: Any) -> Any:
        if i == 0:
            return _at(BACK, g, operands, (*attrs, 0))
        if i == 1 and _slanted((*attrs, 0)):
            return _by_q(g, _slope(ans, operands, attrs), operands[1])
        return None

    return rule


def _jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return _at(ALONG, t, operands, (*attrs, 0))
        if i == 1 and _slanted((*attrs, 0)):
            return _along_q(t, _slope(ans, operands, attrs), operands[1])
        return None

    return rule


QUANTILE = Op("quantile", _infer, variadic=_rule, variadic_jvp=_jvp, loop_dtypes=own_dtypes)


def _quantile(
    name: str, a: Any, q: Any, axis: Any, method: Any, keepdims: Any, weights: Any = None
) -> Any:
    if method not in METHODS:
        raise ParameterError(
            f"{name}: method={safe_repr(method)}; it is one of {', '.join(METHODS)}."
        )
    a = node(a, q, weights)
    q = stacked(q)
    weak = type(q) in (int, float) or (isinstance(q, Handle) and _is_number(q))
    operands = [a, q if weak else beside(q, a)]
    most = 100 if name.endswith("percentile") else 1
    if not _within(q, most):
        raise ParameterError(f"{name}: q={safe_repr(q):.60}; it is from 0 to {most}.")
    if weights is not None:
        if method != "inverted_cdf":
            raise ParameterError(
                f"{name}: weights= goes with method='inverted_cdf' only, and not with {safe_repr(method)}."
            )
        operands.append(node(weights, a))
    axis, keepdims = attrs_of(axis, keepdims)
    return apply(QUANTILE, operands, (name, axis, method, keepdims, weak))


def _is_number(q: Any) -> bool:
    found = q._graph._host.specs[q._slot]
    return found is not None and found.weak is not None


def _within(q: Any, most: int) -> bool:
    """Return whether a fixed q lies in its range; that of a node shows when it is read."""
    if isinstance(q, int | float | list | tuple | np.ndarray | np.generic):
        found = np.asarray(q)
        return found.dtype == object or bool(((found >= 0) & (found <= most)).all())
    return True


@deferred
def median(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Return the median over axes.

    The gradient goes to the middle element, or in halves to the two in the middle.

    Parameters
    ----------
    a : Var or array_like
        Any shape; complex numbers are ordered by their real parts first.
    axis : int, tuple of int or None
        The axes of a row; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.

    Returns
    -------
    Var
        NaN where an element is, or there is none.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.median([3.0, 1.0, 2.0, 10.0])
    >>> y.item()
    2.5
    """
    return _quantile("median", a, 0.5, axis, "linear", keepdims)


@deferred
def nanmedian(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Return the median over axes of the elements that are not NaN.

    Parameters
    ----------
    a, axis, keepdims
        As of ``rg.median``.

    Returns
    -------
    Var
        NaN where all elements are.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanmedian([3.0, 1.0, float("nan")])
    >>> y.item()
    2.0
    """
    return _quantile("nanmedian", a, 0.5, axis, "linear", keepdims)


@deferred
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """Return quantiles over axes.

    The gradient goes to the one or two elements of the sorted row that a quantile is made of. That of `q` is the
    slope between them; where `q` meets an element, the mean of the slopes on both sides, at an end of the row the
    one that there is. Quantiles of the methods that do not interpolate, and of `weights`, are steps: there the
    derivative by `q` and `weights` is 0 as that of a rounding is.

    Parameters
    ----------
    a : Var or array_like
        Any shape without an axis of length 0 among those reduced; real numbers.
    q : Var or array_like
        From 0 to 1; the axes of the result begin with its own.
    axis : int, tuple of int or None
        The axes of a row; ``None`` for all.
    method : str
        One of NumPy's thirteen, by which a place between two elements is resolved.
    keepdims : bool
        Whether the axes stay, with length 1.
    weights : Var or array_like, optional
        In the shape of `a` or of its axis; for the method ``"inverted_cdf"``.

    Returns
    -------
    Var
        NaN where an element is.

    Raises
    ------
    ShapeError
        If there is no element.
    DTypeError
        If a fixed `q` is outside of its range, or there is no such method.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.quantile([3.0, 1.0, 2.0], [0.0, 0.75])
    >>> y.value
    array([1. , 2.5])
    """
    return _quantile("quantile", a, q, axis, method, keepdims, weights)


@deferred
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """Return percentiles over axes: quantiles with `q` from 0 to 100.

    Parameters
    ----------
    a, q, axis, method, keepdims, weights
        As of ``rg.quantile``.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If there is no element.
    DTypeError
        If a fixed `q` is outside of its range, or there is no such method.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.percentile([3.0, 1.0, 2.0], 75)
    >>> y.item()
    2.5
    """
    return _quantile("percentile", a, q, axis, method, keepdims, weights)


@deferred
def nanquantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """Return quantiles over axes of the elements that are not NaN.

    Parameters
    ----------
    a, q, axis, method, keepdims, weights
        As of ``rg.quantile``.

    Returns
    -------
    Var
        NaN where all elements are.

    Raises
    ------
    DTypeError
        If a fixed `q` is outside of its range, or there is no such method.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanquantile([3.0, 1.0, float("nan")], 0.5)
    >>> y.item()
    2.0
    """
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights)


@deferred
def nanpercentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """Return percentiles over axes of the elements that are not NaN.

    Parameters
    ----------
    a, q, axis, method, keepdims, weights
        As of ``rg.quantile``, with `q` from 0 to 100.

    Returns
    -------
    Var
        NaN where all elements are.

    Raises
    ------
    DTypeError
        If a fixed `q` is outside of its range, or there is no such method.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nanpercentile([3.0, 1.0, float("nan")], 50)
    >>> y.item()
    2.0
    """
    return _quantile("nanpercentile", a, q, axis, method, keepdims, weights)
