"""Smooth functions that need care near a point: sinc, logit, x log y, the inverse of a root."""

from __future__ import annotations

import math
from typing import Any, Final

from reactgrad._calls import real_number
from reactgrad.backend.numpy import _smooth
from reactgrad.nodes._handle import apply
from reactgrad.ops._chain import over, times
from reactgrad.ops._clip import clip
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import equal, less_equal, log, log1p, logical_and, public, sin
from reactgrad.ops._operand import known_dtype
from reactgrad.ops._where import where
from reactgrad.ops.special._form import smooth, widened, with_kernels
from reactgrad.ops.special._pairs import together


def _first_of_xlogy(logarithm: Any) -> Any:
    def rule(g: Any, ans: Any, x: Any, y: Any) -> Any:
        # Where x is 0 and y has no logarithm, the value is 0 by definition, and so is the slope.
        none = logical_and(equal(x, 0.0), less_equal(y, 0.0 if logarithm is log else -1.0))
        return where(none, 0.0, times(g, logarithm(where(none, 1.0, y))))

    return rule


SINC: Final = smooth("sinc", lambda g, ans, x, order: g * apply(SINC, (x,), (order + 1,)))
LOGIT: Final = smooth("logit", lambda g, ans, x: over(over(g, x), 1.0 - x))
RSQRT: Final = smooth("rsqrt", lambda g, ans, x: over(times(g * -0.5, ans), x))
XLOGY: Final = smooth("xlogy", _first_of_xlogy(log), lambda g, ans, x, y: over(times(g, x), y))
XLOG1PY: Final = smooth(
    "xlog1py", _first_of_xlogy(log1p), lambda g, ans, x, y: over(times(g, x), y + 1.0)
)
with_kernels(_smooth.register, 40.0, SINC, LOGIT, RSQRT, XLOGY, XLOG1PY)

# fmt: off
rsqrt   = public(RSQRT,   1, "1 / sqrt(x), rounded as one operation.", "[4.0, 0.25] -> [0.5 2. ]", __name__)
xlogy   = public(XLOGY,   2, "x log(y), and 0 where x is 0.", "[0.0, 2.0], [0.0, 1.5] -> [0.         0.81093022]", __name__)
xlog1py = public(XLOG1PY, 2, "x log(1 + y), and 0 where x is 0.", "[0.0, 2.0], [-1.0, 0.5] -> [0.         0.81093022]", __name__)
# fmt: on


@deferred
def sinc(x: Any, /) -> Any:
    """Return sin(pi x) / (pi x), and 1 at 0; exactly 0 at other integers.

    Parameters
    ----------
    x : Var or array_like
        Any shape; integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.sinc([0.0, 0.5, 1.0])
    >>> print(y.value)
    [1.         0.63661977 0.        ]
    """
    (x,) = together(x)
    dtype = known_dtype(x)
    if dtype is not None and dtype.kind == "c":
        angle = where(equal(x, 0), 1e-20, x) * math.pi
        return sin(angle) / angle
    return apply(SINC, (widened(x),), (0,))


def logit(x: Any, /, eps: float | None = None) -> Any:
    """Return log(x / (1 - x)), the inverse of sigmoid.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers from 0 to 1.
    eps : float or None
        With a number, `x` is limited to the interval from `eps` to ``1 - eps`` before.

    Returns
    -------
    Var
        In the shape of `x`; NaN outside of 0 and 1.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.logit([0.5, 0.75])
    >>> print(y.value)
    [0.         1.09861229]
    """
    if eps is not None:
        eps = real_number("logit", "eps", eps)
        x = clip(x, eps, 1.0 - eps)
    return apply(LOGIT, (x,))
