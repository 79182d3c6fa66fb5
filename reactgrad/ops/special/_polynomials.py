"""Polynomials as series of coefficients, the highest power first, as in NumPy's older functions.

Coefficients are not trimmed: the number of coefficients of a result depends on shapes, not on values. Only that of
the remainder of a division does, as in NumPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _polynomials
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._chain import over
from reactgrad.ops._complex import real
from reactgrad.ops._deferred import deferred, deferred_each
from reactgrad.ops._elementwise import add, subtract
from reactgrad.ops._join import concatenate, stack
from reactgrad.ops._layout import reshape
from reactgrad.ops._lengths import with_length
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, operand_types, promote, resolve
from reactgrad.ops._split import unbind
from reactgrad.ops.special._convolution import convolve
from reactgrad.ops.special._pairs import together

_NAMES: Final = (
    *("polyval", "polyval_back", "poly_scale", "poly_extend", "poly_tail"),
    *("poly_roots", "poly_leading"),
)
add_kernels(_polynomials.register, on_host(_NAMES))


def _one_axis(name: str, one: Spec) -> int | None:
    if len(one.shape) != 1:
        raise ShapeError(f"{name} of {one!r}: coefficients are a series, of one axis.")
    return one.shape[0]


# --- values -------------------------------------------------------------------------------------


def _infer_polyval(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    p, x = specs
    _one_axis("polyval", p)
    dtype = resolve(np.multiply, operand_types(specs), "polyval")[-1]
    return spec(x.shape, dtype, common_device("polyval", specs))


def _infer_polyval_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, x, like = specs
    return spec(like.shape, promote((g, x)), common_device("polyval", specs))


def _slope_at(p: Any, x: Any) -> Any:
    return apply(POLYVAL, (_derivative(p, 1), x))


def _back_at(h: Any, ans: Any, g: Any, x: Any, like: Any) -> Any:
    return g * _slope_at(h, x)


def _back_jvp(t: Any, ans: Any, g: Any, x: Any, like: Any) -> Any:
    # The derivative of each power: its factor times the power below, and 0 for the last.
    powers = apply(POLYVAL_BACK, (t * g, x, like))
    return apply(POLY_SCALE, (concatenate([powers[1:], powers[:1] * 0.0]),), (1,))


POLYVAL: Final = Op(
    "polyval",
    _infer_polyval,
    (
        lambda g, ans, p, x: apply(POLYVAL_BACK, (g, x, p)),
        lambda g, ans, p, x: g * _slope_at(p, x),
    ),
    (LINEAR, lambda t, ans, p, x: t * _slope_at(p, x)),
)
POLYVAL_BACK: Final = Op(
    "polyval_back",
    _infer_polyval_back,
    (lambda h, ans, g, x, like: apply(POLYVAL, (h, x)), _back_at, None),
    (LINEAR, _back_jvp, None),
)


@deferred
def polyval(p: Any, x: Any) -> Any:
    """Return the values of a polynomial.

    Parameters
    ----------
    p : Var or array_like
        Coefficients, the highest power first. With further axes, each place of them has a polynomial
        of its own.
    x : Var or array_like
        Where to evaluate it; any shape.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    ShapeError
        If the coefficients have no axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polyval([1.0, 0.0, -2.0], [2.0, 3.0])
    >>> y.value
    array([2., 7.])
    """
    p, x = together(p, x)
    number = x._literal()
    if number is not None:  # NumPy takes it as an array, so that float32 coefficients give float64
        x = p._graph.const(np.asarray(number), device=p.device)
    if p.ndim == 1:
        return apply(POLYVAL, (p, x))
    first, *rest = unbind(with_length("polyval of several polynomials", p, 0, _known(p)))
    value = first + x * 0
    for one in rest:
        value = value * x + one
    return value


def _known(p: Any) -> int:
    length = p.shape[0]
    if length is None:
        raise p._unknown_length()
    return length


# --- sums and products --------------------------------------------------------------------------


def _infer_extend(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    lengths = [_one_axis("polyadd", one) for one in specs]
    length = None if None in lengths else max(lengths)  # type: ignore[type-var]
    return spec((length,), specs[0].dtype, specs[0].device)


def _infer_tail(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, like = specs
    return spec(like.shape, g.dtype, g.device)


POLY_EXTEND: Final = Op(
    "poly_extend",
    _infer_extend,
    (lambda g, ans, p, other: apply(POLY_TAIL, (g, p)), None),
    (LINEAR, None),
)
POLY_TAIL: Final = Op(
    "poly_tail",
    _infer_tail,
    (lambda h, ans, g, like: apply(POLY_EXTEND, (h, g)), None),
    (LINEAR, None),
)


def _coefficients(*polynomials: Any) -> list[Any]:
    return [p if p.ndim else reshape(p, (1,)) for p in together(*polynomials)]


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    a1, a2 = _coefficients(a1, a2)
    if a1.shape == a2.shape and a1.shape[0] is not None:
        return a1, a2
    return apply(POLY_EXTEND, (a1, a2)), apply(POLY_EXTEND, (a2, a1))


@deferred
def polyadd(a1: Any, a2: Any) -> Any:
    """Return the sum of two polynomials.

    Parameters
    ----------
    a1, a2 : Var or array_like
        Coefficients, the highest power first.

    Returns
    -------
    Var
        As many coefficients as the longer one has.

    Raises
    ------
    ShapeError
        If coefficients have more than one axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polyadd([1.0, 2.0], [9.0, 5.0, 4.0])
    >>> y.value
    array([9., 6., 6.])
    """
    return add(*_aligned(a1, a2))


@deferred
def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of two polynomials.

    Parameters
    ----------
    a1, a2 : Var or array_like
        Coefficients, the highest power first.

    Returns
    -------
    Var
        As many coefficients as the longer one has.

    Raises
    ------
    ShapeError
        If coefficients have more than one axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polysub([2.0, 10.0, -2.0], [3.0, 10.0, -4.0])
    >>> y.value
    array([-1.,  0.,  2.])
    """
    return subtract(*_aligned(a1, a2))


