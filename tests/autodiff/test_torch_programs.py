"""Random programs with marks, several outputs and custom rules against PyTorch, in both modes.

From 5 to 200 nodes, float64, 1e-10: gradients, ``backward``, tangents, Hessian products.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

SHAPE = (2, 3)
LEAVES = 4
SIZES = [5, 8, 13, 20, 35, 60, 100, 200]


class Bell(rg.Function):
    """exp(-x²), and its slope, from what forward has saved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = np.exp(-x * x)
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, result = ctx.saved_tensors
        return -2.0 * g * x * result

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        x, result = ctx.saved_tensors
        return -2.0 * t * x * result


class Share(rg.Function):
    """tanh(x) times the share of positive elements, a number that its rules read on ctx."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.share = float((x > 0).mean())
        ctx.save_for_backward(x)
        return np.tanh(x) * ctx.share

    @staticmethod
    def infer(x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (1.0 - rg.tanh(x) ** 2) * ctx.share

    jvp = backward


class TorchBell(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = torch.exp(-x * x)
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, result = ctx.saved_tensors
        return -2.0 * g * x * result


def _turn_vjp(g: Any, ans: Any, a: Any, b: Any) -> tuple[Any, Any]:
    first, second = (0.0 * a if one is None else one for one in g)
    return first * rg.cos(b) + second, second - first * a * rg.sin(b)


def _turn_jvp(ts: Any, ans: Any, a: Any, b: Any) -> tuple[Any, Any]:
    ta, tb = (0.0 * a if one is None else one for one in ts)
    return ta * rg.cos(b) - a * rg.sin(b) * tb, ta + tb


turn = rg.lift(lambda a, b: (a * np.cos(b), a + b), outputs=2, vjp=_turn_vjp, jvp=_turn_jvp)


class Ours:
    """How programs are written in reactgrad."""

    lib, no_grad, bell = rg, staticmethod(rg.no_grad), staticmethod(Bell.apply)
    turn, share = staticmethod(turn), staticmethod(Share.apply)

    @staticmethod
    def halves(a: Any) -> Any:
        return rg.concatenate(rg.split(a, [1], axis=1)[::-1], axis=1)

    @staticmethod
    def rows(a: Any) -> Any:
        return rg.stack(rg.unbind(a)[::-1])


class Theirs:
    """The same in PyTorch."""

    lib, no_grad, bell = torch, staticmethod(torch.no_grad), staticmethod(TorchBell.apply)

    @staticmethod
    def turn(a: Any, b: Any) -> Any:
        return a * torch.cos(b), a + b

    @staticmethod
    def share(a: Any) -> Any:
        return torch.tanh(a) * float((a > 0).double().mean())

    @staticmethod
    def halves(a: Any) -> Any:
        return torch.cat(torch.split(a, [1, 2], dim=1)[::-1], dim=1)

    @staticmethod
    def rows(a: Any) -> Any:
        return torch.stack(torch.unbind(a)[::-1])


STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda of, a, b: of.lib.tanh(a) * b,
    lambda of, a, b: a + of.lib.sin(b),
    lambda of, a, b: a - b / (1.0 + a * a),
    lambda of, a, b: of.lib.maximum(a, b),
    lambda of, a, b: of.lib.sigmoid(a) * of.lib.sigmoid(b),
    lambda of, a, b: of.lib.where(a > b, a, 0.5 * b),
    lambda of, a, b: of.lib.tanh((a @ b.T).sum() * 0.1) * a,
    lambda of, a, b: of.bell(a) + b,
    lambda of, a, b: of.turn(a, b)[0],
    lambda of, a, b: of.lib.tanh(of.turn(a, b)[1]) * of.turn(b, a)[0],
    lambda of, a, b: of.halves(a) + b,
    lambda of, a, b: of.rows(a) * 0.5 + b,
    lambda of, a, b: of.share(a) + of.share(b) * a,
]


def build(seed: int, size: int, leaves: list[Any], of: Any) -> Any:
    """The same program, with its marks, in either library."""
    rng = random.Random(seed)
    pool = list(leaves)
    for _ in range(size):
        step = rng.choice(STEPS)
        a, b = pool[rng.randrange(len(pool))], pool[-1 - rng.randrange(min(6, len(pool)))]
        if rng.random() < 0.08:
            a = a.detach()
        if rng.random() < 0.05:
            with of.no_grad():
                new = step(of, a, b)
        else:
            new = step(of, a, b)
        pool.append(of.lib.tanh(new) if rng.random() < 0.3 else new * 0.7)
    # All leaves over open edges, so that every one has a gradient, and that one, too.
    return sum((pool[-1] + leaf * leaf for leaf in leaves[1:]), pool[-1] * leaves[0] ** 2).mean()


def same(got: Any, wanted: Any) -> None:
    wanted = wanted.detach().numpy()
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_marked_program_has_pytorchs_derivatives(seed: int, size: int) -> None:
    values = np.random.default_rng([seed, size])
    arrays, ts = ([values.normal(size=SHAPE) for _ in range(LEAVES)] for _ in range(2))
    g = rg.Graph()
    ours = [g.param(a) for a in arrays]
    frozen = random.Random(f"{seed} {size}").randrange(LEAVES)
    ours[frozen].freeze()
    theirs = [torch.tensor(a, requires_grad=i != frozen) for i, a in enumerate(arrays)]
    y, z = build(seed, size, ours, Ours), build(seed, size, theirs, Theirs)
    same(y.value, z)

    free = [i for i in range(LEAVES) if i != frozen]
    xs, twins = [ours[i] for i in free], [theirs[i] for i in free]
    wanted = torch.autograd.grad(z, twins, create_graph=True)
    for d, want in zip(rg.grad(y, xs), wanted, strict=True):
        same(d.value, want)
    y.backward()
    assert ours[frozen].grad is None
    for x, want in zip(xs, wanted, strict=True):
        same(x.grad, want)

    directions = [torch.tensor(ts[i]) for i in free]
    slope = sum((w * t).sum() for w, t in zip(wanted, directions, strict=True))
    same(rg.jvp(y, xs, [ts[i] for i in free]).value, slope)
    products = torch.autograd.grad(slope, twins)
    for got, want in zip(rg.hvp(y, xs, [ts[i] for i in free]), products, strict=True):
        same(got.value, want)
    g.check_invariants()


@pytest.mark.parametrize("size", SIZES[:5])
@pytest.mark.parametrize("seed", range(4))
def test_live_derivatives_of_a_program_follow_to_pytorchs(seed: int, size: int) -> None:
    """Also where rules have read what a function leaves: all orders are built once, then set."""
    values = np.random.default_rng([seed, size, 1])
    g = rg.Graph()
    xs = [g.param(values.normal(size=SHAPE)) for _ in range(LEAVES)]
    ts = [values.normal(size=SHAPE) for _ in range(LEAVES)]
    y = build(seed, size, xs, Ours)
    live = [*rg.hvp(y, xs, ts), rg.jvp(y, xs, ts), *rg.grad(y, xs)]
    for _ in range(4):
        chosen = values.integers(LEAVES)
        g.set({x: values.normal(size=SHAPE) for x in xs[chosen:]})
        theirs = [torch.tensor(x.value.copy(), requires_grad=True) for x in xs]
        z = build(seed, size, theirs, Theirs)
        slopes = torch.autograd.grad(z, theirs, create_graph=True)
        slope = sum((w * torch.tensor(t)).sum() for w, t in zip(slopes, ts, strict=True))
        products = torch.autograd.grad(slope, theirs)
        for got, want in zip(live, [*products, slope, *slopes], strict=True):
            same(got.value, want)
    g.check_invariants()
