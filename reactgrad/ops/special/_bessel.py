"""Modified Bessel functions of the first kind, plain and times ``exp(-|x|)``.

All integer orders are ops, so that derivatives of any order are: ``2 I_n' = I_(n-1) + I_(n+1)``. In derivatives of
the scaled functions of orders 0 and 1 digits would cancel for large x; their difference is an op.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend.numpy import _bessel
from reactgrad.nodes._handle import apply
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import sign
from reactgrad.ops._operand import node
from reactgrad.ops.special._form import smooth, widened, with_kernels


def _plain_rule(g: Any, ans: Any, x: Any, order: int) -> Any:
    if order == 0:
        return times(g, _plain(x, 1))
    return times(g, (_plain(x, order - 1) + _plain(x, order + 1)) * 0.5)


def _scaled_rule(g: Any, ans: Any, x: Any, order: int) -> Any:
    if order == 0:
        return -g * (sign(x) * apply(GAP, (x,)))
    if order == 1:
        return g * (apply(GAP, (x,)) - apply(OVER, (x,)))
    return g * ((_scaled(x, order - 1) + _scaled(x, order + 1)) * 0.5 - sign(x) * ans)


def _bend_rule(g: Any, ans: Any, x: Any) -> Any:
    # Of a formula in which digits cancel for large x: this is the third derivative of ``i0e``.
    return g * (sign(x) * (apply(OVER_SLOPE, (x,)) - 2.0 * ans))


def _over_slope_rule(g: Any, ans: Any, x: Any) -> Any:
    inner = (_scaled(x, 0) - _scaled(x, 4)) * 0.5
    outer = sign(x) * (_scaled(x, 1) - _scaled(x, 3))
    return g * ((inner - outer) * 0.25 - sign(x) * ans)


PLAIN: Final = smooth("bessel_i", _plain_rule)
SCALED: Final = smooth("bessel_ie", _scaled_rule)
# exp(-|x|) (I0(|x|) - I1(|x|)) and exp(-|x|) I1(x) / x, with their derivatives.
GAP: Final = smooth("bessel_ie_gap", lambda g, ans, x: g * apply(BEND, (x,)))
BEND: Final = smooth("bessel_ie_bend", _bend_rule)
OVER: Final = smooth("bessel_ie_over", lambda g, ans, x: g * apply(OVER_SLOPE, (x,)))
OVER_SLOPE: Final = smooth("bessel_ie_over_slope", _over_slope_rule)
with_kernels(_bessel.register, 100.0, PLAIN, SCALED, GAP, BEND, OVER, OVER_SLOPE)


def _plain(x: Any, order: int) -> Any:
    return apply(PLAIN, (x,), (order,))


def _scaled(x: Any, order: int) -> Any:
    return apply(SCALED, (x,), (order,))


def i0(x: Any, /) -> Any:
    """Return the modified Bessel function of order 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.i0([0.0, 1.0])
    >>> print(y.value)
    [1.         1.26606588]
    """
    return _plain(widened(node(x)), 0)


def i0e(x: Any, /) -> Any:
    """Return ``i0`` times ``exp(-|x|)``, which stays in the dtype.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.i0e([0.0, 1.0])
    >>> print(y.value)
    [1.         0.46575961]
    """
    return _scaled(x, 0)


def i1(x: Any, /) -> Any:
    """Return the modified Bessel function of order 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.i1([0.0, 1.0])
    >>> print(y.value)
    [0.        0.5651591]
    """
    return _plain(x, 1)


def i1e(x: Any, /) -> Any:
    """Return ``i1`` times ``exp(-|x|)``, which stays in the dtype.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.i1e([0.0, 1.0])
    >>> print(y.value)
    [0.         0.20791042]
    """
    return _scaled(x, 1)


bessel_i0, bessel_i0e = i0, i0e
