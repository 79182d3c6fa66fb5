"""Activation functions of networks, with PyTorch's names, arguments and kinks.

float16 and float32 are computed in float32 or float64 and rounded once. Rules serve both modes, see
``ops._elementwise``; slopes of smooth functions have kernels of their own where a formula of several ops
would be less exact or slower.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._calls import real_number
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend.machine._activation_loops import use_loops
from reactgrad.backend.numpy import _activations
from reactgrad.nodes._handle import apply
from reactgrad.ops._astype import astype
from reactgrad.ops._chain import times
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import (
    absolute,
    exp,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    minimum,
    public,
    sigmoid,
    square,
    tanh,
)
from reactgrad.ops._gaussian import norm_pdf
from reactgrad.ops._layout import reshape
from reactgrad.ops._where import where
from reactgrad.ops.special._form import smooth, with_kernels
from reactgrad.ops.special._pairs import together

# --- smooth ones --------------------------------------------------------------------------------


def _silu_bend(h: Any, ans: Any, x: Any) -> Any:
    both = sigmoid(x) * sigmoid(-x)
    return h * times(both, 2.0 - x * tanh(x * 0.5))


def _mish_bend(h: Any, ans: Any, x: Any) -> Any:
    # With e = exp(x), n = e (e + 2) and q = n + 2: tanh(softplus(x)) = n / q. Half floats end too early for it.
    wide = astype(x, np.float32) if x.dtype == np.float16 else x
    wide = minimum(wide, 350.0 if wide.dtype == np.float64 else 40.0)
    e = exp(wide)
    q = e * (e + 2.0) + 2.0
    ratio = 4.0 * e * (e + 1.0) / q
    slope = ratio / q
    return h * times(slope, 2.0 + wide * ((2.0 * e + 1.0) / (e + 1.0) - ratio))


def _gelu_bend(h: Any, ans: Any, x: Any) -> Any:
    return h * times(norm_pdf(x), 2.0 - square(x))


def _gelu_tanh_third(h: Any, ans: Any, x: Any) -> Any:
    # By Faà di Bruno's formula for a sigmoid of t = rate (x + cube x**3). Beyond 1e3 all of it is 0.
    rate, cube = _activations.GELU_RATE, _activations.GELU_CUBE
    x = astype(x, np.float32) if x.dtype == np.float16 else x
    inside = less(absolute(x), 1e3)
    x = where(inside, x, 0.0)
    t = rate * x * (1.0 + cube * square(x))
    first, second = rate * (1.0 + 3.0 * cube * square(x)), 6.0 * rate * cube * x
    slope, ratio = sigmoid(t) * sigmoid(-t), tanh(t * 0.5)
    inner = 6.0 * rate * cube - 3.0 * first * second * ratio
    inner = inner + first * square(first) * (1.0 - 6.0 * slope)
    outer = 3.0 * (second - square(first) * ratio)
    return h * where(inside, times(slope, outer + x * inner), 0.0)


SILU: Final = smooth("silu", lambda g, ans, x: g * apply(SILU_SLOPE, (x,)))
SILU_SLOPE: Final = smooth("silu_slope", _silu_bend)
MISH: Final = smooth("mish", lambda g, ans, x: g * apply(MISH_SLOPE, (x,)))
MISH_SLOPE: Final = smooth("mish_slope", _mish_bend)
GELU: Final = smooth("gelu", lambda g, ans, x: g * apply(GELU_SLOPE, (x,)))
GELU_SLOPE: Final = smooth("gelu_slope", _gelu_bend)
GELU_TANH: Final = smooth("gelu_tanh", lambda g, ans, x: g * apply(GELU_TANH_SLOPE, (x,)))
GELU_TANH_SLOPE: Final = smooth(
    "gelu_tanh_slope", lambda g, ans, x: g * apply(GELU_TANH_BEND, (x,))
)
GELU_TANH_BEND: Final = smooth("gelu_tanh_bend", _gelu_tanh_third)
LOG_SIGMOID: Final = smooth("log_sigmoid", lambda g, ans, x: g * sigmoid(-x))
TANHSHRINK: Final = smooth("tanhshrink", lambda g, ans, x: g * square(tanh(x)))


def _softsign_rule(g: Any, ans: Any, x: Any) -> Any:
    distance = absolute(x) + 1.0
    return g / distance / distance


def _softplus_rule(g: Any, ans: Any, x: Any, beta: float, limit: float | None) -> Any:
    z = x if beta == 1.0 else x * beta
    slope = sigmoid(z)
    return g * (slope if limit is None else where(greater(z, limit), 1.0, slope))


SOFTSIGN: Final = smooth("softsign", _softsign_rule)
SOFTPLUS: Final = smooth("softplus", _softplus_rule)


# --- bent ones ----------------------------------------------------------------------------------


def _elu_rule(g: Any, ans: Any, x: Any, alpha: float, scale: float, width: float) -> Any:
    above = greater(x, 0.0)
    below = where(above, 0.0, x)
    below = below if width == 1.0 else below / width
    return where(above, g * scale, times(g * (scale * alpha / width), exp(below)))


def _hardtanh_rule(g: Any, ans: Any, x: Any, low: float, high: float) -> Any:
    return where(logical_or(less_equal(x, low), greater_equal(x, high)), 0.0, g)


def _hardsigmoid_rule(g: Any, ans: Any, x: Any) -> Any:
    return where(logical_and(greater(x, -3.0), less(x, 3.0)), g / 6.0, 0.0)


def _hardswish_rule(g: Any, ans: Any, x: Any) -> Any:
    between = logical_and(greater(x, -3.0), less(x, 3.0))
    inner = g * (where(between, x, 0.0) / 3.0 + 0.5)
    return where(less_equal(x, -3.0), 0.0, where(between, inner, g))


def _leaky_rule(g: Any, ans: Any, x: Any, slope: float) -> Any:
    return where(greater(x, 0.0), g, g * slope)


def _shrink_rule(g: Any, ans: Any, x: Any, width: float) -> Any:
    return where(logical_and(greater_equal(x, -width), less_equal(x, width)), 0.0, g)


ELU: Final = smooth("elu", _elu_rule)
HARDTANH: Final = smooth("hardtanh", _hardtanh_rule)
HARDSIGMOID: Final = smooth("hardsigmoid", _hardsigmoid_rule)
HARDSWISH: Final = smooth("hardswish", _hardswish_rule)
LEAKY_RELU: Final = smooth("leaky_relu", _leaky_rule)
PRELU: Final = smooth(
    "prelu",
    lambda g, ans, x, weight: where(greater(x, 0.0), g, g * weight),
    lambda g, ans, x, weight: where(greater(x, 0.0), 0.0, g * x),
)
SOFTSHRINK: Final = smooth("softshrink", _shrink_rule)
HARDSHRINK: Final = smooth("hardshrink", _shrink_rule)
THRESHOLD: Final = smooth(
    "threshold", lambda g, ans, x, limit, value: where(less_equal(x, limit), 0.0, g)
)

with_kernels(
    _activations.register,
    25.0,
    *(SILU, SILU_SLOPE, MISH, MISH_SLOPE, GELU, GELU_SLOPE),
    *(GELU_TANH, GELU_TANH_SLOPE, GELU_TANH_BEND),
    *(LOG_SIGMOID, TANHSHRINK, SOFTSIGN, SOFTPLUS, ELU, HARDTANH, HARDSIGMOID, HARDSWISH),
    *(LEAKY_RELU, PRELU, SOFTSHRINK, HARDSHRINK, THRESHOLD),
)
use_loops(
    one.name
    for one in (
        *(SILU, SILU_SLOPE, MISH, GELU, GELU_SLOPE, GELU_TANH, GELU_TANH_SLOPE),
        *(LOG_SIGMOID, SOFTPLUS, ELU),
    )
)

# fmt: off
silu = public(SILU, 1, "x times its sigmoid, also called swish.", "[0.0, 1.0] -> [0.         0.73105858]", __name__)
mish = public(MISH, 1, "x times the tanh of its softplus.", "[0.0, 1.0] -> [0.         0.86509839]", __name__)
log_sigmoid = public(LOG_SIGMOID, 1, "Logarithm of the sigmoid, accurate in both tails.", "[0.0, 40.0] -> [-6.93147181e-01 -4.24835426e-18]", __name__)
tanhshrink = public(TANHSHRINK, 1, "x - tanh(x) without loss of digits near 0.", "[1e-3, 1.0] -> [3.33333200e-10 2.38405844e-01]", __name__)
softsign = public(SOFTSIGN, 1, "``x / (1 + absolute(x))``.", "[1.0, -3.0] -> [ 0.5  -0.75]", __name__)
hardsigmoid = public(HARDSIGMOID, 1, "x / 6 + 1/2, limited to 0 and 1; the gradient at the bends is 0.", "[0.0, 4.0] -> [0.5 1. ]", __name__)
hardswish = public(HARDSWISH, 1, "x times its hardsigmoid.", "[1.0, 4.0] -> [0.66666667 4.        ]", __name__)
# fmt: on

_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946


def gelu(x: Any, /, approximate: str = "none") -> Any:
    """Return x times the probability that a standard normal variable is below it.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    approximate : str
        ``"none"``, or ``"tanh"`` for a cheaper formula that differs by up to 5e-4.


    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers, or another word for `approximate`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.gelu([0.0, 1.0])
    >>> print(y.value)
    [0.         0.84134475]
    """
    if approximate not in ("none", "tanh"):
        raise ParameterError(f'gelu(approximate={approximate!r}): write "none" or "tanh".')
    return apply(GELU_TANH if approximate == "tanh" else GELU, (x,))


def softplus(x: Any, /, beta: float = 1.0, threshold: float | None = None) -> Any:
    """Return log(1 + exp(beta x)) / beta, a smooth relu, accurate in both tails.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    beta : float
        How sharp the bend is.
    threshold : float or None
        From where on ``beta x`` counts as large: there the result is `x` itself and the slope 1. PyTorch has
        20, with an error of 2e-9; ``None`` for no such limit.


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
    ...     y = rg.softplus([0.0, -40.0])
    >>> print(y.value)
    [6.93147181e-01 4.24835426e-18]
    """
    return apply(
        SOFTPLUS,
        (x,),
        (
            real_number("softplus", "beta", beta),
            None if threshold is None else real_number("softplus", "threshold", threshold),
        ),
    )


def elu(x: Any, /, alpha: float = 1.0) -> Any:
    """Return x where it is positive, else alpha (exp(x) - 1); the gradient at 0 is alpha.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    alpha : float
        Minus the limit at minus infinity.


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
    ...     y = rg.elu([1.0, -1.0])
    >>> print(y.value)
    [ 1.         -0.63212056]
    """
    return apply(ELU, (x,), (real_number("elu", "alpha", alpha), 1.0, 1.0))


def selu(x: Any, /) -> Any:
    """Return ``elu`` times a scale, with the constants that keep mean 0 and variance 1.

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
    ...     y = rg.selu([1.0, -1.0])
    >>> print(y.value)
    [ 1.05070099 -1.11133074]
    """
    return apply(ELU, (x,), (_SELU_ALPHA, _SELU_SCALE, 1.0))


def celu(x: Any, /, alpha: float = 1.0) -> Any:
    """Return x where it is positive, else alpha (exp(x / alpha) - 1); the slope is 1 on both sides of 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    alpha : float
        Minus the limit at minus infinity.


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
    ...     y = rg.celu([1.0, -1.0], 2.0)
    >>> print(y.value)
    [ 1.         -0.78693868]
    """
    alpha = real_number("celu", "alpha", alpha)
    return apply(ELU, (x,), (alpha, 1.0, alpha))


def hardtanh(x: Any, /, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Return x limited to an interval; the gradient at its ends is 0, other than that of ``clip``.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    min_val, max_val : float
        The ends of the interval.


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
    ...     y = rg.hardtanh([-2.0, 0.5])
    >>> print(y.value)
    [-1.   0.5]
    """
    return apply(
        HARDTANH,
        (x,),
        (real_number("hardtanh", "min_val", min_val), real_number("hardtanh", "max_val", max_val)),
    )


