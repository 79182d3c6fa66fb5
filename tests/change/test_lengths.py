"""Leaves that come back to a shape that they had before find all that followed from it."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.autodiff._program import Program
from reactgrad.change import _former_shapes
from reactgrad.change._former_shapes import FEWEST, MOST
from tests.interrupts import interrupted

WIDTH = 4
Arrays = dict[str, np.ndarray[Any, Any]]


class Model:
    """A random graph of two inputs with a batch, and three params."""

    def __init__(self, values: Arrays, seed: int) -> None:
        g = self.g = rg.Graph()
        pick = Random(seed)
        self.xs = [g.input(values["x0"].copy()), g.input(values["x1"].copy())]
        self.ws = [g.param(values[f"w{i}"].copy()) for i in range(3)]
        nodes: list[Any] = [*self.xs]
        for _ in range(pick.randint(3, 9)):
            a, b, w = pick.choice(nodes), pick.choice(nodes), pick.choice(self.ws[:2])
            makes: list[Callable[[Any, Any, Any], Any]] = [
                lambda a, b, w: rg.tanh(a @ w),
                lambda a, b, w: a + self.ws[2],
                lambda a, b, w: a * b,
                lambda a, b, w: a - a.mean(axis=0),
                lambda a, b, w: rg.softmax(a, axis=-1),
                lambda a, b, w: a[::-1] * 2.0 + b,
                lambda a, b, w: a.T.T,
                lambda a, b, w: a.sum(axis=1, keepdims=True) + a,
                lambda a, b, w: rg.where(a > 0.0, a, b * 0.5),
                lambda a, b, w: a.reshape(-1, WIDTH),
                lambda a, b, w: rg.stack([a, b]).sum(axis=0),
                lambda a, b, w: a[[0]] + b,
                lambda a, b, w: a[:, [2, 0, 0, 1]] * b,
            ]
            nodes.append(pick.choice(makes)(a, b, w))
        self.nodes = nodes
        decay = sum([(w * w).sum() for w in self.ws])
        self.loss = nodes[-1].mean() + (pick.choice(nodes) ** 2).sum() * 0.1 + decay * 0.01


def drawn(rng: np.random.Generator, batch: int) -> Arrays:
    return {f"x{i}": rng.normal(size=(batch, WIDTH)) for i in range(2)}


def close(found: Any, expected: Any) -> bool:
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000),
    batches=st.lists(st.sampled_from([1, 2, 3, 5]), min_size=3, max_size=12),
    live=st.booleans(),
    backward=st.booleans(),
    beside=st.randoms(use_true_random=False),
)
def test_values_and_gradients_are_those_of_a_graph_built_anew(
    seed: int, batches: list[int], live: bool, backward: bool, beside: Any
) -> None:
    rng = np.random.default_rng(seed)
    values = drawn(rng, batches[0]) | {
        f"w{i}": rng.normal(size=WIDTH if i == 2 else (WIDTH, WIDTH)) for i in range(3)
    }
    model = Model(values, seed)
    g, xs, ws = model.g, model.xs, model.ws
    gradients = rg.grad(model.loss, ws) if live else []
    of_inputs = rg.grad(model.loss, xs, allow_unused=True) if live else []
    held: list[tuple[Any, Any]] = []

    def step_in_a_transaction() -> None:
        with pytest.raises(KeyError), g.transaction():
            g.set({x: np.ones((2, WIDTH)) for x in xs})
            model.loss.value
            raise KeyError

    def whatif() -> None:
        with g.whatif({x: np.ones((3, WIDTH)) for x in xs}):
            model.loss.value

    def another_param() -> None:
        i = beside.randrange(3)
        values[f"w{i}"] = rng.normal(size=values[f"w{i}"].shape)
        ws[i].set(values[f"w{i}"].copy(), copy=beside.random() < 0.5)

    def hold() -> None:
        value = beside.choice(model.nodes).value
        held.append((value, value.copy()))

    others = [
        *(step_in_a_transaction, whatif, another_param, another_param, hold, hold),
        *(lambda: None, lambda: (model.nodes[-1] * 3.0).value, g.forget_marks, lambda: len(g)),
    ]
    for batch in [*batches, *batches]:
        values |= drawn(rng, batch)
        g.set({xs[0]: values["x0"], xs[1]: values["x1"]})
        beside.choice(others)()
        if beside.random() < 0.3:  # nobody looks at this one
            continue
        fresh = Model(values, seed)
        expected = rg.grad(fresh.loss, fresh.ws)
        if backward:
            g.zero_grad()
            model.loss.backward()
            assert all(close(w.grad, e.value) for w, e in zip(ws, expected, strict=True))
        assert close(model.loss.value, fresh.loss.value)
        for node, other in zip(model.nodes, fresh.nodes, strict=True):
            assert close(node.value, other.value)
        if live:
            assert all(close(d.value, e.value) for d, e in zip(gradients, expected, strict=True))
            again = rg.grad(fresh.loss, fresh.xs, allow_unused=True)
            for d, e in zip(of_inputs, again, strict=True):
                assert (d is None) == (e is None)
                assert d is None or close(d.value, e.value)
        assert all(np.array_equal(value, copy) for value, copy in held)
    g.check_invariants()


class Layers:
    """A few layers with gradients, fed with batches of any length."""

    def __init__(self, *, gradients: bool = True) -> None:
        g = self.g = rg.Graph()
        self.x = g.input(shape=(None, WIDTH))
        self.ws = [g.param(np.eye(WIDTH) * 0.5) for _ in range(3)]
        h = self.x
        for w in self.ws:
            h = rg.tanh(h @ w + 1.0)
        self.h, self.loss = h, (h * h).mean()
        self.x.set(np.ones((2, WIDTH)))
        self.gradients = list(rg.grad(self.loss, self.ws)) if gradients else []

    def step(self, batch: int, value: float = 1.0) -> Any:
        self.x.set(np.full((batch, WIDTH), value))
        return self.g.forward(self.loss, *self.gradients)


@pytest.mark.trusting
@pytest.mark.parametrize("gradients", [False, True])
def test_who_comes_back_asks_no_rule_builds_no_node_and_finds_its_plan(
    gradients: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Program] = []
    update = Program.update

    def counting(program: Program, *args: Any) -> None:
        asked.append(program)
        update(program, *args)

    monkeypatch.setattr(Program, "update", counting)
    layers = Layers(gradients=gradients)
    g = layers.g
    for _ in range(4):
        for batch in (32, 7, 100):
            layers.step(batch)
    assert bool(asked) == gradients
    asked.clear()
    topology, before = g._scheduler.topology, g.stats()
    serial, ran = topology.next_serial, []
    for value in (2.0, 3.0):
        ran = [len(layers.step(batch, value).ran) for batch in (32, 7, 100)]
    assert not asked
    assert topology.next_serial == serial
    assert g.stats().plan_misses == before.plan_misses
    assert len(set(ran)) == 1, "the same nodes, whatever the batch"


@pytest.mark.trusting
def test_so_many_shapes_are_kept_the_latest_used() -> None:
    layers = Layers(gradients=False)
    for batch in range(3, 3 + MOST + 2):
        layers.step(batch)
    shapes = layers.g._shapes
    assert len(shapes) == MOST
    assert {*Counter(slot for slot, _ in shapes._values).values()} == {MOST - 1}
    layers.step(3)  # long gone
    assert len(shapes) == MOST


@pytest.mark.trusting
@pytest.mark.parametrize("bound", ["MOST_NODES", "MOST_BYTES"])
def test_of_many_nodes_or_large_arrays_fewer_shapes_are_kept(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = Layers(gradients=False)
    shapes = layers.g._shapes
    most = {"MOST_NODES": 70, "MOST_BYTES": 20_000}[bound]
    monkeypatch.setattr(_former_shapes, bound, most)
    for batch in range(3, 3 + MOST):
        layers.step(batch)
        nodes = len(shapes) * len(shapes.serials)
        assert {"MOST_NODES": nodes, "MOST_BYTES": shapes._bytes(layers.g)}[bound] <= most
    assert FEWEST <= len(shapes) < MOST
    assert shapes.arrays()


@pytest.mark.trusting
def test_so_much_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_former_shapes, "MOST_BYTES", 100_000)
    layers = Layers()
    anchors = {slot: len(held) for slot, held in layers.g._host.anchors.items()}
    layers.step(10)
    layers.step(20)
    assert len(layers.g._shapes) == 3
    layers.step(2_000)
    assert len(layers.g._shapes) == 4
    layers.step(10)
    assert len(layers.g._shapes) == 4, "put back"
    layers.step(2_000)
    layers.step(30)  # which puts more aside
    assert len(layers.g._shapes) == 0
    assert {slot: len(held) for slot, held in layers.g._host.anchors.items()} == anchors


def test_nobody_sees_the_gradients_of_another_shape() -> None:
    layers, fresh = Layers(), Layers()
    for batch in (5, 3, 5):
        layers.step(batch)
    fresh.step(5)
    assert len(layers.x.children) == len(fresh.x.children)
    layers.step(3)
    layers.step(5)
    assert len(layers.g) == len(fresh.g)
    layers.step(3)
    assert len(layers.g.snapshot().nodes) == len(layers.g.nodes)
    layers.g.check_invariants()


def test_an_edit_in_between_counts_for_all_shapes() -> None:
    layers = Layers()
    for batch in (5, 3, 5, 3):
        layers.step(batch)
    w, other = layers.ws[0], layers.g.param(np.eye(WIDTH))
    (product,) = [one for one in layers.x.children if any(parent is w for parent in one.parents)]
    product.replace_parent(1, other)
    for batch in (5, 3):
        layers.step(batch)
        h = np.tanh(np.ones((batch, WIDTH)) + 1.0)
        for _ in range(2):
            h = np.tanh(h * 0.5 + 1.0)
        np.testing.assert_allclose(layers.h.value, h)
        assert np.all(layers.gradients[0].value == 0.0)
    layers.g.check_invariants()


def test_what_gradients_leave_behind_goes_with_them() -> None:
    layers = Layers()
    for batch in (50, 30, 50, 30):
        layers.step(batch)
    programs = [weakref.ref(program) for program in layers.g._programs.in_order()]
    assert programs
    layers.gradients.clear()
    del layers.loss
    layers.g.forward(layers.h)
    assert [program() for program in programs] == [None]
    assert not layers.g._host.anchors
    layers.x.set(np.ones((50, WIDTH)))
    assert layers.h.value.shape == (50, WIDTH)


def test_memory_for_other_shapes_goes_with_the_nodes() -> None:
    layers = Layers(gradients=False)
    for batch in (50, 30, 50, 30):
        layers.step(batch)
    arrays = [
        weakref.ref(array) for array in layers.g._shapes.arrays() if isinstance(array, np.ndarray)
    ]
    assert len(arrays) > 8
    del layers.h, layers.loss
    layers.g.forward(layers.x)
    assert all(array() is None for array in arrays)


def test_a_value_that_somebody_holds_is_not_written_when_its_shape_comes_back() -> None:
    layers = Layers()
    layers.step(5)
    held = layers.h.value
    copy = held.copy()
    for value in (2.0, 3.0, 4.0):
        layers.step(3, value)
        layers.step(5, value)
        assert np.array_equal(held, copy)
        assert not np.array_equal(layers.h.value, copy)


@pytest.mark.slow
def test_an_interrupt_while_a_shape_comes_back_leaves_the_former_or_the_new_value() -> None:
    at, more = 0, True
    while more:
        at += 7
        layers = Layers()
        for batch in (5, 3, 5, 3):
            layers.step(batch)
        more = interrupted(partial(layers.x.set, np.full((5, WIDTH), 2.0)), at)
        x = layers.x.value
        assert np.array_equal(x, np.ones((3, WIDTH))) or np.array_equal(x, np.full((5, WIDTH), 2.0))
        for again in (False, True):
            if again:
                layers.x.set(x := np.full((3, WIDTH), 0.25))
            h = x
            for _ in layers.ws:
                h = np.tanh(h * 0.5 + 1.0)
            np.testing.assert_allclose(layers.h.value, h)
            fresh = Layers()
            fresh.x.set(x)
            for one, other in zip(layers.gradients, fresh.gradients, strict=True):
                np.testing.assert_allclose(one.value, other.value)
        layers.g.check_invariants()
    assert at > 100


@pytest.mark.trusting
def test_a_shape_that_comes_back_in_time_is_never_the_one_that_goes() -> None:
    """The one that was not used for the longest time goes, not the one that came first."""
    layers = Layers(gradients=False)
    x = layers.x._slot
    for batch in range(3, 3 + 3 * MOST):
        layers.step(2, batch)
        layers.step(max(2, batch - 1))
        layers.step(batch)
        forms = layers.g._shapes._forms.values()
        assert {2, batch} <= {form.specs[x].shape[0] for form in forms}


# --- what is put aside, and forks ----------------------------------------------------------------------


def squares() -> tuple[rg.Graph, rg.Var, rg.Var, list[rg.Var]]:
    """Two params, and the gradients of the sum of their squares; the params have had two shapes."""
    g = rg.Graph()
    x, u = g.param(np.ones(7)), g.param(np.ones(7))
    y = ((x * x).sum() + (u * u).sum()) * 1.0
    asked = [y, *rg.grad(y, [x, u])]
    g.forward(*asked)
    g.set({x: np.ones(1), u: np.ones(1)})
    g.forward(*asked)
    return g, x, u, asked


def come_and_go(g: rg.Graph, u: rg.Var, asked: list[rg.Var]) -> None:
    for length in (7, 1):
        u.set(np.ones(length))
        g.forward(*asked)


def test_an_edit_of_a_fork_is_not_seen_by_shapes_that_come_back() -> None:
    g, x, u, asked = squares()
    h = g.fork()
    come_and_go(g, u, asked)
    h[asked[0]].replace_parent(0, (h[x] * 3.0).sum())
    h.forward(*[h[one] for one in asked])
    x.set(np.full(7, 2.0))
    for one, wanted in zip(asked, (29.0, np.full(7, 4.0), [2.0]), strict=True):
        np.testing.assert_array_equal(one.value, wanted)


def test_a_rolled_back_transaction_of_a_fork_is_not_seen_by_shapes_that_come_back() -> None:
    g, x, u, asked = squares()
    h = g.fork()
    come_and_go(g, u, asked)
    with pytest.raises(KeyError), h.transaction():
        h[x].set(np.ones(20))
        _ = h[asked[0]].value
        raise KeyError
    h.forward(*[h[one] for one in asked])
    x.set(np.ones(7))
    assert [one.value.shape for one in asked] == [(), (7,), (1,)]


def test_to_come_back_is_one_change() -> None:
    g = rg.Graph()
    x = g.input(np.zeros(3))
    y = x * 2.0
    versions = []
    for length in (3, 2, 3, 2, 3):
        x.set(np.ones(length))
        np.testing.assert_array_equal(y.value, np.full(length, 2.0))
        versions.append(x.value_version)
    assert versions == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("lengths", [(3, 1), (3, 2), (1, 2)])
def test_a_gradient_of_lengths_in_turn_beside_what_is_in_another_state_each_time(
    lengths: tuple[int, int],
) -> None:
    """Only the state tells for which length a plan was found, and here no state comes again."""
    g = rg.Graph()
    x, w, z, s = g.input(np.ones(3)), g.param([1.0]), g.input(1.0), g.input(1.0)
    beside = [s * float(k) for k in range(9)]
    gradient = rg.grad((x * w * z).sum(), w)
    for turn in range(40):
        length, scale = lengths[turn // 2 % 2], float(turn)
        value = np.arange(1.0, length + 1.0) * (turn + 1.0)
        if turn % 5 == 4:
            x.set(np.ones(lengths[0]))
        x.set(value)
        z.set(scale)
        s.set(scale)
        _ = beside[turn % 9].value
        assert gradient.value.tolist() == [value.sum() * scale]
        if turn % 8 == 0:
            g.check_invariants()


def test_nodes_that_are_read_together_when_their_lengths_come_back() -> None:
    g = rg.Graph()
    x, y = g.input(np.zeros(3)), g.input(np.zeros(3))
    total = y * 2.0 + x
    end = rg.exp(-total)
    g.forward(total, end)
    for turn in range(6):
        short, long = np.array([0.0, 0.25]) * turn, np.array([0.0, 0.25, 0.5]) * turn
        g.set({x: short, y: short})
        for _ in range(2):
            g.forward(total, end)
        y.set([1.0, 1.0])
        g.forward(total, end)
        assert total.value.tolist() == (2.0 + short).tolist()
        g.set({x: long, y: long})
        assert list(g.forward(total, end).ran)[-1] is end
        assert total.value.tolist() == (3.0 * long).tolist()
        g.check_invariants()
