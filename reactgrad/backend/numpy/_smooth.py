"""Kernels of smooth functions of one or two numbers that need care near a point: sinc, logit, xlogy, rsqrt.

Accuracy against 50-digit values: within 4 ulps; derivatives of ``sinc`` within a few ulps of their largest
term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder, by_ranges, polynomial, short_binder
from reactgrad.backend.numpy._gamma import sinpi
from reactgrad.backend.numpy._in_turn import InTurn

_TERMS: Final = 18  # of the series of sinc for |x| < 1: the rest is below 1e-20


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("sinc", kind, short_binder(sinc))
    register_binder("logit", kind, binder(logit))
    register_binder("xlogy", kind, binder(xlogy))
    register_binder("xlog1py", kind, binder(xlog1py))
    bind_rsqrt = _bind_rsqrt if xp is np else short_binder(lambda x: 1.0 / np.sqrt(x))
    register_binder("rsqrt", kind, bind_rsqrt)


def _bind_rsqrt(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> InTurn:
    dtype = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
    scratch = np.empty(out.shape, dtype)
    return InTurn(
        partial(np.sqrt, inputs[0], scratch, dtype=dtype), partial(np.reciprocal, scratch, out)
    )


def sinc(x: Any, order: int) -> Any:
    """Return the derivative of this order of ``sin(pi x) / (pi x)``."""
    ranges = ((1.0, partial(_series, order)), (np.inf, lambda _, x: _quotient(x, order)))
    return by_ranges(ranges, np.abs(x), x)


def _series(order: int, size: Any, x: Any) -> Any:
    if order == 0:  # the quotient is exact near 1, where the series is not
        return np.where(x == 0.0, 1.0, sinpi(x) / (np.pi * np.where(x == 0.0, 1.0, x)))
    value = polynomial(_coefficients(order), x * x)
    return value * x if order % 2 else value


@lru_cache(maxsize=64)
def _coefficients(order: int) -> tuple[float, ...]:
    """Return those of the powers of ``x**2`` in the derivative, without a factor x if the order is odd."""
    found = []
    for k in range((order + 1) // 2, (order + 1) // 2 + _TERMS):
        falling = math.prod(range(2 * k - order + 1, 2 * k + 1))
        found.append((-1) ** k * math.pi ** (2 * k) * falling / math.factorial(2 * k + 1))
    return tuple(reversed(found))


def _quotient(x: Any, order: int) -> Any:
    sine = sinpi(x)
    cosine = sinpi(x + 0.5) if order else sine
    value = sine / (np.pi * x)
    # Derivatives of ``x sinc(x)``, which is a sine.
    for i in range(1, order + 1):
        turn = (sine, cosine, -sine, -cosine)[i % 4]
        value = (np.pi ** (i - 1) * turn - i * value) / x
    return np.where(np.isinf(x), 0.0, value)


def logit(x: Any) -> Any:
    """Return ``log(x / (1 - x))``, with all digits near 1/2, too."""
    ranges = (
        (0.3, lambda x: np.log(x) - np.log1p(-x)),
        (0.7, lambda x: np.log1p((2.0 * x - 1.0) / (1.0 - x))),
        (np.inf, lambda x: np.log(x) - np.log1p(-x)),
    )
    return by_ranges(ranges, x)


def xlogy(x: Any, y: Any) -> Any:
    """Return ``x log(y)``, and 0 where `x` is 0 and `y` a number."""
    return np.where((x == 0.0) & ~np.isnan(y), 0.0, x * np.log(y))


def xlog1py(x: Any, y: Any) -> Any:
    """Return ``x log(1 + y)``, and 0 where `x` is 0 and `y` a number."""
    return np.where((x == 0.0) & ~np.isnan(y), 0.0, x * np.log1p(y))
