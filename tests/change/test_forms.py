"""Forms of a graph are exchanged as a whole: two inputs with lengths of their own, among everything else."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.values._aside import Slots
from tests.change.test_lengths import close

WIDTH = 3
LENGTHS = (1, 2, 3, 5)
Arrays = dict[str, np.ndarray[Any, Any]]


class Model:
    """A random graph of two inputs that may have different lengths, with three params."""

    def __init__(self, values: Arrays, seed: int) -> None:
        g = self.g = rg.Graph()
        pick = Random(seed)
        self.xs = [g.input(values[name].copy(), name=name) for name in "ab"]
        self.ws = [g.param(values[name].copy(), name=name) for name in "wvs"]
        w, v, s = self.ws
        long: list[list[Any]] = [[x] for x in self.xs]
        short: list[Any] = []
        for _ in range(pick.randint(3, 10)):
            side = pick.choice(long)
            p, q = pick.choice(side), pick.choice(side)
            last = short[-1] if short else v
            makes: list[Any] = [
                lambda p, q, last: p @ w,
                lambda p, q, last: p + v,
                lambda p, q, last: p * q,
                lambda p, q, last: p - p.mean(axis=0),
                lambda p, q, last: rg.softmax(p, axis=-1),
                lambda p, q, last: p[::-1] * 2.0 + q,
                lambda p, q, last: p.T.T,
                lambda p, q, last: p * s,
                lambda p, q, last: rg.where(p > 0.0, p, q * 0.5),
                lambda p, q, last: p + last,
            ]
            # Views of a part that has the same shape whatever the length is, and sums.
            parts: list[Any] = [
                lambda p: p[0] * 1.5,
                lambda p: p[0:1].reshape(WIDTH),
                lambda p: p[-1],
                lambda p: p.sum(axis=0),
                lambda p: p.max(axis=0),
                lambda p: p.mean() * v,
            ]
            if pick.random() < 0.6:
                side.append(pick.choice(makes)(p, q, last))
            else:
                short.append(pick.choice(parts)(p))
        self.nodes = [*long[0], *long[1], *short]
        self.total = long[0][-1].mean() + (long[1][-1] ** 2).sum() * 0.1
        for one in short:
            self.total = self.total + (one**2).sum()

    def gradients(self) -> list[Any]:
        return list(rg.grad(self.total, [*self.ws, *self.xs], allow_unused=True))


def second(model: Model, gradients: list[Any]) -> list[Any]:
    """Return gradients of the square of the first gradient that there is."""
    one = next((d for d in gradients if d is not None), None)
    return [] if one is None else list(rg.grad((one**2).sum(), model.ws, allow_unused=True))


def tangent(model: Model) -> Any:
    """Return how fast the total moves with all params."""
    ones = [np.ones(w.shape) for w in model.ws]
    return rg.jvp(model.total, model.ws, ones, allow_unused=True)


def alike(found: list[Any], expected: list[Any]) -> bool:
    return all(
        (d is None) == (e is None) and (d is None or close(d.value, e.value))
        for d, e in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(
    "seed", [*range(12), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 150)]]
)
def test_inputs_of_any_lengths_beside_everything_else(seed: int) -> None:
    pick, rng = Random(seed), np.random.default_rng(seed)
    values: Arrays = {name: rng.normal(size=(pick.choice(LENGTHS), WIDTH)) for name in "ab"}
    values |= {"w": rng.normal(size=(WIDTH, WIDTH)), "v": rng.normal(size=WIDTH)}
    values["s"] = np.array(rng.normal())
    model = Model(values, seed)
    g = model.g
    live = model.gradients()
    twice = second(model, live) if pick.random() < 0.5 else []
    ahead = tangent(model) if pick.random() < 0.5 else None
    held: list[tuple[Any, Any]] = []

    def another(name: str) -> None:
        values[name] = rng.normal(size=(pick.choice(LENGTHS), WIDTH))

    def set_one() -> None:
        another(name := pick.choice("ab"))
        g[name].set(values[name].copy(), copy=pick.random() < 0.5)

    def set_both() -> None:
        another("a")
        another("b")
        g.set({"a": values["a"], "b": values["b"]})

    def set_a_param() -> None:
        name = pick.choice("wvs")
        values[name] = np.array(rng.normal(size=values[name].shape))
        g[name].set(values[name].copy())

    def set_a_row() -> None:
        values[name] = values[name := pick.choice("ab")].copy()
        i = pick.randrange(len(values[name]))
        values[name][i] = rng.normal(size=WIDTH)
        g[name].set_at(i, values[name][i])

    def hold() -> None:
        value = pick.choice(model.nodes).value
        held.append((value, np.array(value)))

    def ask_what_if() -> None:
        with g.whatif({"a": rng.normal(size=(pick.choice(LENGTHS), WIDTH))}) as w:
            w[model.total].value

    def roll_back() -> None:
        with pytest.raises(KeyError), g.transaction():
            g["a"].set(rng.normal(size=(pick.choice(LENGTHS), WIDTH)))
            model.total.value
            raise KeyError

    def cut() -> None:
        pick.choice(model.nodes).cutoff = pick.choice([None, "equal"])

    acts = [set_one, set_one, set_one, set_both, set_a_param, set_a_row, hold, cut]
    acts += [ask_what_if, roll_back, g.forget_marks, lambda: model.total.is_stale]
    for _ in range(pick.randint(8, 24)):
        pick.choice(acts)()
        if pick.random() < 0.4:  # nobody looks at this one
            continue
        fresh = Model(values, seed)
        assert close(model.total.value, fresh.total.value)
        expected = fresh.gradients()
        assert alike(live, expected)
        assert alike(model.nodes, fresh.nodes)
        assert ahead is None or close(ahead.value, tangent(fresh).value)
        if twice:
            assert alike(twice, second(fresh, expected))
        assert all(np.array_equal(value, copy) for value, copy in held)
        asked = [model.total, *[d for d in live if d is not None]]
        assert not g.forward(*asked).ran, "all of them were read"
    g.check_invariants()


@pytest.mark.parametrize(
    "seed", [1, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (0, *range(2, 10))]]
)
def test_what_runs_does_not_depend_on_the_lengths_that_were_there_before(seed: int) -> None:
    """A length of one input that comes back brings no gradients back that were built for another one's."""
    pick, rng = Random(seed), np.random.default_rng(seed)
    values = {name: rng.normal(size=(pick.choice(LENGTHS), WIDTH)) for name in "ab"}
    values |= {
        "w": rng.normal(size=(WIDTH, WIDTH)),
        "v": rng.normal(size=WIDTH),
        "s": np.array(rng.normal()),
    }
    models = Model(values, seed), Model(values, seed)
    read: list[list[rg.Var]] = []
    for model in models:
        gradients = rg.grad(model.total, [*model.xs, *model.ws], allow_unused=True)
        read.append([*model.nodes, model.total, *[one for one in gradients if one is not None]])
        model.g.forward(*read[-1])
    for _ in range(16):
        name = pick.choice("ab")
        value = rng.normal(size=(pick.choice(LENGTHS[:3]), WIDTH))
        moved: list[list[int]] = []
        for model, nodes in zip(models, read, strict=True):
            if model is models[1]:
                model.g._shapes.clear(model.g)
            model.g[name].set(value)
            before = [node.value_version for node in nodes]
            model.g.forward(*nodes)
            moved.append([node.value_version - at for node, at in zip(nodes, before, strict=True)])
        assert moved[0] == moved[1]
        for mine, fresh in zip(*read, strict=True):
            assert close(mine.value, fresh.value)


