"""Hooks that are called after backward: when, how often, and what they may do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.hooked import REPLACING, two

# --- after backward -------------------------------------------------------------------------------


def test_hooks_after_backward_see_all_grads_in_order() -> None:
    w, v, _, loss = two()
    order: list[Any] = []
    for name in ("first", "second"):
        for leaf in (v, w):
            leaf.register_post_accumulate_grad_hook(
                lambda leaf, name=name: order.append((leaf.name, name, w.grad is not v.grad))
            )
    loss.backward()
    assert order == [
        ("w", "first", True),
        ("w", "second", True),
        ("v", "first", True),
        ("v", "second", True),
    ]
    order.clear()
    loss.backward(inputs=v)
    assert [entry[:2] for entry in order] == [("v", "first"), ("v", "second")]


def test_a_hook_after_backward_may_be_the_optimizer() -> None:
    w, v, _, loss = two()
    twin = w.graph.fork()

    def step(leaf: Any) -> None:
        leaf.set(leaf.value - 0.01 * leaf.grad)
        leaf.zero_grad()

    for leaf in (w, v):
        leaf.register_post_accumulate_grad_hook(step)
    for _ in range(10):
        loss.backward()
        twin[loss].backward()
        for leaf in (twin[w], twin[v]):
            step(leaf)
    assert w.grad is None
    np.testing.assert_array_equal(w.value, twin[w].value)
    np.testing.assert_array_equal(v.value, twin[v].value)
    assert loss.value < 1.0


def test_errors_after_backward_take_nothing_back() -> None:
    w, v, _, loss = two()
    called: list[Any] = []

    def fails(leaf: Any) -> None:
        called.append(leaf)
        raise LookupError(leaf.name)

    w.register_post_accumulate_grad_hook(fails)
    v.register_post_accumulate_grad_hook(fails)
    v.register_post_accumulate_grad_hook(called.append)
    with pytest.raises(LookupError, match="w") as caught:
        loss.backward()
    assert [leaf.name for leaf in called] == ["w", "v", "v"]
    assert caught.value.__notes__ == ["another hook raised LookupError: v"]
    np.testing.assert_array_equal(w.grad, [18.0, 64.0])
    np.testing.assert_array_equal(v.grad, [6.0, 32.0])


def test_a_hook_after_backward_may_call_backward_and_remove_itself() -> None:
    w, _, _, loss = two()
    other = (w * 100.0).sum()

    def again(leaf: Any) -> None:
        handle.remove()
        other.backward()

    handle = w.register_post_accumulate_grad_hook(again)
    loss.backward()
    np.testing.assert_array_equal(w.grad, [118.0, 164.0])
    loss.backward()
    np.testing.assert_array_equal(w.grad, [136.0, 228.0])


def test_order_is_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

    def order(w: Any) -> list[tuple[str, float]]:
        called: list[tuple[str, float]] = []
        h = w * 1.5
        h.retain_grad()
        h.register_hook(lambda g: called.append(("h", float(g))))
        w.register_hook(lambda g: called.append(("w before", float(g))))
        h.register_hook(lambda g: g * 2.0)
        w.register_hook(lambda g: g + 1.0)
        w.register_hook(lambda g: called.append(("w last", float(g))))
        w.register_post_accumulate_grad_hook(lambda w: called.append(("after", float(w.grad))))
        loss = h * h
        loss.backward(retain_graph=True)
        called.append(("h.grad", float(h.grad)))
        loss.backward(retain_graph=True)
        called.append(("w.grad", float(w.grad)))
        return called

    assert order(rg.Graph().param(3.0)) == order(torch.tensor(3.0, requires_grad=True))


@pytest.mark.parametrize("name", ["clip", "times two", "nothing"])
def test_a_hessian_product_is_that_of_the_gradient_that_hooks_leave(name: str) -> None:
    g = rg.Graph()
    w, u = g.param([0.5, 1.0, 1.0]), g.param([1.0, 1.0, 2.0])
    loss = ((w * u) ** 3).sum()
    w.register_hook(REPLACING[name][0])
    vs = np.array([1.0, -2.0, 0.5]), np.array([0.25, 3.0, 1.0])
    rows = rg.hessian(loss, [w, u])
    for product, row in zip(rg.hvp(loss, [w, u], vs), rows, strict=True):
        wanted = sum(block.value @ v for block, v in zip(row, vs, strict=True))
        np.testing.assert_allclose(product.value, wanted, rtol=1e-12, atol=1e-12)
    w.set([0.1, 0.2, 0.3])
    (product, _), (row, _) = rg.hvp(loss, [w, u], vs), rg.hessian(loss, [w, u])
    wanted = sum(block.value @ v for block, v in zip(row, vs, strict=True))
    np.testing.assert_allclose(product.value, wanted, rtol=1e-12, atol=1e-12)


def test_no_shape_decides_whether_a_jacobian_passes_hooks() -> None:
    def f(x: Any) -> Any:
        h = x * x
        h.register_hook(lambda gradient: gradient * 10.0)
        return h

    whole, row = rg.jacobian(f)([1.0, 2.0]), rg.jacobian(lambda x: f(x)[:1])([1.0, 2.0])
    np.testing.assert_array_equal(whole, [[20.0, 0.0], [0.0, 40.0]])
    np.testing.assert_array_equal(row, whole[:1])
    np.testing.assert_array_equal(rg.jacobian(f, mode="forward")([1.0, 2.0]), whole / 10.0)
