"""What is computed from gradients and leaves follows them to another shape, or nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Build = Callable[[Any], list[Any]]


def _product(x: Any) -> list[Any]:
    r = rg.grad((x * x).sum(), x)
    return [r, (r * x).sum(), r @ x]


def _sum_behind(x: Any) -> list[Any]:
    r = rg.grad(x.sum(), x)  # which is no child of x
    return [((r * r) + x).sum(), x - r]


def _second_order(x: Any) -> list[Any]:
    r = rg.grad((x**3).sum(), x)
    z = (r * x).sum()
    return [z, rg.grad(z, x), (rg.grad(z, x) * x + r).sum()]


def _third_order(x: Any) -> list[Any]:
    r = rg.grad((x**3).sum(), x)
    z = (r * x).sum()
    q = rg.grad(z, x)
    return [z, q, rg.grad((q * x * r).sum(), x)]


def _by_step(x: Any) -> list[Any]:
    """A step down a gradient, and the gradient of where that leads."""
    w = x - 0.1 * rg.grad((x**4).sum(), x)
    return [w, rg.grad((w * w).sum(), x)]


BUILDS: dict[str, Build] = {
    "product": _product,
    "sum behind": _sum_behind,
    "second order": _second_order,
    "third order": _third_order,
    "step": _by_step,
    "hvp": lambda x: [rg.hvp((x**3).sum(), x, x * 2.0) + x],
    "jvp": lambda x: [rg.jvp(x**2, x, x) * x],
    "lift": lambda x: [rg.lift(lambda a, b: a * b)(rg.grad((x * x).sum(), x), x)],
    "switch": lambda x: [rg.switch(x.sum() > 0, rg.grad((x * x).sum(), x) * x, x)],
}


def values(build: Build, value: Any) -> list[Any]:
    """What a graph computes that never held anything else."""
    return [node.value for node in build(rg.Graph().input(value))]


@pytest.mark.parametrize("declared", [False, True], ids=["by its value", "of any length"])
@pytest.mark.parametrize("name", BUILDS)
def test_it_follows_from_length_to_length(name: str, declared: bool) -> None:
    build = BUILDS[name]
    g = rg.Graph()
    x = g.input(shape=(None,)) if declared else g.input(np.ones(3))
    x.set(np.ones(3))
    nodes = build(x)
    rng = np.random.default_rng(0)
    for length in (3, 4, 2, 3, 7, 4, 1, 3):
        value = rng.normal(size=length)
        x.set(value)
        for node, want in zip(nodes, values(build, value), strict=True):
            np.testing.assert_allclose(node.value, want, rtol=1e-12)
        g.check_invariants()


def test_what_does_not_fit_in_the_end_changes_nothing() -> None:
    g = rg.Graph()
    x, fixed = g.input(np.arange(3.0)), g.input(np.ones(3))
    r = rg.grad((x * x).sum(), x)
    product, with_x = (r * fixed).sum(), (r * x).sum()
    before = [node.value for node in (r, product, with_x)]
    versions = [node.value_version for node in (x, r, product, with_x)]
    with pytest.raises(rg.ShapeError, match="multiply cannot combine") as refused:
        x.set(np.ones(4))
    assert "Nothing was changed" in "".join(refused.value.__notes__)
    assert x.shape == r.shape == (3,)
    assert all(map(np.array_equal, [node.value for node in (r, product, with_x)], before))
    assert [node.value_version for node in (x, r, product, with_x)] == versions
    g.check_invariants()
    g.set({x: np.ones(4), fixed: np.full(4, 2.0)})
    assert (product.value, with_x.value) == (16.0, 8.0)


def test_an_edit_may_bring_another_shape() -> None:
    g = rg.Graph()
    x, wide = g.input(np.arange(3.0)), g.input(np.arange(5.0))
    held = x * 1.0
    r = rg.grad((held * held).sum(), held)
    z = (r * held).sum()
    assert z.value == 10.0
    held.replace_parent(0, wide)
    assert (z.value, r.shape) == (60.0, (5,))
    fixed = (r * wide).sum()
    with pytest.raises(rg.ShapeError, match="multiply cannot combine"):
        held.replace_parent(0, x)
    assert (z.value, fixed.value, held.parents[0]) == (60.0, 60.0, wide)
    g.check_invariants()


def test_sets_of_an_observer_follow_too() -> None:
    g = rg.Graph()
    start, x = g.input(0.0), g.input(np.ones(3))
    z = (rg.grad((x * x).sum(), x) * x).sum()
    g.forward(z, start + 1.0)
    end = start + 2.0
    end.observe(lambda *_: x.set(np.ones(5)))
    start.set(1.0)
    g.forward(end)
    assert z.value == 10.0


def test_an_edit_after_one_that_would_have_put_a_node_below_its_gradient_comes_to_an_end() -> None:
    g = rg.Graph()
    x, w = g.param([1.0, 2.0]), g.param([3.0, 0.0])
    y = x * w
    d = rg.grad(y.sum(), w)
    late = rg.lift(lambda a: a * 2.0)(x)  # a shape that shows only in its value
    with pytest.raises(rg.CycleError):
        y.replace_parent(0, d)
    y.replace_parent(0, late)
    assert d.value.tolist() == [2.0, 4.0]
    x.set([5.0, 6.0])
    assert d.value.tolist() == [10.0, 12.0]
    y.replace_parent(0, x)
    assert d.value.tolist() == [5.0, 6.0]
    g.check_invariants()


@pytest.mark.parametrize("erased", [False, True], ids=["marks", "no marks"])
def test_gradients_that_would_be_built_on_each_other_are_refused(erased: bool) -> None:
    """Also before values have shown the shapes that they follow."""
    g = rg.Graph()
    x, z = g.param([4.0, -1.0]), g.input([2.0])
    square = x * x
    late = rg.lift(lambda v: float(v.sum()))(x)  # a number, as only its value shows
    y = z * (late.detach() * square)
    first = rg.grad(y.sum(), square)
    second = rg.grad((first * first).sum(), square)
    _ = first.value, second.value
    x.set([1.0, 2.0])
    if erased:
        g.forget_marks()
    with pytest.raises(rg.CycleError):
        y.replace_parent(0, second)
    assert first.value.tolist() == [6.0, 6.0]
    assert second.value.tolist() == [0.0, 0.0]
    g.check_invariants()
