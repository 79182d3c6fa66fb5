"""Kernels of the gamma function and of the incomplete ones.

Accuracy against 50-digit values: ``gamma`` within 1e-14; the incomplete ones within 1e-13 for a to 1e6, each of the
two where it is small, too.

Method: Stirling's formula, with its large terms cancelled by hand; below the mean the series, above it the continued
fraction by W. J. Lentz's scheme (W. Gautschi, "A computational procedure for incomplete gamma functions", ACM TOMS 5,
1979); for a below 1 and x below 1 the series of what is left of 1.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder, by_ranges
from reactgrad.backend.numpy._gamma import gammaln, remainder, sinpi
from reactgrad.backend.numpy._smooth import xlogy

_LARGE: Final = 10.0
_MOST: Final = 200000  # terms, enough for a to 1e9
_ROOT_TWO_PI: Final = math.sqrt(2.0 * math.pi)


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("gamma", kind, binder(gamma))
    register_binder("gamma_density", kind, binder(density))
    if xp is np:  # elsewhere their loops would wait for the device to say when to end
        register_binder("gammainc", kind, binder(gammainc))
        register_binder("gammaincc", kind, binder(gammaincc))


def _stirling(x: Any) -> Any:
    # The square of this may be more than a float holds; times exp(-x) it is less.
    half = np.power(x, 0.5 * x - 0.25)
    return _ROOT_TWO_PI * half * np.exp(-x) * half * np.exp(remainder(x))


def _low(x: Any) -> Any:
    below = np.ones_like(x)
    for _ in range(int(_LARGE)):
        low = x < _LARGE
        below = np.where(low, below * x, below)
        x = np.where(low, x + 1.0, x)
    return _stirling(x) / below


def _reflected(x: Any) -> Any:
    pole = x == np.floor(x)
    off = np.where(pole, -0.5, x)
    found = math.pi / (
        sinpi(off) * by_ranges(_POSITIVE, 1.0 - off)
    )  # 1 - x has no digits of a small x
    return np.where(pole, np.where(x == 0.0, np.copysign(np.inf, x), np.nan), found)


_POSITIVE: Final = ((_LARGE, _low), (np.inf, _stirling))
_GAMMA: Final = (
    (0.5, _reflected),
    (_LARGE, _low),
    (171.7, _stirling),
    (np.inf, lambda x: x * np.inf),
)


def gamma(x: Any) -> Any:
    """Return the gamma function; NaN at negative integers."""
    return by_ranges(_GAMMA, x)


def _fall(ratio: Any, u: Any) -> Any:
    """Return ``log(ratio) - u``, where `u` is ``ratio - 1`` as it was before it was rounded."""
    near = np.abs(u) < 0.1
    v = np.where(near, u, 0.0)
    series = np.zeros_like(u)
    for k in range(18, 1, -1):
        series = series * v + (-1.0 if k % 2 == 0 else 1.0) / k
    far = np.where(np.abs(u) < 0.5, np.log1p(u), np.log(ratio)) - u
    return np.where(near, series * v * v, far)


def front(a: Any, x: Any) -> Any:
    """Return ``x**a exp(-x) / gamma(a)``."""
    large = a >= _LARGE
    b = np.where(large, a, _LARGE)
    far = np.sqrt(b) / _ROOT_TWO_PI * np.exp(b * _fall(x / b, (x - b) / b) - remainder(b))
    b = np.where(large, 1.0, a)
    return np.where(large, far, np.exp(xlogy(b, x) - x - gammaln(b)))


def density(a: Any, x: Any) -> Any:
    """Return the density of the gamma distribution, the derivative of ``gammainc``."""
    low = np.exp(xlogy(a - 1.0, x) - x - gammaln(a))
    found = np.where(a >= _LARGE, front(a, x) / np.where(x > 0.0, x, 1.0), low)
    return np.where((x < 0.0) | (a <= 0.0), np.nan, np.where(np.isinf(x), 0.0, found))


def _series(a: Any, x: Any, open_: Any) -> Any:
    term = total = 1.0 / a
    for n in range(1, _MOST):
        term = np.where(open_, term * (x / (a + n)), 0.0)
        total = total + term
        open_ = open_ & (term > total * 1e-17)
        if not open_.any():
            break
    return total


def _fraction(a: Any, x: Any, open_: Any) -> Any:
    tiny = 1e-300
    b = x + 1.0 - a
    c = np.full_like(x, 1.0 / tiny)
    d = 1.0 / np.where(b == 0.0, tiny, b)
    found = d.copy()
    for n in range(1, _MOST):
        factor = -n * (n - a)
        b = b + 2.0
        d, c = factor * d + b, b + factor / c
        d, c = 1.0 / np.where(np.abs(d) < tiny, tiny, d), np.where(np.abs(c) < tiny, tiny, c)
        found = np.where(open_, found * (d * c), found)
        open_ = open_ & (np.abs(d * c - 1.0) > 1e-16)
        if not open_.any():
            break
    return found


def _left_of_one(a: Any, x: Any) -> Any:
    """Return what the lower function leaves of 1, for a and x below 1."""
    grown = np.expm1(xlogy(a, x) - gammaln(1.0 + a))
    term, total = np.ones_like(x), np.zeros_like(x)
    for n in range(1, 20):
        term = term * (-x / n)
        total = total + term / (a + n)
    return -grown - (1.0 + grown) * a * total


def _both(a: Any, x: Any) -> tuple[Any, Any]:
    fine = (a > 0.0) & (x > 0.0) & np.isfinite(a) & np.isfinite(x)
    b, y = np.where(fine, a, 1.0), np.where(fine, x, 1.0)
    above = y >= np.where(b < 1.0, 1.0, b + 1.0)
    scale = front(b, y)
    lower = scale * _series(b, y, fine & ~above)
    upper = scale * _fraction(np.where(above, b, 1.0), np.where(above, y, 2.0), fine & above)
    both_low = ~above & (b < 1.0)
    small = _left_of_one(np.where(both_low, b, 0.5), np.where(both_low, y, 0.5))
    low = np.where(above, 1.0 - upper, lower)
    high = np.where(above, upper, np.where(both_low, small, 1.0 - lower))
    # At the ends: all or nothing; and no such function of negative numbers.
    none, whole = (x == 0.0) & (a > 0.0) | np.isposinf(a), np.isposinf(x) | (a == 0.0) & (x > 0.0)
    wrong = (
        (a < 0.0)
        | (x < 0.0)
        | np.isnan(a)
        | np.isnan(x)
        | (none & whole)
        | ((a == 0.0) & (x == 0.0))
    )
    for value, at in ((0.0, none), (1.0, whole), (np.nan, wrong)):
        low, high = np.where(at, value, low), np.where(at, 1.0 - value, high)
    return low, high


def gammainc(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function."""
    return _both(a, x)[0]


def gammaincc(a: Any, x: Any) -> Any:
    """Return the regularized upper incomplete gamma function."""
    return _both(a, x)[1]
