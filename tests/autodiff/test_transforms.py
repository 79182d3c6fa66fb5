"""Transforms of nodes and of functions: values, what is built, what runs, what cannot be done."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.transforms._trace import MAX_KINDS, _kept
from tests.autodiff.test_rules import CASES
from tests.laws.test_gradients_equal_fresh import CODES, build

IDENTITY = {
    "vjp": lambda g, ans, v: (g,),
    "jvp": lambda tangents, ans, v: tangents[0],
}


# --- Jacobians of nodes ------------------------------------------------------------------------------


def columns(y: Any, x: Any) -> np.ndarray:
    """The Jacobian by one direction at a time."""
    found = []
    for at in np.ndindex(*x.shape):
        t = np.zeros(x.shape)
        t[at] = 1.0
        found.append(np.asarray(rg.jvp(y, x, t).value))
    return np.stack(found, -1).reshape(*np.shape(y.value), *x.shape)


@pytest.mark.parametrize("unknown", [False, True], ids=["known shapes", "a Python result"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_jacobian_has_all_directions(name: str, mode: Any, unknown: bool) -> None:
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a) for a in args]
    identity = rg.lift(lambda v: v, **IDENTITY)
    y = f(*[identity(x) for x in leaves] if unknown else leaves)
    for x in leaves:
        jacobian = rg.jacobian(y, x, mode, allow_unused=True)
        if jacobian is None:  # of clip, where bounds cross
            continue
        wanted = columns(y, x)
        assert jacobian.shape == wanted.shape == (*y.shape, *x.shape)
        assert jacobian.dtype == x.dtype
        np.testing.assert_allclose(jacobian.value, wanted, rtol=1e-12, atol=1e-13)
        assert rg.jacobian(y, x, mode) is jacobian


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_hessian_is_what_the_products_say(name: str, mode: Any) -> None:
    """Against reverse over forward, by columns; other rules and no axis of directions."""
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a) for a in args]
    y = (f(*leaves) * 0.5).sum() + sum(x.sum() ** 3 for x in leaves)
    rows = rg.hessian(y, leaves, mode)
    for j, x in enumerate(leaves):
        for at in np.ndindex(*x.shape):
            vs = [np.zeros(one.shape) for one in leaves]
            vs[j][at] = 1.0
            for row, product in zip(rows, rg.hvp(y, leaves, vs), strict=True):
                np.testing.assert_allclose(
                    row[j].value[(..., *at)], product.value, rtol=1e-11, atol=1e-11
                )


@given(nodes=st.lists(CODES, min_size=1, max_size=10))
def test_both_modes_give_one_jacobian_in_random_programs(nodes: list[int]) -> None:
    g, made = build(nodes)
    y = made[-1] * 1.0
    pairs = []
    for x in made[:3]:
        forward = rg.jacobian(y, x, "forward", allow_unused=True)
        reverse = rg.jacobian(y, x, "reverse", allow_unused=True)
        assert (forward is None) == (reverse is None)
        if forward is not None:
            pairs.append((forward, reverse))
    for value in ([1.0, -2.0, 0.5], [0.25, 3.0, -1.0]):
        made[0].set(value)
        for forward, reverse in pairs:
            np.testing.assert_allclose(forward.value, reverse.value, rtol=1e-12, atol=1e-12)
    g.check_invariants()


def test_cheaper_mode_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few inputs: forward; few outputs: reverse. Seen by which rules it needs."""
    g = rg.Graph()
    few, many = g.input(np.ones(2)), g.input(np.ones(5))
    forward = rg.lift(lambda v: v, jvp=IDENTITY["jvp"], shape=(2,))
    reverse = rg.lift(lambda v: v, vjp=IDENTITY["vjp"], shape=(5,))
    widen, narrow = np.ones((2, 5)), np.ones((5, 2))
    for y, x, mode in (
        (forward(few) @ widen, few, "forward"),
        (reverse(many) @ narrow, many, "reverse"),
        (forward(few) * 2.0, few, "forward"),
    ):
        assert rg.jacobian(y, x) is rg.jacobian(y, x, mode)
    # Where rules of that mode are missing, the other one does it.
    dear, wrong = forward(few)[:1] * 2.0, "reverse"
    assert rg.jacobian(dear, few) is rg.jacobian(dear, few, "forward")
    with pytest.raises(rg.GradientError, match="no derivative rule"):
        rg.jacobian(dear, few, wrong)
    opaque = rg.lift(lambda v: v, shape=(2,))(few)
    with pytest.raises(rg.GradientError, match="no forward rule"):
        rg.jacobian(opaque * 2.0, few)


def test_nodes_of_a_jacobian_do_not_depend_on_sizes() -> None:
    def added(n: int, mode: Any) -> int:
        g = rg.Graph()
        x, w = g.input(np.linspace(0.0, 1.0, n)), g.input(np.ones((n, n)))
        y = rg.tanh(rg.sin(w @ x) * x)
        _ = y.value
        count = len(g)
        jacobian = rg.jacobian(y, x, mode)
        assert jacobian.value.shape == (n, n)
        return len(g) - count

    for mode in ("forward", "reverse"):
        assert added(100, mode) == added(3, mode) <= 25


ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": rg.softmax,
    "softmax first axis": lambda x: rg.softmax(x, 0),
    "softmax all": lambda x: rg.softmax(x, None),
    "log_softmax": rg.log_softmax,
    "cross_entropy": lambda x: rg.cross_entropy(x, np.arange(x.shape[0]) % 3),
    "cross_entropy first axis": lambda x: rg.cross_entropy(x, [0, 1, 3], 0),
    "layer_norm": rg.layer_norm,
    "layer_norm first axis": lambda x: rg.layer_norm(x, axis=0),
}


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", ROWS)
def test_jacobians_and_hessians_of_what_needs_rows_are_one_pass(name: str, mode: Any) -> None:
    f, counts = ROWS[name], []
    for rows in (4, 9):
        g = rg.Graph()
        x = g.param(np.random.default_rng(0).normal(size=(rows, 3)))
        y = f(x)
        flat = (y * np.cos(np.arange(y.size)).reshape(y.shape)).reshape(-1)
        s = (flat**2).sum()
        count = len(g)
        jacobian, hessian = rg.jacobian(flat, x, mode), rg.hessian(s, x)
        counts.append(len(g) - count)
        slopes = rg.grad(s, x).reshape(-1)
        for found, ys in ((jacobian, flat), (hessian, slopes)):
            want = [rg.grad(ys[i], x).value for i in range(ys.size)]
            np.testing.assert_allclose(
                found.value, np.reshape(want, found.shape), rtol=1e-9, atol=1e-12
            )
    assert counts[0] == counts[1]


def test_jacobian_is_live_and_recomputes_what_is_stale() -> None:
    g = rg.Graph()
    x, other = g.input([1.0, 2.0]), g.input([3.0, 4.0])
    h = rg.sin(x)
    y = h * other + other
    jacobian = rg.jacobian(y, x)
    np.testing.assert_allclose(jacobian.value, np.diag(np.cos([1.0, 2.0]) * [3.0, 4.0]))
    everything = len(g.last_run.ran)
    assert not g.forward(jacobian).ran
    other.set([5.0, 6.0])
    run = g.forward(jacobian)
    assert 0 < len(run.ran) < everything
    assert h not in run.ran
    np.testing.assert_allclose(jacobian.value, np.diag(np.cos([1.0, 2.0]) * [5.0, 6.0]))
    count = len(g)
    for i in range(20):
        x.set([float(i), 1.0])
        assert rg.jacobian(y, x) is jacobian
        _ = jacobian.value
    assert len(g) == count


