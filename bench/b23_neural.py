"""B23: convolution and pooling of images, recurrent layers, attention, beside PyTorch; float32, one thread each.

A step sets new operands, weights included, and reads the result, or the result and all gradients of its product
with fixed numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import Goal, at_most
from bench._peers import load

# Samples, channels, height and width, channels of the result.
SIZES = [(64, 1, 28, 8), (64, 8, 14, 16), (32, 32, 16, 32), (16, 64, 32, 64)]
# Sequences, features, states.
RECURRENT = [(1, 16, 32), (16, 32, 64), (32, 64, 128), (64, 128, 256)]
STEPS = 20
# Heads in all, steps, features of a head.
HEADS = [(4, 16, 16), (8, 64, 32), (16, 128, 64), (8, 512, 64)]


@dataclass(frozen=True)
class Layer:
    """One function, written for each library.

    Attributes
    ----------
    shapes
        Of its operands: images, sequences, weights.
    result
        The shape of the result.
    ours, torch
        From Vars, or from the module and tensors, to the result.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    goal: Goal
    scale: float = 1.0

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return new operands."""
        return [
            (self.scale * rng.standard_normal(shape)).astype(np.float32) for shape in self.shapes
        ]

    def seed(self) -> np.ndarray:
        """Return the numbers that the result is multiplied with before gradients are taken."""
        return np.random.default_rng(0).standard_normal(self.result).astype(np.float32)


def convolution(size: tuple[int, int, int, int]) -> Layer:
    """Return a convolution with a kernel of 3 x 3 and padding."""
    n, c, h, made = size
    return Layer(
        f"conv2d, {n} images of {c} x {h} x {h} to {made} channels",
        ((n, c, h, h), (made, c, 3, 3)),
        (n, made, h, h),
        lambda x, w: rg.conv2d(x, w, padding=1),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
        at_most(2.5),
    )


def pooling(size: tuple[int, int, int, int]) -> Layer:
    """Return the largest elements of windows of 2 x 2."""
    n, c, h, _ = size
    return Layer(
        f"max_pool2d, {n} images of {c} x {h} x {h}",
        ((n, c, h, h),),
        (n, c, h // 2, h // 2),
        lambda x: rg.max_pool2d(x, 2),
        lambda torch, x: torch.nn.functional.max_pool2d(x, 2),
        at_most(0.5),
    )


def recurrent(size: tuple[int, int, int]) -> Layer:
    """Return a layer of long short-term memory over sequences of 20 steps."""
    n, c, h = size
    return Layer(
        f"lstm, {n} sequences of {STEPS} x {c}, {h} states",
        ((STEPS, n, c), (4 * h, c), (4 * h, h), (4 * h,), (4 * h,)),
        (STEPS, n, h),
        lambda x, *weights: rg.lstm(x, None, *weights)[0],
        lambda torch, x, *weights: torch.lstm(
            x, [torch.zeros(1, n, h)] * 2, weights, True, 1, 0.0, False, False, False
        )[0],
        at_most(1.0),
        0.2,
    )


def attention(size: tuple[int, int, int]) -> Layer:
    """Return the attention of all steps to all steps."""
    heads, steps, features = size
    return Layer(
        f"attention, {heads} heads of {steps} x {features}",
        (size, size, size),
        size,
        rg.scaled_dot_product_attention,
        lambda torch, *operands: torch.nn.functional.scaled_dot_product_attention(*operands),
        at_most(1.5),
    )


def ours(layer: Layer, *, backward: bool) -> Step:
    """Return our step."""
    rg.set_num_threads(1)
    g = rg.Graph()
    leaves = [g.param(np.zeros(shape, np.float32)) for shape in layer.shapes]
    result = layer.ours(*leaves)
    slopes = rg.grad(result, leaves, gradient=g.const(layer.seed())) if backward else ()

    def step(arrays: Any) -> Any:
        g.set(dict(zip(leaves, arrays, strict=True)))
        g.forward(result, *slopes)
        return (result, *slopes)

    return step


def in_torch(layer: Layer, *, backward: bool) -> Step:
    """Return the step by PyTorch."""
    torch = load("torch")
    torch.set_num_threads(1)
    seed = torch.from_numpy(layer.seed())

    def forward(tensors: Any) -> Any:
        with torch.no_grad():
            return (layer.torch(torch, *tensors),)

    def both(tensors: Any) -> Any:
        leaves = [one.detach().requires_grad_() for one in tensors]
        result = layer.torch(torch, *leaves)
        return (result.detach(), *torch.autograd.grad(result, leaves, seed))

    return both if backward else forward


def tensors(arrays: Any) -> Any:
    """Return the arrays as tensors."""
    from torch import from_numpy  # `load` would give PyTorch more threads

    return [from_numpy(array) for array in arrays]


def read(found: Any) -> Any:
    """Return the values of nodes."""
    return [one.value for one in found]


def contest(layer: Layer, *, backward: bool) -> Contest:
    """Return the contest of one layer, forward or with its gradients."""
    torch = Side(
        "PyTorch",
        lambda: in_torch(layer, backward=backward),
        take=tensors,
        show=lambda found: [one.numpy() for one in found],
        needs="torch",
        apart=True,
    )
    return Contest(
        layer.name + (", with gradients" if backward else ""),
        layer.draw,
        Side("reactgrad", lambda: ours(layer, backward=backward), show=read, apart=True),
        (Peer(torch, layer.goal),),
        rtol=1e-3,
        atol=1e-3,
    )


def pair(layer: Layer) -> list[Case]:
    """Return the contests of one layer without gradients and with them."""
    return [contest(layer, backward=backward) for backward in (False, True)]


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for n, c, h, made in SIZES:
        size = (n, c, h, made)
        if setting.permuted:
            size = (n * 15 // 16 + 1, c, h + 2, made)
        if setting.small:
            size = (2, min(c, 2), 6, 3)
        found += [both for layer in (convolution(size), pooling(size)) for both in pair(layer)]
    for small, kind, sizes in (
        ((2, 3, 4), recurrent, RECURRENT),
        ((2, 4, 3), attention, HEADS),
    ):
        for size in [small] if setting.small else sizes:
            one, other, last = size
            found += pair(kind((one + 1, other, last) if setting.permuted else size))
    return found


WORKLOAD = Workload("B23", "neural ops", cases)


def test_b23(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
