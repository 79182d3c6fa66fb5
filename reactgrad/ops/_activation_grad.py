"""Gradients of activation functions, one kernel each, without intermediate arrays.

Each operand has one rule for both modes, see ``_elementwise``. Where only `g` has changed, such a
kernel computes more than the single ops that it replaces would. Where all of them would run, it is as
fast on small arrays, about a tenth faster on large ones, and needs a third of the memory.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op, Vjp
from reactgrad.ops._shapes import ufunc_loop, ufunc_rule


def _define(name: str, *rules: Vjp | None) -> Op:
    """Return an op of two operands: the gradient of the result, and the result or operand itself."""
    return Op(
        name,
        ufunc_rule(np.multiply),
        rules,
        rules,
        elementwise=True,
        broadcasts=True,
        loop_dtypes=ufunc_loop(np.multiply),
    )


# fmt: off
# name, rule for g, rule for the result y or the operand x
TANH_GRAD: Final = _define("tanh_grad", lambda h, ans, g, y: tanh_grad(h, y), lambda h, ans, g, y: h * (g * (y * -2.0)))
SIGMOID_GRAD: Final = _define("sigmoid_grad", lambda h, ans, g, y: sigmoid_grad(h, y), lambda h, ans, g, y: h * (g * (1.0 - 2.0 * y)))
RELU_GRAD: Final = _define("relu_grad", lambda h, ans, g, x: relu_grad(h, x), None)
# fmt: on


def tanh_grad(g: Any, y: Any) -> Any:
    """Return ``g * (1 - y**2)`` for a hyperbolic tangent `y`."""
    return apply(TANH_GRAD, (g, y))


def sigmoid_grad(g: Any, y: Any) -> Any:
    """Return ``g * (y * (1 - y))`` for a sigmoid `y`."""
    return apply(SIGMOID_GRAD, (g, y))


def relu_grad(g: Any, x: Any) -> Any:
    """Return `g` where `x` is positive or NaN, and 0 elsewhere, even where `g` is NaN (rule D11)."""
    return apply(RELU_GRAD, (g, x))
