"""Parts of gradients: products of the chain rule and derivatives of activations."""

from __future__ import annotations

from reactgrad.models.export._node import Node, writes
from reactgrad.models.export._reductions import reduced


@writes("chain_times")
def _times(n: Node) -> str:
    a, b = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    nothing = n.emit("Or", n.emit("Equal", a, zero, out=bool), n.emit("Equal", b, zero, out=bool))
    return n.emit("Where", nothing, zero, n.emit("Mul", a, b), of=1)


@writes("chain_over")
def _over(n: Node) -> str:
    g, x = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    return n.emit("Where", n.emit("Equal", g, zero, out=bool), zero, n.emit("Div", g, x), of=1)


@writes("relu_grad")
def _relu_grad(n: Node) -> str:
    g, x = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    return n.emit("Where", n.emit("LessOrEqual", x, zero, out=bool), zero, g, of=1)


@writes("tanh_backward", "tanh_grad")
def _tanh_grad(n: Node) -> str:
    g, y = n.x(0, n.dtype), n.x(1, n.dtype)
    one = n.const(1, n.dtype)
    # (1 - y) (1 + y) keeps digits where 1 - y**2 would lose them.
    slope = n.emit("Mul", n.emit("Sub", one, y), n.emit("Add", one, y))
    return n.emit("Mul", g, slope)


@writes("sigmoid_backward", "sigmoid_grad")
def _sigmoid_grad(n: Node) -> str:
    g, y = n.x(0, n.dtype), n.x(1, n.dtype)
    return n.emit("Mul", g, n.emit("Mul", y, n.emit("Sub", n.const(1, n.dtype), y)))


@writes("gaussian")
def _gaussian(n: Node) -> str:
    scale, rate = n.attrs
    x = n.x(0, n.dtype)
    power = n.emit("Mul", n.emit("Mul", x, x), n.const(rate, n.dtype))
    return n.emit("Mul", n.emit("Exp", power), n.const(scale, n.dtype))


@writes("softmax_grad")
def _softmax_grad(n: Node) -> str:
    g, y = n.all(n.dtype)
    axes = n.axes(n.attrs[0])
    total = reduced(n, "ReduceSum", n.emit("Mul", g, y), axes, True)
    return n.emit("Mul", y, n.emit("Sub", g, total))


@writes("log_softmax_grad")
def _log_softmax_grad(n: Node) -> str:
    g, y = n.all(n.dtype)
    total = reduced(n, "ReduceSum", g, n.axes(n.attrs[0]), True)
    return n.emit("Sub", g, n.emit("Mul", n.emit("Exp", y), total))


@writes("unit")
def _unit(n: Node) -> str:
    x, _, length = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    return n.emit(
        "Where", n.emit("Equal", length, zero, out=bool), zero, n.emit("Div", x, length), of=1
    )


@writes("angle_slope")
def _angle_slope(n: Node) -> str:
    _, x, length = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    slope = n.emit("Div", n.emit("Div", x, length), length)
    return n.emit("Where", n.emit("Equal", length, zero, out=bool), zero, slope, of=1)


@writes("one_minus_square")
def _one_minus_square(n: Node) -> str:
    x, one = n.x(0, n.dtype), n.const(1, n.dtype)
    return n.emit("Mul", n.emit("Sub", one, x), n.emit("Add", one, x))
