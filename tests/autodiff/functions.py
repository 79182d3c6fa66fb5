"""Functions with rules that saved graphs find by name, and that count their calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import reactgrad as rg

CALLS: Counter[str] = Counter()


def polar(x: Any, y: Any) -> tuple[Any, Any]:
    """Radius and angle."""
    CALLS["polar"] += 1
    return np.hypot(x, y), np.arctan2(y, x)


def polar_vjp(g: Any, ans: Any, x: Any, y: Any) -> tuple[Any, Any]:
    CALLS["polar_vjp"] += 1
    radius, _ = ans
    by_radius, by_angle = g
    dx = dy = 0.0 * x
    if by_radius is not None:
        dx, dy = dx + by_radius * x / radius, dy + by_radius * y / radius
    if by_angle is not None:
        square = radius * radius
        dx, dy = dx - by_angle * y / square, dy + by_angle * x / square
    return dx, dy


def polar_jvp(ts: Any, ans: Any, x: Any, y: Any) -> tuple[Any, Any]:
    radius, _ = ans
    dx, dy = (0.0 * x if t is None else t for t in ts)
    return (x * dx + y * dy) / radius, (x * dy - y * dx) / (radius * radius)


to_polar = rg.lift(polar, outputs=2, vjp=polar_vjp, jvp=polar_jvp)


def ends(values: Any) -> tuple[Any, Any]:
    """The smallest and the largest one: often only one of them changes."""
    CALLS["ends"] += 1
    return values.min(), values.max()


class Exp(rg.Function):
    """The first example of PyTorch's documentation."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        CALLS["Exp"] += 1
        result = np.exp(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        CALLS["Exp.backward"] += 1
        (result,) = ctx.saved_tensors
        return g * result

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (result,) = ctx.saved_tensors
        return t * result


class Linear(rg.Function):
    """The second one: an argument that may be missing, gradients only where they are needed."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(x, weight, bias)
        result = x @ weight.T
        return result if bias is None else result + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, weight, bias = ctx.saved_tensors
        needed = ctx.needs_input_grad
        dx = g @ weight if needed[0] else None
        dw = g.T @ x if needed[1] else None
        db = g.sum(axis=0) if bias is not None and needed[2] else None
        return dx, dw, db

    @staticmethod
    def jvp(ctx: Any, tx: Any, tw: Any, tb: Any = None) -> Any:
        x, weight, _ = ctx.saved_tensors
        parts = [
            None if tx is None else tx @ weight.T,
            None if tw is None else x @ tw.T,
            tb,
        ]
        return sum(part for part in parts if part is not None)


class MulConstant(rg.Function):
    """The third one: an argument that is no tensor, kept as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any, constant: float) -> Any:
        ctx.constant = constant
        return x * constant

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.constant, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        return t * ctx.constant


class SinCos(rg.Function, outputs=2):
    """Two outputs, each of which the rule of the other one uses."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        CALLS["SinCos"] += 1
        sine, cosine = np.sin(x), np.cos(x)
        ctx.save_for_backward(sine, cosine)
        return sine, cosine

    @staticmethod
    def backward(ctx: Any, by_sine: Any, by_cosine: Any) -> Any:
        CALLS["SinCos.backward"] += 1
        sine, cosine = ctx.saved_tensors
        return by_sine * cosine - by_cosine * sine

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        sine, cosine = ctx.saved_tensors
        return t * cosine, -t * sine


class PositivePart(rg.Function):
    """Saves an array that is neither argument nor output, and a number that depends on the data."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        mask = (x > 0).astype(x.dtype)
        ctx.save_for_backward(mask)
        ctx.count = int(mask.sum())
        return x * mask / max(ctx.count, 1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        CALLS["PositivePart.backward"] += 1
        (mask,) = ctx.saved_tensors
        return g * mask / float(max(ctx.count, 1))
