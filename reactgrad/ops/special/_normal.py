"""Quantiles of the normal distribution, inverse error functions, and the logarithm of a probability."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend.numpy import _quantile
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import norm_cdf, public
from reactgrad.ops.special._form import smooth, with_kernels


def _inverse(name: str, factor: float) -> Op:
    """Return the op of an inverse function `y` of which the second derivative is ``factor y`` times the first squared."""

    def bend(h: Any, ans: Any, x: Any) -> Any:
        return times(times(times(h, ans), ans), apply(value, (x,)) * factor)

    slope = smooth(f"{name}_slope", bend)
    value = smooth(name, lambda g, ans, x: times(g, apply(slope, (x,))))
    with_kernels(_quantile.register, 100.0, value, slope)
    return value


def _third(h: Any, ans: Any, x: Any) -> Any:
    # With r for the first derivative, the second is c = -r (x + r).
    ratio = apply(LOG_NDTR_SLOPE, (x,))
    return -times(h, ans * x + ratio * (1.0 + 2.0 * ans))


NDTRI: Final = _inverse("ndtri", 1.0)
ERFINV: Final = _inverse("erfinv", 2.0)
ERFCINV: Final = _inverse("erfcinv", 2.0)
LOG_NDTR: Final = smooth("log_ndtr", lambda g, ans, x: times(g, apply(LOG_NDTR_SLOPE, (x,))))
LOG_NDTR_SLOPE: Final = smooth(
    "log_ndtr_slope", lambda h, ans, x: times(h, apply(LOG_NDTR_CURVATURE, (x,)))
)
LOG_NDTR_CURVATURE: Final = smooth("log_ndtr_curvature", _third)
with_kernels(_quantile.register, 100.0, LOG_NDTR, LOG_NDTR_SLOPE, LOG_NDTR_CURVATURE)

# fmt: off
ndtri    = public(NDTRI,    1, "The number below which a standard normal variable is with probability x, accurate in the lower tail.", "[0.5, 1e-10] -> [ 0.        -6.3613409]", __name__)
erfinv   = public(ERFINV,   1, "Inverse of the error function.", "[0.0, 0.5] -> [0.         0.47693628]", __name__)
erfcinv  = public(ERFCINV,  1, "Inverse of erfc, accurate near 0.", "[1.0, 1e-10] -> [0.         4.57282497]", __name__)
log_ndtr = public(LOG_NDTR, 1, "Logarithm of the probability that a standard normal variable is below x, accurate in both tails.", "[0.0, -40.0] -> [-6.93147181e-01 -8.04608442e+02]", __name__)
# fmt: on
ndtr = norm_cdf
norm_ppf = ndtri
