"""Kernels of the beta function, its logarithm, and the incomplete one.

Accuracy against 50-digit values for positive numbers: ``betaln`` within 1e-15 times its largest term, which is
10 ulps where it is not near a zero; ``beta``, its exponential, as many ulps more as the logarithm has units;
``betainc`` within 1e-13 relative for a and b to 100, growing with their logarithms' products beyond.

Method: Stirling's formula with its large terms cancelled by hand (A. R. DiDonato and A. H. Morris, "Algorithm
708", ACM TOMS 18, 1992); the continued fraction of the incomplete function by W. J. Lentz's scheme.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder, by_ranges
from reactgrad.backend.numpy._gamma import (
    HALF_LOG_2PI,
    PSI_SERIES,
    digamma,
    gammaln,
    polygamma,
    remainder,
)
from reactgrad.backend.numpy._smooth import xlog1py, xlogy

_LARGE: Final = 10.0
_MOST: Final = 20000  # terms of the fraction, enough for a and b to 1e8


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("betaln", kind, binder(betaln))
    register_binder("beta", kind, binder(beta))
    register_binder("beta_slope", kind, binder(slope))
    register_binder("trigamma_fall", kind, binder(trigamma_fall))
    register_binder("digamma_fall", kind, binder(digamma_fall))
    register_binder("beta_density", kind, binder(density))
    if xp is np:  # elsewhere its loop would wait for the device to say when to end
        register_binder("betainc", kind, binder(betainc))


def _plain(_: Any, a: Any, b: Any) -> Any:
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _one_large(_: Any, a: Any, b: Any) -> Any:
    both = a + b
    fall = -(a - 0.5) * np.log1p(b / a) - b * np.log(both) + b
    return gammaln(b) + (fall + (remainder(a) - remainder(both)))


def _two_large(_: Any, a: Any, b: Any) -> Any:
    both = a + b
    rest = remainder(a) + remainder(b) - remainder(both)
    logs = -(a - 0.5) * np.log1p(b / a) - (b - 0.5) * np.log1p(a / b)
    return logs + ((HALF_LOG_2PI + rest) - 0.5 * np.log(both))


_RANGES: Final = ((1.0, _plain), (2.0, _one_large), (3.0, _two_large))


def _betaln(a: Any, b: Any) -> Any:
    large, small = np.maximum(a, b), np.minimum(a, b)
    kind = np.where((large >= _LARGE) & (small > 0.0), np.where(small >= _LARGE, 2.0, 1.0), 0.0)
    return by_ranges(_RANGES, kind, large, small)


def _sign(x: Any) -> Any:
    """Return the sign of the gamma function."""
    return np.where((x < 0.0) & (np.fmod(np.floor(x), 2.0) != 0.0), -1.0, 1.0)


def _at_pole(x: Any) -> Any:
    """Return whether numbers are poles of the gamma function: 0 and the negative integers."""
    return (x <= 0.0) & (x == np.floor(x))


def _positive(*operands: Any) -> bool:
    """Return whether all are known to be positive, so that no number is a pole."""
    return all(type(one) is np.ndarray and bool((one > 0.0).all()) for one in operands)


def _double(a: Any, b: Any) -> Any:
    """Return where `a` and ``a + b`` are poles and `b` is none: the poles cancel."""
    return _at_pole(a) & _at_pole(a + b) & (b > 0.0)


def _mirrored(a: Any, b: Any, double: Any) -> tuple[Any, Any]:
    """Return ``1 - a - b``, at double poles, and the sign with which the beta function there is that of it and `b`."""
    return np.where(double, 1.0 - a - b, 1.0), np.where(np.fmod(b, 2.0) == 0.0, 1.0, -1.0)


def betaln(a: Any, b: Any) -> Any:
    """Return the logarithm of the absolute value of the beta function."""
    if _positive(a, b):
        return _betaln(a, b)
    found = _betaln(a, b)
    for one, other in ((a, b), (b, a)):
        double = _double(one, other)
        mirror, _ = _mirrored(one, other, double)
        found = np.where(double, _betaln(mirror, np.where(double, other, 1.0)), found)
    return found


def beta(a: Any, b: Any) -> Any:
    """Return the beta function; where poles cancel, its limit for `b` or `a` as it is."""
    if _positive(a, b):
        return np.exp(_betaln(a, b))
    found = np.exp(_betaln(a, b)) * (_sign(a) * _sign(b) * _sign(a + b))
    for one, other in ((a, b), (b, a)):
        double = _double(one, other)
        mirror, sign = _mirrored(one, other, double)
        found = np.where(
            double, sign * np.exp(_betaln(mirror, np.where(double, other, 1.0))), found
        )
    return found


def slope(a: Any, b: Any) -> Any:
    """Return the derivative of the beta function by `a`.

    At its zeros, where ``a + b`` is a pole, it is that of the reciprocal gamma function there. Where poles of `a` and
    ``a + b`` cancel, the beta function of `a` for an integer `b` is rational, and smooth; by `b` it has no derivative.
    """
    fall = digamma_fall(a, b)
    if _positive(a, b):
        return np.exp(_betaln(a, b)) * fall
    found = beta(a, b) * fall
    # gamma(a) gamma(b) (-1)^m m!, at a + b = -m
    zero = _at_pole(a + b) & ~_at_pole(a) & ~_at_pole(b)
    m = np.where(zero, -(a + b), 0.0)
    size = np.exp(
        gammaln(np.where(zero, a, 1.0)) + gammaln(np.where(zero, b, 1.0)) + gammaln(m + 1.0)
    )
    sign = _sign(a) * _sign(b) * np.where(np.fmod(m, 2.0) == 0.0, 1.0, -1.0)
    found = np.where(zero, sign * size, found)
    double = _double(a, b)
    mirror, sign = _mirrored(a, b, double)
    other = np.where(double, b, 1.0)
    rational = sign * np.exp(_betaln(mirror, other)) * np.where(double, fall, 0.0)
    return np.where(double, rational, np.where(_double(b, a), np.nan, found))


def _fall_far(a: Any, b: Any) -> Any:
    """Return ``digamma(a) - digamma(a + b)`` for `a` from 10, as a sum of parts of one sign."""
    both = a + b
    one, other = 1.0 / (a * a), 1.0 / (both * both)
    # The difference of the series at two points, divided by that of the points; both by Horner's scheme.
    value, quotient = PSI_SERIES[0], np.zeros_like(a)
    for coefficient in (*PSI_SERIES[1:], 0.0):
        quotient = quotient * other + value
        value = value * one + coefficient
    apart = (b / a) * ((a + both) / a) * other
    return -np.log1p(b / a) - 0.5 * (b / a / both) - apart * quotient


def _fall_positive(_: Any, a: Any, b: Any) -> Any:
    total = np.zeros_like(a)
    for _ in range(int(_LARGE)):
        low = a < _LARGE
        if type(a) is np.ndarray and not low.any():
            break
        total = np.where(low, total - b / a / (a + b), total)
        a = np.where(low, a + 1.0, a)
    return total + _fall_far(a, b)


def digamma_fall(a: Any, b: Any) -> Any:
    """Return ``digamma(a) - digamma(a + b)``, the derivative of ``betaln`` by `a`."""
    ranges = ((1.0, lambda _, a, b: digamma(a) - digamma(a + b)), (2.0, _fall_positive))
    found = by_ranges(ranges, ((a > 0.0) & (b > 0.0)).astype(np.float64), a, b)
    if _positive(a, b):
        return found
    double = _double(a, b)
    mirror, _ = _mirrored(a, b, double)
    return np.where(double, -_fall_positive(0.0, mirror, np.where(double, b, 1.0)), found)


def trigamma_fall(a: Any, b: Any) -> Any:
    """Return ``trigamma(a) - trigamma(a + b)``, the derivative of ``digamma_fall`` by `a`."""
    found = polygamma(1, a) - polygamma(1, a + b)
    if _positive(a, b):
        return found
    double = _double(a, b)
    mirror, _ = _mirrored(a, b, double)
    limit = polygamma(1, mirror) - polygamma(1, mirror + np.where(double, b, 1.0))
    return np.where(double, limit, found)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function."""
    swapped = x > (a + 1.0) / (a + b + 2.0)
    p, q = np.where(swapped, b, a), np.where(swapped, a, b)
    z, rest = np.where(swapped, 1.0 - x, x), np.where(swapped, x, 1.0 - x)
    logarithm = np.where(z == 0.0, -np.inf, p * np.log(z)) + np.where(
        rest == 1.0, 0.0, q * _log_rest(z, rest)
    )
    found = np.exp(logarithm - betaln(p, q)) * _fraction(p, q, z) / p
    found = np.where(swapped, 1.0 - found, found)
    return np.where((x < 0.0) | (x > 1.0) | (a <= 0.0) | (b <= 0.0), np.nan, found)


def density(a: Any, b: Any, x: Any) -> Any:
    """Return the density of the beta distribution, the derivative of ``betainc``."""
    return np.exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))


def _log_rest(z: Any, rest: Any) -> Any:
    return np.where(z < 0.5, np.log1p(-z), np.log(rest))


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """Return the continued fraction, in which elements that have converged stay as they are."""
    tiny = 1e-300

    def kept(value: Any) -> Any:
        return np.where(np.abs(value) < tiny, tiny, value)

    c = np.ones_like(x)
    d = 1.0 / kept(1.0 - (a + b) * x / (a + 1.0))
    found, open_ = d.copy(), np.isfinite(d)
    for m in range(1, _MOST):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d, c = 1.0 / kept(1.0 + even * d), kept(1.0 + even / c)
        step = c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d, c = 1.0 / kept(1.0 + odd * d), kept(1.0 + odd / c)
        step = step * (c * d)
        found = np.where(open_, found * step, found)
        open_ = open_ & (np.abs(step - 1.0) > 1e-16)
        if not open_.any():
            break
    return found