@deferred
def polymul(a1: Any, a2: Any) -> Any:
    """Return the product of two polynomials.

    Parameters
    ----------
    a1, a2 : Var or array_like
        Coefficients, the highest power first. Leading zeros stay.

    Returns
    -------
    Var
        The coefficients of the product.

    Raises
    ------
    ShapeError
        If coefficients have more than one axis, or there are none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polymul([1.0, 2.0], [1.0, 3.0])
    >>> y.value
    array([1., 5., 6.])
    """
    return convolve(a1, a2)


@deferred_each(lambda u, v: (None, None))
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Return the quotient and the remainder of two polynomials.

    Parameters
    ----------
    u, v : Var or array_like
        Coefficients, the highest power first, of known lengths; the first one of `v` is not 0.

    Returns
    -------
    tuple of Var
        The remainder has fewer coefficients than `v`, but one at least. Leading ones that are near to 0, within
        1e-8, are left out as in NumPy; so where `v` has three or more, its length shows only in the values.

    Raises
    ------
    ShapeError
        If a length is not known, coefficients have more than one axis, or there are none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     quotient, rest = rg.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    >>> quotient.value, rest.value
    (array([1.5 , 1.75]), array([0.25]))
    """
    u, v = [one + 0.0 for one in _coefficients(u, v)]
    n, m = (_known_length("polydiv", one) for one in (u, v))
    if not n or not m:
        raise ShapeError("polydiv: a polynomial needs a coefficient.")
    u, v = with_length("polydiv", u, 0, n), with_length("polydiv", v, 0, m)
    if n < m:
        return u[:1] * v[:1] * 0.0, _trimmed(u + v[:1] * 0.0, n)
    quotient: list[Any] = []
    for k in range(n - m + 1):
        left = u[k]
        before = min(k, m - 1)
        if before:
            left = left - sum(stack(quotient[k - before :]) * v[before:0:-1])
        quotient.append(left / v[0])
    found = stack(quotient)
    rest = u - convolve(found, v)
    return found, _trimmed(rest[n - m + 1 :], m - 1) if m > 1 else rest[-1:]


def _infer_leading(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    _one_axis("polydiv", specs[0])


# The numbers of the coefficients from the first one that is not near to 0: how many shows only in the values.
LEADING: Final = Op("poly_leading", _infer_leading, (None,), (None,))


def _trimmed(p: Any, length: int) -> Any:
    return p[apply(LEADING, (p,))] if length > 1 else p


def _known_length(name: str, p: Any) -> int:
    if p.ndim != 1:
        raise ShapeError(f"{name} of {p.label!r} of shape {p.shape}: coefficients are a series.")
    (length,) = p.shape
    if length is None:
        raise ShapeError(
            f"{name}: the number of coefficients of {p.label!r} is not known before an input is set."
        )
    return length


# --- derivatives and integrals ------------------------------------------------------------------


def _infer_scale(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (p,) = specs
    _one_axis("polyder", p)
    return spec(p.shape, p.dtype, p.device)


POLY_SCALE: Final = Op(
    "poly_scale",
    _infer_scale,
    (lambda g, ans, p, order: apply(POLY_SCALE, (g,), (order,)),),
    (LINEAR,),
)


def _order(name: str, m: Any) -> int:
    return whole(name, "m", m, 0)


def _derivative(p: Any, order: int) -> Any:
    return apply(POLY_SCALE, (p,), (order,))[:-order]


def _widened(p: Any, dtype: Any) -> Any:
    wide = np.result_type(p.dtype, dtype)
    return p if p.dtype == wide else astype(p, wide)


@deferred
def polyder(p: Any, m: int = 1) -> Any:
    """Return a derivative of a polynomial.

    Parameters
    ----------
    p : Var or array_like
        Coefficients, the highest power first.
    m : int
        The order of the derivative.

    Returns
    -------
    Var
        `m` coefficients less.

    Raises
    ------
    DTypeError
        If the order is negative or no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polyder([1.0, 1.0, 1.0, 1.0])
    >>> y.value
    array([3., 2., 1.])
    """
    order = _order("polyder", m)
    (p,) = _coefficients(p)
    if p.shape[0] is not None:  # of a higher order there is nothing left either
        order = min(order, p.shape[0])
    return _derivative(_widened(p, np.int64), order) if order else p


@deferred
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return an integral of a polynomial.

    Parameters
    ----------
    p : Var or array_like
        Coefficients, the highest power first.
    m : int
        How many times to integrate.
    k : Var, array_like or None
        The constants of integration, in their order; one stands for all, ``None`` for zeros.

    Returns
    -------
    Var
        `m` coefficients more.

    Raises
    ------
    DTypeError
        If the order is negative or no integer.
    ShapeError
        If there is another number of constants.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polyint([6.0, 2.0], k=5.0)
    >>> y.value
    array([3., 2., 5.])
    """
    order = _order("polyint", m)
    p, *given = _coefficients(p) if k is None else _coefficients(p, k)
    if not order:
        return p
    p = _widened(p, np.float64)  # NumPy's dtypes: factors are arrays of integers
    graph, device = p._graph, p.device
    constants = given[0] if given else graph.const(np.zeros(order), device=device)
    if constants.shape == (1,) and order > 1:
        constants = constants[np.zeros(order, int)]
    if constants.shape != (order,):
        raise ShapeError(f"polyint(m={order}): {order} constants or one, not {constants.shape[0]}.")
    # The first constant is integrated again by all later integrals.
    factorials = graph.const(np.cumprod([1.0, *range(1, order)])[::-1], device=device)
    return concatenate([apply(POLY_SCALE, (p,), (-order,)), constants / factorials])


