"""First-order gradients against PyTorch on random programs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")


def program(seed: int) -> tuple[list[np.ndarray], Any]:
    """Leaves, and a function that builds the same random expression in both libraries."""
    rng = random.Random(seed)
    values = np.random.default_rng(seed)
    shapes = [(3, 4), (4,), (3, 1), (4, 3), (), (1, 4)]
    leaves = [values.normal(size=rng.choice(shapes)) for _ in range(4)]
    choices = [(rng.randrange(14), rng.randrange(10**6), rng.randrange(10**6)) for _ in range(25)]

    def build(xs: list[Any], t: Any) -> Any:
        """`t` is torch, or None for reactgrad."""
        lib = rg if t is None else t
        pool = list(xs)
        for op, i, j in choices:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            try:
                new = step(op, a, b, lib, t)
            except (rg.ShapeError, RuntimeError, IndexError):
                continue
            if new is not None:
                pool.append(new)
        total = None
        for node in pool[len(xs) :]:
            part = node.sum() / float(max(1, int(np.prod(tuple(node.shape)))))
            total = part if total is None else total + part
        return total

    return leaves, build


def step(op: int, a: Any, b: Any, lib: Any, t: Any) -> Any:
    ndim = len(a.shape)
    if op == 0:
        return lib.tanh(a) + b
    if op == 1:
        return lib.sin(a) * b
    if op == 2:
        return a / (b * b + 1.0)
    if op == 3:
        return lib.sigmoid(a) - lib.exp(-lib.square(b))
    if op == 4:
        return a @ b if ndim == 2 and len(b.shape) == 2 and a.shape[1] == b.shape[0] else None
    if op == 5:
        return lib.maximum(a, b)
    if op == 6:
        return lib.where(a > 0, a * 2.0, b)
    if op == 7:
        return a.T if ndim == 2 else None
    if op == 8:
        return a[..., ::2] if t is None else a[..., 0::2] if ndim else None
    if op == 9:
        return a.sum(0) * 0.5 if ndim else None
    if op == 10:
        return lib.log1p(lib.exp(a.clip(-3.0, 3.0)))
    if op == 11:
        return lib.erf(a) if t is None else t.special.erf(a)
    if op == 12:
        return a.reshape(-1) if ndim else None
    return lib.hypot(a, b * b + 1.0)


@pytest.mark.parametrize("seed", range(60))
def test_random_program_has_pytorchs_gradients(seed: int) -> None:
    leaves, build = program(seed)
    ours_leaves = [rg.Graph().param(np.array(leaves[0]))]
    g = ours_leaves[0].graph
    ours_leaves += [g.param(np.array(a)) for a in leaves[1:]]
    torch_leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in leaves]
    ours, theirs = build(ours_leaves, None), build(torch_leaves, torch)
    assert ours is not None
    np.testing.assert_allclose(ours.item(), theirs.item(), rtol=1e-12)
    theirs.backward()
    gradients = rg.grad(ours, ours_leaves, allow_unused=True)
    for x, twin, gradient in zip(ours_leaves, torch_leaves, gradients, strict=True):
        if twin.grad is None:
            assert gradient is None
            continue
        scale = max(1.0, float(twin.grad.abs().max()))
        np.testing.assert_allclose(
            gradient.value, twin.grad.numpy(), rtol=1e-10, atol=1e-10 * scale
        )
        x.zero_grad()
    ours.backward()
    for x, gradient in zip(ours_leaves, gradients, strict=True):
        if gradient is None:
            assert x.grad is None
        else:
            np.testing.assert_array_equal(x.grad, gradient.value)


@pytest.mark.parametrize("seed", range(5))
def test_network_trains_like_pytorch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(16, 3)), rng.normal(size=(16, 1))
    first, bias, second = rng.normal(size=(3, 8)), np.zeros(8), rng.normal(size=(8, 1))
    g = rg.Graph()
    data, target = g.input(x), g.input(y)
    ours = [g.param(v) for v in (first, bias, second)]
    loss = ((rg.relu(data @ ours[0] + ours[1]) @ ours[2] - target) ** 2).mean()
    theirs = [torch.tensor(v, requires_grad=True) for v in (first, bias, second)]
    for _ in range(10):
        g.zero_grad()
        loss.backward()
        for p in theirs:
            p.grad = None
        hidden = torch.relu(torch.tensor(x) @ theirs[0] + theirs[1])
        ((hidden @ theirs[2] - torch.tensor(y)) ** 2).mean().backward()
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-8, atol=1e-10)
            p.set(p.value - 0.05 * p.grad)
            with torch.no_grad():
                q -= 0.05 * q.grad
