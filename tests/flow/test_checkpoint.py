"""Checkpoints: what is released, what is computed again and how often; nothing else differs."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.explain.models import named, row_of_tanh
from tests.plans import keeps_plans

Build = Callable[..., Any]


def plain(fn: Build, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def lying(g: rg.Graph) -> set[str]:
    """Names of the nodes whose values lie in memory, but for leaves."""
    from reactgrad.values._columns import MISSING

    host, leaf = g._host, g._scheduler.leaf
    slots = g._scheduler.topology.slots()
    return {host.name(s) for s in slots if host.data[s] is not MISSING and not leaf[s]}


def ten(x: Any) -> Any:
    return row_of_tanh(x, 10)


# --- what stays, what goes, what comes back ------------------------------------------------------


def test_forward_keeps_results_only(g: rg.Graph) -> None:
    x = g.param(np.full(1000, 0.5), name="x")
    y = named(rg.checkpoint(ten, x), "y")
    run = g.forward(y)
    assert len(run.ran) == 10
    assert not run.rebuilt
    assert lying(g) == {"y"}
    assert g.stats().bytes == 2 * 8000
    again = g.forward(y)
    assert (len(again.ran), len(again.rebuilt)) == (0, 0), "a clean read computes nothing"
    g.check_invariants()


def test_backward_computes_each_value_again_once(g: rg.Graph) -> None:
    x = g.param(np.full(1000, 0.5), name="x")
    y = rg.checkpoint(ten, x).sum()
    y.value
    versions = {node.name: node.value_version for node in g.nodes}
    run = y.backward()
    assert Counter(node.name for node in run.rebuilt).most_common(1)[0][1] == 1
    assert len(run.rebuilt) == 9
    assert not {node.name for node in run.ran} & versions.keys()
    assert {name: g[name].value_version for name in versions} == versions
    other = rg.Graph()
    w = other.param(np.full(1000, 0.5))
    ten(w).sum().backward()
    assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    g.check_invariants()


def test_a_second_gradient_runs_nothing_and_computes_nothing_again(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(ten, x).sum()
    y.backward()
    nodes = len(g)
    run = y.backward()
    assert (len(run.ran), len(run.rebuilt), len(g)) == (0, 0, nodes)


def test_an_input_that_changes_runs_what_it_would_run_without(g: rg.Graph) -> None:
    other = rg.Graph()
    ran: list[list[tuple[int, int]]] = []
    for graph, build in ((g, rg.checkpoint), (other, plain)):
        a, b = graph.param(np.full(3, 0.1)), graph.param(np.full(3, 0.2))

        def model(a: Any, b: Any) -> Any:
            left = row_of_tanh(a, 4)
            return (left * row_of_tanh(b, 4) + left).sum()

        y = build(model, a, b)
        counts: list[tuple[int, int]] = []
        for leaf, value in ((a, 0.3), (b, 0.4), (b, 0.5), (a, 0.6)):
            leaf.set(np.full(3, value))
            counts.append((len(graph.forward(y).ran), y.value_version))
            counts.append((len(y.backward().ran), y.value_version))
        ran.append(counts)
        del model, y, a, b
    assert ran[0] == ran[1]
    g.check_invariants()


def peaks(
    build: Build, layers: int = 16, size: int = 100_000, *, forget: bool = False
) -> tuple[int, int, Any]:
    """Most memory of forward and of backward, in arrays of the size of one layer."""
    g = rg.Graph()
    x = g.param(np.full(size, 0.5))
    y = x
    for _ in range(layers):
        y = build(lambda x: row_of_tanh(x, 8), y)
    y = y.sum()
    tracemalloc.start()
    try:
        y.value
        forward = tracemalloc.get_traced_memory()[1]
        if forget:
            g.forget_marks()
        tracemalloc.reset_peak()
        y.backward()
        backward = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return forward // (size * 8), backward // (size * 8), np.asarray(x.grad)


@pytest.mark.slow
@pytest.mark.whole
def test_memory_falls() -> None:
    """16 layers of 8 nodes: results, and what one layer needs, in place of all values."""
    before = peaks(plain)
    after = peaks(rg.checkpoint)
    assert before[0] >= 128
    assert before[1] >= 2 * 128
    assert after[0] <= 16 + 3
    assert after[1] <= 2 * 16 + 20
    assert np.array_equal(before[2], after[2])


@pytest.mark.slow
@pytest.mark.whole
def test_memory_falls_where_a_read_has_to_look_which_nodes_are_stale() -> None:
    """What turns out to be clean reads nothing: no value waits for it."""
    assert peaks(rg.checkpoint, forget=True)[1] <= 2 * 16 + 20


def test_backward_without_a_forward_before_needs_no_more(g: rg.Graph) -> None:
    x = g.param(np.full(1000, 0.5))
    y = rg.checkpoint(ten, x)
    z = y.sum()
    held: list[int] = []
    probe = rg.lift(lambda a: held.append(g.stats().bytes) or a, vjp=lambda g, ans, a: g)
    loss = probe(z)
    run = loss.backward()
    assert len(run.rebuilt) == 9
    assert held[0] <= 3 * 8000 + 100, "what lies there when the forward part has run"


# --- what somebody sees stays --------------------------------------------------------------------


def test_what_a_handle_holds_stays(g: rg.Graph) -> None:
    kept: list[Any] = []

    def model(x: Any) -> Any:
        kept.append(named(rg.tanh(x), "kept"))
        return rg.tanh(rg.tanh(kept[0])).sum()

    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(model, x)
    g.forward(y)
    assert "kept" in lying(g)
    value = kept[0].value
    assert [node.name for node in y.backward().rebuilt] == ["tanh_3", "tanh_4"]
    assert kept[0].value is value
    del value
    kept.clear()
    x.set(np.full(10, 0.6))
    y.value
    assert "kept" not in lying(g), "nobody holds it any more"


def test_what_a_node_outside_is_built_on_stays(g: rg.Graph) -> None:
    inner: list[Any] = []

    def model(x: Any) -> Any:
        inner.append(rg.tanh(x))
        return rg.tanh(inner[0])

    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(model, x)
    outside = named(inner[0] * 2.0, "outside")
    inner.clear()
    g.forward(y, outside)
    assert lying(g) == {y.name, "outside", "tanh_2"}
    assert not y.sum().backward().rebuilt


def test_observed_and_kept_nodes_and_cutoffs_stay(g: rg.Graph) -> None:
    heard: list[Any] = []

    def model(x: Any) -> Any:
        a = named(rg.tanh(x), "observed")
        a.observe(lambda old, new: heard.append(new))
        b = named(g.keep(rg.tanh(a)), "kept")
        c = named(rg.tanh(b), "cut")
        c.cutoff = "equal"
        return rg.tanh(rg.tanh(c))

    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(model, x)
    y.value
    assert lying(g) >= {"observed", "kept", "cut", y.name}
    assert len(lying(g)) == 4
    x.set(np.full(10, 0.7))
    y.value
    assert len(heard) == 2


def test_a_value_that_a_caller_keeps_stays_the_value_of_its_version(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(lambda x: rg.tanh(rg.tanh(x)), x)
    before = y.parents[0].value
    copy = before.copy()
    y.sum().backward()
    assert y.parents[0].value is before
    x.set(np.full(10, 0.9))
    y.sum().backward()
    assert np.array_equal(before, copy)


# --- shapes of use -------------------------------------------------------------------------------


def test_several_outputs_keywords_and_other_things(g: rg.Graph) -> None:
    def model(x: Any, *, scale: Any, times: int) -> dict[str, Any]:
        h = row_of_tanh(x * scale, times)
        return {"sum": h.sum(), "both": (h * 2.0, [h * 3.0]), "times": times}

    x, scale = g.param(np.full(10, 0.5)), g.param(2.0)
    out = rg.checkpoint(model, x, scale=scale, times=3)
    assert out["times"] == 3
    targets = [out["sum"], out["both"][0], out["both"][1][0]]
    g.forward(*targets)
    assert lying(g) == {target.name for target in targets}
    loss = targets[0] + targets[1].sum() + targets[2].sum()
    assert len(loss.backward().rebuilt) == 4
    other = rg.Graph()
    w, s = other.param(np.full(10, 0.5)), other.param(2.0)
    expected = model(w, scale=s, times=3)
    (expected["sum"] + expected["both"][0].sum() + expected["both"][1][0].sum()).backward()
    assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    assert scale.grad == s.grad


def test_nested(g: rg.Graph) -> None:
    def outer(x: Any) -> Any:
        for _ in range(3):
            x = rg.tanh(rg.checkpoint(ten, x))
        return x

    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(outer, x).sum()
    y.value
    assert len(lying(g)) == 2
    run = y.backward()
    assert len(run.rebuilt) == 32
    assert len(set(map(id, run.rebuilt))) == 32
    other = rg.Graph()
    w = other.param(np.full(10, 0.5))
    row_of_tanh(w, 33).sum().backward()
    assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    g.check_invariants()


def test_inside_no_grad(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    with rg.no_grad():
        y = rg.checkpoint(ten, x)
    y.value
    assert lying(g) == {y.name}
    assert not y.requires_grad


def test_second_order(g: rg.Graph) -> None:
    other = rg.Graph()
    results: list[Any] = []
    for graph, build in ((g, rg.checkpoint), (other, plain)):
        x = graph.param(np.linspace(0.1, 0.9, 5))
        y = build(lambda x: rg.tanh(rg.exp(x) * rg.tanh(x)), x).sum()
        first = rg.grad(y, x)
        second = rg.grad((first * first).sum(), x)
        results.append((first.value, second.value))
        x.set(np.linspace(0.2, 0.8, 5))
        results.append((first.value, second.value))
    for with_one, without in zip(results[:2], results[2:], strict=True):
        assert np.array_equal(with_one, without)
    g.check_invariants()


def test_functions_and_views(g: rg.Graph) -> None:
    calls: list[str] = []

    def double(a: Any) -> Any:
        calls.append("double")
        return a * 2.0

    twice = rg.lift(double, vjp=lambda g, ans, a: g * 2.0, shape=(2, 3))

    def model(x: Any) -> Any:
        h = twice(x.T)[:, 1:]
        return rg.tanh(h).sum()

    x = g.param(np.full((3, 2), 0.5))
    y = rg.checkpoint(model, x)
    y.value
    run = y.backward()
    assert calls == ["double", "double"]
    assert len(run.rebuilt) == len(set(map(id, run.rebuilt)))
    w = rg.Graph().param(np.full((3, 2), 0.5))
    model(w).backward()
    assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    g.check_invariants()


def test_choices(g: rg.Graph) -> None:
    """What a choice gives shows its shape in its value, so building its gradient looks at it."""

    def model(x: Any) -> Any:
        h = rg.exp(x)
        return rg.switch(h.sum() > 3.0, rg.tanh(h), rg.sin(h)).sum()

    x = g.param(np.full(3, 0.5))
    y = rg.checkpoint(model, x)
    for value in (0.5, -5.0):
        x.set(np.full(3, value))
        x.zero_grad()
        y.backward()
        w = rg.Graph().param(np.full(3, value))
        model(w).backward()
        assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    g.check_invariants()


def test_what_is_drawn_at_random_is_drawn_once(g: rg.Graph) -> None:
    """Numbers come from a leaf, which keeps them: gradients see those of the forward."""
    rng = np.random.default_rng(0)
    x = g.param(np.full(10, 0.5))
    noise = g.input(rng.normal(size=10))
    y = rg.checkpoint(lambda x: (rg.tanh(x * noise) * noise).sum(), x)
    y.value
    rng.normal(size=10)
    y.backward()
    w = rg.Graph().param(np.full(10, 0.5))
    (rg.tanh(w * noise.value) * noise.value).sum().backward()
    assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))


def test_a_failure_on_the_way_leaves_a_graph_that_works(g: rg.Graph) -> None:
    fails = True

    def rule(v: Any, ans: Any, a: Any) -> Any:
        return rg.lift(lambda v: 1 / 0 if fails else v)(v)

    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(lambda x: rg.tanh(rg.lift(np.copy, vjp=rule)(rg.tanh(x))).sum(), x)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert x.grad is None
    fails = False
    x.touch()
    y.backward()
    w = rg.Graph().param(np.full(10, 0.5))
    rg.tanh(rg.tanh(w)).sum().backward()
    np.testing.assert_allclose(np.asarray(x.grad), np.asarray(w.grad), rtol=1e-15)
    g.check_invariants()


def test_forks_and_files_have_the_same_values(g: rg.Graph, tmp_path: Any) -> None:
    x = g.param(np.full(10, 0.5), name="x")
    y = named(rg.checkpoint(ten, x), "y")
    y.value
    fork = g.fork()
    fork["x"].set(np.full(10, 0.7))
    assert np.array_equal(fork["y"].value, ten(rg.Graph().param(np.full(10, 0.7))).value)
    assert np.array_equal(y.value, ten(rg.Graph().param(np.full(10, 0.5))).value)
    g.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    loaded["y"].sum().backward()
    y.sum().backward()
    assert np.array_equal(np.asarray(loaded["x"].grad), np.asarray(x.grad))
    fork.check_invariants()
    loaded.check_invariants()


def test_an_edit_inside(g: rg.Graph) -> None:
    x, other = g.param(np.full(10, 0.5)), g.param(np.full(10, 0.1))
    y = rg.checkpoint(ten, x)
    loss = y.sum()
    loss.backward()
    y.parents[0].replace_parent(0, other)
    loss.backward()
    w = rg.Graph().param(np.full(10, 0.1))
    row_of_tanh(w, 2).sum().backward()
    assert np.array_equal(np.asarray(other.grad), np.asarray(w.grad))
    g.check_invariants()


def test_nothing_grows_over_many_steps(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(ten, x).sum()
    sizes: set[tuple[int, int]] = set()
    for step in range(20):
        x.set(np.full(10, step / 20))
        y.backward()
        sizes.add((len(g), g.stats().bytes))
        for _ in range(2):
            rg.checkpoint(ten, x).value
    assert len(sizes) == 1
    nodes = len(g)
    assert len(g._host.transient) < nodes


# --- what cannot be ------------------------------------------------------------------------------


def test_bad_arguments(g: rg.Graph) -> None:
    x = g.param(1.0)
    with pytest.raises(rg.DTypeError, match=r"takes a function.*rg\.checkpoint\(block, x\)"):
        rg.checkpoint(x)  # type: ignore[arg-type]
    with pytest.raises(rg.DTypeError, match=r"'<lambda>' returned float, and no Var"):
        rg.checkpoint(lambda x: 1.0, x)
    with pytest.raises(rg.GraphError, match="Var of another graph"):
        rg.checkpoint(lambda: x * 2.0)


@pytest.mark.trusting
def test_a_graph_without_checkpoints_keeps_its_plans() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.tanh(x)
    for _ in range(4):
        x.touch()
        y.value
    assert len(g._scheduler.plans) == 1
    assert not g._transient


@pytest.mark.trusting
def test_a_model_that_is_written_anew_is_there_already() -> None:
    g = rg.Graph()
    x, w = g.param(np.full(1000, 0.5)), rg.Graph().param(np.full(1000, 0.5))
    seen: set[tuple[Any, ...]] = set()
    for step in range(8):
        x.set(np.full(1000, 0.1 * step))
        w.set(np.full(1000, 0.1 * step))
        with g.reuse():
            y = rg.checkpoint(lambda p: rg.sin(rg.tanh(row_of_tanh(p, 3))).sum(), x)
            y.backward()
        rg.sin(rg.tanh(row_of_tanh(w, 3))).sum().backward()
        assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
        seen.add((len(g), g.stats().bytes, tuple(sorted(lying(g)))))
        g.check_invariants()
    assert len(seen) == 1
    own = [name for name in lying(g) if not name.startswith("tanh_backward")]
    assert not any("tanh" in name or "sin_" in name for name in own)
    with g.reuse():
        plain = rg.tanh(x)
    assert plain.value is plain.value
    assert plain.name in lying(g), "not a node of the checkpoint"


def test_reads_that_meet_no_checkpoint_do_not_know_of_it() -> None:
    g = rg.Graph()
    x, z = g.param(np.full(4, 0.5)), g.param(np.full(4, 0.5))
    y = row_of_tanh(x, 5).sum()
    y.backward()
    inside = rg.checkpoint(ten, z).sum()
    with rg.saved_tensors_hooks(np.copy, np.copy):
        hooked = row_of_tanh(z, 3).sum()
    inside.backward()
    hooked.backward()
    for step in range(3):  # until its plan is stored
        x.set(np.full(4, 0.1 * step))
        y.backward()
    misses = g.stats().plan_misses
    for step in range(4):
        x.set(np.full(4, 0.2 * step))
        y.backward()
    if keeps_plans(g):
        assert g.stats().plan_misses == misses
    z.set(np.full(4, 0.2))
    assert len(inside.backward().rebuilt) == 9


def test_what_a_function_reads_inside_goes_again(g: rg.Graph) -> None:
    """A run that meets no checkpoint itself, but for what its functions read."""
    x, turn = g.param(np.full(4, 0.5)), g.input(0.0)
    inner: list[Any] = []

    def model(x: Any) -> Any:
        inner.append(rg.tanh(rg.tanh(rg.tanh(x))))
        return rg.tanh(inner[0])

    y = rg.checkpoint(model, x)
    with rg.saved_tensors_hooks(np.copy, np.copy):
        hooked = rg.exp(rg.exp(x))
    look = rg.lift(lambda t: float(t) + y.value[0] + hooked.value[0])(turn)
    expected = np.tanh(np.tanh(np.tanh(np.tanh(0.5)))) + np.exp(np.exp(0.5))
    for step in range(3):
        turn.set(float(step))
        np.testing.assert_allclose(look.value, step + expected, rtol=1e-15)
        x.touch()
    assert lying(g) == {y.name, look.name, inner[0].name}
    g.check_invariants()


# --- laws ----------------------------------------------------------------------------------------

UNARY: list[Callable[[Any], Any]] = [rg.tanh, rg.sin, rg.exp, lambda x: x.T, lambda x: x * x]
BINARY: list[Callable[[Any, Any], Any]] = [rg.add, rg.multiply, rg.subtract, rg.maximum]
Steps = list[tuple[int, int, int]]


def grow(nodes: list[Any], steps: Steps) -> Any:
    for op, a, b in steps:
        x, y = nodes[a % len(nodes)], nodes[b % len(nodes)]
        one: Any = UNARY[op // 2 % len(UNARY)] if op % 2 else BINARY[op // 2 % len(BINARY)]
        nodes = [*nodes, one(x) if op % 2 else one(x, y)]
    return nodes[-1], nodes[len(nodes) // 2]


steps = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=12
)


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    segments=st.lists(steps, min_size=1, max_size=4),
    acts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=8),
)
def test_nothing_but_memory_differs(
    distrust: bool, segments: list[Steps], acts: list[tuple[int, int]]
) -> None:
    """Same bits, same versions, same nodes run, in the same order, as without checkpoints."""
    seen: list[list[Any]] = []
    for build in (plain, rg.checkpoint):
        g = rg.Graph()
        g._scheduler.distrust = distrust or g._scheduler.distrust
        leaves = [g.param(np.linspace(0.1, 0.4, 4).reshape(2, 2) * (i + 1)) for i in range(3)]
        outputs: list[Any] = list(leaves)
        for part in segments:
            outputs += build(lambda *xs: grow(list(xs), part), *outputs[-3:])  # noqa: B023
        loss = outputs[-2].sum() + outputs[-1].sum()
        found: list[Any] = []
        for act, which in acts:
            run = None
            leaf, target = leaves[which % 3], outputs[which % len(outputs)]
            if act == 0:
                leaf.set(leaf.value * 0.5 + which * 0.01)
            elif act == 1:
                run = g.forward(target)
            elif act == 2 and loss.requires_grad:
                run = loss.backward()
            elif act == 3:
                found.append(target.value)
            elif act == 4:
                leaf.touch()
            if run is not None:
                found.append([node.name for node in run.ran])
                rebuilt = [node.name for node in run.rebuilt]
                assert len(rebuilt) == len(set(rebuilt)), "each once"
            found.append([(one.value_version, one.is_stale) for one in outputs])
            found.append([None if one.grad is None else np.array(one.grad) for one in leaves])
        found.append(loss.value)
        seen.append(found)
        g.check_invariants()
    np.testing.assert_equal(seen[0], seen[1])
