"""Kernels of activation functions and their slopes.

float16 and float32 are computed in float32, except where a comment says so. Accuracy against 50-digit values in
float64: within 6 ulps, slopes too where they are not near a zero; ``gelu`` in its lower tail within 20. An operand
that is infinite gives the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import Binder, find_binder, register_binder
from reactgrad.backend.numpy._double_double import exact_product, in_two_parts, product, square
from reactgrad.backend.numpy._doubles import numbers, on_interval, short_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._quantile import bell as bell_of
from reactgrad.backend.numpy._quantile import probability

# (x - tanh(x)) / x**3 as a function of x**2 from 0 to 1.
TANHSHRINK = numbers(
    """
    1.3028201143207025e-13 -7.731979681384381e-13 4.035078454178401e-12 -2.394739248922938e-11
    1.4309201010245648e-10 -8.492227764384552e-10 5.0390694423105715e-09 -2.990588041911923e-08
    1.7748596094591006e-07 -1.0533440802442483e-06 6.251389015827028e-06 -3.7100775155392464e-05
    0.00022018657484167882 -0.0013068008522789574 0.007757311213734246 -0.04611875889321073
    0.2778856568389047
    """
)
# (z + 4) exp(z**2 / 2) times the probability above z from 0 to 15, as a function of (z - 4) / (z + 4); to the
# digits of float32.
SHORT_TAIL = numbers(
    """
    1.1074834322991744e-06 -4.754049763326424e-06 -1.7849066315561025e-05 7.657649168273486e-05
    0.00020413480144958215 -0.0013457740821982255 -0.0005445236415907106 0.02551722761805935
    -0.11824523858304008 0.32528741089056995 -0.6300031683636795 0.9018637755190949
    """
)

SHORT_TAIL_RANGE: Final = (-1.0, 0.58)

_ONE_OVER_SQRT_2PI: Final = 1.0 / math.sqrt(2.0 * math.pi)
# An exponential of this leaves each dtype, and a product with this none in which it is computed.
_END: Final = 1e4
# sqrt(8 / pi) and 0.044715: 2 u(x) = GELU_RATE x (1 + GELU_CUBE x**2).
GELU_RATE: Final = 1.5957691216057308
GELU_CUBE: Final = 0.044715
_RATE, _CUBE = (
    {np.dtype(kind): in_two_parts(digits, np.dtype(kind)) for kind in ("f8", "f4")}
    for digits in ("1.59576912160573071175978423973752747390343452465956", "0.044715")
)


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    for function in (
        *(gelu, gelu_slope, gelu_tanh, gelu_tanh_slope, gelu_tanh_bend),
        *(silu, silu_slope, mish, mish_slope, softplus, log_sigmoid, softsign, tanhshrink, elu),
        *(hardtanh, hardsigmoid, hardswish, leaky_relu, prelu, softshrink, hardshrink, threshold),
    ):
        register_binder(function.__name__, kind, short_binder(function))
    # Of one or two calls of NumPy: these write into `out`. Half floats would be rounded twice.
    direct = (("hardtanh", _bind_hardtanh), ("leaky_relu", _bind_leaky_relu))
    for name, bind in direct if xp is np else ():
        register_binder(name, kind, _unless_half(bind, find_binder(name, kind)))


def _unless_half(direct: Binder, other: Binder) -> Binder:
    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Any:
        wide = out.dtype.char in "fd" and inputs[0].dtype == out.dtype
        return (direct if wide else other)(inputs, out, attrs)

    return bind


def _bind_hardtanh(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> InTurn:
    low, high = (np.array(end, out.dtype) for end in attrs)
    scratch = np.empty_like(out)
    return InTurn(
        partial(np.maximum, inputs[0], low, out=scratch),
        partial(np.minimum, scratch, high, out=out),
    )


def _bind_leaky_relu(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Any:
    (x,), slope = inputs, np.array(attrs[0], out.dtype)
    if not 0.0 <= attrs[0] <= 1.0:
        return partial(_leaky, x, slope, out)
    scratch = np.empty_like(out)
    return InTurn(partial(np.multiply, x, slope, scratch), partial(np.maximum, x, scratch, out=out))


def _leaky(x: Any, slope: Any, out: Any) -> None:
    np.copyto(out, np.where(x > 0.0, x, x * slope))


def _limited(x: Any, low: float, high: float) -> Any:
    return np.minimum(np.maximum(x, low), high)  # `np.clip` takes twice as long on few elements


def _within(x: Any) -> Any:
    return _limited(x, -_END, _END)


def silu(x: Any) -> Any:
    x = np.maximum(x, -_END)
    return x / (1.0 + np.exp(-x))


def silu_slope(x: Any) -> Any:
    x = _within(x)
    small = np.exp(-np.abs(x))
    large = 1.0 / (1.0 + small)
    small = small * large
    return np.where(x < 0.0, small, large) + x * (small * large)


def _mish_parts(x: Any) -> tuple[Any, Any, Any]:
    e = np.exp(np.minimum(x, 40.0))
    n = e * (e + 2.0)
    return e, n, n + 2.0


def mish(x: Any) -> Any:
    x = np.maximum(x, -_END)
    _, n, q = _mish_parts(x)
    return x * (n / q)


def mish_slope(x: Any) -> Any:
    x = _within(x)
    e, n, q = _mish_parts(x)
    return n / q + np.minimum(x, 40.0) * (4.0 * e * (e + 1.0) / q / q)


def elu(x: Any, alpha: float, scale: float, width: float) -> Any:
    # Sums of two parts of which one is 0: a choice by a mask takes much longer where signs alternate.
    return scale * np.maximum(x, 0.0) + scale * alpha * np.expm1(np.minimum(x, 0.0) / width)


def softplus(x: Any, beta: float, limit: float | None) -> Any:
    z = x if beta == 1.0 else beta * x
    value = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    value = value if beta == 1.0 else value / beta
    return value if limit is None else np.where(z > limit, x, value)


def log_sigmoid(x: Any) -> Any:
    return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))


def softsign(x: Any) -> Any:
    x = _limited(x, -1e30, 1e30)
    return x / (1.0 + np.abs(x))


def hardtanh(x: Any, low: float, high: float) -> Any:
    return _limited(x, low, high)


def hardsigmoid(x: Any) -> Any:
    return _limited(x + 3.0, 0.0, 6.0) / 6.0


def hardswish(x: Any) -> Any:
    x = np.maximum(x, -3.0)
    return x * (np.minimum(x + 3.0, 6.0) / 6.0)


def leaky_relu(x: Any, slope: float) -> Any:
    return np.maximum(x, x * slope) if 0.0 <= slope <= 1.0 else np.where(x > 0.0, x, x * slope)


def prelu(x: Any, weight: Any) -> Any:
    return np.where(x > 0.0, x, x * weight)


def softshrink(x: Any, width: float) -> Any:
    return x - _limited(x, -width, width)


def hardshrink(x: Any, width: float) -> Any:
    return np.where((x >= -width) & (x <= width), 0.0, x)


def threshold(x: Any, limit: float, value: float) -> Any:
    return np.where(x <= limit, value, x)


def tanhshrink(x: Any) -> Any:
    near = _limited(x, -1.0, 1.0)
    u = near * near
    return np.where(u < 1.0, near * u * on_interval(TANHSHRINK, 0.0, 1.0, u), x - np.tanh(x))


# --- gelu ---------------------------------------------------------------------------------------


def _short_parts(x: Any) -> tuple[Any, Any]:
    """Return the probability below `x` and the bell curve, both in float32."""
    z = np.minimum(np.abs(x), 15.0)  # beyond, both are 0
    high, low = square(z)
    bell = np.exp(high * -0.5) * (1.0 - 0.5 * low)
    shifted = z + 4.0
    small = on_interval(SHORT_TAIL, *SHORT_TAIL_RANGE, (z - 4.0) / shifted) * bell / shifted
    # 1 - small or small, without a choice by a mask; the sum has no negative zero.
    return (x >= 0.0) - np.copysign(small, x + 0.0), bell


def gelu(x: Any) -> Any:
    x = np.maximum(x, -_END)
    return x * (_short_parts(x)[0] if x.dtype == np.float32 else probability(x))


def gelu_slope(x: Any) -> Any:
    x = _within(x)
    below, bell = _short_parts(x) if x.dtype == np.float32 else (probability(x), bell_of(x))
    return below + x * bell * _ONE_OVER_SQRT_2PI


def _twice_u(x: Any) -> tuple[Any, Any]:
    """Return the exponent of the tanh form in two parts: its rounding error is one of the result."""
    high, low = square(x)
    high, low = product((high, low), _CUBE[x.dtype])
    total = 1.0 + high
    low = low + (high - (total - 1.0))  # with what the sum has lost
    return product(exact_product((total, low), x), _RATE[x.dtype])


def _tanh_parts(x: Any) -> tuple[Any, Any]:
    """Return the sigmoid of ``2 u(x)`` and one minus it."""
    high, low = _twice_u(np.abs(x))
    small = np.exp(-high) * (1.0 - low)
    large = 1.0 / (1.0 + small)
    small = small * large
    return np.where(x < 0.0, small, large), np.where(x < 0.0, large, small)


def gelu_tanh(x: Any) -> Any:
    x = np.maximum(x, -_END)
    return x * _tanh_parts(_within(x))[0]


def gelu_tanh_slope(x: Any) -> Any:
    x = _within(x)
    upper, lower = _tanh_parts(x)
    rate = GELU_RATE * (1.0 + 3.0 * GELU_CUBE * x * x)
    return upper + x * rate * (upper * lower)


def gelu_tanh_bend(x: Any) -> Any:
    x = _within(x)
    upper, lower = _tanh_parts(x)
    first = GELU_RATE * (1.0 + 3.0 * GELU_CUBE * x * x)
    second = 6.0 * GELU_RATE * GELU_CUBE * x
    return upper * lower * (2.0 * first + x * (second - first * first * (upper - lower)))
