"""Many leaves set by one ``g.set``, again and again: as if each was set by itself."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.explain.test_free_when_off import python_calls

MANY = 40


def weighted(shape: tuple[int, ...] = ()) -> tuple[rg.Graph, list[Any], Any]:
    """A graph, its leaves, and the sum of their squares."""
    g = rg.Graph()
    leaves = [g.param(np.full(shape, float(i))) for i in range(MANY)]
    total = leaves[0] * leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf * leaf
    return g, leaves, total.sum()


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_values_and_versions_are_those_of_single_sets(shape: tuple[int, ...]) -> None:
    g, leaves, total = weighted(shape)
    rng = np.random.default_rng(0)
    for turn in range(5):
        rows = rng.normal(size=(MANY, *shape))
        values = rows.tolist() if not shape else list(rows)
        g.set(dict(zip(leaves, values, strict=True)))
        ran = g.forward(total).ran
        assert len(ran) == 2 * MANY - 1 + 1  # squares, sums of two, the sum
        assert total.item() == pytest.approx((rows**2).sum())
        assert [leaf.value_version for leaf in leaves] == [turn + 2] * MANY
        assert all(np.array_equal(leaf.value, v) for leaf, v in zip(leaves, values, strict=True))
        g.check_invariants()


@pytest.mark.parametrize(
    "kinds",
    [
        [float],
        [int],
        [bool],
        [complex],
        [str],
        [np.float32],
        [np.float64],
        [lambda n: np.full(2, float(n))],
        [float, lambda n: np.full(2, float(n))],
        [float, np.float64, lambda n: [n, n]],
        [*[float] * 9, lambda n: frozenset([n])],
    ],
    ids=[
        "float",
        "int",
        "bool",
        "complex",
        "str",
        "float32",
        "float64",
        "array",
        "mixed",
        "lists",
        "objects",
    ],
)
def test_inputs_of_every_kind(kinds: list[Any]) -> None:
    g = rg.Graph()
    makers = [kinds[i % len(kinds)] for i in range(MANY)]
    leaves, twins = ([g.input(make(0)) for make in makers] for _ in range(2))
    all_of_them = rg.lift(lambda *given: given)(*leaves)
    for turn in range(1, 5):
        values = [make(i + turn) for i, make in enumerate(makers)]
        g.set(dict(zip(leaves, values, strict=True)))
        for leaf, twin, value in zip(leaves, twins, values, strict=True):
            twin.set(value)
            assert type(leaf.value) is type(twin.value)
            assert np.array_equal(leaf.value, value)
            assert leaf.value_version == twin.value_version == turn + 1
        assert g.forward(all_of_them).ran == (all_of_them,)
        assert all(map(np.array_equal, all_of_them.value, values))
        g.check_invariants()


def test_values_that_were_read_stay_as_they_were() -> None:
    g, leaves, _ = weighted((40_000,))  # large enough to be handed out as views
    for _ in range(3):
        g.set({leaf: np.zeros(40_000) for leaf in leaves})
    held = leaves[3].value
    g.set({leaf: np.ones(40_000) for leaf in leaves})
    assert held[0] == 0.0
    assert leaves[3].value[0] == 1.0


@pytest.mark.parametrize("bad", ["text", 1j, None, [object()]])
def test_one_value_that_does_not_fit_changes_nothing(bad: Any) -> None:
    g, leaves, total = weighted()
    for number in (1.0, 2.0, 3.0):
        g.set(dict.fromkeys(leaves, number))
    with pytest.raises((TypeError, ValueError)):
        g.set({**dict.fromkeys(leaves, 4.0), leaves[-1]: bad})
    assert [leaf.item() for leaf in leaves] == [3.0] * MANY
    assert [leaf.value_version for leaf in leaves] == [4] * MANY
    assert total.item() == 9.0 * MANY


def test_other_numbers_are_taken_as_ever() -> None:
    g, leaves, _ = weighted()
    for value in (1.0, 2.0, 3, np.float32(0.5), np.array(7.0), True):
        g.set(dict.fromkeys(leaves, value))
        assert {leaf.item() for leaf in leaves} == {float(value)}
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float64)}


def test_a_cutoff_that_came_later_counts() -> None:
    g, leaves, _ = weighted()
    for number in (1.0, 2.0, 3.0):
        g.set(dict.fromkeys(leaves, number))
    leaves[5].cutoff = "equal"
    g.set(dict.fromkeys(leaves, 3.0))
    assert leaves[5].value_version == 4
    assert leaves[6].value_version == 5


@pytest.mark.slow
def test_a_new_handle_in_the_place_of_one_that_died_is_not_taken_for_it() -> None:
    g = rg.Graph()
    for turn in range(30):
        leaves = [g.param(0.0) for _ in range(MANY)]
        keys = dict.fromkeys(leaves, float(turn))
        g.set(keys)
        g.set(keys)
        assert {leaf.item() for leaf in leaves} == {float(turn)}
        del keys, leaves[: turn % MANY], leaves
        gc.collect()
    assert len(g) == 0


def test_a_removed_leaf_is_refused() -> None:
    g = rg.Graph()
    leaves = [g.param(0.0) for _ in range(MANY)]
    for number in (1.0, 2.0, 3.0):
        g.set(dict.fromkeys(leaves, number))
    g.remove(leaves[7])
    with pytest.raises(rg.EditError, match="removed"):
        g.set(dict.fromkeys(leaves, 4.0))
    assert leaves[6].item() == 3.0


def test_observers_and_events_hear_of_each_leaf() -> None:
    g, leaves, _ = weighted()
    g.set(dict.fromkeys(leaves, 1.0))
    g.set(dict.fromkeys(leaves, 2.0))
    heard: list[Any] = []
    observer = leaves[9].observe(lambda *told: heard.append(told))
    g.set(dict.fromkeys(leaves, 3.0))
    g.stabilize()
    assert len(heard) == 1
    observer.cancel()
    g.events = True
    g.set(dict.fromkeys(leaves, 4.0))
    assert g.events is not None
    assert sum(event.kind == "set" for event in g.events) == MANY


def test_leaves_of_a_forgotten_group_go_with_their_handles() -> None:
    g = rg.Graph()
    leaves = [g.param(0.0) for _ in range(MANY)]
    for number in (1.0, 2.0, 3.0):
        g.set(dict.fromkeys(leaves, number))
    last = leaves.pop()
    leaves.clear()
    assert len(g) == 1
    g.check_invariants()
    assert last.item() == 3.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_mixed_with_everything_else(seed: int) -> None:
    """Sets of overlapping groups between single sets, forks, transactions, cutoffs and reads."""
    pick = Random(seed)
    g, leaves, total = weighted()
    expected = [float(i) for i in range(MANY)]
    groups = [leaves, leaves[:30], leaves[10:], leaves[::-1]]
    index = {leaf: i for i, leaf in enumerate(leaves)}
    forks: list[tuple[Any, float]] = []
    versions = [leaf.value_version for leaf in leaves]

    def set_group() -> None:
        group = pick.choice(groups)
        values = {leaf: pick.random() for leaf in group}
        g.set(values)
        for leaf, value in values.items():
            expected[index[leaf]] = value

    def undone() -> None:
        before = expected.copy()
        with pytest.raises(ZeroDivisionError), g.transaction():
            set_group()
            total.item()
            raise ZeroDivisionError
        expected[:] = before

    def kept() -> None:
        with g.transaction():
            set_group()

    def single() -> None:
        i = pick.randrange(MANY)
        leaves[i].set(5.0)
        expected[i] = 5.0

    def fork() -> None:
        forks.append((g.fork()[total], sum(x * x for x in expected)))

    def cutoff() -> None:
        pick.choice(leaves).cutoff = pick.choice([None, "equal"])

    for _ in range(60):
        pick.choice([set_group, set_group, set_group, undone, kept, single, fork, cutoff])()
        assert [leaf.item() for leaf in leaves] == expected
        if pick.random() < 0.7:
            assert total.item() == pytest.approx(sum(x * x for x in expected))
        if pick.random() < 0.2:
            g.forget_marks()
        now = [leaf.value_version for leaf in leaves]
        assert all(new >= old for new, old in zip(now, versions, strict=True))
        versions = now
        g.check_invariants()
    for twin, value in forks:
        assert twin.item() == pytest.approx(value)


@pytest.mark.parametrize("others", [0, MANY])
def test_one_leaf_twice_is_refused(others: int) -> None:
    g, leaves, _ = weighted()
    x = g.input(1.0, name="x")
    for number in (2.0, 3.0):
        with pytest.raises(rg.SetError, match="two values for 'x'"):
            g.set({**dict.fromkeys(leaves[:others], number), x: 5.0, "x": 6.0})
    assert x.item() == 1.0
    assert x.value_version == 1
    assert [leaf.value_version for leaf in leaves] == [1] * MANY


class Once(dict[Any, Any]):
    """A mapping whose values can be had once."""

    given = 0

    def values(self) -> Any:
        self.given += 1
        if self.given > 1:
            raise KeyError("the values were taken before")
        return super().values()


def test_the_values_of_a_mapping_are_read_once() -> None:
    g, leaves, _ = weighted()
    for number in (1.0, 2.0):
        g.set(dict.fromkeys(leaves, number))
    g.set(Once(dict.fromkeys(leaves, 3.0)))
    assert {leaf.item() for leaf in leaves} == {3.0}
    assert {leaf.value_version for leaf in leaves} == {4}


@pytest.mark.parametrize("others", [0, MANY])
def test_a_detached_view_is_refused(others: int) -> None:
    g, leaves, _ = weighted()
    for number in (1.0, 2.0):
        with pytest.raises(rg.SetError, match=r"base\.set"):
            g.set({**dict.fromkeys(leaves[1:others], number), leaves[0].detach(): number})
    assert [leaf.value_version for leaf in leaves] == [1] * MANY


@pytest.mark.slow
@pytest.mark.trusting
@pytest.mark.parametrize("shape", [(), (3,)])
def test_leaves_that_are_set_together_again_and_again_are_written_without_a_call_each(
    shape: tuple[int, ...],
) -> None:
    counts = []
    for many in (50, 500):
        g = rg.Graph()
        leaves = [g.param(np.zeros(shape)) for _ in range(many)]
        rows = np.random.default_rng(0).normal(size=(many, *shape))
        values = dict(zip(leaves, rows.tolist() if not shape else list(rows), strict=True))
        for _ in range(4):
            g.set(values)
        counts.append(python_calls(lambda values=values, g=g: g.set(values), compiled=True))
    assert counts[1] <= counts[0] + 10
