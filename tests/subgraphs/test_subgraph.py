"""Functions of nodes that are built once for each structure, and what their results never do to each other."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from tests.autodiff.net import ROWS, Net
from tests.autodiff.net import current_graph as current_graph  # a fixture


def gradients(y: rg.Var, *leaves: rg.Var) -> list[Any]:
    """What ``backward`` leaves; ``None`` where nothing arrives."""
    y.graph.zero_grad()
    y.backward()
    return [leaf.grad for leaf in leaves]


# --- one network, fed in three ways --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "Var", "detached Var"])
@pytest.mark.parametrize("before", ["array", "Var", "detached Var"])
def test_values_and_gradients_are_those_of_the_function(
    g: rg.Graph, before: str, kind: str
) -> None:
    net, u = Net(g), g.param(1.5)
    feeds = {
        "array": lambda: ROWS,
        "Var": lambda: u * ROWS,
        "detached Var": lambda: (u * ROWS).detach(),
    }
    net(feeds[before]()).backward()
    y, wanted = net(feeds[kind]()), net.plain(feeds[kind]())
    assert net.built == 1
    assert y.value == wanted.value
    for found, expected in zip(
        gradients(y, net.w, net.v, u), gradients(wanted, net.w, net.v, u), strict=True
    ):
        assert (found is None) == (expected is None)
        np.testing.assert_array_equal(found, expected)


def test_a_detached_feed_blocks_the_gradient_and_nothing_before_it_is_differentiated(
    g: rg.Graph,
) -> None:
    net, u = Net(g), g.param(1.5)
    h = u * ROWS
    net(h).backward()
    assert u.grad is not None
    g.zero_grad()
    net(ROWS).backward()
    size = len(g)
    fed_with_array = {id(node) for node in g.plan(net(ROWS + 1.0), gradient=True).nodes}
    y = net(h.detach())
    assert len(g) <= size, "nothing was built for what lies before the feed"
    net.w.touch()
    planned = {id(node) for node in g.plan(y, gradient=True).nodes}
    assert len(planned) <= len(fed_with_array)
    y.backward()
    assert u.grad is None
    assert net.w.grad is not None


def test_no_way_of_feeding_grows_the_graph(g: rg.Graph) -> None:
    net, u = Net(g), g.param(1.5)
    h = u * ROWS

    def step() -> None:
        for x in (ROWS, h, h.detach(), ROWS + 1.0):
            net(x).backward()

    step()
    size = len(g)
    for _ in range(50):
        step()
    assert len(g) == size
    assert net.built == 1


def test_the_result_follows_the_node_that_it_was_fed_with(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    y = net(x)
    before = y.value
    x.set(ROWS * 2.0)
    assert y.value == net.plain(x).value != before


def test_a_call_with_the_same_arguments_gives_the_same_node_and_runs_nothing(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    y = net(x)
    value = y.value
    assert net(x) is y
    assert net(x).detach() is y.detach()
    del y
    y = net(x)
    assert not y.is_stale
    assert y.value is value
    z = net(x * 1.0)
    assert z is not y


def test_equal_arrays_are_the_same_argument(g: rg.Graph) -> None:
    net = Net(g)
    y = net(ROWS)
    y.backward()
    assert net(ROWS.copy()) is y
    assert not g.forward(net(ROWS.copy())).ran
    assert net(ROWS + 1.0) is not y


def test_only_what_the_new_argument_reaches_runs_again(g: rg.Graph) -> None:
    w, v = g.param(2.0), g.param(3.0)
    calls: list[str] = []
    slow = rg.lift(lambda v: calls.append("slow") or v * v, vjp=lambda g, ans, v: 2.0 * v * g)

    @rg.subgraph
    def f(x: Any) -> Any:
        return x * w + slow(v)

    assert f(1.0).value == 11.0
    assert f(2.0).value == 13.0
    assert calls == ["slow"]


# --- two results that live -----------------------------------------------------------------------


HOLDERS: dict[str, Callable[[rg.Graph, Net, rg.Var], Any]] = {
    "a handle": lambda g, net, y: y,
    "a detached view": lambda g, net, y: y.detach(),
    "a node computed from it": lambda g, net, y: y * 2.0,
    "an intermediate": lambda g, net, y: y.parents[0],
    "a node computed from an intermediate": lambda g, net, y: y.parents[0] + 1.0,
    "its gradient": lambda g, net, y: rg.grad(y, net.v),
    "a node computed from its gradient": lambda g, net, y: rg.grad(y, net.w) * 2.0,
    "the gradient of its gradient": lambda g, net, y: rg.grad(rg.grad(y, net.v).sum(), net.w),
    "a list": lambda g, net, y: [y],
    "a branch of a switch": lambda g, net, y: rg.switch(g.const(True), y, y * 0.0),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_holds_is_not_changed_by_later_calls(g: rg.Graph, name: str) -> None:
    net = Net(g)
    held = HOLDERS[name](g, net, net(ROWS))
    (var,) = held if isinstance(held, list) else (held,)
    before = np.array(var.value)
    for k in range(3):
        assert net(ROWS + k + 1.0).value == net.plain(g.const(ROWS + k + 1.0)).value
    np.testing.assert_array_equal(var.value, before)
    assert net.built == 2, "the second instance serves all others"
    del held, var
    size = len(g)
    for k in range(3):
        net(ROWS - k).backward()
    assert net.built == 2
    assert len(g) <= size + 60  # the gradients of the second


def test_what_is_observed_is_not_used_again(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    seen: list[Any] = []
    handle = net(x).observe(lambda old, new: seen.append(new))
    g.stabilize()
    _ = net(ROWS + 1.0).value
    assert net.built == 2
    x.set(ROWS * 3.0)
    g.stabilize()
    assert seen[-1] == net.plain(x).value
    handle.cancel()


def test_what_is_kept_is_not_used_again(g: rg.Graph) -> None:
    net = Net(g)
    value = g.keep(net(ROWS)).value
    net(ROWS * 2.0).backward()
    assert net.built == 2
    assert net(ROWS).value == value


@pytest.mark.parametrize(
    "change",
    [
        lambda g, y: y.pin(7.0),
        lambda g, y: y.parents[0].pin(np.ones((2, 3))),
        lambda g, y: y.register_hook(lambda gradient: gradient * 10.0),
        lambda g, y: setattr(y, "cutoff", rg.tolerance(1e9, 1e9)),
        lambda g, y: y.parents[0].replace_parent(1, g.const(np.ones(3))),
        lambda g, y: y.retain_grad(),
        lambda g, y: g.insert(y.parents[0], y, lambda v: v * 2.0),
    ],
    ids=["pin", "pin inside", "hook", "cutoff", "edit", "retain_grad", "insert"],
)
def test_what_was_done_to_a_result_does_not_reach_the_next(
    g: rg.Graph, change: Callable[[rg.Graph, rg.Var], Any]
) -> None:
    net = Net(g)
    y = net(ROWS)
    _ = y.value
    kept = change(g, y)
    del kept, y
    for factor in (1.0, 2.0):
        y, wanted = net(ROWS * factor), net.plain(g.const(ROWS * factor))
        assert y.value == wanted.value
        for found, expected in zip(
            gradients(y, net.w, net.v), gradients(wanted, net.w, net.v), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        assert y.grad is None
        del y


@pytest.mark.parametrize("which", ["result", "inside"])
def test_what_was_removed_does_not_come_back_with_the_next_result(g: rg.Graph, which: str) -> None:
    model = rg.subgraph(lambda a, b: rg.tanh(a * b) + a)
    x, w = g.input([1.0, 2.0]), g.param([3.0, 4.0])
    y = model(x, w)
    inside = y.parents[0]
    g.remove(y, *[inside] * (which == "inside"))
    del y, inside
    z = model(w, x)
    np.testing.assert_array_equal(z.value, np.tanh(w.value * x.value) + w.value)
    assert z in g
    assert {z, *z.parents} <= set(g.nodes)
    assert g.fork()[z] is not z
    with pytest.raises(rg.EditError, match="cannot be removed"):
        g.remove(z.parents[0])


def test_gradients_left_in_between_do_not_show_on_the_next_result(g: rg.Graph) -> None:
    net = Net(g)
    net(ROWS).backward(retain_graph=True)
    assert net(ROWS * 2.0).grad is None


# --- structure -----------------------------------------------------------------------------------


def test_each_structure_is_built_once(g: rg.Graph) -> None:
    built: list[str] = []

    @rg.subgraph
    def f(x: Any, power: int = 2, *, how: str = "sum", parts: Any = ()) -> Any:
        built.append(how)
        y = x**power
        for part in parts:
            y = y + part
        return getattr(y, how)()

    a, b, c = np.ones(3), np.ones((2, 3)), np.ones(3, dtype=np.float32)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((a,), {}),
        ((b,), {}),
        ((c,), {}),
        ((a, 3), {}),
        ((a,), {"how": "mean"}),
        ((a,), {"parts": [a, 1.0]}),
        ((a,), {"parts": (a, 1.0)}),
        ((a,), {"parts": {"k": a}.values() and [a]}),
        ((2.0,), {}),
    ]
    for round_ in range(3):
        for args, keywords in calls:
            _ = f(*args, **keywords).value
        assert len(built) == len(calls), round_
    with rg.no_grad():
        assert not f(g.param(a)).requires_grad
    assert len(built) == len(calls) + 1
    assert f(g.param(a)).requires_grad
    assert len(built) == len(calls) + 1


def test_train_and_eval_are_two_structures(g: rg.Graph) -> None:
    @rg.subgraph
    def f(x: Any) -> Any:
        return x * 2.0 if g.training else x

    assert f(3.0).value == 6.0
    g.eval()
    assert f(3.0).value == 3.0
    g.train()
    assert f(3.0).value == 6.0


def test_a_number_is_fed_and_stays_a_weak_number(g: rg.Graph) -> None:
    @rg.subgraph
    def f(x: Any, scale: float) -> Any:
        return x * scale

    x = g.input(np.ones(2, dtype=np.float32))
    assert f(x, 2.0).dtype == np.float32
    size = len(g)
    for k in range(10):
        np.testing.assert_array_equal(f(x, float(k)).value, np.full(2, k, dtype=np.float32))
    assert len(g) == size


@pytest.mark.slow
def test_methods_are_built_once_for_each_object_and_go_with_it(g: rg.Graph) -> None:
    one, two = Net(g), Net(g, 5)
    for _ in range(2):
        assert one(ROWS).value == one.plain(g.const(ROWS)).value
        assert two(ROWS).value == two.plain(g.const(ROWS)).value
    assert (one.built, two.built) == (1, 1)
    ref = weakref.ref(one)
    del one
    gc.collect()
    assert ref() is None


def test_results_may_be_nested_and_may_hold_what_was_not_built(g: rg.Graph) -> None:
    w = g.param(3.0)

    @rg.subgraph
    def f(x: Any, y: Any) -> Any:
        return {"sum": x + y, "more": [x * w, w, "text"], "x": (x, (x * y).detach())}

    for a, b in ((1.0, 2.0), (5.0, 7.0)):
        found = f(a, b)
        assert found["sum"].value == a + b
        assert found["more"][0].value == 3.0 * a
        assert found["more"][1] is w
        assert found["more"][2] == "text"
        assert found["x"][0].value == a
        assert isinstance(found["x"][1], rg.DetachedVar)
        assert found["x"][1].value == a * b
        del found
    found = f(1.0, 2.0)
    other = f(2.0, 2.0)
    assert (found["sum"].value, other["sum"].value) == (3.0, 4.0)


def test_a_function_may_differentiate(g: rg.Graph) -> None:
    w = g.param(np.array([1.0, 2.0]))

    @rg.subgraph
    def slope(x: Any) -> Any:
        return rg.grad((w * x**3).sum(), x)

    u = g.param(np.array([1.0, 3.0]))
    for factor in (1.0, 2.0):
        x = u * factor
        y = slope(x)
        np.testing.assert_allclose(y.value, 3.0 * w.value * x.value**2)
        np.testing.assert_allclose(rg.grad(y.sum(), u).value, 6.0 * w.value * x.value * factor)
        del y
    z = slope(u.detach())
    np.testing.assert_allclose(z.value, 3.0 * w.value * u.value**2)
    assert rg.grad(z.sum(), u, allow_unused=True) is None


def test_subgraphs_may_use_each_other(g: rg.Graph) -> None:
    net = Net(g)

    @rg.subgraph
    def loss(x: Any, target: Any) -> Any:
        return (net(x) - target) ** 2 + net(x * 2.0)

    def plain(x: Any, target: Any) -> Any:
        return (net.plain(x) - target) ** 2 + net.plain(x * 2.0)

    def step(k: int) -> None:
        y, wanted = loss(ROWS * k, 1.0 * k), plain(g.const(ROWS * k), g.const(1.0 * k))
        assert y.value == wanted.value
        for found, expected in zip(
            gradients(y, net.w, net.v), gradients(wanted, net.w, net.v), strict=True
        ):
            np.testing.assert_array_equal(found, expected)

    step(1)
    assert net.built == 2, "two instances of it live in one of the loss"
    size = len(g)
    for k in range(2, 10):
        step(k)
        assert net(ROWS * k).value == net.plain(g.const(ROWS * k)).value
    assert net.built == 3, "and one by itself"
    step(2)
    assert len(g) <= size + 40


@pytest.mark.slow
def test_a_chain_of_calls_is_built_once_and_fed_again(g: rg.Graph) -> None:
    a, b = g.param(0.5), g.param(-0.3)
    built: list[None] = []

    @rg.subgraph
    def cell(h: Any, x: Any) -> Any:
        built.append(None)
        return rg.tanh(h * a + x * b)

    def run(xs: np.ndarray[Any, Any], step: Callable[[Any, Any], Any]) -> list[Any]:
        h: Any = g.const(np.float64(0.0))
        for x in xs:
            h = step(h, float(x))
        return [h.value, *gradients(h, a, b)]

    rng = np.random.default_rng(0)
    sizes: list[int] = []
    for _ in range(14):
        xs = rng.normal(size=20)
        wanted = run(xs, lambda h, x: rg.tanh(h * a + x * b))
        np.testing.assert_allclose(run(xs, cell), wanted, rtol=1e-12)
        gc.collect()
        sizes.append(len(g))
    assert len(built) <= 2 * 20, "unseen instances are looked for when there are twice as many"
    assert max(sizes[7:]) <= max(sizes[:7])


# --- what may go wrong ---------------------------------------------------------------------------


def test_the_function_cannot_read_its_arguments(g: rg.Graph) -> None:
    @rg.subgraph
    def f(x: Any) -> Any:
        return x * 2.0 if x.value > 0 else x

    size = len(g)
    with pytest.raises(rg.UnsetError, match=r"built without values.*rg\.switch"):
        f(1.0)
    with pytest.raises(rg.UnsetError, match="built without values"):
        f(g.input(1.0) * 1.0)
    assert len(g) == size


def test_a_list_of_numbers_is_an_array_for_the_function(g: rg.Graph) -> None:
    built: list[Any] = []

    @rg.subgraph
    def mean(x: Any, *, scale: Any = 1.0) -> Any:
        built.append((x.dtype, x.shape))
        return (x * 2 * scale).mean()

    with g:
        found = [mean(x).value for x in ([1.0, 2.0], np.array([1.0, 2.0]), [3.0, 4.0], [1, 2])]
        found.append(mean([[1.0], [2.0]], scale=[10.0, 20.0]).value)
        assert found == [3.0, 3.0, 7.0, 3.0, 45.0]
        assert len(built) == 3  # by dtype and shape, as of arrays
        assert rg.subgraph(lambda pair: pair[0] * pair[1])([g.input([2.0]), 3.0]).value == [6.0]


def test_names_that_mean_something_else_now_are_seen(g: rg.Graph) -> None:
    names: dict[str, Any] = {}
    exec("def scaled(x): return x * k", names)
    scaled, x = rg.subgraph(names["scaled"]), g.input([1.0])
    found = []
    for names["k"] in (2.0, 3.0, 2.0):
        found.append(scaled(x).value.tolist())
    assert found == [[2.0], [3.0], [2.0]]


@pytest.mark.parametrize(
    ("look", "error", "words"),
    [
        (lambda x: x.value > 0, rg.UnsetError, "built without values"),
        (lambda x: x > 0, rg.ImplicitValueError, "rg.switch"),
        (lambda x: math.exp(x) > 1, rg.ImplicitValueError, "rg.exp"),
        (lambda x: float(x + 1) > 1, rg.ImplicitValueError, "would not follow"),
    ],
)
def test_the_function_cannot_read_inputs_that_hold_a_number(
    g: rg.Graph, look: Any, error: type[Exception], words: str
) -> None:
    """They stand for themselves, and what was read of them would stay as it was."""
    scale = g.input(2.0)

    @rg.subgraph
    def f(x: Any, other: Any = 1.0) -> Any:
        return x * other if look(x) else -x

    x = g.input(3.0)
    assert x.value == 3.0
    size = len(g)
    for call in (lambda: f(x), lambda: f(x, scale), lambda: f(x, other=g.input([1.0]))):
        with pytest.raises(error, match=words):
            call()
    assert len(g) == size
    assert x.value == 3.0

    @rg.subgraph
    def scaled(x: Any) -> Any:
        return x * scale.value  # no argument: read once

    assert scaled(x).value == 6.0
    value = scale.value
    assert scale.value is value


def test_what_a_function_reads_beside_its_arguments_is_the_value_of_now(g: rg.Graph) -> None:
    scale, pair, number = g.input(2.0), g.input([1.0, 2.0]), g.input(3.0)
    double = scale * 2.0
    seen: list[float] = []

    @rg.subgraph
    def f(x: Any) -> Any:
        seen.extend([double.value, pair.value.sum()])
        scale.set(10.0)
        pair.set([5.0, 5.0])
        seen.extend([double.value, pair.value.sum()])
        return x * double.value

    assert f(number).value == 60.0
    assert seen == [4.0, 3.0, 20.0, 10.0]
    value = pair.value
    assert f(number).value == 60.0
    assert pair.value is value


def test_a_function_that_raises_leaves_the_graph_readable(g: rg.Graph) -> None:
    number = g.input(3.0)

    @rg.subgraph
    def f(x: Any) -> Any:
        raise LookupError("in the middle")

    for _ in range(2):
        with pytest.raises(LookupError):
            f(number)
        assert number.value == 3.0


@pytest.mark.slow
def test_a_function_that_raises_leaves_nothing(g: rg.Graph) -> None:
    fail = [True]

    @rg.subgraph
    def f(x: Any) -> Any:
        y = x * 2.0
        if fail[0]:
            raise KeyError("no")
        return y

    size = len(g)
    with pytest.raises(KeyError, match="no"):
        f(1.0)
    gc.collect()
    assert len(g) == size
    fail[0] = False
    assert f(1.0).value == 2.0


def test_nodes_of_two_graphs_do_not_mix(g: rg.Graph) -> None:
    add = rg.subgraph(lambda x, y: x + y)
    other = rg.Graph().input([1.0])
    with pytest.raises(rg.GraphError, match="nodes of several graphs"):
        add(g.input([1.0]), other)
    assert add(other, 2.0).graph is other.graph


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(rg.DTypeError, match="takes a function"):
        rg.subgraph(3)  # type: ignore[call-overload]


def test_a_transaction_takes_back_what_a_result_is_fed_with(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    y = net(x)
    value = y.value
    del y
    with pytest.raises(KeyError), g.transaction():
        assert net(x * 2.0).value == net.plain(x * 2.0).value
        assert net(ROWS * 3.0).value == net.plain(g.const(ROWS * 3.0)).value
        raise KeyError
    assert net(x).value == value
    assert net(x * 2.0).value == net.plain(x * 2.0).value


def test_calls_inside_a_block_of_edits(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    y = net(x) * 1.0
    with g.edit():
        y.replace_parent(0, net(x * 2.0))
    assert y.value == net.plain(x * 2.0).value
    g.check_invariants()


def test_a_fork_goes_on_with_its_own(g: rg.Graph) -> None:
    net, x = Net(g), g.input(ROWS)
    y = net(x)
    value = y.value
    h = g.fork()
    twin = h[y]
    del y
    assert net(ROWS * 2.0).value == net.plain(g.const(ROWS * 2.0)).value
    assert twin.value == value


# --- random use ----------------------------------------------------------------------------------

KINDS = ("array", "Var", "detached", "result", "detached result")


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.integers(0, 3),
            st.booleans(),
            st.sampled_from(["", "drop", "set", "backward", "transaction"]),
        ),
        max_size=14,
    )
)
@settings(deadline=None, max_examples=60)
def test_all_results_that_live_are_those_of_the_function(steps: list[tuple[Any, ...]]) -> None:
    g = rg.Graph()
    with g:
        w = g.param(np.array([0.5, -0.7]))
        leaves = [g.input(np.array([1.0 + k, 0.3 * k])) for k in range(2)]
        params = [g.param(np.array([0.1 * k, 1.0])) for k in range(2)]

        @rg.subgraph
        def f(x: Any) -> Any:
            return rg.tanh(x * w) + x[::-1] * 0.5

        def plain(x: Any) -> Any:
            return rg.tanh(x * w) + x[::-1] * 0.5

        live: list[tuple[rg.Var, rg.Var]] = [(f(leaves[0]), plain(leaves[0]))]
        for kind, which, hold, action in steps:
            twin: Any
            if kind == "array":
                argument = twin = np.array([0.25 * which, -1.0])
                twin = g.const(twin)
            elif "result" in kind and live:
                argument, twin = live[which % len(live)]
            else:
                argument = twin = [*leaves, *params][which]
            if kind.startswith("detached"):
                argument, twin = argument.detach(), twin.detach()
            pair = f(argument), plain(twin)
            if hold:
                live.append(pair)
            if action == "drop" and live:
                del live[which % len(live)]
            elif action == "set":
                leaves[which % 2].set(np.array([0.1 * which, 2.0]))
            elif action == "backward":
                found = gradients(pair[0].sum(), w, *params)
                wanted = gradients(pair[1].sum(), w, *params)
                for one, other in zip(found, wanted, strict=True):
                    assert (one is None) == (other is None)
                    if one is not None:
                        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
            elif action == "transaction":
                with pytest.raises(KeyError), g.transaction():
                    _ = f(leaves[which % 2] * 3.0).value
                    raise KeyError
            del pair, argument, twin
            for one, other in live:
                np.testing.assert_array_equal(one.value, other.value)
            g.check_invariants()