def test_jacobian_is_differentiated_again_in_both_modes() -> None:
    g = rg.Graph()
    x = g.param([0.5, 1.5])
    jacobian = rg.jacobian(x**3, x)
    total = jacobian.sum()
    np.testing.assert_allclose(rg.grad(total, x).value, [3.0, 9.0])
    np.testing.assert_allclose(rg.jvp(total, x, [1.0, 0.0]).value, 3.0)
    third = rg.jacobian(rg.jacobian(rg.jacobian(x**3, x), x), x)
    assert third.shape == (2, 2, 2, 2)
    wanted = np.zeros((2, 2, 2, 2))
    wanted[0, 0, 0, 0] = wanted[1, 1, 1, 1] = 6.0
    np.testing.assert_allclose(third.value, wanted)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_new_shapes_edits_and_forks(mode: Any) -> None:
    g = rg.Graph()
    x, a, b = g.input([1.0, 2.0]), g.input(3.0), g.input(5.0)
    h = x * a
    y = h * x
    jacobian = rg.jacobian(y, x, mode)
    np.testing.assert_array_equal(jacobian.value, np.diag([6.0, 12.0]))
    x.set([1.0, 2.0, 3.0])
    assert jacobian.shape == (3, 3)
    np.testing.assert_array_equal(jacobian.value, np.diag([6.0, 12.0, 18.0]))
    assert rg.jacobian(y, x, mode) is jacobian
    h.replace_parent(1, b)
    np.testing.assert_array_equal(jacobian.value, np.diag([10.0, 20.0, 30.0]))
    twin = g.fork()
    twin[x].set([1.0])
    np.testing.assert_array_equal(twin[jacobian].value, [[10.0]])
    twin[h].replace_parent(1, twin[a])
    np.testing.assert_array_equal(twin[jacobian].value, [[6.0]])
    np.testing.assert_array_equal(jacobian.value, np.diag([10.0, 20.0, 30.0]))
    assert rg.jacobian(twin[y], twin[x], mode) is twin[jacobian]
    h.pin([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(jacobian.value, np.diag([0.0, 1.0, 2.0]))
    h.unpin()
    np.testing.assert_array_equal(jacobian.value, np.diag([10.0, 20.0, 30.0]))
    g.check_invariants()
    twin.check_invariants()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_shapes_that_are_known_later(mode: Any) -> None:
    g = rg.Graph()
    data = g.input(shape=(None, 2))
    w = g.param(np.ones((2, 2)))
    y = rg.tanh(data @ w).sum(axis=0) * 1.0
    jacobian = rg.jacobian(y, w, mode)
    assert jacobian.shape == (2, 2, 2)
    for rows in (3, 1):
        data.set(np.linspace(0.0, 1.0, rows * 2).reshape(rows, 2))
        np.testing.assert_allclose(jacobian.value, columns(y, w), rtol=1e-12)
    with pytest.raises(rg.ShapeError, match="not known before the input is set"):
        rg.jacobian(y, g.input(shape=(None,)))


def test_python_result_that_changes_its_shape() -> None:
    g = rg.Graph()
    x = g.input([[1.0, 2.0]])
    y = rg.lift(lambda v: v * 2, jvp=lambda tangents, ans, v: tangents[0] * 2.0)(x)
    np.testing.assert_array_equal(rg.jacobian(y, x).value.reshape(2, 2), 2 * np.eye(2))
    x.set([[1.0], [2.0], [3.0]])
    jacobian = rg.jacobian(y, x)
    assert jacobian.value.shape == (3, 1, 3, 1)
    np.testing.assert_array_equal(jacobian.value.reshape(3, 3), 2 * np.eye(3))


def test_jacobians_of_nothing_numbers_and_itself() -> None:
    g = rg.Graph()
    x, number, none = g.input([1.0, 2.0]), g.input(3.0), g.input(np.zeros((0, 2)))
    assert rg.jacobian(none * 2.0, none).value.shape == (0, 2, 0, 2)
    assert rg.jacobian(none.sum(axis=0), none).value.shape == (2, 0, 2)
    assert rg.jacobian(number * number, number).value == 6.0
    np.testing.assert_array_equal(rg.jacobian(number * x, number).value, [1.0, 2.0])
    np.testing.assert_array_equal(rg.jacobian((number * x).sum(), x).value, [3.0, 3.0])
    for mode in ("forward", "reverse"):
        jacobian = rg.jacobian(x, x, mode)
        np.testing.assert_array_equal(jacobian.value, np.eye(2))
        flat = rg.jacobian(rg.sign(x) * 1.0, x, mode)
        assert flat.value.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    one, two = rg.jacobian(number * x, [number, x])
    assert (one.shape, two.shape) == ((2,), (2, 2))


def test_widths_mix() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones(2, "f4")), g.input(np.ones(2, "f8"))
    y = x * w
    for mode in ("forward", "reverse"):
        for one in (x, w):
            jacobian = rg.jacobian(y, one, mode)
            assert jacobian.dtype == jacobian.value.dtype == one.dtype
            np.testing.assert_array_equal(jacobian.value, np.eye(2))


def test_ops_and_functions_that_take_no_further_axis_run_for_each_direction() -> None:
    """A rule that calls Python functions and switches on the way of the derivative."""
    g = rg.Graph()
    x, up = g.input([1.0, 2.0, 3.0]), g.input(1.0)
    double = rg.lift(
        lambda v: v * 2,
        vjp=lambda g, ans, v: double(g),
        jvp=lambda tangents, ans, v: double(tangents[0]),
        shape=(3,),
    )
    y = rg.switch(up > 0.0, double(x) * x, -x)
    for mode in ("forward", "reverse"):
        up.set(1.0)
        jacobian = rg.jacobian(y, x, mode)
        np.testing.assert_array_equal(jacobian.value, np.diag([4.0, 8.0, 12.0]))
        up.set(-1.0)
        np.testing.assert_array_equal(jacobian.value, -np.eye(3))


class Doubled(rg.Function):
    """Its rules call the function itself, so that it lies in the pattern of a Jacobian."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Doubled.apply(g)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return Doubled.apply(t)


def _both(x: Any) -> tuple[Any, Any]:
    return x * 1.0, x[::-1] * 3.0


def _both_vjp(g: Any, ans: Any, x: Any) -> Any:
    first, second = (0.0 * x if one is None else one for one in g)
    return both(first)[0] + both(second)[1]


both = rg.lift(_both, outputs=2, vjp=_both_vjp, jvp=lambda ts, ans, x: both(ts[0]))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_through_several_outputs_and_custom_rules(mode: Any) -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0, 3.0])
    diagonal = np.diag([1.0, 2.0, 3.0])
    wanted = [
        (Doubled.apply(x) * x, 4.0 * diagonal),
        (both(x * x)[1], 6.0 * diagonal[::-1]),
        (rg.concatenate(rg.split(x * x, [1])[::-1]), 2.0 * diagonal[[1, 2, 0]]),
        (rg.stack(rg.unbind(x * x)[::-1]), 2.0 * diagonal[::-1]),
        (rg.split(rg.stack([x * x, x], axis=0), 2, axis=-2)[0][0], 2.0 * diagonal),
    ]
    for y, jacobian in wanted:
        np.testing.assert_array_equal(rg.jacobian(y, x, mode).value, jacobian)
    parts = rg.split(x * x, [1, 2])
    count = len(g)
    kept = rg.jacobian(rg.concatenate(parts), x, mode)
    few = len(g) - count
    wide = rg.Graph().input(np.ones(50))
    parts = rg.split(wide * wide, [1, 2])
    count = len(wide.graph)
    also_kept = rg.jacobian(rg.concatenate(parts), wide, mode)
    assert len(wide.graph) - count == few  # in one pass, whatever the length
    assert kept.shape == (3, 3)
    assert also_kept.shape == (50, 50)


def test_dropped_jacobians_and_products_leave_nothing_behind() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y = (rg.tanh(x) * x).sum()
    gradient = rg.grad(y, x)
    _ = gradient.value
    before = len(g)
    asks: list[Callable[[], Any]] = [
        lambda: rg.hessian(y, x),
        lambda: rg.hvp(y, x, [1.0, 0.0]),
        lambda: rg.jacobian(gradient, x, "reverse"),
        lambda: rg.vjp(gradient, x, [1.0, 0.0]),
    ]
    for _ in range(2):
        for ask in asks:
            found = ask()
            _ = found.value
            x.set(x.value + 1.0)
            _ = found.value
            del found
            assert len(g) == before


def test_loss_on_a_derivative_trains_what_it_was_built_from() -> None:
    """u(x) = sin(w x), trained until u' = cos: backward through forward mode."""
    g = rg.Graph()
    w, x = g.param(0.6), g.input(np.linspace(-1.0, 1.0, 9))
    slopes = rg.jvp(rg.sin(w * x), x, np.ones(9))
    loss = ((slopes - np.cos(x.value)) ** 2).mean()
    for _ in range(60):
        g.zero_grad()
        loss.backward()
        if _ == 2:
            count = len(g)
        w.set(w.value - 0.5 * w.grad)
    assert len(g) == count
    assert float(w) == pytest.approx(1.0, abs=1e-6)


# --- products, gradients with values ----------------------------------------------------------------


def test_hvp_is_live_and_the_same_at_every_ask() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 0.0])
    y = (x**3).sum() * x[0]
    product = rg.hvp(y, x, v)
    count = len(g)
    assert rg.hvp(y, [x], [v])[0] is product
    assert len(g) == count

    def wanted() -> np.ndarray:
        return np.asarray(rg.hessian(y, x).value) @ v.value

    np.testing.assert_allclose(product.value, wanted())
    v.set([0.5, 2.0])
    np.testing.assert_allclose(product.value, wanted())
    x.set([0.5, -1.0])
    np.testing.assert_allclose(product.value, wanted())


