"""Kernels of quantiles: of the normal distribution and the error functions, and their slopes in the tails.

Accuracy against 50-digit values, over the whole range including subnormal probabilities: quantiles within 8
ulps, their slopes within 10, ``log_ndtr`` within 8 and its first two derivatives within 15. A test holds them to that.

Methods:

* Quantiles: M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), on the distance from the
  middle and the smaller of the two tails, each of which is exact.
* Slopes: one over the bell curve at the quantile is Mills' ratio there over the tail's probability. A
  rounding error of the quantile `z` would cost ``z**2`` times as much in the bell curve.
* Mills' ratio: the rational functions of ``_erf``. ``1 - z mills(z)``, in which digits would cancel, has
  polynomials of its own, Chebyshev interpolants computed with mpmath at 50 digits.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy import _erf
from reactgrad.backend.numpy._doubles import binder, by_ranges, numbers, on_interval, polynomial

# Wichura's coefficients, highest power first: the middle, the tails to exp(-25), the tails beyond.
_CENTRE_TOP = numbers(
    """
    2509.0809287301227 33430.57558358813 67265.7709270087 45921.95393154987 13731.69376550946
    1971.5909503065513 133.14166789178438 3.3871328727963665
    """
)
_CENTRE_BOTTOM = numbers(
    """
    5226.495278852854 28729.085735721943 39307.89580009271 21213.794301586597 5394.196021424751
    687.1870074920579 42.31333070160091 1.0
    """
)
_NEAR_TOP = numbers(
    """
    0.0007745450142783414 0.022723844989269184 0.2417807251774506 1.2704582524523684
    3.6478483247632045 5.769497221460691 4.630337846156546 1.4234371107496835
    """
)
_NEAR_BOTTOM = numbers(
    """
    1.0507500716444169e-09 0.0005475938084995345 0.015198666563616457 0.14810397642748008
    0.6897673349851 1.6763848301838038 2.053191626637759 1.0
    """
)
_FAR_TOP = numbers(
    """
    2.0103343992922881e-07 2.7115555687434876e-05 0.0012426609473880784 0.026532189526576124
    0.29656057182850487 1.7848265399172913 5.463784911164114 6.657904643501103
    """
)
_FAR_BOTTOM = numbers(
    """
    2.0442631033899397e-15 1.421511758316446e-07 1.8463183175100548e-05 0.0007868691311456133
    0.014875361290850615 0.1369298809227358 0.599832206555888 1.0
    """
)
# 1 - z mills(z) for z from 1 to 2.5 and from there to 7; z**2 times that as a function of z**-2 beyond.
GAP_LOW = numbers(
    """
    3.243711357053345e-15 -2.3176289046771012e-14 1.4506602288711796e-13 -9.868974916071264e-13
    6.592150211243945e-12 -4.2699388556167894e-11 2.6915720875777263e-10 -1.648738901667653e-09
    9.79281682982934e-09 -5.626542723469492e-08 3.118494587869408e-07 -1.6617730693464212e-06
    8.479314789462286e-06 -4.122083285677344e-05 0.00018967956223981175 -0.0008190480082837084
    0.0032786339026833595 -0.011944458010582077 0.03838884899949655 -0.10218517137017534
    0.1874628759309762
    """
)
GAP_MIDDLE = numbers(
    """
    5.584776704355167e-13 -1.973176330184404e-12 3.1220466367339484e-12 -1.0468792100501557e-11
    4.589983845834496e-11 -1.5249378426508458e-10 4.79873894185706e-10 -1.544447702842006e-09
    4.918032768765046e-09 -1.535083488033618e-08 4.710721791155649e-08 -1.4209873957134936e-07
    4.2082154864501234e-07 -1.2221463284547545e-06 3.476420274915231e-06 -9.671499594664337e-06
    2.6269846701052975e-05 -6.952107475704714e-05 0.00017879199162468116 -0.0004453713616068324
    0.0010699184326323544 -0.0024638904177843824 0.005391331594380463 -0.01105213764011642
    0.02069408109722462 -0.03349127962428805 0.039439625992990404
    """
)
GAP_FAR = numbers(
    """
    2.3374853471576823e-14 -1.2003487044326424e-13 5.597764892130837e-13 -3.235515527610783e-12
    1.9975179715497656e-11 -1.3069390434737504e-10 9.212033309423098e-10 -7.068706290940858e-09
    5.980832698372213e-08 -5.6746760347654e-07 6.176898171744566e-06 -7.966915667549135e-05
    0.001279028502710666 -0.02778721837108172 0.9708472716509126
    """
)

_SQRT_2: Final = math.sqrt(2.0)
_SQRT_2PI: Final = math.sqrt(2.0 * math.pi)
_MIDDLE: Final = 0.425  # the half width of the middle range


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    for name, function in (
        ("ndtri", ndtri),
        ("erfinv", erfinv),
        ("erfcinv", erfcinv),
        ("ndtri_slope", ndtri_slope),
        ("erfinv_slope", erfinv_slope),
        ("erfcinv_slope", erfcinv_slope),
        ("log_ndtr", log_ndtr),
        ("log_ndtr_slope", hazard),
        ("log_ndtr_curvature", curvature),
    ):
        register_binder(name, kind, binder(function))


def _quotient(top: tuple[float, ...], bottom: tuple[float, ...], r: Any) -> Any:
    return polynomial(top, r) / polynomial(bottom, r)


def _middle(q: Any, tail: Any) -> Any:
    return q * _quotient(_CENTRE_TOP, _CENTRE_BOTTOM, 0.180625 - q * q)


def _outer(q: Any, tail: Any) -> Any:
    r = np.sqrt(-np.log(tail))
    z = by_ranges(((5.0, _inner_tail), (np.inf, _outer_tail)), r)
    z = np.where(tail == 0.0, np.inf, z)
    return np.copysign(z, q)


def _inner_tail(r: Any) -> Any:
    return _quotient(_NEAR_TOP, _NEAR_BOTTOM, r - 1.6)


def _outer_tail(r: Any) -> Any:
    return _quotient(_FAR_TOP, _FAR_BOTTOM, r - 5.0)


def _quantile(q: Any, tail: Any) -> Any:
    """Return the quantile at ``0.5 + q``, where `tail` is the probability beyond it; NaN if that is negative."""
    return _split(q, tail, _middle, _outer)


def _slope(q: Any, tail: Any) -> Any:
    """Return its derivative, one over the density at the quantile."""
    return _split(q, tail, _middle_slope, _outer_slope)


def _split(q: Any, tail: Any, middle: Any, outer: Any) -> Any:
    # NaN is in the last range, whose formulas keep it.
    distance = np.abs(q)
    ranges = (
        (math.nextafter(_MIDDLE, 1.0), lambda _, q, tail: middle(q, tail)),
        (np.inf, lambda _, q, tail: outer(q, tail)),
    )
    return by_ranges(ranges, distance, q, tail)


def _middle_slope(q: Any, tail: Any) -> Any:
    z = _middle(q, tail)
    return _SQRT_2PI * np.exp(0.5 * z * z)


def _outer_slope(q: Any, tail: Any) -> Any:
    return np.where(tail == 0.0, np.inf, mills(np.abs(_outer(q, tail))) / tail)


def _of_p(p: Any) -> tuple[Any, Any]:
    return p - 0.5, np.where(p < 0.5, p, 1.0 - p)


def _of_x(x: Any) -> tuple[Any, Any]:
    return 0.5 * x, 0.5 * (1.0 - np.abs(x))


def _of_y(y: Any) -> tuple[Any, Any]:
    return 0.5 * (1.0 - y), 0.5 * np.where(y < 1.0, y, 2.0 - y)


def ndtri(p: Any) -> Any:
    """Return the quantiles of the standard normal distribution."""
    return _quantile(*_of_p(p))


def ndtri_slope(p: Any) -> Any:
    """Return the derivative of ``ndtri``."""
    return _slope(*_of_p(p))


def erfinv(x: Any) -> Any:
    """Return the inverse of the error function."""
    return _quantile(*_of_x(x)) / _SQRT_2


def erfinv_slope(x: Any) -> Any:
    """Return the derivative of ``erfinv``."""
    return _slope(*_of_x(x)) / (2.0 * _SQRT_2)


def erfcinv(y: Any) -> Any:
    """Return the inverse of ``erfc``."""
    return _quantile(*_of_y(y)) / _SQRT_2


def erfcinv_slope(y: Any) -> Any:
    """Return the derivative of ``erfcinv``."""
    return _slope(*_of_y(y)) / (-2.0 * _SQRT_2)


# --- tails --------------------------------------------------------------------------------------


def ratio(coefficients: Any, z: Any) -> Any:
    """Return the values of a rational function of ``_erf``."""
    top, bottom = coefficients
    above = polynomial([float(c) for c in top], z)
    return above / polynomial([1.0, *map(float, bottom)], z)


def _mills_near(z: Any) -> Any:
    return _SQRT_2PI * ratio(_erf.NORM_NEAR, z)


def _mills_far(z: Any) -> Any:
    return ratio(_erf.FAR, np.minimum(z * z, 1e60)) / z  # its powers stay in the dtype


def mills(z: Any) -> Any:
    """Return the probability above `z`, not negative, over the density at `z`."""
    return by_ranges(((7.0, _mills_near), (np.inf, _mills_far)), z)


def _gap_far(z: Any) -> Any:
    square = 1.0 / z / z
    return square * on_interval(GAP_FAR, 0.0, 1.0 / 49.0, square)


def _gap(z: Any) -> Any:
    """Return ``1 - z mills(z)``."""
    return by_ranges(_GAPS, z)


_GAPS: Final = (
    (1.0, lambda z: 1.0 - z * mills(z)),
    (2.5, partial(on_interval, GAP_LOW, 1.0, 2.5)),
    (7.0, partial(on_interval, GAP_MIDDLE, 2.5, 7.0)),
    (np.inf, _gap_far),
)


def bell(x: Any) -> Any:
    """Return ``exp(-x**2 / 2)``, with an exponent in two parts; see ``_erf``."""
    x = np.clip(x, -40.0, 40.0)
    high = x.astype(np.float32).astype(np.float64)
    return np.exp(-0.5 * high * high) * np.exp(-0.5 * (x - high) * (x + high))


def _above(z: Any) -> Any:
    """Return the probability above `z`, not negative."""
    return bell(z) * mills(z) / _SQRT_2PI


def probability(x: Any) -> Any:
    """Return the probability below `x`."""
    if type(x) is np.ndarray:
        out = np.empty_like(x)
        _erf.norm_cdf(x, out)
        return out
    tail = _above(np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)


def log_ndtr(x: Any) -> Any:
    """Return the logarithm of the normal distribution function."""
    return by_ranges(
        (
            (0.0, lambda x: np.log(mills(-x) / _SQRT_2PI) - 0.5 * x * x),
            (np.inf, lambda x: np.log1p(-_above(x))),
        ),
        x,
    )


def hazard(x: Any) -> Any:
    """Return its derivative, the density over the probability below `x`."""
    return by_ranges(
        (
            (0.0, lambda x: 1.0 / mills(-x)),
            (np.inf, lambda x: bell(x) / _SQRT_2PI / (1.0 - _above(x))),
        ),
        x,
    )


def curvature(x: Any) -> Any:
    """Return its second derivative, ``-h (x + h)`` for the first one `h`."""
    return by_ranges(((0.0, _curvature_below), (np.inf, _curvature_above)), x)


def _curvature_below(x: Any) -> Any:
    ratio = 1.0 / mills(-x)
    # Beyond, the limit -1 is exact; the products there would leave the dtype.
    return np.where(x < -1e10, -1.0, -_gap(-x) * ratio * ratio)


def _curvature_above(x: Any) -> Any:
    ratio = hazard(x)
    return -ratio * np.where(ratio == 0.0, 0.0, x + ratio)