# --- roots --------------------------------------------------------------------------------------


def _infer_roots(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (p,) = specs
    length = _one_axis("roots", p)
    # NumPy divides booleans and integers, which gives float64.
    dtype = np.result_type(np.float64 if p.dtype.kind in "biu" else p.dtype, np.complex64)
    return spec((None if length is None else max(length - 1, 0),), dtype, p.device)


def _roots_rule(g: Any, ans: Any, p: Any) -> Any:
    found = -apply(POLYVAL_BACK, (over(g, _slope_at(p, ans)), ans, p))
    return found if p.dtype.kind == "c" else real(found)


POLY_ROOTS: Final = Op(
    "poly_roots",
    _infer_roots,
    (_roots_rule,),
    (lambda t, ans, p: over(-apply(POLYVAL, (t, ans)), _slope_at(p, ans)),),
)


@deferred
def roots(p: Any) -> Any:
    """Return the roots of a polynomial.

    Parameters
    ----------
    p : Var or array_like
        Coefficients, the highest power first, which is not 0.

    Returns
    -------
    Var
        Complex numbers, also where all roots are real; NaN in place of those that are missing where
        leading coefficients are 0. The gradient of a root that is not simple is infinite or NaN.

    Raises
    ------
    ShapeError
        If coefficients have more than one axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.roots([1.0, -3.0, 2.0])
    >>> y.value
    array([2.+0.j, 1.+0.j])
    """
    return apply(POLY_ROOTS, _coefficients(p))
