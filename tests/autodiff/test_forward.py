"""Forward mode: tangents are live nodes, built by forward rules alone, pruned, dual to gradients."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.nodes._op import OPS
from tests.autodiff.test_kinks import FACTS
from tests.autodiff.test_rules import CASES
from tests.laws.random_program import Code
from tests.laws.test_gradients_equal_fresh import CODES, build

# --- against reverse mode ------------------------------------------------------------------------


def directions_for(leaves: list[Any], y: Any) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=x.shape) for x in leaves], rng.normal(size=y.shape)


def dot(a: Any, b: Any) -> float:
    return float(np.sum(np.asarray(a) * np.asarray(b)))


@pytest.mark.parametrize("name", CASES)
def test_forward_is_the_transpose_of_reverse(name: str) -> None:
    """<v, J t> = <J^T v, t>."""
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a) for a in args]
    y = f(*leaves)
    ts, v = directions_for(leaves, y)
    forward = dot(v, rg.jvp(y, leaves, ts, allow_unused=True).value)
    gradients = rg.vjp(y, leaves, v, allow_unused=True)
    reverse = sum(dot(d.value, t) for d, t in zip(gradients, ts, strict=True) if d is not None)
    assert forward == pytest.approx(reverse, rel=1e-12, abs=1e-12)


BROADCASTING = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "remainder": lambda a, b: a % b,
    "maximum": rg.maximum,
    "minimum": rg.minimum,
    "hypot": rg.hypot,
    "arctan2": rg.arctan2,
    "logaddexp": rg.logaddexp,
    "where": lambda a, b: rg.where(b > 2.5, a, b),
    "clip": lambda a, b: rg.clip(a, b - 0.5, b + 0.5),
    "linear": lambda a, b: rg.linear(b, np.eye(2), a),
}


@pytest.mark.parametrize("still", ["detached", "integers", "frozen by a const"])
@pytest.mark.parametrize("name", BROADCASTING)
def test_tangents_spread_over_operands_that_stand_still(name: str, still: str) -> None:
    """What does not move has a say in the shape of the result: it may be larger than what moves."""
    f = BROADCASTING[name]
    wide = np.array([[1, 2], [3, 4], [5, 6]])
    if still == "integers" and name == "linear":
        pytest.skip("its operands are floats")

    def built(both: bool) -> tuple[Any, Any, Any]:
        g = rg.Graph()
        x = g.input([1.25, 2.75])
        if both:  # an operand that could move, and does not
            other = g.input(wide.astype(float))
        elif still == "detached":
            other = g.input(wide.astype(float)).detach()
        elif still == "integers":
            other = g.input(wide)
        else:
            other = g.const(wide.astype(float))
        return (
            x,
            f(x, other),
            f(other, x) if name not in ("linear", "where", "clip") else f(x, other),
        )

    x, *ys = built(both=False)
    z, *others = built(both=True)
    for y, other in zip(ys, others, strict=True):
        assert rg.jvp(y, x, [1.0, 0.5]).shape == y.shape
        for what in (
            lambda y, x: rg.jvp(y, x, [1.0, 0.5]),
            lambda y, x: rg.jacobian(y, x),
            lambda y, x: rg.hessian(y.sum() ** 2, x),
            lambda y, x: rg.hvp((y * y).sum(), x, [1.0, 0.5]),
        ):
            ours, theirs = what(y, x), what(other, z)
            if isinstance(ours, list | tuple):
                (ours,), (theirs,) = ours, theirs
            np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-14)
        reverse = rg.jacobian(y, x, mode="reverse").value
        np.testing.assert_allclose(rg.jacobian(y, x, mode="forward").value, reverse, rtol=1e-14)


@given(nodes=st.lists(CODES, min_size=1, max_size=12), seed=st.integers(0, 1000))
def test_forward_is_the_transpose_of_reverse_in_random_programs(
    nodes: list[int], seed: int
) -> None:
    g, made = build(nodes)
    y, rng, code = made[-1], np.random.default_rng(seed), Code(seed)
    # Also intermediate nodes, which depend on others that are asked for.
    xs = list(dict.fromkeys([*made[:3], code.among(made)]))
    ts, v = [rng.normal(size=x.shape) for x in xs], rng.normal(size=y.shape)
    tangent = rg.jvp(y, xs, ts, allow_unused=True)
    gradients = rg.vjp(y, xs, v, allow_unused=True)
    reverse = sum(dot(d.value, t) for d, t in zip(gradients, ts, strict=True) if d is not None)
    assert dot(v, tangent.value) == pytest.approx(reverse, rel=1e-10, abs=1e-10)
    # It stays so when values change, and what is built anew agrees bit for bit.
    made[0].set(made[0].value + 0.25)
    twin, again = build(nodes)
    twin.set({again[0]: made[0].value})
    fresh = rg.jvp(again[-1], [again[among(made, x)] for x in xs], ts, allow_unused=True)
    np.testing.assert_array_equal(tangent.value, fresh.value)
    g.check_invariants()


def among(made: list[Any], x: Any) -> int:
    return next(i for i, one in enumerate(made) if one is x)


@pytest.mark.parametrize("unknown", [False, True], ids=["known shapes", "a Python result"])
@pytest.mark.parametrize("name", FACTS)
def test_tangent_at_a_kink_is_the_gradient_there(name: str, unknown: bool) -> None:
    f, args, expected = FACTS[name]
    g = rg.Graph()
    identity = rg.lift(lambda v: v, jvp=lambda tangents, ans, v: tangents[0])
    leaves = [g.param(np.asarray(a, float)) for a in args]
    y = f(*[identity(x) for x in leaves] if unknown else leaves)
    for x, wanted in zip(leaves, expected, strict=True):
        slopes = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            t = np.zeros(x.shape)
            t[at] = 1.0
            moved = np.asarray(rg.jvp(y, x, t, allow_unused=True).value)
            # Elementwise ops: what others do is 0 times their slope, which may be infinite.
            same = moved.shape == x.shape and x.size > 1
            slopes[at] = moved[at] if same else moved.sum()
        np.testing.assert_allclose(slopes, np.asarray(wanted, float), rtol=1e-14, err_msg=name)


# --- by rules of its own ---------------------------------------------------------------------------


def remove(monkeypatch: pytest.MonkeyPatch, *columns: str) -> None:
    for op in OPS.values():
        for column in columns:
            monkeypatch.setattr(op, column, None)


def answers(name: str, mode: str) -> list[np.ndarray]:
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a) for a in args]
    y = f(*leaves)
    ts, v = directions_for(leaves, y)
    if mode == "forward":
        return [rg.jvp(y, leaves, ts, allow_unused=True).value]
    found = rg.vjp(y, leaves, v, allow_unused=True)
    return [d.value for d in found if d is not None]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_either_mode_works_without_the_rules_of_the_other(
    name: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = answers(name, mode)
    other = ("vjps", "variadic") if mode == "forward" else ("jvps", "variadic_jvp")
    remove(monkeypatch, *other)
    for got, want in zip(answers(name, mode), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(rg.GradientError, match="rule"):
        answers("tanh", "reverse" if mode == "forward" else "forward")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_tangent_has_shape_and_dtype_of_its_node(name: str, dtype: str) -> None:
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a.astype(dtype)) for a in args]
    y = f(*leaves)
    for out in (y, y * g.param(np.float64(1.5))):
        tangent = rg.jvp(out, leaves, [np.ones(x.shape) for x in leaves], allow_unused=True)
        assert (tangent.shape, tangent.dtype) == (out.shape, out.dtype)
        assert (np.shape(tangent.value), tangent.value.dtype) == (out.shape, out.dtype)


# --- live nodes ------------------------------------------------------------------------------------


def test_tangent_is_lazy_versioned_live_and_the_same_at_every_ask() -> None:
    g = rg.Graph()
    x, t = g.input(3.0), g.input(1.0)
    y = x * x * x
    dy = rg.jvp(y, x, t)
    count = len(g)
    assert rg.jvp(y, [x], [t]) is dy
    assert len(g) == count
    assert (dy.value_version, dy.is_stale) == (0, True)
    assert (dy.value, dy.value_version) == (27.0, 1)
    x.set(2.0)
    assert (dy.value, dy.value_version) == (12.0, 2)
    t.set(0.5)
    assert dy.value == 6.0
    assert not g.forward(dy).ran
    assert rg.jvp(y, x, g.input(1.0)) is not dy


def test_what_is_recomputed_is_counted() -> None:
    """200 layers: a new direction reruns tangents only, the last weight only what is behind it."""
    g = rg.Graph()
    x, t = g.input(0.5), g.input(1.0)
    weights = [g.param(1.0 + i / 1000) for i in range(200)]
    y = x
    for w in weights:
        y = rg.sin(y * w)
    _ = y.value
    dy = rg.jvp(y, x, t)
    assert len(g.forward(dy).ran) == 200 * 3  # tangent * w, cos, and their product
    t.set(2.0)
    assert len(g.forward(dy).ran) == 200 * 2  # not the cosines
    weights[-1].set(0.9)
    run = g.forward(dy)
    # The last product and sine's argument, its cosine, and the tangents of both.
    assert len(run.ran) == 4
    other = g.input(1.0)
    z = y + other
    dz = rg.jvp(z, x, t)
    _ = dz.value
    other.set(5.0)
    assert not dz.is_stale


def test_only_nodes_between_the_sources_and_the_output_get_a_tangent() -> None:
    def added(width: int) -> int:
        g = rg.Graph()
        x, w = g.input(2.0), g.param(3.0)
        before = w
        for _ in range(width):
            before = rg.sin(before)
        y = x * before
        behind = y
        for _ in range(width):
            behind = rg.sin(behind)
        aside = x
        for _ in range(width):
            aside = rg.cos(aside)
        count = len(g)
        dy = rg.jvp(y, x, 1.0)
        assert dy.value == before.value
        return len(g) - count

    assert added(50) == added(1) == 2  # the direction, and its product


@pytest.mark.slow
def test_tangents_of_a_chain_are_linear_and_need_no_recursion() -> None:
    depth = 20_000
    g = rg.Graph()
    x = g.input(1.0)
    y = x
    for _ in range(depth):
        y = y * 1.0001
    count = len(g)
    dy = rg.jvp(y, x, 1.0)
    assert len(g) - count <= depth + 2
    assert dy.value == pytest.approx(1.0001**depth, rel=1e-9)


def test_diamonds_cost_linear_work() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x
    for _ in range(40):
        y = y + y
    assert rg.jvp(y, x, 1.0).value == 2.0**40
    assert len(g) < 200


def test_forward_of_forward_of_reverse_and_back() -> None:
    g = rg.Graph()
    x, t = g.input(2.0), g.input(1.0)
    y = x**5
    assert rg.jvp(rg.jvp(y, x, t), x, t).value == 160.0
    assert rg.jvp(rg.grad(y, x), x, t).value == 160.0
    assert rg.grad(rg.jvp(y, x, t), x).value == 160.0
    assert rg.grad(rg.jvp(y, x, t), t).value == 80.0  # linear in the direction
    third = rg.jvp(rg.grad(rg.jvp(y, x, t), x), x, t)
    assert third.value == 240.0
    x.set(1.0)
    assert third.value == 60.0


def test_several_sources_one_of_which_depends_on_another() -> None:
    """As gradients: the derivative by `h` is that by h alone, that by `x` also goes through h."""
    g = rg.Graph()
    x = g.input(3.0)
    h = x * x
    y = h * x
    assert rg.jvp(y, [x, h], [1.0, 0.0]).value == 27.0
    assert rg.jvp(y, [x, h], [0.0, 1.0]).value == 3.0
    assert rg.jvp(y, [h, x], [10.0, 1.0]).value == 57.0
    assert rg.jvp(y, y, 4.0).value == 4.0


def test_dropped_tangents_leave_nothing_behind() -> None:
    g = rg.Graph()
    w, t = g.param([1.0, 2.0]), g.input([1.0, 0.0])
    y = (rg.tanh(w) * w).sum()
    _ = y.value
    before = len(g)
    for direction in (t, [1.0, 0.0], t):
        dy = rg.jvp(y, w, direction)
        _ = dy.value
        del dy
        assert len(g) == before  # without the cyclic collector
    for _ in range(3):
        dy = rg.jvp((rg.sin(w) * w).sum(), w, t)
        w.set(w.value + 1.0)
        _ = dy.value
        del dy
        assert len(g) == before


def test_tangent_outlives_the_handle_of_its_output() -> None:
    g = rg.Graph()
    x = g.param(2.0)
    dy = rg.jvp(x**3, x, 1.0)
    gc.collect()
    x.set(3.0)
    assert dy.value == 27.0


# --- what passes no derivative ---------------------------------------------------------------------


def test_detached_edges_no_grad_and_integers_pass_no_tangent() -> None:
    g = rg.Graph()
    x = g.param([1.5, -2.5])
    ones = np.ones(2)
    np.testing.assert_array_equal(rg.jvp(x.detach() * x, x, ones).value, x.value)
    with rg.no_grad():
        constant = x * 2.0
    np.testing.assert_array_equal(rg.jvp(constant * x, x, ones).value, constant.value)
    y = x * x.astype(int) + (x > 0) * x
    np.testing.assert_array_equal(rg.jvp(y, x, ones).value, [1 + 1, -2])
    for none in (x.detach() * 2.0, constant, x.astype(int).astype(float)):
        with pytest.raises(rg.GradientError, match="allow_unused=True"):
            rg.jvp(none, x, ones)
        zero = rg.jvp(none, x, ones, allow_unused=True)
        np.testing.assert_array_equal(zero.value, [0.0, 0.0])
        assert zero.dtype == none.dtype


def test_tangents_are_built_inside_no_grad_too() -> None:
    g = rg.Graph()
    x = g.param(3.0)
    y = x * x
    with rg.no_grad():
        dy = rg.jvp(y, x, 1.0)
    assert rg.grad(dy, x).value == 2.0


def test_frozen_and_trainable_params_move_alike() -> None:
    g = rg.Graph()
    w = g.param(3.0).freeze()
    assert rg.jvp(w * w, w, 1.0).value == 6.0


def test_detached_direction_is_constant() -> None:
    g = rg.Graph()
    x, t = g.param(3.0), g.param(2.0)
    dy = rg.jvp(x * x, x, t.detach())
    assert dy.value == 12.0
    assert rg.grad(dy, t, allow_unused=True) is None


def test_pinned_node_stands_still_and_moves_again() -> None:
    g = rg.Graph()
    x = g.input(2.0)
    h = x * 3.0
    y = h * x
    dy = rg.jvp(y, x, 1.0)
    assert dy.value == 12.0
    h.pin(10.0)
    assert dy.value == 10.0
    assert rg.jvp(y, h, 1.0).value == 2.0
    h.unpin()
    assert dy.value == 12.0


def test_switch_moves_with_the_branch_taken() -> None:
    g = rg.Graph()
    x = g.input(2.0)
    y = rg.switch(x > 0.0, x * x, 5.0 * x)
    z = rg.switch(x > 0.0, x * x, 7.0)
    dy, dz = rg.jvp(y, x, 1.0), rg.jvp(z, x, 1.0)
    assert (dy.value, dz.value) == (4.0, 4.0)
    x.set(-1.0)
    assert (dy.value, dz.value) == (5.0, 0.0)
    assert rg.jvp(dy, x, 1.0).value == 0.0
    x.set(3.0)
    assert rg.jvp(dy, x, 1.0).value == 2.0


# --- edits, shapes, forks ----------------------------------------------------------------------------


def test_tangent_follows_an_edit() -> None:
    g = rg.Graph()
    a, b = g.param(2.0), g.param(3.0)
    y = rg.square(a)
    z = y * a
    dz = rg.jvp(z, a, 1.0)
    assert dz.value == 12.0
    y.replace_parent(0, b)
    assert dz.value == 9.0
    y.replace_parent(0, a)
    assert dz.value == 12.0
    with pytest.raises(RuntimeError):
        with g.transaction():
            y.replace_parent(0, b)
            assert dz.value == 9.0
            raise RuntimeError
    assert dz.value == 12.0
    assert rg.jvp(z, a, 1.0) is not dz  # another array, other nodes


def test_tangent_of_a_path_that_an_edit_makes_and_removes() -> None:
    g = rg.Graph()
    a, b, t = g.param(2.0), g.param(3.0), g.input(1.0)
    y = rg.square(b) * 1.0
    dy = rg.jvp(y, a, t, allow_unused=True)
    assert dy.value == 0.0
    square = y.parents[0]
    square.replace_parent(0, a)
    assert dy.value == 4.0
    assert rg.jvp(y, a, t) is dy
    square.replace_parent(0, b)
    assert dy.value == 0.0


def test_new_shapes_rebuild_the_tangent_and_keep_its_var() -> None:
    g = rg.Graph()
    x, t = g.input([1.0, 2.0]), g.input([1.0, 1.0])
    y = rg.stack([x * x, x.sum() * x], axis=1)
    dy = rg.jvp(y, x, t)
    assert dy.value.shape == (2, 2)
    g.set({x: [1.0, 2.0, 3.0], t: [1.0, 0.0, 0.0]})
    assert dy.shape == (3, 2)
    np.testing.assert_array_equal(dy.value, [[2.0, 7.0], [0.0, 2.0], [0.0, 3.0]])
    assert rg.jvp(y, x, t) is dy
    with pytest.raises(rg.ShapeError, match=r"direction of shape \(3,\).*g\.set"):
        x.set([1.0, 2.0])
    assert x.shape == (3,)
    np.testing.assert_array_equal(dy.value, [[2.0, 7.0], [0.0, 2.0], [0.0, 3.0]])
    g.check_invariants()


def test_lengths_that_are_not_known_yet() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 2))
    t = g.input(shape=(None, 2))
    dy = rg.jvp(rg.concatenate([x * x, x], axis=1).sum(axis=0), x, t)
    assert dy.shape == (4,)
    g.set({x: np.ones((3, 2)), t: np.ones((3, 2))})
    np.testing.assert_array_equal(dy.value, [6.0, 6.0, 3.0, 3.0])
    g.set({x: np.ones((1, 2)), t: np.ones((1, 2))})
    np.testing.assert_array_equal(dy.value, [2.0, 2.0, 1.0, 1.0])


def test_tangent_in_a_fork_lives_on_by_itself() -> None:
    g = rg.Graph()
    x, t = g.input(2.0, name="x"), g.input(1.0)
    a, b = g.param(3.0), g.param(5.0)
    h = x * a
    y = h * x
    dy = rg.jvp(y, x, t)
    assert dy.value == 12.0
    twin = g.fork()
    twin[x].set(3.0)
    assert (twin[dy].value, dy.value) == (18.0, 12.0)
    assert rg.jvp(twin[y], twin[x], twin[t]) is twin[dy]
    twin[h].replace_parent(1, twin[b])
    assert (twin[dy].value, dy.value) == (30.0, 12.0)
    again = twin.fork()
    again[h].replace_parent(1, again[a])
    assert (again[dy].value, twin[dy].value) == (18.0, 30.0)
    twin.check_invariants()


def test_gradient_that_was_given_a_var_follows_edits_in_a_fork() -> None:
    g = rg.Graph()
    x, v = g.param(2.0), g.input(1.0)
    a, b = g.input(3.0), g.input(5.0)
    h = x * a
    d = rg.vjp(h, x, v)
    assert d.value == 3.0
    twin = g.fork()
    twin[h].replace_parent(1, twin[b])
    assert (twin[d].value, d.value) == (5.0, 3.0)
    assert rg.vjp(twin[h], twin[x], twin[v]) is twin[d]


def test_saved_tangent_comes_back_as_a_node(tmp_path: Any) -> None:
    pytest.importorskip("safetensors", reason="safetensors is in the io extra")
    g = rg.Graph()
    x, t = g.input(2.0, name="x"), g.input(1.0, name="t")
    dy = rg.jvp(x * x, x, t)
    dy.name = "dy"
    g.save(tmp_path / "graph.safetensors")
    h = rg.load(tmp_path / "graph.safetensors")
    h["x"].set(5.0)
    h["t"].set(2.0)
    assert h["dy"].value == 20.0


def test_tangent_is_no_question_for_a_gradient() -> None:
    """`why` of a param that no backward reached does not take a tangent for one."""
    g = rg.Graph()
    w, u = g.param(2.0, name="w"), g.param(3.0)
    y, z = w * w, u * u
    assert y.requires_grad
    before = str(g.why(w))
    dz = rg.jvp(z, u, 1.0)
    assert str(g.why(w)) == before
    del dz
    dz = rg.grad(z, u)
    assert str(g.why(w)) != before
    del dz


# --- rules of Python functions -------------------------------------------------------------------------


def test_forward_rule_of_a_function() -> None:
    g = rg.Graph()
    a, b = g.input(2.0), g.input(3.0)
    calls: list[tuple[bool, ...]] = []

    def rule(tangents: Any, ans: Any, a: Any, b: Any, scale: float) -> Any:
        ta, tb, none = tangents
        assert none is None
        calls.append((ta is None, tb is None))
        parts = [t * other * scale for t, other in ((ta, b), (tb, a)) if t is not None]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    product = rg.lift(lambda a, b, scale: a * b * scale, jvp=rule)
    y = product(a, b, 10.0)
    assert rg.jvp(y, a, 1.0).value == 30.0
    assert rg.jvp(y, [a, b], [1.0, 1.0]).value == 50.0
    assert rg.jvp(product(a, b.detach(), 1.0), a, 1.0).value == 3.0
    assert calls == [(False, True), (False, False), (False, True)]
    dy = rg.jvp(y, a, 1.0)
    assert rg.jvp(dy, b, 1.0).value == 10.0
    b.set(4.0)
    assert dy.value == 40.0


def test_forward_rule_may_return_none_and_numbers() -> None:
    x = rg.Graph().input(2.0)
    flat = rg.lift(np.floor, jvp=lambda tangents, ans, x: None)
    assert rg.jvp(flat(x) * x, x, 1.0).value == 2.0
    three = rg.lift(lambda a: a * 3, jvp=lambda tangents, ans, x: np.float64(3.0))
    assert rg.jvp(three(x), x, 1.0).value == 3.0


def test_function_without_forward_rule_off_the_path_does_no_harm() -> None:
    g = rg.Graph()
    x, other = g.input(2.0), g.input(1.0)
    opaque = rg.lift(lambda a: a * 2)
    assert rg.jvp(opaque(other) * x, x, 1.0).value == 2.0
    assert rg.jvp(opaque(x.detach()) * x, x, 1.0).value == 4.0


# --- what cannot be done says why (rule D10) -----------------------------------------------------------


def vector() -> Any:
    return rg.Graph().param([1.0, 2.0], name="w")


def lifted(rule: Any) -> Any:
    w = vector()
    return rg.jvp(rg.lift(lambda a: a * 2, jvp=rule, shape=(2,))(w), w, [1.0, 1.0])


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "no Var": (
        lambda: rg.jvp(3.0, vector(), [1.0, 1.0]),
        TypeError,
        r"rg\.jvp takes a Var, not float",
    ),
    "no Var as source": (
        lambda: rg.jvp(vector(), 3.0, 1.0),
        TypeError,
        r"rg\.jvp takes Vars.*float",
    ),
    "shape": (
        lambda: (lambda w: rg.jvp(w * 2, w, [1.0]))(vector()),
        ValueError,
        r"direction for 'w' has shape \(1,\).*shape of 'w', \(2,\)",
    ),
    "shape of a Var": (
        lambda: (lambda w: rg.jvp(w * 2, w, w[:1]))(vector()),
        ValueError,
        r"direction for 'w' has shape \(1,\)",
    ),
    "integer direction": (
        lambda: (lambda w: rg.jvp(w * 2, w, w.astype(int)))(vector()),
        TypeError,
        r"direction for 'w' is of int64",
    ),
    "complex direction": (
        lambda: (lambda w: rg.jvp(w * 2, w, [1j, 1j]))(vector()),
        TypeError,
        r"complex128",
    ),
    "direction of another graph": (
        lambda: (lambda w: rg.jvp(w * 2, w, vector()))(vector()),
        RuntimeError,
        r"direction for 'w' is a Var of another graph",
    ),
    "fewer directions": (
        lambda: (lambda w: rg.jvp(w * 2, [w, w * 1.0], [[1.0, 1.0]]))(vector()),
        RuntimeError,
        r"2 nodes in xs and 1 directions in ts.*rg\.jvp\(y, \[a, b\], \[ta, tb\]\)",
    ),
    "one direction for several": (
        lambda: (lambda w: rg.jvp(w * 2, [w], w))(vector()),
        TypeError,
        r"pass a sequence of them",
    ),
    "one node twice": (
        lambda: (lambda w: rg.jvp(w * 2, [w, w], [[1.0, 1.0]] * 2))(vector()),
        RuntimeError,
        r"one node twice.*t1 \+ t2",
    ),
    "integer source": (
        lambda: (lambda n: rg.jvp(n * 2.0, n, 1.0))(rg.Graph().input(3, name="n")),
        TypeError,
        r"'n'.*int64.*3\.0 instead of 3",
    ),
    "integer output": (
        lambda: (lambda w: rg.jvp(w.astype(int), w, [1.0, 1.0]))(vector()),
        TypeError,
        r"int64.*astype",
    ),
    "detached output": (
        lambda: (lambda w: rg.jvp((w * 2).detach(), w, [1.0, 1.0]))(vector()),
        RuntimeError,
        r"detached",
    ),
    "unused": (
        lambda: (lambda w: rg.jvp(w * 2, w.graph.param(1.0, name="v"), 1.0))(vector()),
        RuntimeError,
        r"does not depend on 'v'.*allow_unused=True",
    ),
    "no rule": (
        lambda: lifted(None),
        RuntimeError,
        r"function 'lambda'.*no forward rule.*jvp=rule.*rg\.vjp.*detach",
    ),
    "rule of another shape": (
        lambda: lifted(lambda tangents, ans, a: tangents[0].sum()),
        ValueError,
        r"jvp of node .* tangent of shape \(\).*\(2,\)",
    ),
    "rule of integers": (
        lambda: lifted(lambda tangents, ans, a: np.array([1, 2])),
        TypeError,
        r"int64; tangents are floats",
    ),
    "rule of another graph": (
        lambda: lifted(lambda tangents, ans, a: vector()),
        ValueError,
        r"another graph",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_done_says_why(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


def test_failed_question_leaves_the_graph_as_it_was() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    y = (rg.lift(lambda a: a * 2)(rg.sin(w)) * w).sum()
    _ = y.value
    count = len(g)
    for _ in range(3):
        with pytest.raises(rg.GradientError):
            rg.jvp(y, w, [1.0, 1.0])
        gc.collect()
        g.check_invariants()
        assert len(g) == count