def test_second_derivatives_that_an_edit_makes() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 0.0])
    h = x * 3.0
    y = (h * x.detach()).sum()
    h.replace_parent(1, x.detach())
    hessian, product = rg.hessian(y, x), rg.hvp(y, x, v)
    np.testing.assert_array_equal(hessian.value, np.zeros((2, 2)))
    np.testing.assert_array_equal(product.value, [0.0, 0.0])
    h.replace_parent(1, x)
    np.testing.assert_array_equal(hessian.value, np.diag([2.0, 4.0]))
    np.testing.assert_array_equal(product.value, [2.0, 0.0])
    assert rg.hessian(y, x) is hessian
    assert rg.hvp(y, x, v) is product


def test_second_derivatives_follow_new_shapes_when_nothing_else_is_held() -> None:
    g = rg.Graph()
    x, v = g.input([1.0, 2.0]), g.input([1.0, 1.0])
    hessian = rg.hessian((x**3).sum(), x)
    product = rg.hvp((x**3).sum(), x, v)
    gc.collect()
    np.testing.assert_allclose(hessian.value, np.diag([6.0, 12.0]))
    g.set({x: [1.0, 2.0, 3.0], v: [1.0, 0.0, 1.0]})
    np.testing.assert_allclose(hessian.value, np.diag([6.0, 12.0, 18.0]))
    np.testing.assert_allclose(product.value, [6.0, 0.0, 18.0])


def test_hvp_through_functions_without_forward_rule() -> None:
    g = rg.Graph()
    x, unused = g.input([1.0, 2.0]), g.input(1.0)
    cube = rg.lift(lambda v: v**3, vjp=lambda g, ans, v: (g * 3.0 * v**2,), shape=(2,))
    np.testing.assert_allclose(rg.hvp(cube(x).sum(), x, [1.0, 1.0]).value, [6.0, 12.0])
    np.testing.assert_allclose(rg.hessian(cube(x).sum(), x).value, np.diag([6.0, 12.0]))
    one, two = rg.hvp(cube(x).sum(), [x, unused], [[1.0, 1.0], 1.0], allow_unused=True)
    np.testing.assert_allclose(one.value, [6.0, 12.0])
    assert two.value == 0.0


def test_vjp_is_the_gradient_for_a_given_gradient() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 10.0])
    y = x * x
    d = rg.vjp(y, x, v)
    assert rg.vjp(y, [x], v)[0] is d is rg.grad(y, x, gradient=v)
    v.set([0.0, 1.0])
    np.testing.assert_array_equal(d.value, [0.0, 4.0])
    assert rg.vjp(y, xs=x, v=v) is d
    assert rg.vjp(y, g.input(1.0), v, allow_unused=True) is None


def test_value_and_grad_of_a_node() -> None:
    g = rg.Graph()
    x = g.input(3.0)
    y = x * x
    value, gradient = rg.value_and_grad(y, x)
    assert value is y
    assert gradient is rg.grad(y, x)


# --- functions -------------------------------------------------------------------------------------


def model(w: Any, x: Any) -> Any:
    return rg.tanh(x @ w).sum() + (w * w).sum()


W, X = np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([[1.0, 2.0], [0.5, -0.5], [3.0, 0.0]])


