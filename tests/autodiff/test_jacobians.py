"""Jacobians and Hessians of nodes: values, what is built, what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert w.item() == pytest.approx(1.0, abs=1e-6)
