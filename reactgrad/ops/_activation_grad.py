"""Gradients of activation functions, one kernel each, without intermediate arrays.

Each operand has one rule for both modes, see ``_elementwise``. Where only `g` has changed, such a
kernel computes more than the single ops that it replaces would. Where all of them would run, it is faster
and needs a third of the memory.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import OPS, Attrs, Op, Vjp
from reactgrad.ops._shapes import broadcast, common_device, promote


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(broadcast("multiply", specs), promote(specs), common_device("multiply", specs))


def _define(name: str, *rules: Vjp | None) -> Op:
    """Return an op of the gradient of a result, and the result, the operand, or both."""
    return Op(name, _infer, rules, rules, elementwise=True, broadcasts=True)


def _sigmoid_slope(h: Any, ans: Any, g: Any, y: Any, x: Any) -> Any:
    # 1 - 2 y, without loss of digits near 0.
    return h * (ans * apply(OPS["tanh"], (x * -0.5,)))


# The derivative by the operand x counts that the result y follows from it. It is no derivative at y.
# fmt: off
# name, rule for g, rule for the result y, rule for the operand x
TANH_GRAD: Final = _define("tanh_backward", lambda h, ans, g, y, x: tanh_grad(h, y, x), None, lambda h, ans, g, y, x: h * (ans * (y * -2.0)))
SIGMOID_GRAD: Final = _define("sigmoid_backward", lambda h, ans, g, y, x: sigmoid_grad(h, y, x), None, _sigmoid_slope)
# What files of 0.1 hold: without the operand, and so without digits where the result is nearly 1.
_define("tanh_grad", lambda h, ans, g, y: h * (1.0 - y * y), lambda h, ans, g, y: h * (g * (y * -2.0)))
_define("sigmoid_grad", lambda h, ans, g, y: h * (y * (1.0 - y)), lambda h, ans, g, y: h * (g * (1.0 - y * 2.0)))
RELU_GRAD: Final = _define("relu_grad", lambda h, ans, g, x: relu_grad(h, x), None)
# fmt: on


def tanh_grad(g: Any, y: Any, x: Any) -> Any:
    """Return ``g * (1 - y**2)`` for the hyperbolic tangent `y` of `x`, also where `y` is nearly 1."""
    return apply(TANH_GRAD, (g, y, x))


def sigmoid_grad(g: Any, y: Any, x: Any) -> Any:
    """Return ``g * (y * (1 - y))`` for the sigmoid `y` of `x`, also where `y` is nearly 1."""
    return apply(SIGMOID_GRAD, (g, y, x))


def relu_grad(g: Any, x: Any) -> Any:
    """Return `g` where `x` is positive or NaN, and 0 elsewhere, even where `g` is NaN (rule D11)."""
    return apply(RELU_GRAD, (g, x))