def test_gradients_keep_their_nodes_when_a_length_changes() -> None:
    g = rg.Graph()
    x, w, b = g.input(np.ones((4, 3))), g.param(np.ones(3)), g.param(np.ones(3))
    h = rg.tanh(x * w + b)
    loss = (h + h * w).sum()
    gradients = rg.grad(loss, [w, b, x])
    g.forward(loss, *gradients)
    nodes = len(g)
    versions = [one.value_version for one in gradients]
    for turn, length in enumerate((5, 6, 4, 5, 6), start=1):
        x.set(np.full((length, 3), 0.5))
        run = g.forward(loss, *gradients)
        assert {*gradients} <= {*run.ran}
        assert gradients[2].shape == (length, 3)
        assert [one.value_version - was for one, was in zip(gradients, versions)] == [turn] * 3
        assert len(g) == nodes


@pytest.mark.trusting
def test_a_length_that_comes_back_marks_and_binds_nothing_anew() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones((4, 3))), g.param(np.ones(3))
    loss = rg.tanh(x * w).sum()
    gradient = rg.grad(loss, w)
    for length in (4, 5, 6) * 4:  # a plan is stored when its read comes for the second time
        x.set(np.ones((length, 3)))
        g.forward(loss, gradient)
    moves, misses = g._scheduler.moves_in_all(), g.stats().plan_misses
    for length in (4, 5, 6) * 3:
        x.set(np.full((length, 3), 0.1))
        g.forward(loss, gradient)
    assert g._scheduler.moves_in_all() == moves
    assert g.stats().plan_misses == misses