def relu6(x: Any, /) -> Any:
    """Return x limited to the interval from 0 to 6; the gradient at its ends is 0.

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
    ...     y = rg.relu6([-2.0, 7.0])
    >>> print(y.value)
    [0. 6.]
    """
    return apply(HARDTANH, (x,), (0.0, 6.0))


def leaky_relu(x: Any, /, negative_slope: float = 0.01) -> Any:
    """Return x where it is positive, else x times a slope, which is the gradient at 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    negative_slope : float
        The slope below 0.


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
    ...     y = rg.leaky_relu([1.0, -2.0])
    >>> print(y.value)
    [ 1.   -0.02]
    """
    return apply(LEAKY_RELU, (x,), (real_number("leaky_relu", "negative_slope", negative_slope),))


def softshrink(x: Any, /, lambd: float = 0.5) -> Any:
    """Return x moved towards 0 by a width, and 0 within it; there and at its ends the gradient is 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    lambd : float
        The width, not negative.


    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers, or a negative width.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.softshrink([1.0, 0.25])
    >>> print(y.value)
    [0.5 0. ]
    """
    lambd = real_number("softshrink", "lambd", lambd)
    if not lambd >= 0.0:
        raise ParameterError(f"softshrink(lambd={lambd!r}): a width is not negative.")
    return apply(SOFTSHRINK, (x,), (lambd,))


