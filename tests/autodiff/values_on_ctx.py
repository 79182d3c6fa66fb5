"""Functions that leave a value on ctx, and what is asked of their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from tests.autodiff.functions import (
    CALLS,
)

A = np.array([0.3, -1.2, 0.7])


class Counted(rg.Function):
    """``k x**2``, where k is the number of positive elements: a plain number for the rules."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.k = float((x > 0).sum())
        ctx.save_for_backward(x)
        return x * x * ctx.k

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2.0 * x * ctx.k

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 2.0 * x * ctx.k


def function(rule: Any, **more: Any) -> type[rg.Function]:
    """A function of two arguments with this rule."""

    class F(rg.Function, **more):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.n = 1
            return x * 2.0

        backward = staticmethod(rule)

    return F


class Signed(rg.Function):
    """The absolute value, by a number that the rule reads."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        CALLS["Signed"] += 1
        if np.isnan(x):
            raise ZeroDivisionError("no number")
        ctx.sign = 1.0 if x > 0 else -1.0
        return x * ctx.sign

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        CALLS["Signed.backward"] += 1
        return g * ctx.sign


def slope(x: Any) -> Any:
    """The derivative of ``3 x |sin x|``."""
    return 3.0 * abs(np.sin(x)) + 3.0 * x * np.cos(x) * np.sign(np.sin(x))
