"""Edits below live tangents, Jacobians and products: what runs is counted (rules D8, D9, E10)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.functions import CALLS, Exp, SinCos


class Abort(Exception):
    """What ends a transaction."""


@pytest.fixture(autouse=True)
def _fresh_counts() -> None:
    CALLS.clear()


def tower(g: rg.Graph, x: rg.Var, w: rg.Var, height: int) -> list[rg.Var]:
    """A chain of products and sines from `x`."""
    nodes = [x]
    for _ in range(height):
        nodes.append(rg.sin(nodes[-1]) * w)
    return nodes


def test_edit_reruns_the_tangents_behind_it_only() -> None:
    g = rg.Graph()
    x, w, v, t = g.input(0.5), g.input(1.5), g.input(1.5), g.input(1.0)
    nodes = tower(g, x, w, 200)
    dy = rg.jvp(nodes[-1], x, t)
    _ = dy.value
    before, count = dy.item(), len(g)
    g.forward(*nodes, dy)
    nodes[-1].replace_parent(1, v)  # another node of the same value: the same tangent
    ran = g.forward(dy).ran
    assert dy.item() == before
    # The last product's value and tangent; everything in front of it stays.
    assert len(set(ran) - set(nodes)) <= 4
    nodes[100].replace_parent(1, v)
    behind = len(g.forward(dy).ran)
    nodes[5].replace_parent(1, v)
    assert behind < len(g.forward(dy).ran) < len(g)
    assert dy.item() == before
    gc.collect()
    assert len(g) - count < 20
    g.check_invariants()


def test_edit_beside_the_way_reruns_no_tangent() -> None:
    g = rg.Graph()
    x, w, v, t = g.input(0.5), g.input(1.5), g.input(2.5), g.input(1.0)
    offset = w * 2.0
    y = rg.sin(x) + offset
    dy = rg.jvp(y, x, t)
    wanted = dy.value
    version = dy.value_version
    offset.replace_parent(0, v)
    assert y.value == np.sin(0.5) + 5.0
    assert dy.value == wanted
    assert dy.value_version == version
    assert not g.forward(dy).ran


@pytest.mark.slow
def test_repeated_edits_leave_nothing_behind() -> None:
    g = rg.Graph()
    x, w, v = g.input([0.5, 1.0]), g.input([1.5, 2.0]), g.input([2.5, 3.0])
    nodes = tower(g, x, w, 5)
    y = (nodes[-1] * SinCos.apply(nodes[2])[0] * Exp.apply(nodes[1])).sum()
    derivatives = [
        rg.jvp(y, x, [1.0, 0.0]),
        rg.jacobian(nodes[-1], x, "forward"),
        rg.jacobian(nodes[-1], x, "reverse"),
        rg.hvp(y, x, [1.0, 2.0]),
        rg.hessian(y, x),
    ]
    counts = set()
    first = [d.value for d in derivatives]
    for _ in range(6):
        nodes[3].replace_parent(1, v)
        other = [d.value for d in derivatives]
        nodes[3].replace_parent(1, w)
        for got, want in zip([d.value for d in derivatives], first, strict=True):
            np.testing.assert_array_equal(got, want)
        assert not any(np.array_equal(a, b) for a, b in zip(other, first, strict=True))
        gc.collect()
        g.forward(y)
        counts.add(len(g))
    assert len(counts) <= 2, counts  # as before the first edit, and after it
    g.check_invariants()


def test_a_dead_end_begins_to_count() -> None:
    """A tangent that nothing used is needed once an edit gives it a consumer."""
    g = rg.Graph()
    x, t = g.input(2.5), g.input(1.0)
    s = x * 3.0
    y = rg.floor(s) + x
    end = y * 1.0
    dy = rg.jvp(end, x, t)
    assert dy.value == 1.0
    gc.collect()
    _ = len(g)  # what nothing holds goes now
    y.replace_parent(0, s)
    assert dy.value == 4.0
    y.replace_parent(0, x)
    assert dy.value == 2.0


@pytest.mark.parametrize("read", [False, True])
def test_block_and_transaction_that_is_taken_back(read: bool) -> None:
    g = rg.Graph()
    x, w, v = g.input([0.5, 1.0]), g.input([1.5, 2.0]), g.input([2.5, 3.0])
    sine, cosine = SinCos.apply(x)
    y, z = sine * w, cosine + x
    out = (y * z).sum()
    derivatives: list[Any] = [
        rg.jvp(out, [x, w], [[1.0, 0.5], [0.0, 2.0]]),
        rg.grad(out, x),
        rg.jacobian(y, x, "forward"),
        rg.jacobian(z, x, "reverse"),
        rg.hvp(out, x, [1.0, 2.0]),
        rg.hessian(out, x),
    ]
    first = [d.value for d in derivatives]
    with pytest.raises(Abort), g.transaction():
        with g.edit():
            y.replace_parent(0, cosine)
            z.replace_parent(0, sine)
        x.set([3.0, 4.0])
        sine.parents[0].replace_parent(0, v)
        z.replace_parent(1, v)
        if read:
            _ = [d.value for d in derivatives]
        raise Abort
    for d, want in zip(derivatives, first, strict=True):
        np.testing.assert_array_equal(d.value, want)
    with g.edit():
        y.replace_parent(0, cosine)
        z.replace_parent(0, sine)
    wanted = (np.cos(2 * x.value) + np.cos(x.value) - x.value * np.sin(x.value)) * w.value
    np.testing.assert_allclose(derivatives[1].value, wanted)
    np.testing.assert_allclose(derivatives[2].value, np.diag(-np.sin(x.value) * w.value))
    np.testing.assert_allclose(derivatives[3].value, np.diag(np.cos(x.value) + 1.0))
    h = g.fork()
    h[y].replace_parent(0, h[sine])
    np.testing.assert_allclose(h[derivatives[2]].value, np.diag(np.cos(x.value) * w.value))
    np.testing.assert_allclose(derivatives[2].value, np.diag(-np.sin(x.value) * w.value))
    for graph in (g, h):
        graph.check_invariants()


def test_edit_that_tangents_do_not_survive_changes_nothing() -> None:
    """A function without a forward rule in the way of a live tangent."""
    g = rg.Graph()
    x, t = g.input(2.0), g.input(1.0)
    y = x * x
    dy = rg.jvp(y, x, t)
    assert dy.value == 4.0
    blind = rg.lift(lambda a: a + 1.0, vjp=lambda g, ans, a: (g,))(x)
    with pytest.raises(rg.GradientError, match="no forward rule"):
        y.replace_parent(0, blind)
    assert [var is x for var in y.parents] == [True, True]
    assert dy.value == 4.0
    y.replace_parent(0, blind.detach())
    assert dy.value == 3.0


@pytest.mark.parametrize("mode", ["jvp", "forward", "reverse"])
def test_edit_brings_a_function_that_has_never_run_into_the_way(mode: Any) -> None:
    g = rg.Graph()
    x = g.input([0.5, 1.0])
    y = x * x
    d = rg.jvp(y, x, [1.0, 1.0]) if mode == "jvp" else rg.jacobian(y, x, mode)
    _ = d.value
    y.replace_parent(1, Exp.apply(x))
    # A Jacobian is built for the shape of its node, which only a run shows: at the next read.
    assert CALLS["Exp"] == 0
    slope = (1.0 + x.value) * np.exp(x.value)
    np.testing.assert_allclose(d.value, slope if mode == "jvp" else np.diag(slope))
    assert CALLS["Exp"] == 1
    g.check_invariants()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_that_is_a_constant_follows_an_edit(mode: Any) -> None:
    """The unit matrix is a leaf, and no leaf may become something that is computed."""
    g = rg.Graph()
    x, w = g.input([1.0, 2.0]), g.input([3.0, 4.0])
    y = x + w
    jacobian = rg.jacobian(y, x, mode)
    np.testing.assert_array_equal(jacobian.value, np.eye(2))
    y.replace_parent(1, x)
    np.testing.assert_array_equal(jacobian.value, 2.0 * np.eye(2))
    y.replace_parent(0, w)
    np.testing.assert_array_equal(jacobian.value, np.eye(2))
    g.check_invariants()


def test_gradient_that_a_rule_gives_as_a_number_follows_an_edit() -> None:
    g = rg.Graph()
    x, w = g.input(2.0), g.input(3.0)
    slope = rg.lift(
        lambda a: 3.0 * a,
        shape=(),
        vjp=lambda g, ans, a: (3.0,),
        jvp=lambda ts, ans, a: 3.0,
    )
    y = slope(x)
    end = y + w
    d, dy = rg.grad(end, x), rg.jvp(end, x, 1.0)
    assert d.value == dy.value == 3.0
    end.replace_parent(1, x)
    assert d.value == dy.value == 4.0
    end.replace_parent(0, x)
    assert d.value == dy.value == 2.0
    end.replace_parent(0, y)
    assert d.value == dy.value == 4.0
    g.check_invariants()


# --- outputs that are removed ----------------------------------------------------------------------------

REMOVED = {
    "a chain": (lambda x: [h := x * x, p := h * h, p.sum()], lambda v: 4.0 * v**3),
    "exp": (lambda x: [h := x * 1.0, y := rg.exp(h), y.sum()], np.exp),
    "sqrt": (lambda x: [y := rg.sqrt(x), y.sum()], lambda v: 0.5 / np.sqrt(v)),
    "reversed": (lambda x: [h := x * 3.0, y := h[::-1], y.sum()], lambda v: np.full_like(v, 3.0)),
}


@pytest.mark.parametrize("name", REMOVED)
def test_gradients_of_what_was_removed_follow_new_shapes(name: str) -> None:
    build, slope = REMOVED[name]
    g = rg.Graph()
    x = g.param([1.0, 2.0, 3.0])
    nodes = build(x)
    gradient = rg.grad(nodes[-1], x)
    _ = gradient.value
    g.remove(*nodes)
    for values in ([2.0], [1.0, 4.0]):
        x.set(values)
        np.testing.assert_allclose(gradient.value, slope(np.array(values)))
    g.check_invariants()


def test_jacobians_of_what_was_removed_follow_new_shapes() -> None:
    g = rg.Graph()
    x = g.param(np.ones(3))
    y = x * 2.0
    slope = rg.jacobian(y, x)
    g.remove(y)
    x.set([1.0, 1.0])
    np.testing.assert_array_equal(slope.value, 2.0 * np.eye(2))


@pytest.mark.parametrize("ask", [lambda y, x, s: rg.grad(y, x, gradient=s), rg.jvp])
def test_a_seed_whose_shape_is_no_more_known(ask: Any) -> None:
    g = rg.Graph()
    x, start = g.param(2.0), g.input(1.0)
    seed = g.input(3.0) * 1.0
    found = ask(x * 0.5, x, seed)
    assert found.value == 1.5
    seed.replace_parent(0, rg.lift(lambda v: v + 1.0)(start))
    assert found.value == 1.0
    start.set(5.0)
    assert found.value == 3.0
    seed.replace_parent(0, g.input(8.0))
    assert found.value == 4.0


def test_a_jacobian_follows_the_last_hook_that_goes() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y = x * x
    with x.register_hook(lambda gradient: gradient * 3.0):
        slope = rg.jacobian(y, x)
        np.testing.assert_array_equal(slope.value, np.diag([6.0, 12.0]))
    np.testing.assert_array_equal(slope.value, np.diag([2.0, 4.0]))


# --- a node that would be computed from its own derivative ----------------------------------------


@pytest.mark.parametrize(
    "derive",
    [
        lambda y, x, a: rg.grad(y, x, x),
        lambda y, x, a: rg.jvp(y, x, x),
        lambda y, x, a: rg.jvp(y, x, a),
        lambda y, x, a: rg.grad(y.sum(), x),
        lambda y, x, a: rg.hvp((y * y).sum(), x, x),
        lambda y, x, a: rg.jacobian(y.sum(), x),
    ],
    ids=["grad along x", "jvp along x", "jvp along a", "grad of a sum", "hvp", "jacobian"],
)
@pytest.mark.parametrize("collected", [False, True], ids=["one edit", "block of edits"])
def test_a_node_of_its_own_derivative_is_refused(
    derive: Callable[[Any, Any, Any], Any], collected: bool
) -> None:
    g = rg.Graph()
    a, x = g.input([3.0, 4.0]), g.input([1.0, 2.0])
    y = a * x
    d = derive(y, x, a)
    before = d.value.copy()
    with pytest.raises(rg.CycleError, match="close a cycle") as caught, ExitStack() as stack:
        if collected:
            stack.enter_context(g.edit())
        y.replace_parent(1, d)
    assert caught.value.path[0] is caught.value.path[-1]
    np.testing.assert_array_equal(y.value, [3.0, 8.0])
    np.testing.assert_array_equal(d.value, before)
    g.check_invariants()
    a.set([5.0, 2.0])  # it follows what it had followed before
    k = g.input([2.0, 3.0])
    y.replace_parent(0, k)
    np.testing.assert_array_equal(d.value, derive(k * x, x, a).value)
    y.replace_parent(1, d.detach())  # its value is no derivative of anything
    g.check_invariants()


def test_nodes_of_each_other_s_derivatives_are_refused() -> None:
    g = rg.Graph()
    a, x = g.input([3.0, 4.0]), g.input([1.0, 2.0])
    y, z = a * x, (a + 1.0) * x
    dy, dz = rg.grad(y, x, x), rg.grad(z, x, x)
    y.replace_parent(1, dz)  # of z alone
    np.testing.assert_array_equal(dy.value, [12.0, 40.0])
    with pytest.raises(rg.CycleError, match="close a cycle"):
        z.replace_parent(1, dy)
    np.testing.assert_array_equal(z.value, [4.0, 10.0])
    g.check_invariants()


@pytest.mark.parametrize("first", ["of y", "of z"])
def test_derivatives_may_change_places_in_a_block_of_edits(first: str) -> None:
    g = rg.Graph()
    a, x = g.input([3.0, 4.0]), g.input([1.0, 2.0])
    y, z = a * x, (a + 1.0) * x
    if first == "of y":
        dy = rg.grad(y, x, x)
        dz = rg.grad(z, x, x)
    else:
        dz = rg.grad(z, x, x)
        dy = rg.grad(y, x, x)
    z.replace_parent(1, dy)
    np.testing.assert_array_equal(z.value, [12.0, 40.0])
    with g.edit():
        z.replace_parent(1, x)
        y.replace_parent(1, dz)
    np.testing.assert_array_equal(z.value, [4.0, 10.0])
    np.testing.assert_array_equal(y.value, [12.0, 40.0])
    np.testing.assert_array_equal(dy.value, [12.0, 40.0])
    g.check_invariants()


@pytest.mark.parametrize("turned", [False, True])
def test_what_an_output_has_just_lost_may_be_computed_from_its_derivative(turned: bool) -> None:
    g = rg.Graph()
    a, x, k = g.input([3.0, 4.0]), g.input([1.0, 2.0]), g.input([2.0, 2.0])
    m = x * 5.0
    y = a * m
    dy = rg.grad(y, x, x)
    dy.value
    other = x * k
    edits = [lambda: y.replace_parent(1, other), lambda: m.replace_parent(0, dy)]
    with g.edit():
        for edit in edits[::-1] if turned else edits:
            edit()
    np.testing.assert_array_equal(dy.value, [6.0, 16.0])
    np.testing.assert_array_equal(m.value, [30.0, 80.0])
    g.check_invariants()