def hardshrink(x: Any, /, lambd: float = 0.5) -> Any:
    """Return x, and 0 where it is not beyond a width; there and at its ends the gradient is 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    lambd : float
        The width; with a negative one all numbers stay.


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
    ...     y = rg.hardshrink([1.0, 0.25])
    >>> print(y.value)
    [1. 0.]
    """
    return apply(HARDSHRINK, (x,), (real_number("hardshrink", "lambd", lambd),))


def threshold(x: Any, /, threshold: float, value: float) -> Any:
    """Return x where it is above a threshold, and a value elsewhere, at the threshold, too.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    threshold, value : float
        Numbers.


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
    ...     y = rg.threshold([1.0, 0.25], 0.5, -1.0)
    >>> print(y.value)
    [ 1. -1.]
    """
    return apply(
        THRESHOLD,
        (x,),
        (
            real_number("threshold", "threshold", threshold),
            real_number("threshold", "value", value),
        ),
    )


@deferred
def prelu(x: Any, /, weight: Any) -> Any:
    """Return x where it is positive, else x times a weight that is learned.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats. Axis 1 is that of channels.
    weight : Var or array_like
        One number, or one for each channel; other shapes broadcast with `x`.

    Returns
    -------
    Var
        In the shape of `x`. At 0 the gradient is that below 0.

    Raises
    ------
    ShapeError
        If there is another number of weights than of channels.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.prelu([[1.0, -2.0]], [0.5, 0.25])
    >>> print(y.value)
    [[ 1.  -0.5]]
    """
    x, weight = together(x, weight)
    if weight.ndim == 1 and x.ndim >= 2:
        count, channels = weight.shape[0], x.shape[1]
        if None not in (count, channels) and count not in (1, channels):
            raise ShapeError(
                f"prelu: {count} weights for the {channels} channels, axis 1, of {x.label!r}."
            )
        weight = reshape(weight, (-1, *[1] * (x.ndim - 2))) if x.ndim > 2 else weight
    return apply(PRELU, (x, weight))
