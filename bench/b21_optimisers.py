"""B21: steps of optimisers on many small params and on one large one, and training steps of small networks.

Beside NumPy by hand, and PyTorch's foreach and fused optimisers; float32. A step of an optimiser takes another
learning rate each time, with the gradients of one ``backward``. A training step takes a batch, clears the
gradients, differentiates and steps: the loop of PyTorch; ours is prepared once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import Goal, at_most, faster, within
from bench._peers import load
from bench.b03_mlp import RATE, by_hand, drawn, first_params, moved, one_hot, tensors

Sizes = tuple[int, int, int, int]


def start(count: int, size: int) -> list[np.ndarray]:
    """Return the params at the start."""
    rng = np.random.default_rng(5)
    return [rng.normal(size=size).astype("f4") for _ in range(count)]


def rates(rng: np.random.Generator) -> float:
    """Return a learning rate."""
    return float(rng.uniform(0.5e-3, 1.5e-3))


def ours(kind: str, count: int, size: int) -> Step:
    """Return a step of our optimiser; the loss is half the sum of squares, so a gradient is its param."""
    g = rg.Graph()
    params = [g.param(one) for one in start(count, size)]
    loss = rg.sum(rg.concatenate(params) ** 2) * 0.5
    opt: Any = getattr(rg.optim, kind)(params)
    for _ in range(4):
        opt.zero_grad()
        loss.backward()
        opt.param_groups[0]["lr"] = 0.0
        opt.step()

    def step(rate: float) -> Any:
        opt.param_groups[0]["lr"] = rate
        opt.step()
        return params

    return step


def flat_by_hand(kind: str, count: int, size: int) -> Step:
    """Return a step by NumPy on one array, with scratch memory and every result in place."""
    p = np.concatenate(start(count, size))
    g, m, v = p.copy(), np.zeros_like(p), np.zeros_like(p)
    a, b = np.empty_like(p), np.empty_like(p)
    made = 0
    views = np.split(p, count)

    def descend(rate: float) -> Any:
        np.multiply(g, rate, a)
        np.subtract(p, a, p)
        return views

    def adam(rate: float) -> Any:
        nonlocal made
        made += 1
        np.multiply(m, 0.9, m)
        np.multiply(g, 0.1, a)
        np.add(m, a, m)
        np.multiply(v, 0.999, v)
        np.multiply(g, g, a)
        np.multiply(a, 0.001, a)
        np.add(v, a, v)
        np.sqrt(v, a)
        np.multiply(a, (1.0 - 0.999**made) ** -0.5, a)
        np.add(a, 1e-8, a)
        np.divide(m, a, b)
        np.multiply(b, rate / (1.0 - 0.9**made), b)
        np.subtract(p, b, p)
        return views

    if kind == "SGD":
        return descend
    for _ in range(4):
        adam(0.0)
    return adam


def in_torch(kind: str, count: int, size: int, how: str) -> Step:
    """Return a step of PyTorch's optimiser, ``"foreach"`` or ``"fused"``."""
    torch = load("torch")
    params = [torch.from_numpy(one).requires_grad_() for one in start(count, size)]
    for one in params:
        one.grad = one.detach().clone()
    opt = getattr(torch.optim, kind)(params, lr=0.0, **{how: True})
    for _ in range(4):
        opt.step()

    def step(rate: float) -> Any:
        opt.param_groups[0]["lr"] = rate
        opt.step()
        return params

    return step


def steps(kind: str, count: int, size: int, hand: Goal | None, goal: Goal | None) -> Contest:
    """Return the contest of one optimiser's steps."""

    def show(values: Callable[[Any], Any]) -> Callable[[Any], Any]:
        first = start(count, size)
        return lambda found: [values(one) - at for one, at in zip(found[:3], first, strict=False)]

    what = f"{count:,} params of {size:,}" if count > 1 else f"one param of {size:,}"
    return Contest(
        f"step of {kind}, {what}",
        rates,
        Side("reactgrad", lambda: ours(kind, count, size), show=show(lambda one: one.value)),
        (
            Peer(
                Side("flat by hand", lambda: flat_by_hand(kind, count, size), show=show(np.copy)),
                hand,
            ),
            *[
                Peer(
                    Side(
                        f"PyTorch {how}",
                        lambda how=how: in_torch(kind, count, size, how),
                        show=show(lambda one: one.detach().numpy()),
                        needs="torch",
                        apart=True,
                    ),
                    at_most(1.0) if how == "fused" else None,
                )
                for how in ("foreach", "fused")
            ],
        ),
        goal=goal,
        rtol=1e-3,
        atol=1e-6,
        keep=False,
    )


