"""Kernels of ``(exp(x) - 1) / x`` with its derivatives, of Box and Cox's powers, and of entropies.

The derivative of order n of the first is the integral of ``t**n exp(x t)`` for t from 0 to 1. Its series has terms of
one sign: that in x above 0, and, by Kummer's transformation, that in -x times exp(x) below.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder

_FAR: Final = 30.0  # from here on one order follows from the one before
_TERMS: Final = 120


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("exprel", kind, binder(lambda x, n: exprel(n, x)))
    register_binder(
        "boxcox", kind, binder(lambda x, power, n: _boxcox(np.log(x), x == 0.0, power, n))
    )
    register_binder(
        "boxcox1p", kind, binder(lambda x, power, n: _boxcox(np.log1p(x), x == -1.0, power, n))
    )
    register_binder("entr", kind, binder(entr))
    register_binder("rel_entr", kind, binder(rel_entr))


def exprel(n: int, x: Any) -> Any:
    """Return the derivative of order `n` of ``(exp(x) - 1) / x``."""
    if n == 0:
        found = np.expm1(x) / np.where(x == 0.0, 1.0, x)
        return np.where(x == 0.0, 1.0, np.where(np.isposinf(x), x, found))
    near = np.abs(x) < _FAR
    return np.where(near, _near(n, np.where(near, x, 0.0)), _far(n, np.where(near, _FAR, x)))


def _near(n: int, x: Any) -> Any:
    size = np.abs(x)
    power, above = np.ones_like(x), np.full_like(x, 1.0 / (n + 1.0))
    part = below = above
    for k in range(1, _TERMS):
        power, part = power * (size / k), part * (size / (n + 1.0 + k))
        above, below = above + power / (n + 1.0 + k), below + part
    return np.where(x < 0.0, np.exp(-size) * below, above)


def _far(n: int, x: Any) -> Any:
    raised = np.exp(x)
    found = np.expm1(x) / x
    for k in range(1, n + 1):
        found = (raised - k * found) / x
    return np.where(np.isposinf(x), x, found)


def _boxcox(logarithm: Any, zero: Any, power: Any, n: int) -> Any:
    """Return the derivative of order `n`, by the power, of what becomes of numbers with this logarithm."""
    finite = np.where(zero, 0.0, logarithm)
    found = finite ** (n + 1) * exprel(n, power * finite)
    positive = np.where(power > 0.0, power, 1.0)
    at_zero = (-1.0) ** (n + 1) * math.factorial(n) / positive ** (n + 1)
    at_zero = np.where(power > 0.0, at_zero, (-1.0) ** (n + 1) * np.inf)
    return np.where(zero, np.where(np.isnan(power), np.nan, at_zero), found)


def entr(x: Any) -> Any:
    """Return ``-x log(x)``, 0 at 0, and minus infinity below."""
    found = -x * np.log(np.where(x > 0.0, x, 1.0))
    return np.where(x < 0.0, -np.inf, np.where(x == 0.0, 0.0, found))


def rel_entr(x: Any, y: Any) -> Any:
    """Return ``x log(x / y)``, 0 where x is 0, and infinity where one is negative or y alone is 0."""
    fine = (x > 0.0) & (y > 0.0)
    p, q = np.where(fine, x, 1.0), np.where(fine, y, 1.0)
    ratio = p / q
    near = (ratio > 0.5) & (ratio < 2.0)
    found = p * np.where(near, np.log1p(np.where(near, (p - q) / q, 0.0)), np.log(p) - np.log(q))
    found = np.where(fine, found, np.where((x == 0.0) & (y >= 0.0), 0.0, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)