def slope(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x.T @ (1.0 - np.tanh(x @ w) ** 2) + 2.0 * w


def test_functions_of_arrays() -> None:
    gradient = rg.grad(model)
    assert gradient.__name__ == "model"
    np.testing.assert_allclose(gradient(W, X), slope(W, X))
    np.testing.assert_allclose(gradient(W.tolist(), X.tolist()), slope(W, X))
    np.testing.assert_allclose(gradient(W, x=X), slope(W, X))
    value, both = rg.value_and_grad(model, argnums=(0, 1))(W, X)
    np.testing.assert_allclose(value, np.tanh(X @ W).sum() + (W * W).sum())
    np.testing.assert_allclose(both[0], slope(W, X))
    np.testing.assert_allclose(rg.grad(model, -1)(W, X), both[1])
    np.testing.assert_allclose(rg.grad(model, [1])(W, X)[0], both[1])
    assert not gradient(W, X).flags.writeable
    assert rg.grad(rg.square)(3.0) == 6.0
    assert rg.grad(np.sin)(0.0) == 1.0


def test_functions_in_all_transforms() -> None:
    rng = np.random.default_rng(0)
    tw, tx = rng.normal(size=W.shape), rng.normal(size=X.shape)
    dw, dx = rg.grad(model, (0, 1))(W, X)
    value, moved = rg.jvp(model, (W, X), (tw, tx))
    assert value == rg.value_and_grad(model)(W, X)[0]
    np.testing.assert_allclose(moved, (dw * tw).sum() + (dx * tx).sum())
    value, pullback = rg.vjp(model, W, X)
    for scale in (1.0, -2.0):
        one, two = pullback(scale)
        np.testing.assert_allclose(one, scale * dw)
        np.testing.assert_allclose(two, scale * dx)
    rows = rg.hessian(model, (0, 1))(W, X)
    assert rows[0][1].shape == W.shape + X.shape
    products = rg.hvp(model, (W, X), (tw, tx))
    for row, product in zip(rows, products, strict=True):
        wanted = np.tensordot(row[0], tw, 2) + np.tensordot(row[1], tx, 2)
        np.testing.assert_allclose(product, wanted, rtol=1e-12, atol=1e-12)
    hidden = rg.jacobian(lambda w, x: rg.tanh(x @ w))
    for mode in ("forward", "reverse"):
        other = rg.jacobian(lambda w, x: rg.tanh(x @ w), mode=mode)
        np.testing.assert_allclose(hidden(W, X), other(W, X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(rg.jacobian(rg.grad(model))(W, X), rows[0][0], rtol=1e-12)


def test_transforms_of_transforms() -> None:
    def f(x: Any) -> Any:
        return x**5

    d: Any = f
    for wanted in (80.0, 160.0, 240.0, 240.0, 120.0, 0.0, 0.0):
        d = rg.grad(d)
        assert d(2.0) == wanted
    forward = rg.grad(lambda x: rg.jvp(f, (x,), (1.0,))[1])
    assert forward(2.0) == 160.0
    assert rg.jvp(rg.grad(rg.grad(f)), (2.0,), (1.0,)) == (160.0, 240.0)
    assert rg.grad(lambda x: rg.vjp(f, x)[1](x)[0])(2.0) == 25 * 2.0**4  # d (x f') / dx
    assert rg.hessian(rg.grad(f))(2.0) == 240.0
    assert rg.grad(rg.hessian(f))(2.0) == 240.0
    assert rg.hvp(rg.grad(f), (2.0,), (1.0,)) == (240.0,)


def test_inner_transform_knows_its_own_variable_only() -> None:
    """d/dx of x * (d/dy of x y) at y: what the inner function closes over is constant there."""

    def f(x: Any) -> Any:
        return x * rg.grad(lambda y: x * y)(x)

    assert rg.grad(f)(3.0) == 6.0
    assert rg.grad(lambda x: rg.grad(lambda y: x + y)(x) * x)(5.0) == 1.0
    product = rg.grad(lambda a, b: a * b)
    assert rg.grad(lambda x: product(x, x))(7.0) == 1.0


def test_functions_called_with_nodes_give_live_nodes() -> None:
    g = rg.Graph()
    w, x = g.param(W), g.input(X)
    gradient = rg.grad(model)(w, x)
    np.testing.assert_allclose(gradient.value, slope(W, X))
    x.set(X + 1.0)
    np.testing.assert_allclose(gradient.value, slope(W, X + 1.0))
    np.testing.assert_allclose(rg.grad(model)(w, X).value, slope(W, X))
    np.testing.assert_allclose(rg.grad(model)(W, x).value, slope(W, X + 1.0))
    value, pullback = rg.vjp(model, w, x)
    assert value.graph is g
    np.testing.assert_allclose(pullback(1.0)[0].value, slope(W, X + 1.0))
    value, moved = rg.jvp(model, (w, X), (np.ones_like(W), np.zeros_like(X)))
    np.testing.assert_allclose(moved.value, slope(W, X).sum())
    with rg.no_grad():
        assert rg.grad(rg.square)(3.0) == 6.0


def counted(f: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    calls = [0]

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return f(*args, **kwargs)

    return counting, calls


def traces(f: Any) -> list[Any]:
    return [trace for idle in _kept.get(f, {}).values() for trace in idle]


def test_function_is_built_once_for_each_kind_of_arguments() -> None:
    f, calls = counted(model)
    gradient = rg.grad(f)
    for i in range(1000):
        np.testing.assert_allclose(gradient(W + i, X), slope(W + i, X))
        if i == 3:
            size = len(traces(f)[0]._graph)
    assert calls == [1]
    assert len(traces(f)) == 1
    assert len(traces(f)[0]._graph) == size
    gradient(W, X[:2])
    gradient(W.astype("f4"), X.astype("f4"))
    assert calls == [3]
    rg.grad(f)(W, X)  # another transform object of the same function
    assert calls == [3]
    rg.jvp(f, (W, X), (W, X))
    rg.jvp(f, (W, X), (W, X))
    rg.vjp(f, W, X)[1](1.0)
    rg.vjp(f, W, X)
    assert calls == [5]
    del gradient
    assert f in _kept
    size = len(_kept)
    del f
    gc.collect()
    assert len(_kept) == size - 1


def test_kinds_that_are_kept_are_bounded() -> None:
    f, calls = counted(lambda x: (x * x).sum())
    gradient = rg.grad(f)
    for n in range(1, MAX_KINDS + 20):
        gradient(np.ones(n))
    assert len(traces(f)) == MAX_KINDS
    gradient(np.ones(MAX_KINDS))
    assert calls[0] == MAX_KINDS + 19
    gradient(np.ones(1))  # the oldest went
    assert calls[0] == MAX_KINDS + 20


def test_memory_of_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    f, calls = counted(lambda x: rg.tanh(rg.exp(x) * x).sum())
    gradient = rg.grad(f)

    def held() -> int:
        return sum(trace._graph.stats().bytes for trace in traces(f))

    gradient(np.ones(1000))
    one = held()
    monkeypatch.setattr("reactgrad.transforms._trace.MAX_BYTES", 3 * one)
    for n in range(1001, 1010):
        gradient(np.ones(n))
        assert held() <= 3 * one
    assert len(traces(f)) == 2, "the oldest went"
    expected = gradient(np.full(100_000, 0.5))
    assert len(traces(f)) == 1
    arguments = 100_000 * 8
    assert arguments <= held() < 1.1 * arguments, "what can be computed again went"
    count = calls[0]
    for value in (0.5, 0.25, 0.5):
        found = gradient(np.full(100_000, value))
        assert (found == expected).all() == (value == 0.5)
        assert held() < 1.1 * arguments
    assert calls[0] == count
    _, pullback = rg.vjp(lambda x: x * x, np.full(100_000, 3.0))
    assert pullback(np.ones(100_000))[0][0] == 6.0


def test_arguments_that_did_not_change_recompute_nothing() -> None:
    runs: list[Any] = []
    slow = rg.lift(lambda x: runs.append(x) or x.sum(), shape=())
    gradient = rg.grad(lambda w, x: w * w * slow(x))
    x = np.arange(3.0)
    assert [gradient(w, x) for w in (1.0, 2.0, 3.0)] == [6.0, 12.0, 18.0]
    assert len(runs) == 1
    x[0] = 5.0  # the same array with other contents
    assert gradient(3.0, x) == 48.0
    assert len(runs) == 2


def test_results_and_arguments_belong_to_the_caller() -> None:
    gradient = rg.grad(lambda x: (x**3).sum())
    x = np.ones(50_000)
    first = gradient(x)
    x[:] = 2.0
    second = gradient(x)
    assert (first[0], second[0]) == (3.0, 12.0)
    _, pullback = rg.vjp(lambda x: x**3, x)
    x[:] = 5.0
    gradient(x)
    assert pullback(np.ones(50_000))[0][0] == 12.0


def test_branch_on_a_value_is_right_and_built_every_time() -> None:
    def f(x: Any) -> Any:
        return x * x if x > 0 else -x

    branching, calls = counted(f)
    gradient = rg.grad(branching)
    assert [gradient(x) for x in (3.0, -3.0, 2.0)] == [6.0, -1.0, 4.0]
    assert calls == [3]
    assert not traces(branching)
    assert rg.grad(rg.grad(branching))(2.0) == 2.0
    steady, calls = counted(lambda x: rg.where(x > 0, x * x, -x))
    assert [rg.grad(steady)(x) for x in (3.0, -3.0, 2.0)] == [6.0, -1.0, 4.0]
    assert calls == [1]

    def power(x: Any, n: Any) -> Any:
        y = x
        for _ in range(int(n) - 1):
            y = y * x
        return y

    assert [rg.grad(power)(2.0, n) for n in (1, 2, 3)] == [1.0, 4.0, 12.0]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: float(x) ** 2,
        lambda x: x.value * 2,
        lambda x: math.exp(x),
        lambda x: np.asarray(x) + 1,
        lambda x: rg.exp(np.float64((x * 2).item())),
    ],
)
def test_an_argument_that_is_only_taken_out_as_a_number_is_refused(fn: Any) -> None:
    """Zeros would be wrong, and without a word."""
    for derivative in (rg.grad(fn), rg.value_and_grad(fn), rg.jacobian(fn), rg.hessian(fn)):
        with pytest.raises(rg.GradientError, match="follows from argument 0 by numbers alone"):
            derivative(3.0)
    with pytest.raises(rg.GradientError, match="from argument 0 by"):
        rg.vjp(fn, 3.0)
    with pytest.raises(rg.GradientError, match="from argument 0 by"):
        rg.jvp(fn, (3.0,), (1.0,))


def test_numbers_taken_out_of_other_arguments_are_constants() -> None:
    def scaled(x: Any, c: Any) -> Any:
        return x * float(c)

    assert rg.grad(scaled)(3.0, 4.0) == 4.0
    assert rg.grad(lambda x: scaled(x, 4.0))(3.0) == 4.0
    with pytest.raises(rg.GradientError, match="from argument 1 by"):
        rg.grad(scaled, argnums=(0, 1))(3.0, 4.0)
    with pytest.raises(rg.GradientError, match="from argument 0 by"):
        rg.grad(lambda w: rg.grad(lambda x: x * x)(2.0) * float(w) * rg.grad(rg.sin)(1.0))(3.0)
    inner = rg.grad(lambda w: rg.grad(lambda x: x * x * float(w))(2.0) * w)
    assert inner(3.0) == 12.0
    # What only chooses between constants, or is only shown, has no part in the result.
    assert rg.grad(lambda x: 1.0 if x > 0 else 0.0)(3.0) == 0.0
    assert rg.grad(lambda x: 1.0 if float(x) > 0 else 0.0)(3.0) == 0.0
    chosen = rg.grad(lambda x, y: y * 2.0 if x.value > 0 else y * 3.0, argnums=(0, 1))
    assert chosen(3.0, 4.0) == (0.0, 2.0)
    assert chosen(-3.0, 4.0) == (0.0, 3.0)
    shown = rg.grad(lambda x, y: (str(y.value), x * 2.0)[1], argnums=(0, 1))
    assert shown(3.0, 4.0) == (2.0, 0.0)
    assert np.array_equal(
        rg.jacobian(lambda x: np.round(np.asarray(x)))([0.2, 1.7]), np.zeros((2, 2))
    )
    assert rg.grad(lambda x: 5.0)(3.0) == 0.0


def test_shapes_may_decide() -> None:
    f, calls = counted(lambda x: sum(x[i] * float(i) for i in range(len(x))))
    assert rg.grad(f)([1.0, 1.0]).tolist() == [0.0, 1.0]
    assert rg.grad(f)([1.0, 1.0, 1.0]).tolist() == [0.0, 1.0, 2.0]
    rg.grad(f)([5.0, 1.0])
    assert calls == [2]


def test_objects_among_the_arguments_are_part_of_their_kind() -> None:
    f, calls = counted(
        lambda x, how="sum", twice=False: getattr(x * x, how)() * (2 if twice else 1)
    )
    gradient = rg.grad(f)
    assert gradient([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert gradient([1.0, 2.0], how="mean").tolist() == [1.0, 2.0]
    assert gradient([1.0, 2.0], "mean", True).tolist() == [2.0, 4.0]
    assert gradient([1.0, 2.0], "mean", twice=True).tolist() == [2.0, 4.0]
    before = list(calls)
    assert gradient([3.0, 2.0], how="mean").tolist() == [3.0, 2.0]
    assert calls == before
    assert rg.grad(lambda x, k: x * k)(2.0, 3) == 3.0


def test_arguments_without_a_part_in_the_result_get_zeros() -> None:
    assert rg.grad(lambda x, y: x * 2.0, (0, 1))(1.0, [1.0, 2.0])[1].tolist() == [0.0, 0.0]
    assert rg.grad(lambda x: 3.0)(1.0) == 0.0
    for detached in (lambda x: x.detach(), lambda x: (x * 2.0).detach()):
        assert (
            rg.grad(detached)(1.0) == rg.hessian(detached)(1.0) == rg.jacobian(detached)(1.0) == 0.0
        )
        assert rg.jvp(detached, (1.0,), (1.0,))[1] == rg.vjp(detached, 1.0)[1](1.0)[0] == 0.0
    assert rg.jacobian(lambda x: np.ones(2))([1.0]).tolist() == [[0.0], [0.0]]
    assert rg.hessian(lambda x: x.sum())([1.0]).tolist() == [[0.0]]
    assert rg.jvp(lambda x, y: x * x, (3.0, 1.0), (1.0, 1.0)) == (9.0, 6.0)
    assert rg.hvp(lambda x, y: x * x, (3.0, 1.0), (1.0, 1.0)) == (2.0, 0.0)
    assert rg.vjp(lambda x, y: x * x, 3.0, 1.0)[1](1.0) == (6.0, 0.0)


@pytest.mark.parametrize("switch", [rg.no_grad, rg.inference, lambda: rg.set_grad_enabled(False)])
def test_functions_are_differentiated_whatever_is_switched_off_around(switch: Any) -> None:
    def square(x: Any) -> Any:
        return x * x

    def half_closed(x: Any) -> Any:
        with rg.no_grad():
            factor = x * 1.0
        return factor * x

    slope, tangent = rg.grad(square), rg.jvp(square, (3.0,), (1.0,))
    x = rg.Graph().input(3.0)
    with switch():
        assert slope(3.0) == slope(x).value == 6.0
        assert rg.jvp(square, (3.0,), (1.0,)) == tangent == (9.0, 6.0)
        assert rg.jvp(square, (x,), (1.0,))[1].value == 6.0
        assert rg.jacobian(square)(np.ones(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
        assert rg.hessian(square)(x).value == 2.0
        for given in (3.0, x):
            y, pullback = rg.vjp(square, given)
            assert float(y) == 9.0
            assert float(pullback(1.0)[0]) == 6.0
        assert rg.grad(half_closed)(3.0) == 3.0  # what it switches off itself counts
        with x.graph.no_grad():
            assert slope(x).value == 6.0
        assert not rg.is_grad_enabled()
    assert slope(3.0) == slope(5.0) - 4.0 == 6.0
    assert rg.grad(half_closed)(3.0) == 3.0
    assert rg.is_grad_enabled()


def test_inner_function_closes_over_the_outer_variable_and_gets_data() -> None:
    def cube(w: Any) -> Callable[[Any], Any]:
        return lambda x: w * x * x

    inner: dict[str, Callable[[Any], Any]] = {
        "grad": lambda w: rg.grad(cube(w))(2.0),
        "value and grad": lambda w: rg.value_and_grad(cube(w))(2.0)[1],
        "vjp": lambda w: rg.vjp(cube(w), 2.0)[1](1.0)[0],
        "jvp": lambda w: rg.jvp(cube(w), (2.0,), (1.0,))[1],
        "jacobian": lambda w: rg.jacobian(cube(w))(2.0),
        "twice": lambda w: rg.grad(lambda x: rg.grad(cube(w))(1.0) * x)(2.0) * 2.0,
    }
    for name, mixed in inner.items():  # d/dw d/dx w x**2 = 2x
        assert rg.grad(mixed)(3.0) == 4.0, name
        assert rg.jvp(mixed, (3.0,), (1.0,)) == (12.0, 4.0), name
        w = rg.Graph().param(3.0)
        dw = rg.grad(mixed)(w)
        assert dw.value == 4.0, name
    curved = {
        "hvp": lambda w: rg.hvp(lambda x: w * (x**3).sum(), (np.ones(2),), (np.ones(2),))[0].sum(),
        "hessian": lambda w: rg.hessian(lambda x: w * (x**3).sum())(np.ones(2)).sum(),
    }
    for name, second in curved.items():
        assert rg.grad(second)(3.0) == 12.0, name
    slope = rg.grad(lambda w: rg.grad(lambda x: w * w * x)(2.0))
    assert [slope(3.0), slope(4.0)] == [6.0, 8.0]  # the trace is used again, and follows


def test_nodes_that_run_in_a_trace_get_values_of_transforms() -> None:
    seen: list[Any] = []

    @rg.lift
    def inner(x: float) -> Any:
        seen.append(rg.grad(lambda z: z * z)(float(x)))
        return seen[-1]

    def branching(w: Any) -> Any:
        return w * w if inner(w).value > 0.0 else w

    assert rg.grad(branching)(3.0) == 6.0
    assert seen == [6.0]
    assert not isinstance(seen[0], rg.Var)


def test_functions_in_functions_in_use() -> None:
    """A lifted function calls the transform that is being computed: each has a trace of its own."""

    def f(x: Any, depth: Any) -> Any:
        inner = rg.lift(lambda d: gradient(3.0, int(d) - 1) if d > 0 else 1.0, shape=())(depth)
        return x * x * inner

    gradient = rg.grad(f)
    assert gradient(3.0, 0) == 6.0
    assert gradient(3.0, 2) == 6.0 * 6.0 * 6.0
    assert gradient(3.0, 2) == 6.0 * 6.0 * 6.0


def test_threads_share_a_transform() -> None:
    f, calls = counted(lambda x, y: (rg.sin(x) * y).sum())
    gradient = rg.grad(f)
    barrier = threading.Barrier(6)
    problems: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        barrier.wait()
        try:
            for _ in range(40):
                x, y = rng.normal(size=4), rng.normal(size=4)
                np.testing.assert_allclose(gradient(x, y), np.cos(x) * y)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert calls[0] <= 6
    assert len(traces(f)) <= 6


def test_error_in_a_function_leaves_no_trace_and_the_next_call_works() -> None:
    failing = [True]

    def inverse(v: Any) -> float:
        return 1.0 / float(v)

    def f(x: Any) -> Any:
        if failing:
            raise KeyError("not yet")
        return rg.lift(inverse, vjp=lambda g, ans, v: -g * ans * ans)(x)

    gradient = rg.grad(f)
    with pytest.raises(KeyError):
        gradient(2.0)
    failing.clear()
    assert gradient(2.0) == -0.25
    with pytest.raises(ZeroDivisionError):
        gradient(0.0)
    assert gradient(2.0) == -0.25


def test_methods_and_callable_objects() -> None:
    class Model:
        scale = 3.0
        __hash__ = None  # type: ignore[assignment]

        def loss(self, x: Any) -> Any:
            return x * x * self.scale

        def __call__(self, x: Any) -> Any:
            return self.loss(x)

        def __eq__(self, other: object) -> bool:
            return self is other

    one = Model()
    assert rg.grad(one)(2.0) == 12.0
    assert rg.grad(one.loss)(2.0) == 12.0
    assert rg.jvp(one.loss, (2.0,), (1.0,)) == (12.0, 12.0)


# --- transforms are differentiated as ops are -----------------------------------------------------------


def cube(x: Any) -> Any:
    return rg.tanh(x[1:] * x[:-1]) * x.sum() + x[0] ** 3


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "vjp": lambda x, t: rg.vjp(cube(x), x, t[1:]),
    "jvp": lambda x, t: rg.jvp(cube(x), x, t),
    "hvp": lambda x, t: rg.hvp(cube(x).sum(), x, t),
    "jacobian forward": lambda x, t: rg.jacobian(cube(x), x, "forward") * t,
    "jacobian reverse": lambda x, t: rg.jacobian(cube(x), x, "reverse") * t,
    "hessian forward": lambda x, t: rg.hessian(cube(x).sum(), x, "forward") * t,
    "hessian reverse": lambda x, t: rg.hessian(cube(x).sum(), x, "reverse") * t,
    "value_and_grad": lambda x, t: rg.value_and_grad((cube(x) ** 2).sum(), x)[1] * t,
    "grad of a function": lambda x, t: rg.grad(lambda a: (cube(a) * cube(x)).sum())(x) * t,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_is_differentiated_to_second_order_in_both_modes(name: str) -> None:
    x, t = np.array([0.5, -0.75, 1.25]), np.array([1.0, 0.5, -0.25])
    rg.testing.check_grads(TRANSFORMS[name], [x, t], rtol=1e-5, atol=1e-5)


# --- against PyTorch -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # its own forward mode
@pytest.mark.parametrize("seed", range(30))
def test_random_program_has_pytorchs_derivatives(seed: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    from tests.autodiff.test_torch import program

    arrays, build_both = program(seed)
    rng = np.random.default_rng(seed + 1000)
    tangents = [rng.normal(size=a.shape) for a in arrays]
    theirs = [torch.tensor(a, dtype=torch.float64) for a in arrays]
    their_ts = [torch.tensor(t, dtype=torch.float64) for t in tangents]

    def ours(*xs: Any) -> Any:
        return build_both(list(xs), None)

    def other(*xs: Any) -> Any:
        return build_both(list(xs), torch)

    def same(got: Any, wanted: Any) -> None:
        wanted = wanted.detach().numpy()
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10 * scale)

    value, moved = rg.jvp(ours, tuple(arrays), tuple(tangents))
    their_value, their_moved = torch.func.jvp(other, tuple(theirs), tuple(their_ts))
    same(value, their_value)
    same(moved, their_moved)
    gradients = torch.func.grad(other, argnums=(0, 1, 2, 3))(*theirs)
    for got, wanted in zip(rg.grad(ours, (0, 1, 2, 3))(*arrays), gradients, strict=True):
        same(got, wanted)
    got = rg.hvp(ours, tuple(arrays), tuple(tangents))
    _, wanted_products = torch.func.jvp(
        torch.func.grad(other, argnums=(0, 1, 2, 3)), tuple(theirs), tuple(their_ts)
    )
    for one, wanted in zip(got, wanted_products, strict=True):
        same(one, wanted)
    same(rg.hessian(ours)(*arrays), torch.func.hessian(other)(*theirs))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_jacobians_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

    def f(lib: Any) -> Callable[..., Any]:
        return lambda w, x: lib.tanh(x @ w) * lib.sigmoid(x.sum()) + lib.exp(w)[0]

    args = [torch.tensor(a) for a in (W, X)]
    for argnums in (0, 1):
        wanted = torch.func.jacrev(f(torch), argnums)(*args).numpy()
        second = torch.func.jacfwd(torch.func.jacrev(f(torch), argnums), argnums)(*args).numpy()
        for mode in ("forward", "reverse"):
            jacobian = rg.jacobian(f(rg), argnums, mode)
            np.testing.assert_allclose(jacobian(W, X), wanted, rtol=1e-10, atol=1e-12)
            again = rg.jacobian(jacobian, argnums, mode)
            np.testing.assert_allclose(again(W, X), second, rtol=1e-10, atol=1e-12)


# --- what cannot be done says why (rule D10) -----------------------------------------------------------


def vector() -> Any:
    return rg.Graph().param([1.0, 2.0], name="w")


def identity(x: Any) -> Any:
    return x


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "grad: nothing to differentiate for": (
        lambda: rg.grad(vector().sum()),
        RuntimeError,
        r"rg\.grad of a node needs the nodes.*rg\.grad\(y, x\)",
    ),
    "jacobian: nothing to differentiate for": (
        lambda: rg.jacobian(vector()),
        RuntimeError,
        r"rg\.jacobian\(y, x\)",
    ),
    "jacobian: unused": (
        lambda: (lambda w: rg.jacobian(w, w.graph.param(1.0, name="v")))(vector()),
        RuntimeError,
        r"'w' does not depend on 'v'.*allow_unused=True",
    ),
    "jacobian: mode": (
        lambda: (lambda w: rg.jacobian(w, w, "backward"))(vector()),  # type: ignore[arg-type]
        RuntimeError,
        r"mode='backward'.*'forward'.*'reverse'.*None chooses",
    ),
    "jacobian: no Var": (
        lambda: rg.jacobian(vector(), [1.0]),
        TypeError,
        r"takes Vars of this graph, or names, not float",
    ),
    "jacobian: integers": (
        lambda: (lambda n: rg.jacobian(n * 2.0, n))(rg.Graph().input(3, name="n")),
        TypeError,
        r"'n'.*int64.*3\.0 instead of 3",
    ),
    "jacobian: integer result": (
        lambda: (lambda n: rg.jacobian(n, n))(rg.Graph().input(3)),
        TypeError,
        r"int64.*astype",
    ),
    "hessian: several elements": (
        lambda: (lambda w: rg.hessian(w * w, w))(vector()),
        ValueError,
        r"shape \(2,\).*\.sum\(\).*weights",
    ),
    "hvp: several elements": (
        lambda: (lambda w: rg.hvp(w * w, w, [1.0, 1.0]))(vector()),
        ValueError,
        r"shape \(2,\)",
    ),
    "hvp: direction": (
        lambda: (lambda w: rg.hvp((w * w).sum(), w, 1.0))(vector()),
        ValueError,
        r"direction for 'w' has shape \(\).*\(2,\)",
    ),
    "vjp: shape": (
        lambda: (lambda w: rg.vjp(w * w, w, 1.0))(vector()),
        ValueError,
        r"v has shape \(\).*\(2,\)",
    ),
    "vjp: without v": (
        lambda: (lambda w: rg.vjp(w * w, w))(vector()),
        RuntimeError,
        r"rg\.vjp\(y, xs, v\).*rg\.vjp\(fn, \*primals\)",
    ),
    "value_and_grad: no Var": (
        lambda: rg.value_and_grad(3.0, vector()),
        TypeError,
        r"takes a Var, not float",
    ),
    "grad: a number and no nodes": (
        lambda: rg.grad(3.0),
        TypeError,
        r"rg\.grad\(y, x\); or a function",
    ),
    "function: a node of another graph": (
        lambda: (lambda w: rg.grad(lambda a: (a * w).sum())(2.0))(vector()),
        rg.GraphError,
        r"nodes of a graph of its own.*x\.value",
    ),
    "function: another graph's node first": (
        lambda: (lambda w: rg.grad(lambda a: (w * a).sum())(2.0))(vector()),
        rg.GraphError,
        r"nodes of a graph of its own.*x\.value",
    ),
    "function: several elements": (
        lambda: rg.grad(identity)([1.0, 2.0]),
        ValueError,
        r"rg\.grad\(identity\).*shape \(2,\).*\.sum\(\).*rg\.jacobian\(identity\).*rg\.vjp\(identity",
    ),
    "function: hessian of several elements": (
        lambda: rg.hessian(identity)([1.0, 2.0]),
        ValueError,
        r"rg\.hessian\(identity\).*shape \(2,\)",
    ),
    "function: integers": (
        lambda: rg.grad(identity)(3),
        TypeError,
        r"rg\.grad\(identity\): argument 0 is a Python int.*3\.0 instead of 3",
    ),
    "function: a string": (
        lambda: rg.grad(lambda x, how: x, 1)(3.0, "sum"),
        TypeError,
        r"argument 1 is str.*argnums=",
    ),
    "function: a dictionary": (
        lambda: rg.grad(lambda p: p["w"])({"w": 1.0}),
        TypeError,
        r"rg\.grad\(<lambda>\) was called with dict.*numbers and arrays.*of their own",
    ),
    "function: argnums too large": (
        lambda: rg.grad(identity, 2)(1.0),
        RuntimeError,
        r"argnums=2.*1 positional arguments.*from 0",
    ),
    "function: argnums of another kind": (
        lambda: rg.grad(identity, "x"),
        TypeError,
        r"argnums='x'.*by position",
    ),
    "function: a Var as argnums": (
        lambda: rg.grad(identity, vector()),
        TypeError,
        r"pass a Var first",
    ),
    "function: gradient=": (
        lambda: rg.grad(identity, gradient=1.0),
        RuntimeError,
        r"takes no gradient=; use rg\.vjp\(fn, \*primals\)",
    ),
    "function: allow_unused=": (
        lambda: rg.jacobian(identity, allow_unused=True),
        RuntimeError,
        r"takes no allow_unused=; unused arguments get zeros",
    ),
    "function: returns nothing": (
        lambda: rg.grad(lambda x: None)(1.0),
        TypeError,
        r"returned NoneType; it must return one Var",
    ),
    "function: returns several": (
        lambda: rg.grad(lambda x: (x, x))(1.0),
        TypeError,
        r"returned tuple.*rg\.stack",
    ),
    "function: returns integers": (
        lambda: rg.grad(lambda x: x.astype(int))(1.0),
        TypeError,
        r"int64",
    ),
    "jvp of a function: no tuple": (
        lambda: rg.jvp(identity, 1.0, 1.0),
        TypeError,
        r"tuple of the function's arguments, not float.*\(x,\)",
    ),
    "jvp of a function: fewer directions": (
        lambda: rg.jvp(identity, (1.0, 2.0), (1.0,)),
        RuntimeError,
        r"2 arguments and 1 directions",
    ),
    "jvp of a function: shape": (
        lambda: rg.jvp(identity, ([1.0, 2.0],), ([1.0],)),
        ValueError,
        r"rg\.jvp\(identity\): direction 0 has shape \(1,\).*\(2,\)",
    ),
    "vjp of a function: shape": (
        lambda: rg.vjp(identity, [1.0, 2.0])[1](1.0),
        ValueError,
        r"rg\.vjp\(identity\): v has shape \(\).*\(2,\)",
    ),
    "vjp of a function: complex": (
        lambda: rg.vjp(identity, [1.0, 2.0])[1]([1j, 1j]),
        TypeError,
        r"v is complex128\[2\]; directions are floats",
    ),
    "vjp of a function: named arguments": (
        lambda: rg.vjp(identity, x=1.0),
        RuntimeError,
        r"rg\.vjp of a function takes no x=; differentiate lambda x: fn\(x, \.\.\.\)",
    ),
    "vjp of a function: no arguments": (
        lambda: rg.vjp(identity),
        RuntimeError,
        r"no arguments: rg\.vjp\(fn, \*primals\)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_done_says_why(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


def test_nodes_to_differentiate_for_may_be_named() -> None:
    g = rg.Graph()
    x, w = g.param([1.0, 2.0], name="x"), g.param([3.0, 4.0], name="w")
    y = (x * x * w).sum()
    assert rg.grad(y, "x") is rg.grad(y, x)
    named, given = rg.grad(y, ["x", w]), rg.grad(y, [x, w])
    assert all(a is b for a, b in zip(named, given, strict=True))
    assert rg.jacobian(y, "x") is rg.jacobian(y, x)
    assert rg.hessian(y, "x") is rg.hessian(y, x)
    with pytest.raises(rg.UnknownNameError, match="z"):
        rg.grad(y, "z")


# --- products along nodes of the same graph ------------------------------------------------------------


def test_a_direction_that_is_computed_from_x_does_not_move_with_it() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    y = (w**3).sum()
    along = rg.grad(y, w)
    product = rg.hvp(y, w, along)
    assert rg.hvp(y, w, along) is product
    for values in ([1.0, 2.0], [3.0, -1.0]):
        w.set(values)
        np.testing.assert_allclose(product.value, rg.hessian(y, w).value @ along.value)


def test_x_as_its_own_direction() -> None:
    g = rg.Graph()
    x = g.param(3.0)
    assert rg.hvp(x, x, x, allow_unused=True).value == 0.0
    product = rg.hvp(x**3, x, x)
    assert product.value == 54.0  # 6 x, times x
    x.set(2.0)
    assert product.value == 24.0


def test_a_product_passes_gradients_to_its_direction() -> None:
    """It does not move with ``x``; what is derived from it does: 6 x t, of which t may be anything."""
    g = rg.Graph()
    x, u = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    y = (x**3).sum()
    for along, by, expected in (
        (u, u, [6.0, 12.0]),
        (u * 1.0, u, [6.0, 12.0]),
        (u * 1.0, x, [18.0, 24.0]),
        (x, x, [12.0, 24.0]),
        (x * 1.0, x, [12.0, 24.0]),
        (x * u, x, [36.0, 96.0]),
    ):
        product = rg.hvp(y, x, along)
        np.testing.assert_allclose(rg.grad(product.sum(), by).value, expected)
        fork = g.fork()
        with fork:
            again = rg.grad(rg.hvp(fork[y], fork[x], fork[along]).sum(), fork[by])
        np.testing.assert_allclose(again.value, expected)
    # The product of a product moves with the direction of the one before, also where it is the same one.
    third = rg.hvp(rg.hvp(y, x, x * 1.0).sum(), x, u)
    np.testing.assert_allclose(third.value, [36.0, 48.0])
    for along in (x, x * 1.0):
        again = rg.hvp(rg.hvp(y, x, along).sum(), x, along)
        np.testing.assert_allclose(again.value, [12.0, 24.0])


def test_a_detached_direction_is_a_direction_like_its_value() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    m = x * 2.0
    y = (m**3).sum()
    for along in (m.detach(), m, m.value, m.detach_node()):
        product = rg.hvp(y, x, along)
        np.testing.assert_allclose(product.value, [96.0, 384.0])
    slope = rg.grad(rg.hvp(y, x, m.detach()).sum(), x)
    np.testing.assert_allclose(slope.value, [96.0, 192.0])


def test_a_product_that_was_asked_for_under_no_grad_is_like_any_other() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y, along = (x**3).sum(), x * 1.0
    with rg.no_grad():
        product = rg.hvp(y, x, along)
    np.testing.assert_allclose(product.value, [6.0, 24.0])
    np.testing.assert_allclose(rg.grad(rg.hvp(y, x, along).sum(), x).value, [12.0, 24.0])


def test_a_product_passes_gradients_to_its_direction_through_functions_without_forward_rule() -> (
    None
):
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    cube = rg.lift(lambda a: a**3, vjp=lambda g, ans, a: (g * 3.0 * a * a,))
    product = rg.hvp(cube(x).sum(), x, x * 1.0)
    np.testing.assert_allclose(product.value, [6.0, 24.0])
    np.testing.assert_allclose(rg.grad(product.sum(), x).value, [12.0, 24.0])


def test_what_becomes_of_a_detached_node_of_the_direction_changes_no_product() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    along = w * 1.0
    detached = along.detach_node()
    product = rg.hvp((w**3).sum(), w, along)
    detached.replace_parent(0, g.input([100.0, 100.0]))
    detached.cutoff = lambda old, new: True
    np.testing.assert_array_equal(product.value, [6.0, 24.0])
    w.set([3.0, 4.0])
    np.testing.assert_array_equal(product.value, [54.0, 96.0])
