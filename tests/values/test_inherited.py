"""Forks take over compiled plans of their origin, for memory of their own, and give what a fresh graph gives."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.machine import _registers
from reactgrad.backend.machine._find import find_driver
from reactgrad.values import _inherited

pytestmark = [
    pytest.mark.trusting,
    pytest.mark.whole,
    pytest.mark.fused,
    pytest.mark.skipif(
        find_driver() is None, reason="only the compiled driver's plans are taken over"
    ),
]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Compile plans at once, however short they are."""
    if request.config.getoption("--no-driver"):
        pytest.skip("only the compiled driver's plans are taken over")
    monkeypatch.setattr(_registers, "PATIENCE", 1)
    monkeypatch.setattr(_registers, "FEWEST", 1)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each first run of a plan in a fork took it over."""
    found: list[bool] = []
    whole = _inherited.inherited

    def watched(store: Any, origin: Any, plan: Any) -> Any:
        result = whole(store, origin, plan)
        found.append(result is not None)
        return result

    monkeypatch.setattr(_inherited, "inherited", watched)
    return found


def chain(length: int = 12, rows: int = 4) -> tuple[rg.Graph, rg.Var, list[Any], rg.Var]:
    g = rg.Graph()
    x = g.input(np.linspace(-1.0, 1.0, 2 * rows).reshape(rows, 2), name="x")
    params = [g.param(np.array([0.5, 0.7]) + 0.1 * i, name=f"w{i}") for i in range(length)]
    h = x
    for param in params:
        h = rg.tanh(h * param + 0.25)
    y = h.sum()
    y.name = "y"
    return g, x, params, y


def known(x: Any, *read: rg.Var) -> None:
    """Read these until their plan is compiled."""
    for i in range(6):
        x.set(np.asarray(x.value) * (1.0 + 0.01 * i) + 0.001)
        x.graph.forward(*read)


def fresh(values: dict[str, Any], length: int = 12) -> tuple[bytes, list[bytes]]:
    """Return the result and the gradients of a new graph with these values of leaves."""
    g, _, params, y = chain(length, rows=values["x"].shape[0])
    g.set({g[name]: value for name, value in values.items()})
    gradients = rg.grad(y, params)
    return y.value.tobytes(), [one.value.tobytes() for one in gradients]


def test_a_what_if_binds_nothing_and_gives_what_a_fresh_graph_gives(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    g, x, _, y = chain()
    known(x, y)
    before = y.value
    bound: list[int] = []
    whole = type(g._host)._bind
    monkeypatch.setattr(
        type(g._host), "_bind", lambda host, slots: bound.extend(slots) or whole(host, slots)
    )
    other = np.full((4, 2), 0.3)
    for _ in range(3):
        with g.whatif({x: other}) as w:
            assert w[y].value.tobytes() == fresh({"x": other})[0]
            assert len(w.last_run.ran) == 37  # all but x, the params and a constant
            assert w[y].value_version == y.value_version + 1
            w.check_invariants()
    assert taken == [True] * 3
    assert y.value == before
    x.set(other)
    assert y.value.tobytes() == fresh({"x": other})[0]


def test_gradients_read_together(taken: list[bool]) -> None:
    g, x, params, y = chain()
    gradients = rg.grad(y, params)
    known(x, y, *gradients)
    other = np.full((4, 2), -0.4)
    h = g.fork()
    h[x].set(other)
    h.forward(h[y], *[h[one] for one in gradients])
    value, slopes = fresh({"x": other})
    assert h[y].value.tobytes() == value
    assert [h[one].value.tobytes() for one in gradients] == slopes
    assert taken == [True]


def test_memory_is_not_shared(taken: list[bool]) -> None:
    g, x, _, y = chain()
    known(x, y)
    here = [g._host.data[slot] for slot in g._scheduler.topology.slots()]
    forks = [g.fork() for _ in range(3)]
    expected: list[bytes] = []
    for i, h in enumerate(forks):
        h[x].set(np.full((4, 2), 0.1 * i))
        h[y].value
        expected.append(fresh({"x": np.full((4, 2), 0.1 * i)})[0])
    assert taken == [True] * 3
    for h, value in zip(forks, expected, strict=True):
        assert h[y].value.tobytes() == value
        own = [h._host.data[slot] for slot in h.last_run._run.ran]
        for array in own:
            assert not any(
                isinstance(one, np.ndarray) and np.shares_memory(array, one) for one in here
            )


def test_a_fork_outlives_its_origin_and_keeps_no_graph(taken: list[bool]) -> None:
    g, x, _, y = chain()
    known(x, y)
    h = g.fork()
    twin, result = h[x], h[y]
    twin.set(np.full((4, 2), 0.2))
    first = result.value
    gone = weakref.ref(g)
    del g, x, y, _
    gc.collect()
    assert gone() is None
    twin.set(np.full((4, 2), 0.6))
    assert result.value.tobytes() == fresh({"x": np.full((4, 2), 0.6)})[0]
    assert first.tobytes() == fresh({"x": np.full((4, 2), 0.2)})[0]
    assert taken == [True]
    after = weakref.ref(h)
    del h, twin, result
    assert after() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda g, x, params, y: params[3].set([9.0, 9.0]),
        lambda g, x, params, y: y.parents[0].replace_parent(0, y.parents[0].parents[0] * 2.0),
        lambda g, x, params, y: g.param([1.0, 2.0]),
        lambda g, x, params, y: x.set(np.zeros((4, 2))),
        lambda g, x, params, y: g.param([1.0, 1.0]) * 2.0,
    ],
    ids=["a set", "an edit", "a new leaf", "a set of x", "new nodes"],
)
@pytest.mark.parametrize("read_before", [True, False])
def test_changes_of_the_origin_after_the_fork(
    change: Callable[..., Any], read_before: bool
) -> None:
    g, x, params, y = chain()
    known(x, y)
    h = g.fork()
    value = np.asarray(h[x].value).copy()
    if read_before:
        h[x].set(value)
        h[y].value
    kept = change(g, x, params, y)
    y.value
    h[x].set(value * 0.5)
    assert h[y].value.tobytes() == fresh({"x": value * 0.5})[0]
    h.check_invariants()
    g.check_invariants()
    del kept


def test_forks_of_an_origin_that_was_read_once_take_over_from_the_third_on(
    taken: list[bool],
) -> None:
    g, x, _, y = chain()
    y.value
    for i in range(5):
        value = np.full((4, 2), 0.1 * i)
        with g.whatif({x: value}) as w:
            assert w[y].value.tobytes() == fresh({"x": value})[0]
            w.check_invariants()
    assert taken == [False, False, True, True, True]
    g.check_invariants()
    x.set(np.full((4, 2), 0.7))
    assert y.value.tobytes() == fresh({"x": np.full((4, 2), 0.7)})[0]


def test_nodes_that_only_a_fork_has_are_bound_there(taken: list[bool]) -> None:
    g, x, _, y = chain()
    known(x, y)
    for i in range(4):
        h = g.fork()
        more = rg.tanh(h[y] * 2.0) + 1.0
        h[x].set(np.full((4, 2), 0.1 * i))
        other = rg.tanh(y * 3.0)  # the same row and serial as the fork's
        value = np.frombuffer(fresh({"x": np.full((4, 2), 0.1 * i)})[0])[0]
        assert more.value == np.tanh(value * 2.0) + 1.0
        assert other.value == np.tanh(y.value * 3.0)


def test_each_fork_has_scratch_of_its_own(taken: list[bool]) -> None:
    g = rg.Graph()
    x = g.input(np.linspace(-1.0, 1.0, 6), name="x")
    h = x
    for _ in range(6):
        h = rg.relu(h * 1.5 - 0.25)
    y = h.sum()
    known(x, y)
    k = g.fork()
    k[x].set(np.linspace(-3.0, 2.0, 6))
    expected = np.linspace(-3.0, 2.0, 6)
    for _ in range(6):
        expected = np.maximum(expected * 1.5 - 0.25, 0.0)
    np.testing.assert_allclose(k[y].value, expected.sum())
    assert taken == [True]


@pytest.mark.slow
def test_forks_and_their_origin_run_in_threads_at_the_same_time() -> None:
    g, x, _, y = chain(40)
    known(x, y)
    failures: list[Any] = []

    def work(h: rg.Graph, seed: int) -> None:
        random = Random(seed)
        for _ in range(60):
            value = np.full((4, 2), random.uniform(-1, 1))
            h[x].set(value)
            if h[y].value.tobytes() != fresh({"x": value}, 40)[0]:
                failures.append(seed)

    forks = [g.fork() for _ in range(2)]
    threads = [threading.Thread(target=work, args=(h, i)) for i, h in enumerate([g, *forks])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("seed", range(12))
def test_random_families(seed: int, taken: list[bool]) -> None:
    """Graphs, forks of forks, sets and reads in any order: each is what a fresh graph with its leaves is."""
    random = Random(seed)
    g, _, params, y = chain(6)
    gradients = rg.grad(y, params)
    names = ["x", *[f"w{i}" for i in range(6)]]
    for name in random.sample(names, 4):
        known(g[name], y)
        known(g[name], y, *gradients)
    family: list[tuple[rg.Graph, dict[str, Any]]] = [
        (g, {name: np.asarray(g[name].value).copy() for name in names})
    ]
    for _ in range(120):
        graph, values = random.choice(family)
        kind = random.random()
        if kind < 0.35:
            name = random.choice(names)
            value = np.full(values[name].shape, random.uniform(-1.0, 1.0))
            graph[name].set(value)
            values[name] = value
        elif kind < 0.5 and len(family) < 6:
            family.append((graph.fork(), dict(values)))
        elif kind < 0.6 and len(family) > 1:
            del family[random.randrange(1, len(family))]
        elif kind < 0.7:
            name = random.choice(names)
            value = np.full(values[name].shape, random.uniform(-1.0, 1.0))
            with graph.whatif({name: value}) as w:
                assert w["y"].value.tobytes() == fresh(values | {name: value}, 6)[0]
        elif kind < 0.85:
            assert graph["y"].value.tobytes() == fresh(values, 6)[0]
        else:
            own = [graph[y], *[graph[one] for one in gradients]]
            graph.forward(*own)
            value, slopes = fresh(values, 6)
            assert own[0].value.tobytes() == value
            assert [one.value.tobytes() for one in own[1:]] == slopes
    for graph, _ in family:
        graph.check_invariants()


@pytest.mark.slow
def test_random_families_do_take_over(taken: list[bool]) -> None:
    for seed in range(4):
        test_random_families(seed, taken)
    assert any(taken)


def test_an_origin_whose_forks_are_gone_binds_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    g, x, _, y = chain()
    bound: list[int] = []
    whole = type(g._host)._bind

    def step(i: int) -> None:
        x.set(np.full((4, 2), 0.1 * i))
        assert y.value.tobytes() == fresh({"x": np.full((4, 2), 0.1 * i)})[0]
        with g.whatif({x: np.full((4, 2), 0.2 * i)}) as w:
            assert w[y].value.tobytes() == fresh({"x": np.full((4, 2), 0.2 * i)})[0]

    for i in range(8):
        step(i)
    monkeypatch.setattr(
        type(g._host),
        "_bind",
        lambda host, slots: (bound.append(1) if host is g._host else None) or whole(host, slots),
    )
    held = y.value
    expected = held.tobytes()
    for i in range(8, 12):
        step(i)
    assert not bound
    assert held.tobytes() == expected  # a value that a caller holds is no fork, and stays, too


def test_an_origin_leaves_its_memory_to_a_fork_that_lives() -> None:
    g, x, _, y = chain(rows=200)
    known(x, y)
    h = g.fork()
    inner = h[y].parents[0]
    before = inner.value.tobytes()
    x.set(np.full((200, 2), 0.5))
    y.value
    assert inner.value.tobytes() == before
    k = h.fork()  # shares with the origin, too
    del h, inner
    x.set(np.full((200, 2), 0.7))
    y.value
    assert k[y].parents[0].value.tobytes() == before


def test_a_value_that_was_given_before_a_fork_stays_when_the_graph_goes() -> None:
    g = rg.Graph()
    x = g.input(np.ones(20_000), name="x")  # so large that callers get views
    y = x * 2.0
    held = x.value, y.value
    h = g.fork()
    mine, result = h[x], h[y]
    del g, x, y
    for i in range(3):
        mine.set(np.full(20_000, float(i)))
        assert result.value[0] == 2.0 * i
        again = h.fork()
        del again
    assert (held[0][0], held[1][0]) == (1.0, 2.0)


def test_a_fork_that_lent_a_value_is_forked_and_goes() -> None:
    g = rg.Graph()
    x = g.input(np.ones(20_000), name="x")
    y = x * 2.0
    y.value
    h = g.fork()
    h[x].set(np.full(20_000, 5.0))
    held = h[y].value
    k = h.fork()
    del h
    k[x].set(np.full(20_000, 7.0))
    assert k[y].value[0] == 14.0
    assert held[0] == 10.0


def test_a_fork_of_a_fork_binds_what_is_not_compiled() -> None:
    g = rg.Graph()
    x = g.input(np.ones(8), name="x")
    y = x
    for _ in range(5):
        y = rg.tanh(y * 0.5)
    z = rg.cumsum(y).sum()
    known(x, z)
    expected = []
    for value in (0.5, 0.25):
        x.set(np.full(8, value))
        expected.append(z.value)
    x.set(np.ones(8))
    z.value
    with g.whatif({x: np.full(8, 0.5)}) as a:
        assert a[z].value == expected[0]
        with a.whatif({a[x]: np.full(8, 0.25)}) as b:
            assert b[z].value == expected[1]


def test_a_take_over_that_is_given_up_leaves_no_view_of_former_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    g = rg.Graph()
    x = g.input(np.linspace(0.0, 1.0, 8), name="x")
    y = x[::-1]
    for _ in range(5):
        y = rg.tanh(y * 0.5)
    z = y.sum()
    known(x, z)
    value = np.full(8, 0.5)
    monkeypatch.setattr("reactgrad.backend.machine._relocation.Layout.moved", lambda *args: None)
    h = g.fork()
    h[x].set(value)
    found = h[z].value
    x.set(value)
    assert z.value == found


def test_large_values_are_not_kept_for_forks() -> None:
    g = rg.Graph()
    x = g.input(np.ones(3_000_000), name="x")  # 24 MB
    y = rg.tanh(x) * 2.0
    for i in range(6):
        x.set(np.full(3_000_000, 0.1 * i))
        y.value
    gone = weakref.ref(g._host.data[y._slot])
    h = g.fork()
    x.set(np.zeros(3_000_000))
    y.value
    del h
    g.fork()  # the next one writes down what former ones have left to them
    gc.collect()
    assert gone() is None
    assert not g._host.lent_calls
    assert not any(type(one) is _inherited.Model for one in (g._host.models or {}).values())
