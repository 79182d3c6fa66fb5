"""Activations of networks."""

from __future__ import annotations

import math
from typing import Any

from reactgrad.models.export._functions import erfc, exp_minus_1, log_1_plus
from reactgrad.models.export._node import Node, writes


def _over_zero(n: Node, x: str, yes: str, no: str) -> str:
    """Return one value where `x` is positive, and another one elsewhere."""
    return n.emit("Where", n.emit("Greater", x, n.const(0, n.dtype), out=bool), yes, no, of=1)


@writes("silu")
def _silu(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Mul", x, n.emit("Sigmoid", x))


def softplus(n: Node, x: str) -> str:
    """Return log(1 + exp(x)) without overflow."""
    zero = n.const(0, n.dtype)
    small = n.emit("Exp", n.emit("Neg", n.emit("Abs", x)))
    return n.emit("Add", n.emit("Max", x, zero), log_1_plus(n, small))


@writes("softplus")
def _softplus(n: Node) -> str:
    beta, threshold = n.attrs
    x = n.x(0, n.dtype)
    scaled = x if beta == 1.0 else n.emit("Mul", x, n.const(beta, n.dtype))
    y = softplus(n, scaled)
    y = y if beta == 1.0 else n.emit("Div", y, n.const(beta, n.dtype))
    if threshold is None:
        return y
    return n.emit(
        "Where", n.emit("Greater", scaled, n.const(threshold, n.dtype), out=bool), x, y, of=1
    )


@writes("log_sigmoid")
def _log_sigmoid(n: Node) -> str:
    return n.emit("Neg", softplus(n, n.emit("Neg", n.x(0, n.dtype))))


@writes("mish")
def _mish(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Mul", x, n.emit("Tanh", softplus(n, x)))


@writes("gelu")
def _gelu(n: Node) -> str:
    x = n.x(0, n.dtype)
    tail = erfc(n, n.emit("Mul", x, n.const(-math.sqrt(0.5), n.dtype)))
    return n.emit("Mul", x, n.emit("Mul", tail, n.const(0.5, n.dtype)))


@writes("gelu_slope")
def _gelu_slope(n: Node) -> str:
    x = n.x(0, n.dtype)
    tail = erfc(n, n.emit("Mul", x, n.const(-math.sqrt(0.5), n.dtype)))
    power = n.emit("Mul", n.emit("Mul", x, x), n.const(-0.5, n.dtype))
    bell = n.emit("Mul", n.emit("Exp", power), n.const(1.0 / math.sqrt(2.0 * math.pi), n.dtype))
    return n.emit("Add", n.emit("Mul", tail, n.const(0.5, n.dtype)), n.emit("Mul", x, bell))


@writes("silu_slope")
def _silu_slope(n: Node) -> str:
    x, one = n.x(0, n.dtype), n.const(1, n.dtype)
    y = n.emit("Sigmoid", x)
    rest = n.emit("Mul", x, n.emit("Sigmoid", n.emit("Neg", x)))
    return n.emit("Mul", y, n.emit("Add", one, rest))


@writes("gelu_tanh")
def _gelu_tanh(n: Node) -> str:
    x = n.x(0, n.dtype)
    cube = n.emit("Mul", n.emit("Mul", x, n.emit("Mul", x, x)), n.const(0.044715, n.dtype))
    bent = n.emit("Mul", n.emit("Add", x, cube), n.const(2.0 * math.sqrt(2.0 / math.pi), n.dtype))
    return n.emit("Mul", x, n.emit("Sigmoid", bent))


@writes("elu")
def _elu(n: Node) -> str:
    alpha, scale, width = n.attrs
    x = n.x(0, n.dtype)
    low = exp_minus_1(n, _times(n, n.emit("Min", x, n.const(0, n.dtype)), 1.0 / width))
    return _times(n, _over_zero(n, x, x, _times(n, low, alpha)), scale)


def _times(n: Node, x: str, factor: float) -> str:
    return x if factor == 1.0 else n.emit("Mul", x, n.const(factor, n.dtype))


@writes("leaky_relu")
def _leaky_relu(n: Node) -> str:
    x = n.x(0, n.dtype)
    return _over_zero(n, x, x, _times(n, x, n.attrs[0]))


@writes("prelu")
def _prelu(n: Node) -> str:
    x, slope = n.all(n.dtype)
    return _over_zero(n, x, x, n.emit("Mul", x, slope))


@writes("hardtanh")
def _hardtanh(n: Node) -> str:
    low, high = n.attrs
    return n.emit(
        "Min", n.emit("Max", n.x(0, n.dtype), n.const(low, n.dtype)), n.const(high, n.dtype)
    )


def _hard_sigmoid(n: Node, x: str) -> str:
    six = n.const(6, n.dtype)
    moved = n.emit("Add", x, n.const(3, n.dtype))
    return n.emit("Div", n.emit("Min", n.emit("Max", moved, n.const(0, n.dtype)), six), six)


@writes("hardsigmoid")
def _hardsigmoid(n: Node) -> str:
    return _hard_sigmoid(n, n.x(0, n.dtype))


@writes("hardswish")
def _hardswish(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Mul", x, _hard_sigmoid(n, x))


@writes("softshrink")
def _softshrink(n: Node) -> str:
    x, limit = n.x(0, n.dtype), n.attrs[0]
    low = n.emit("Max", x, n.const(-limit, n.dtype))
    return n.emit("Sub", x, n.emit("Min", low, n.const(limit, n.dtype)))


@writes("hardshrink")
def _hardshrink(n: Node) -> str:
    x = n.x(0, n.dtype)
    inside = n.emit("LessOrEqual", n.emit("Abs", x), n.const(n.attrs[0], n.dtype), out=bool)
    return n.emit("Where", inside, n.const(0, n.dtype), x, of=1)


@writes("threshold")
def _threshold(n: Node) -> str:
    x, (limit, value) = n.x(0, n.dtype), n.attrs
    over = n.emit("Greater", x, n.const(limit, n.dtype), out=bool)
    return n.emit("Where", over, x, n.const(value, n.dtype), of=1)


@writes("tanhshrink")
def _tanhshrink(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Sub", x, n.emit("Tanh", x))


@writes("softsign")
def _softsign(n: Node) -> str:
    x: Any = n.x(0, n.dtype)
    return n.emit("Div", x, n.emit("Add", n.emit("Abs", x), n.const(1, n.dtype)))
