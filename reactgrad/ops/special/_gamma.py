"""The gamma function's logarithm, its derivatives of all orders, and the beta function."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._calls import MOST_OF_C
from reactgrad._errors import GradientError, ParameterError
from reactgrad.backend.numpy import _beta, _gamma
from reactgrad.nodes._handle import apply
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import log, log1p, negative, public
from reactgrad.ops.special._form import smooth, with_kernels
from reactgrad.scheduler import safe_repr


def _polygamma_rule(g: Any, ans: Any, x: Any, n: int) -> Any:
    return times(g, polygamma(n + 1, x))


def _density_by_x(g: Any, ans: Any, a: Any, b: Any, x: Any) -> Any:
    return times(g, ans * ((a - 1.0) / x - (b - 1.0) / (1.0 - x)))


def _by_parameter(g: Any, ans: Any, *operands: Any) -> Any:
    raise GradientError(
        "betainc has a derivative by x only; that by a and b is no elementary function. Detach them, "
        "betainc(a.detach(), b.detach(), x), or wrap a formula of your own in rg.lift(..., vjp=...)."
    )


def _bend(slope: Any, a: Any, b: Any) -> Any:
    return slope * apply(DIGAMMA_FALL, (a, b)) + beta(a, b) * apply(TRIGAMMA_FALL, (a, b))


def _mixed_bend(slope: Any, a: Any, b: Any) -> Any:
    return slope * apply(DIGAMMA_FALL, (b, a)) - beta(a, b) * polygamma(1, a + b)


GAMMALN: Final = smooth("gammaln", lambda g, ans, x: times(g, polygamma(0, x)))
POLYGAMMA: Final = smooth("polygamma", _polygamma_rule)
BETALN: Final = smooth(
    "betaln",
    lambda g, ans, a, b: times(g, apply(DIGAMMA_FALL, (a, b))),
    lambda g, ans, a, b: times(g, apply(DIGAMMA_FALL, (b, a))),
)
BETA: Final = smooth(
    "beta",
    lambda g, ans, a, b: times(g, apply(BETA_SLOPE, (a, b))),
    lambda g, ans, a, b: times(g, apply(BETA_SLOPE, (b, a))),
)
# The derivative of ``beta`` by its first operand, which exists where its factors do not.
BETA_SLOPE: Final = smooth(
    "beta_slope",
    lambda g, ans, a, b: times(g, _bend(ans, a, b)),
    lambda g, ans, a, b: times(g, _mixed_bend(ans, a, b)),
)
DIGAMMA_FALL: Final = smooth(
    "digamma_fall",
    lambda g, ans, a, b: times(g, apply(TRIGAMMA_FALL, (a, b))),
    lambda g, ans, a, b: -times(g, polygamma(1, a + b)),
)
TRIGAMMA_FALL: Final = smooth(
    "trigamma_fall",
    lambda g, ans, a, b: times(g, polygamma(2, a) - polygamma(2, a + b)),
    lambda g, ans, a, b: -times(g, polygamma(2, a + b)),
)
BETAINC: Final = smooth(
    "betainc",
    _by_parameter,
    _by_parameter,
    lambda g, ans, a, b, x: times(g, apply(BETA_DENSITY, (a, b, x))),
)
BETA_DENSITY: Final = smooth(
    "beta_density",
    lambda g, ans, a, b, x: times(g, ans * (log(x) - apply(DIGAMMA_FALL, (a, b)))),
    lambda g, ans, a, b, x: times(g, ans * (log1p(negative(x)) - apply(DIGAMMA_FALL, (b, a)))),
    _density_by_x,
)

with_kernels(_gamma.register, 100.0, GAMMALN, POLYGAMMA)
with_kernels(
    _beta.register,
    300.0,
    BETALN,
    BETA,
    BETA_SLOPE,
    DIGAMMA_FALL,
    TRIGAMMA_FALL,
    BETAINC,
    BETA_DENSITY,
)

# fmt: off
gammaln = public(GAMMALN, 1, "Logarithm of the absolute value of the gamma function, accurate near its zeros at 1 and 2.", "[5.0, 0.5] -> [3.17805383 0.57236494]", __name__)
betaln  = public(BETALN,  2, "Logarithm of the absolute value of the beta function, for large numbers, too.", "[2.0], 3.0 -> [-2.48490665]", __name__)
beta    = public(BETA,    2, "Beta function, gamma(x) gamma(y) / gamma(x + y).", "[2.0], 3.0 -> [0.08333333]", __name__)
# fmt: on
lgamma = gammaln


def polygamma(n: int, x: Any, /) -> Any:
    """Return the derivative of order `n` of the digamma function.

    Parameters
    ----------
    n : int
        The order; 0 for ``digamma`` itself.
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        If `n` is no integer from 0; for complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polygamma(1, [1.0, 2.0])
    >>> print(y.value)
    [1.64493407 0.64493407]
    """
    if not hasattr(n, "__index__") or isinstance(n, bool) or not 0 <= n <= MOST_OF_C:
        raise ParameterError(
            f"polygamma({safe_repr(n):.60}, x): the order is an integer from 0 to {MOST_OF_C:,}, which stays as it is."
        )
    return apply(POLYGAMMA, (x,), (int(n),))


def digamma(x: Any, /) -> Any:
    """Return the derivative of the logarithm of the gamma function.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`. NaN at negative integers.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.digamma([1.0, 2.0])
    >>> print(y.value)
    [-0.57721566  0.42278434]
    """
    return apply(POLYGAMMA, (x,), (0,))


def trigamma(x: Any, /) -> Any:
    """Return the derivative of the digamma function.

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
    ...     y = rg.trigamma([1.0, 2.0])
    >>> print(y.value)
    [1.64493407 0.64493407]
    """
    return apply(POLYGAMMA, (x,), (1,))


def betainc(a: Any, b: Any, x: Any, /) -> Any:
    """Return the regularized incomplete beta function, the probability below `x` of a beta distribution.

    Parameters
    ----------
    a, b : Var or array_like
        Positive numbers, of shapes that broadcast with `x`.
    x : Var or array_like
        Numbers from 0 to 1.

    Returns
    -------
    Var
        Of the broadcast shape; NaN outside of these ranges.

    Raises
    ------
    GradientError
        If a gradient by `a` or `b` is asked for.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.betainc(2.0, 3.0, [0.25, 0.5])
    >>> print(y.value)
    [0.26171875 0.6875    ]
    """
    return apply(BETAINC, (a, b, x))
