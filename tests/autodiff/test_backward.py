"""`backward` and `.grad`: accumulation, retention, atomicity (rules D4 to D7)."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def two() -> tuple[Any, Any, Any, Any]:
    g = rg.Graph()
    w, v = g.param([1.0, 2.0], name="w"), g.param([3.0, 4.0], name="v")
    h = w * v
    return w, v, h, (h * h).sum()


def test_accumulates_until_zero_grad() -> None:
    w, v, _, loss = two()
    loss.backward()
    first = w.grad
    np.testing.assert_array_equal(first, [18.0, 64.0])
    loss.backward()
    np.testing.assert_array_equal(w.grad, [36.0, 128.0])
    np.testing.assert_array_equal(first, [18.0, 64.0])  # what was handed out stays
    w.zero_grad()
    assert w.grad is None
    assert v.grad is not None
    loss.backward()
    np.testing.assert_array_equal(w.grad, [18.0, 64.0])
    w.graph.zero_grad()
    assert w.grad is None
    assert v.grad is None


def test_grad_is_the_sum_over_different_losses() -> None:
    w, _, _, loss = two()
    loss.backward()
    (w * 10.0).sum().backward()
    np.testing.assert_array_equal(w.grad, [28.0, 74.0])


def test_second_backward_creates_no_node_and_runs_nothing() -> None:
    w, _, _, loss = two()
    loss.backward()
    count = len(w.graph)
    run = loss.backward()
    assert len(w.graph) == count
    assert len(run.ran) == 0


def test_backward_evaluates_the_nodes_of_grad() -> None:
    w, v, _, loss = two()
    dw, dv = rg.grad(loss, [w, v])
    count = len(w.graph)
    run = loss.backward()
    assert len(w.graph) == count
    assert dw in run.ran
    assert dv in run.ran
    assert run.ran == w.graph.last_run.ran
    np.testing.assert_array_equal(w.grad, dw.value)


def test_backward_after_a_small_change_runs_only_the_stale_part() -> None:
    g = rg.Graph()
    ws = [g.param(float(i)) for i in range(30)]
    loss = rg.stack([w * w for w in ws]).sum()
    whole = len(loss.backward().ran)
    ws[0].set(5.0)
    assert len(loss.backward().ran) < whole / 5


def test_grad_is_read_only_and_of_the_params_dtype() -> None:
    g = rg.Graph()
    for dtype in ("float16", "float32", "float64"):
        w = g.param(np.array([1.0, 2.0], dtype))
        (w * np.float64(2.0)).sum().backward()
        assert w.grad.dtype == np.dtype(dtype)
        assert not w.grad.flags.writeable
        (w * np.float64(2.0)).sum().backward()
        assert w.grad.dtype == np.dtype(dtype)
        with pytest.raises(ValueError, match="read-only"):
            w.grad[0] = 1.0
    scalar = g.param(np.float32(2.0))
    (scalar * 3.0).backward()
    assert scalar.grad == 3.0
    assert scalar.grad.dtype == np.float32


def test_large_grad_held_by_the_caller_never_changes() -> None:
    g = rg.Graph()
    w = g.param(np.zeros(40_000))
    loss = (w * w).sum()
    loss.backward()
    held = w.grad
    w.set(np.ones(40_000))
    w.zero_grad()
    loss.backward()
    assert not held.any()
    np.testing.assert_array_equal(w.grad, np.full(40_000, 2.0))


def test_only_trainable_leaves_get_a_grad() -> None:
    g = rg.Graph()
    w, x, c = g.param(2.0), g.input(3.0), g.const(4.0)
    h = w * x
    (h * c).backward()
    assert w.grad == 12.0
    assert x.grad is None
    assert c.grad is None
    assert h.grad is None


# --- retain_graph, retain_grad, inputs, gradient ------------------------------------------------


def test_retain_graph_true_shows_intermediates_until_the_next_backward() -> None:
    w, _, h, loss = two()
    loss.backward(retain_graph=True)
    np.testing.assert_array_equal(h.grad, [6.0, 16.0])
    assert loss.grad == 1.0
    loss.backward()
    assert h.grad is None
    np.testing.assert_array_equal(w.grad, [36.0, 128.0])


def test_retain_graph_true_passes_over_conditions_and_tuples() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    above = w > 1.5
    double, half = rg.lift(
        lambda a: (a * 2.0, a / 2.0), outputs=2, vjp=lambda g, ans, a: g[0] * 2.0 + g[1] / 2.0
    )(w)
    rg.where(above, double, half).sum().backward(retain_graph=True)
    np.testing.assert_array_equal(w.grad, [0.5, 2.0])
    np.testing.assert_array_equal(double.grad, [0.0, 1.0])
    assert above.grad is None
    assert double.parents[0].grad is None
    w.zero_grad()
    rg.where(double > 3.0, double, half).sum().backward(retain_graph=True)  # known when it runs
    np.testing.assert_array_equal(w.grad, [0.5, 2.0])


def test_retained_grad_is_replaced_not_added() -> None:
    _, _, h, loss = two()
    h.retain_grad()
    loss.backward()
    loss.backward()
    np.testing.assert_array_equal(h.grad, [6.0, 16.0])
    h.zero_grad()
    assert h.grad is None
    loss.backward()
    np.testing.assert_array_equal(h.grad, [6.0, 16.0])


def test_retain_graph_none_keeps_every_value() -> None:
    _, _, h, loss = two()
    loss.backward()
    run = h.graph.forward(h, loss)
    assert len(run.ran) == len(run.rebuilt) == 0


def test_retain_graph_false_releases_and_rebuilds_at_the_same_version() -> None:
    w, v, h, loss = two()
    g = w.graph
    loss.backward(retain_graph=False)
    version = h.value_version
    assert g.forward(loss).rebuilt == []
    assert loss.value == 73.0
    assert list(w.value) == [1.0, 2.0]
    assert not h.is_stale
    np.testing.assert_array_equal(h.value, [3.0, 8.0])
    assert h in g.last_run.rebuilt
    assert h not in g.last_run.ran
    assert h.value_version == version
    loss.backward()
    np.testing.assert_array_equal(w.grad, [36.0, 128.0])
    np.testing.assert_array_equal(v.grad, [12.0, 64.0])
    w.set([0.0, 1.0])
    assert loss.value == 16.0
    g.check_invariants()


def test_retain_graph_false_leaves_what_callers_hold() -> None:
    g = rg.Graph()
    w = g.param(np.ones(40_000))
    h = w * 2.0
    loss = h.sum()
    held = h.value
    loss.backward(retain_graph=False)
    w.set(np.zeros(40_000))
    assert loss.value == 0.0
    assert (held == 2.0).all()


def test_inputs_chooses_whose_grad_is_wanted() -> None:
    w, v, h, loss = two()
    loss.backward(inputs=[w])
    assert w.grad is not None
    assert v.grad is None
    w.zero_grad()
    loss.backward(inputs=h)
    assert w.grad is None
    np.testing.assert_array_equal(h.grad, [6.0, 16.0])
    x = w.graph.input(2.0, name="x")
    y = x * x
    y.backward(inputs=x)
    y.backward(inputs=[x, x])
    assert x.grad == 8.0
    with pytest.raises(rg.GradientError, match="'x'.*inputs="):
        loss.backward(inputs=[x])


def test_gradient_argument() -> None:
    w, v, h, _ = two()
    h.backward(gradient=[1.0, 10.0])
    np.testing.assert_array_equal(w.grad, [3.0, 40.0])
    count = len(w.graph)
    h.backward(gradient=np.array([2.0, 0.0]))
    assert len(w.graph) == count
    np.testing.assert_array_equal(w.grad, [9.0, 40.0])
    w.zero_grad()
    seed = w.graph.input([1.0, 1.0])
    h.backward(gradient=seed)
    np.testing.assert_array_equal(w.grad, [3.0, 4.0])
    np.testing.assert_array_equal(v.grad, [4.0, 22.0])


# --- errors (rule D10) and atomicity (rule D5) ----------------------------------------------------

ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "several elements": (lambda: two()[2].backward(), ValueError, r"\.sum\(\).*gradient="),
    "gradient of another shape": (
        lambda: two()[2].backward(gradient=[1.0]),
        ValueError,
        r"shape \(1,\).*\(2,\)",
    ),
    "gradient of complex numbers": (
        lambda: two()[2].backward(gradient=[1j, 1.0]),
        TypeError,
        r"complex128",
    ),
    "gradient of strings": (
        lambda: two()[2].backward(gradient=["a", "b"]),
        TypeError,
        r"gradient=",
    ),
    "nothing trainable": (
        lambda: (rg.Graph().input(1.0) * 2.0).backward(),
        RuntimeError,
        r"nothing trainable.*g\.param.*rg\.grad",
    ),
    "all frozen": (
        lambda: (rg.Graph().param(1.0).freeze() * 2.0).backward(),
        RuntimeError,
        r"nothing trainable.*unfreeze",
    ),
    "all detached": (
        lambda: (rg.Graph().param(1.0).detach() * 2.0).backward(),
        RuntimeError,
        r"nothing trainable",
    ),
    "integers": (lambda: rg.Graph().input(3).backward(), TypeError, r"int64.*astype"),
    "no rule": (
        lambda: rg.lift(lambda a: a * 2)(rg.Graph().param(1.0)).backward(),
        RuntimeError,
        r"no derivative rule.*vjp=",
    ),
    "inputs of integers": (
        lambda: two()[3].backward(inputs=[two()[0].graph.input(1)]),
        (TypeError, ValueError),
        r"another graph|int64",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_backward_that_cannot_be_says_why(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_failing_backward_changes_no_grad(where: str) -> None:
    g = rg.Graph()
    w, u = g.param([2.0, 3.0]), g.param(1.0)
    broken: list[bool] = []

    def guarded(a: Any) -> Any:
        if broken:
            raise RuntimeError("broken on purpose")
        return a * 1.0

    on_the_way = guarded if where == "forward" else lambda a: a * 1.0
    on_the_way_back = rg.lift(guarded, shape=(2,)) if where == "backward" else lambda a: a
    h = rg.lift(on_the_way, vjp=lambda g, ans, a: (on_the_way_back(g),))(w)
    h.retain_grad()
    loss = (h * w).sum() * u
    loss.backward()
    before = w.grad, u.grad, h.grad
    w.set([5.0, 6.0])
    broken.append(True)
    with pytest.raises(RuntimeError, match="on purpose"):
        loss.backward()
    assert w.grad is before[0]
    assert u.grad is before[1]
    assert h.grad is before[2]
    broken.clear()
    with pytest.raises(RuntimeError, match="on purpose"):
        loss.backward()  # stored: not run again before something changes
    w.set([5.0, 6.0])
    loss.backward()
    np.testing.assert_array_equal(w.grad, [4.0 + 10.0, 6.0 + 12.0])


# --- freeze, detach, no_grad ----------------------------------------------------------------------


def test_freeze_passes_through() -> None:
    g = rg.Graph()
    w, v, u = g.param(2.0), g.param(3.0), g.param(5.0)
    h = w * 7.0
    loss = h * v * u
    loss.backward()
    value = loss.value
    assert v.freeze() is v
    assert v.grad is None
    assert loss.value is value
    g.zero_grad()
    loss.backward()
    assert (w.grad, v.grad, u.grad) == (105.0, None, 42.0)
    assert v.frozen
    assert not v.requires_grad
    assert loss.requires_grad
    assert rg.grad(loss, v).value == 70.0
    v.set(1.0)
    assert loss.value == 70.0
    v.unfreeze()
    assert not v.frozen
    g.zero_grad()
    loss.backward()
    assert v.grad == 70.0


def test_freezing_does_no_work_for_the_frozen() -> None:
    g = rg.Graph()
    w, v = g.param(np.ones((3, 4))), g.param(np.ones((4, 2)))
    v.freeze()
    loss = (w @ v).sum()
    before = len(g)
    loss.backward()
    with_one = len(g) - before
    v.unfreeze()
    loss.backward()
    assert len(g) - before > with_one


@pytest.mark.parametrize("what", ["freeze", "unfreeze"])
def test_only_params_freeze(what: str) -> None:
    g = rg.Graph()
    for node in (g.input(1.0), g.const(1.0), g.param(1.0) * 2.0):
        with pytest.raises(rg.GradientError, match=r"no param.*detach\(\)"):
            getattr(node, what)()


def test_detach_is_on_the_edge() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    count = len(g)
    view = w.detach()
    assert len(g) == count
    assert w.detach() is view
    assert view.base is w
    assert view.detach() is view
    assert not view.requires_grad
    y = view * w
    assert len(g) == count + 1
    assert y.parents[0] is w
    assert y.parents[1] is w
    assert rg.grad(y, w).value == 2.0
    w.set(5.0)  # the view stays live
    assert y.value == 25.0
    assert view.value == 5.0


def test_detached_edge_blocks_higher_orders_too() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    d = rg.grad((w**3).detach() * w, w)
    assert d.value == 8.0
    assert rg.grad(d, w, allow_unused=True) is None
    mixed = rg.grad(rg.exp(w.detach()) * rg.sin(w) * w.detach(), w)
    again = rg.grad(mixed, w)
    np.testing.assert_allclose(mixed.value, np.exp(2) * np.cos(2) * 2, rtol=1e-14)
    np.testing.assert_allclose(again.value, -np.exp(2) * np.sin(2) * 2, rtol=1e-14)
    w.set(1.0)
    np.testing.assert_allclose(again.value, -np.exp(1) * np.sin(1), rtol=1e-14)


def test_detached_view_has_all_operators_and_no_set() -> None:
    w = rg.Graph().param([[1.0, 2.0], [3.0, 4.0]])
    view = w.detach()
    for build in (
        lambda v: v + 1,
        lambda v: 1 - v,
        lambda v: -v,
        lambda v: v @ v,
        lambda v: v[0],
        lambda v: v.T,
        lambda v: v.sum(axis=0),
        lambda v: np.tanh(v),
        lambda v: np.concatenate([v, v]),
        lambda v: rg.where(v > 2, v, 0.0),
        lambda v: v**2,
        lambda v: abs(v),
        lambda v: v.reshape(-1),
    ):
        np.testing.assert_array_equal(build(view).value, build(w).value)
        assert not build(view).requires_grad
    assert view.shape == w.shape
    np.testing.assert_array_equal(view.numpy(), w.value)
    with pytest.raises(rg.SetError, match="detached"):
        view.set([[0.0] * 2] * 2)


def test_detached_operand_of_a_python_function() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    product = rg.lift(lambda a, b: a * b, vjp=lambda g, ans, a, b: (g * b, g * a))
    d = rg.grad(product(w.detach(), w), w)
    assert d.value == 2.0
    assert rg.grad(d, w, allow_unused=True) is None


def test_snapshot_does_not_follow() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    old = (w * 2.0).snapshot()
    w.set([5.0, 5.0])
    np.testing.assert_array_equal(old.value, [2.0, 4.0])
    assert not old.requires_grad


def test_requires_grad() -> None:
    g = rg.Graph()
    w, x = g.param(1.0), g.input(1.0)
    y = w * x
    assert w.requires_grad
    assert y.requires_grad
    assert not x.requires_grad
    assert not (x * 2.0).requires_grad
    assert not (y > 0).requires_grad
    assert not (w.detach() * x).requires_grad
    w.freeze()
    assert not y.requires_grad


def test_no_grad_blocks_what_is_built_inside_only() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    y = w * w
    with rg.no_grad():
        inside = y * w
        assert not inside.requires_grad
        with rg.enable_grad():
            nested = y * w
        assert not rg.is_grad_enabled()
    assert rg.is_grad_enabled()
    assert nested.requires_grad
    assert rg.grad(inside * w, w).value == 8.0
    assert rg.grad(inside, w, allow_unused=True) is None
    w.set(3.0)
    assert inside.value == 27.0


def test_no_grad_as_decorator_and_after_an_error() -> None:
    w = rg.Graph().param(2.0)

    @rg.no_grad()
    def build() -> Any:
        return w * w

    assert not build().requires_grad
    assert not build().requires_grad
    with pytest.raises(KeyError):
        with rg.no_grad():
            raise KeyError
    assert rg.is_grad_enabled()


def test_backward_inside_no_grad_warns_and_works() -> None:
    w = rg.Graph().param(2.0)
    y = w * w
    with rg.no_grad():
        with pytest.warns(rg.GradModeWarning, match="no_grad") as caught:
            y.backward()
    assert caught[0].filename == __file__
    assert w.grad == 4.0


def test_gradient_asked_for_inside_no_grad_is_differentiable_again() -> None:
    w = rg.Graph().param(2.0)
    y = w**3
    with rg.no_grad():
        d = rg.grad(y, w)
    assert rg.grad(d, w).value == 12.0


def test_grads_go_with_their_nodes() -> None:
    g = rg.Graph()
    for _ in range(3):
        w = g.param(1.0)
        (w * 2.0).backward()
        del w
        gc.collect()
    assert len(g) == 0 or all(v.grad is None for v in g.nodes)
    fresh = g.param(1.0)
    assert fresh.grad is None


# --- incremental backward (rule D8) ----------------------------------------------------------------


def chain(g: rg.Graph, layers: int) -> tuple[list[rg.Var], rg.Var]:
    rng = np.random.default_rng(0)
    weights = [g.param(rng.normal(size=(3, 3)) * 0.5) for _ in range(layers)]
    h: rg.Var = g.input(rng.normal(size=(2, 3)))
    for w in weights:
        h = rg.tanh(h @ w)
    return weights, (h * h).sum()


def depends_on(node: rg.Var) -> set[str]:
    """The names of all nodes that are computed from this one, and its own."""
    found, stack = {node.name}, [node]
    while stack:
        for child in stack.pop().children:
            if child.name not in found:
                found.add(child.name)
                stack.append(child)
    return found


def needed_for(nodes: list[rg.Var]) -> set[str]:
    """The names of these nodes and of all that they are computed from."""
    found, stack = {node.name for node in nodes}, list(nodes)
    while stack:
        for parent in stack.pop().parents:
            if parent.name not in found:
                found.add(parent.name)
                stack.append(parent)
    return found


def test_a_gradient_that_nothing_has_changed_for_runs_nothing() -> None:
    g = rg.Graph()
    _, loss = chain(g, 200)
    first = loss.backward()
    assert len(first.ran) > 600
    assert not loss.backward().ran


@pytest.mark.parametrize("changed", [0, 100, 199])
def test_one_changed_layer_of_200_recomputes_what_depends_on_it(changed: int) -> None:
    g = rg.Graph()
    weights, loss = chain(g, 200)
    gradients = list(rg.grad(loss, weights))
    g.forward(loss, *gradients)
    weights[changed].set(weights[changed].value * 0.5)
    run = g.forward(loss, *gradients)
    due = depends_on(weights[changed]) & needed_for([loss, *gradients])
    due.discard(weights[changed].name)
    assert {node.name for node in run.ran} == due
    assert len(run.ran) < len(needed_for([loss, *gradients])) - 200


def test_the_gradients_of_the_last_layers_do_not_touch_the_first_ones() -> None:
    g = rg.Graph()
    weights, loss = chain(g, 200)
    last = weights[-5:]
    all_of_it = loss.backward()
    g.zero_grad()
    loss.backward(inputs=last)
    g.set({w: w.value * 0.9 for w in last})
    run = loss.backward(inputs=last)
    assert len(run.ran) * 15 < len(all_of_it.ran)
    fresh, twin = chain(rg.Graph(), 200)
    twin.graph.set({w: v.value for w, v in zip(fresh, weights, strict=True)})
    g.zero_grad()
    loss.backward(inputs=last)
    for w, gradient in zip(last, rg.grad(twin, fresh[-5:]), strict=True):
        np.testing.assert_array_equal(w.grad, gradient.value)


def test_a_gradient_is_replaced_once_and_then_added_to(g: rg.Graph) -> None:
    w, v, x = g.param([1.0, 2.0], name="w"), g.param(1.0, name="v"), g.input(1.0)
    y = (w * x * v).sum()
    for _ in range(3):  # the second one is repeated from what the first has checked
        y.backward()
    earlier = w.grad
    assert earlier.tolist() == [3.0, 3.0]
    w.overwrite_grad()
    assert w.grad is earlier
    x.set(10.0)
    y.backward()
    assert (w.grad.tolist(), float(v.grad)) == ([10.0, 10.0], 39.0)
    y.backward()
    assert w.grad.tolist() == [20.0, 20.0]
    assert earlier.tolist() == [3.0, 3.0]


def test_a_backward_that_fails_leaves_the_flag(g: rg.Graph) -> None:
    w, x = g.param(1.0, name="w"), g.input(1.0)

    def checked(value: float) -> float:
        if value > 5.0:
            raise ValueError("too large")
        return value

    y = w * rg.lift(checked, vjp=lambda gradient, result, value: gradient)(x)
    y.backward()
    w.overwrite_grad()
    x.set(9.0)
    with pytest.raises(ValueError, match="too large"):
        y.backward()
    assert w.grad == 1.0
    x.set(2.0)
    y.backward()
    assert w.grad == 2.0


def test_gradients_side_by_side_are_replaced_as_well(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Linear(2, 1, rng=0)
        opt = rg.optim.SGD(net.parameters(), lr=0.0)
        x = g.input([[1.0, 2.0]])
        loss = net(x).sum()
        for _ in range(3):
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.weight.overwrite_grad()
        loss.backward()
        assert net.weight.grad.tolist() == [[1.0, 2.0]]
        assert net.bias.grad.tolist() == [2.0]
        opt.step()
        loss.backward()
        assert net.weight.grad.tolist() == [[2.0, 4.0]]
