"""The bell curve ``scale * exp(rate * x**2)``, the derivative of error functions, accurate in its tails.

A rounding error of the exponent is a relative error of the result. So far out the square is computed in
two parts (Cody 1969, see ``_erf``), and short floats in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend.numpy._erf import EXPONENT_REACH

# The result is 0 before this exponent: it keeps infinities out.
END: Final = -800.0


def bind(inputs: Sequence[Any], out: Any, attrs: tuple[float, float]) -> Callable[[], object]:
    """Return the step that computes the curve; the attributes are its scale and its rate, negative."""
    (x,) = inputs
    scale, rate = np.array(attrs[0]), np.array(attrs[1])
    exponent, spare = np.empty(out.shape), np.empty(out.shape)
    plain = x.dtype == out.dtype == exponent.dtype
    result = out if plain else np.empty(out.shape)
    step = partial(_curve, x, result, exponent, spare, scale, rate)
    return step if plain else partial(_rounded, step, result, out)


def _rounded(step: Callable[[], object], result: Any, out: Any) -> None:
    step()
    np.copyto(out, result, "same_kind")


def _curve(x: Any, out: Any, exponent: Any, spare: Any, scale: Any, rate: Any) -> None:
    np.multiply(x, rate, spare)
    np.multiply(spare, x, exponent)
    np.exp(exponent, spare)
    np.multiply(spare, scale, out)
    lowest = (
        exponent.item() if exponent.size == 1 else np.minimum.reduce(exponent, None, initial=0.0)
    )
    if not lowest > EXPONENT_REACH:  # or there is a NaN beside it
        far = exponent <= EXPONENT_REACH
        out[far] = scale * _tail(np.broadcast_to(x, out.shape)[far].astype(np.float64), float(rate))


def _tail(x: Any, rate: float) -> Any:
    z = np.minimum(np.abs(x), np.sqrt(END / rate))
    high = z.astype(np.float32).astype(np.float64)  # 24 bits have an exact square
    return np.exp(rate * high * high) * np.exp(rate * (z - high) * (z + high))