@pytest.mark.trusting
def test_memory_that_moved_meanwhile_is_used_where_it_lies_now() -> None:
    """Also where the log of moves was cleared, since nobody can tell then what has moved."""
    for clear in (False, True):
        g = rg.Graph()
        x, w = g.input(np.ones((4, 3))), g.param(np.ones(3))
        y = rg.tanh(x * w)
        for length in (4, 5) * 3:
            x.set(np.ones((length, 3)))
            y.value
        held = w.value  # as a view, so that the next value of w lies elsewhere
        w.set(np.full(3, 0.25), copy=False)
        y.value
        if clear:
            g._scheduler._moves_before += len(g._scheduler.moves)
            g._scheduler.moves.clear()
            g._scheduler.plans.unbind()
        x.set(np.ones((4, 3)))
        np.testing.assert_array_equal(y.value, np.tanh(np.full((4, 3), 0.25)))
        assert held.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("deep", [False, True])
def test_a_cutoff_compares_with_the_last_value_whatever_the_length_was(
    late: bool, deep: bool
) -> None:
    g = rg.Graph()
    x = g.input(np.zeros((4, 3)))
    first = x[0]
    second = first[:]
    y, cut = second * 2.0, second if deep else first
    if not late:
        cut.cutoff = "equal"
    values = {4: np.arange(12.0).reshape(4, 3), 5: np.arange(15.0).reshape(5, 3) + 1.0}
    for turn, length in enumerate((4, 5) * 5):
        if turn == 4:
            cut.cutoff = "equal"
        x.set(values[length])
        assert y.value.tolist() == (values[length][0] * 2.0).tolist()


@pytest.mark.parametrize("lengths", [(4, 5), (1, 5), (2, 1)])
@pytest.mark.parametrize("width", [3, 20_000])
def test_nodes_that_compute_something_else_for_another_length(
    lengths: tuple[int, int], width: int
) -> None:
    """In one form the tangent is a sum, in the other it shows one: an alias, in the memory of that."""
    g = rg.Graph()
    x, w = g.input(np.ones((4, width))), g.param(np.ones(width))
    tangent = rg.jvp((x + w).sum(axis=0), [w], [np.ones(width)])
    jacobian = rg.jacobian((x * w).sum(axis=0)[:2], w)
    held: list[tuple[Any, Any]] = []
    for length in lengths * 4:
        x.set(np.ones((length, width)))
        assert tangent.value.tolist() == [length] * width
        assert jacobian.value[:, :2].tolist() == [[length, 0.0], [0.0, length]]
        held.append((tangent.value, tangent.value.copy()))
        assert all(np.array_equal(value, copy) for value, copy in held)
    g.check_invariants()


def test_the_gradient_of_a_part_that_has_one_shape_stays_when_another_length_comes() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones((4, 3))), g.param(np.ones(3))
    first = x[0]
    loss = (first * w * first[:]).sum()
    first.retain_grad()
    kept: list[bool] = []
    for length in (4, 5, 4, 5):
        x.set(np.full((length, 3), float(length)))
        kept.append(first.grad is not None)
        loss.backward()
    assert kept == [False, True, True, True]


@pytest.mark.parametrize("slots", [[3], [5, 2, 3], [0, 1, 2, 7, 9], [9, 1, 5]])
@pytest.mark.parametrize("forked", [False, True])
def test_rows_of_slots(slots: list[int], forked: bool) -> None:
    g = rg.Graph()
    for _ in range(10):
        g.keep(g.input(0.0))
    if forked:
        g.fork()
    column = g._host.attrs
    for slot in range(10):
        column[slot] = (slot,)
    nodes = Slots(slots)
    assert nodes.rows(column) == [(slot,) for slot in sorted(slots)]
    nodes.write(column, [(-slot,) for slot in sorted(slots)])
    assert [column[slot] for slot in range(10)] == [
        (-slot,) if slot in slots else (slot,) for slot in range(10)
    ]
