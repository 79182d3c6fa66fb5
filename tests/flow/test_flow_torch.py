"""What gradients pass, beside PyTorch: random programs with marks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# --- against PyTorch ----------------------------------------------------------------------------------


class Program:
    """A random program of vectors that both libraries run, with marks at random nodes."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.leaves = list(np.random.default_rng(seed).uniform(-1, 1, (rng.randint(2, 5), 4)))
        self.frozen = [rng.random() < 0.2 for _ in self.leaves]
        self.nodes = [
            (
                rng.randrange(8),
                rng.random(),
                rng.random(),
                rng.choice(["detach", "no_grad", "scale", "hook", "detach_node", *[""] * 9]),
                rng.uniform(-2, 2),
            )
            for _ in range(rng.randint(5, 200))
        ]

    def build(self, leaves: list[Any], lib: Any, other: Any) -> Any:
        pool = list(leaves)
        for op, first, second, mark, number in self.nodes:
            recent = pool[-8:] + leaves
            a, b = recent[int(first * len(recent))], recent[int(second * len(recent))]
            if mark == "detach":
                b = b.detach()
            with lib.set_grad_enabled(mark != "no_grad"):
                node = compute(lib, op, a, b)
            if mark == "detach_node":
                node = node.detach_node() if lib is rg else node.detach()
            elif mark == "scale":
                node = node.scale_grad(number) if lib is rg else other.apply(node, number)
            elif mark == "hook":
                # A node of its own: whether a rule is written with its result or with its operand
                # decides what a hook on the result sees in second order.
                node = node * 1.0
                if lib is rg or node.requires_grad:
                    node.register_hook(lambda g, number=number: g * number)
            pool.append(node)
        total = pool[-1].sum()
        for node in pool[len(leaves) : -1 : 3]:
            total = total + (node * node).sum() * 0.25
        return total


def compute(lib: Any, op: int, a: Any, b: Any) -> Any:
    if op == 0:
        return lib.tanh(a) + b * 0.5
    if op == 1:
        return lib.sin(a) * b * 0.7
    if op == 2:
        return a / (b * b + 1.5)
    if op == 3:
        return lib.sigmoid(a) - b * 0.3
    if op == 4:
        return lib.maximum(a, b) * 0.6
    if op == 5:
        return lib.where(a > b, a * 0.5, lib.exp(-b * b))
    if op == 6:
        return lib.cos(a) + lib.tanh(b * a)
    return lib.sqrt(a * a + 0.5) * 0.7 - b * 0.4


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_with_marks_have_pytorchs_gradients(seed: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None

    program = Program(seed)
    graph = rg.Graph()
    ours = [graph.param(a) for a in program.leaves]
    for leaf, frozen in zip(ours, program.frozen, strict=True):
        if frozen:
            leaf.freeze()
    total = program.build(ours, rg, None)
    rng = np.random.default_rng(seed)
    for _ in range(2):  # the second time only what is stale
        values = [rng.uniform(-1, 1, 4) for _ in ours]
        graph.set(dict(zip(ours, values, strict=True)))
        theirs = [
            torch.tensor(a, requires_grad=not frozen)
            for a, frozen in zip(values, program.frozen, strict=True)
        ]
        wanted = program.build(theirs, torch, Scale)
        np.testing.assert_allclose(total.item(), wanted.item(), rtol=1e-11)
        assert total.requires_grad == wanted.requires_grad
        if not wanted.requires_grad:
            with pytest.raises(rg.GradientError, match="nothing trainable"):
                total.backward()
            return
        trained = [i for i, leaf in enumerate(theirs) if leaf.requires_grad]
        firsts = torch.autograd.grad(
            wanted, [theirs[i] for i in trained], create_graph=True, allow_unused=True
        )
        graph.zero_grad()
        total.backward()
        for i, first in zip(trained, firsts, strict=True):
            compare(ours[i].grad, first)
        assert all(ours[i].grad is None for i in range(len(ours)) if i not in trained)
        compare_second_order(torch, total, ours, theirs, trained, firsts)


def compare(found: Any, wanted: Any) -> None:
    assert (found is None) == (wanted is None)
    if wanted is not None:
        expected = wanted.detach().numpy()
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * scale)


def compare_second_order(
    torch: Any, total: Any, ours: list[Any], theirs: list[Any], trained: list[int], firsts: Any
) -> None:
    parts = [first for first in firsts if first is not None and first.requires_grad]
    if not parts:
        return
    leaves = [theirs[i] for i in trained]
    seconds = torch.autograd.grad(sum(p.sum() for p in parts), leaves, allow_unused=True)
    mine = [ours[i] for i in trained]
    gradients = rg.grad(total, mine, allow_unused=True)
    slope = rg.stack([d.sum() for d in gradients if d is not None]).sum()
    found = rg.grad(slope, mine, allow_unused=True)
    for d, second in zip(found, seconds, strict=True):
        value = np.zeros(4) if d is None else d.value
        compare(value, torch.zeros(4) if second is None else second)


def test_detached_views_have_what_makes_nodes_of_them() -> None:
    w = rg.Graph().param([1.0, 2.0])
    for node in (w.detach().detach_node(), w.detach().scale_grad(2.0)):
        assert node.parents == [w]
        assert np.array_equal(rg.grad((node * w).sum(), w).value, [1.0, 2.0])
    kept = w.detach().snapshot()
    w.set([5.0, 6.0])
    assert np.array_equal(kept.value, [1.0, 2.0])


@pytest.mark.parametrize("name", ["register_hook", "backward", "freeze", "mutate", "grad"])
def test_detached_view_says_where_the_node_is(name: str) -> None:
    x = rg.Graph().param([1.0, 2.0], name="x")
    with pytest.raises(AttributeError, match=rf"no '{name}'.*x\.base\.{name}.*detach_node\(\)"):
        getattr(x.detach(), name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        x.detach().nonsense  # type: ignore[attr-defined]
    assert not hasattr(x.detach(), "set_to_zero")