def trained(sizes: Sizes, kind: str, clip: bool) -> Step:
    """Return a training step with an optimiser."""
    batch, inputs, _, outputs = sizes
    g = rg.Graph()
    x = g.input(np.zeros((batch, inputs), "f4"))
    labels = g.input(np.zeros((batch, outputs), "f4"))
    params = [g.param(first) for first in first_params(sizes)]
    w1, b1, w2, b2 = params
    logits = rg.linear(rg.relu(rg.linear(x, w1, b1)), w2, b2)
    loss = (rg.log_softmax(logits) * labels).sum() * (-1.0 / batch)
    opt: Any = getattr(rg.optim, kind)(params, lr=RATE)
    train = opt.training_step(loss, feeds=[x, labels], max_norm=1e6 if clip else None)

    def step(given: Any) -> Any:
        return train(*given), params

    return step


def trained_in_torch(sizes: Sizes, kind: str, clip: bool) -> Step:
    """Return a training step with PyTorch's optimiser."""
    torch = load("torch")
    functional = torch.nn.functional
    params = [torch.from_numpy(first).requires_grad_() for first in first_params(sizes)]
    w1, b1, w2, b2 = params
    opt = getattr(torch.optim, kind)(params, lr=RATE)

    def step(given: Any) -> Any:
        opt.zero_grad()
        hidden = torch.relu(torch.addmm(b1, given[0], w1))
        loss = functional.cross_entropy(torch.addmm(b2, hidden, w2), given[1])
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(params, 1e6)
        opt.step()
        return loss, params

    return step


def training(sizes: Sizes, kind: str, clip: bool, hand: float, torch: float) -> Contest:
    """Return the contest of training steps; by hand there is plain descent only."""

    def values(found: Any) -> Any:
        return moved(sizes)((found[0], [one.value for one in found[1]]))

    def theirs(found: Any) -> Any:
        return moved(sizes)((found[0].item(), [one.detach().numpy() for one in found[1]]))

    peers = [
        Peer(
            Side(
                "PyTorch",
                lambda: trained_in_torch(sizes, kind, clip),
                take=tensors,
                show=theirs,
                needs="torch",
                apart=True,
            ),
            faster(torch),
        )
    ]
    if kind == "SGD" and not clip:
        side = Side("by hand", lambda: by_hand(sizes), take=one_hot(sizes), show=moved(sizes))
        peers.insert(0, Peer(side, at_most(hand)))
    return Contest(
        f"training step {sizes} with {kind}{', clipped' if clip else ''}",
        drawn(sizes),
        Side("reactgrad", lambda: trained(sizes, kind, clip), take=one_hot(sizes), show=values),
        tuple(peers),
        rtol=1e-3,
        atol=1e-3,
        keep=False,
    )


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    count = setting.size(900 if setting.permuted else 1000, 5)
    length = 9 if setting.permuted else 8
    large = setting.size(10_000_000, 70_000)
    small: Sizes = (1, 5, 7, 3) if setting.permuted else (1, 4, 8, 2)
    wide: Sizes = (32, 73, 56, 11) if setting.permuted else (32, 64, 64, 10)
    if setting.small:
        wide = (3, 5, 6, 3)
    return [
        *[steps(kind, count, length, None, within(20e-6)) for kind in ("SGD", "Adam")],
        *[steps(kind, 1, large, at_most(1.3), None) for kind in ("SGD", "Adam")],
        *[
            training(sizes, kind, clip, hand, torch)
            for sizes, hand, torch in ((small, 1.3, 6.0), (wide, 1.2, 4.0))
            for kind, clip in (("SGD", False), ("Adam", False), ("Adam", True))
        ],
    ]


WORKLOAD = Workload("B21", "optimisers", cases)


def test_b21(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
