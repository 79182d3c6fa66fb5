"""Marks: what is stale, and how little is looked at to know it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler import Scheduler
from reactgrad_scheduler.staleness import Staleness


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Every mark that is put, alone or with others, as the slot it is put on."""
    seen: list[int] = []
    put, moved_from = Staleness.put, Staleness.moved_from

    def one(self: Staleness, slot: int, mark: int) -> None:
        seen.append(slot)
        put(self, slot, mark)

    def several(self: Staleness, former: int, slots: Sequence[int]) -> None:
        seen.extend(slots)
        moved_from(self, former, slots)

    monkeypatch.setattr(Staleness, "put", one)
    monkeypatch.setattr(Staleness, "moved_from", several)
    return seen


def chain(x: rg.Var, length: int) -> rg.Var:
    for _ in range(length):
        x = x + 1.0
    return x


def test_building_and_setting_compute_nothing(g: rg.Graph) -> None:
    calls: list[float] = []
    x = g.input(1.0)
    y = rg.lift(lambda v: calls.append(v) or v)(x) + 1.0
    x.set(2.0)
    rg.grad(rg.tanh(x), x)
    assert calls == []
    assert (y.value_version, y.is_stale, y.state) == (0, True, "stale")


def test_what_ran_is_the_part_between_the_change_and_the_question(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)
    left, right = a + 1.0, b + 1.0
    both = left * right
    asked, other = both + 1.0, both + 2.0
    g.forward(asked, other)
    a.set(5.0)
    run = g.forward(asked)
    assert run.ran == [left, both, asked]
    assert [v.is_stale for v in (left, right, both, asked, other)] == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert g.forward(other).ran == [other]
    assert g.forward(asked, other).ran == []


@pytest.mark.trusting
def test_a_clean_read_asks_the_scheduler_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    g = rg.Graph()
    y = chain(g.input(1.0), 100)
    y.value

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("a clean read went to the scheduler")

    for method in ("refresh", "attend", "stale_ancestors"):
        monkeypatch.setattr(Scheduler, method, never)
    assert float(y.value) == 101.0


@pytest.mark.trusting
def test_an_unrelated_set_makes_a_read_mark_only_the_cone_of_that_set(marks: list[int]) -> None:
    g = rg.Graph()
    big = chain(g.input(1.0), 500)
    x = g.input(1.0)
    small = chain(x, 3)
    g.forward(big, small)
    x.set(2.0)
    marks.clear()
    big.value
    assert len(marks) == 3
    x.set(3.0)
    marks.clear()
    big.value
    assert marks == [], "what is marked already was marked again"


@pytest.mark.trusting
def test_a_repeated_set_and_read_touches_no_mark_and_walks_nowhere(
    marks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = chain(x, 20)
    for i in range(4):
        x.set(float(i))
        y.value

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("a repeated read walked")

    monkeypatch.setattr(Scheduler, "stale_ancestors", never)
    monkeypatch.setattr(Staleness, "push", never)
    marks.clear()
    for i in range(5):
        x.set(10.0 + i)
        assert float(y.value) == 30.0 + i
    assert marks == []


def test_after_a_cutoff_a_marked_node_is_known_to_be_clean_and_nothing_ran(g: rg.Graph) -> None:
    calls: list[float] = []
    x = g.input(1.2)
    step = rg.floor(x)
    step.cutoff = "equal"
    y = rg.lift(lambda v: calls.append(v) or v)(step)
    y.value
    x.set(1.4)
    assert y.is_stale, "before the cutoff was asked nobody can know"
    step.value
    calls.clear()
    assert not y.is_stale
    assert y.state == "clean"
    assert len(g.plan(y)) == 0
    assert calls == []


def test_a_touched_function_that_is_cut_off_leaves_its_children_clean(g: rg.Graph) -> None:
    constant = rg.lift(lambda v: 1.0, cutoff="equal")(g.input(1.0))
    y = rg.lift(lambda v: v + 1.0)(constant)
    y.value
    constant.touch()
    run = g.forward(constant)
    assert run.ran == run.cut_off == [constant]
    assert not y.is_stale
    assert not g.forward(y).ran


def test_a_cutoff_that_is_set_between_a_change_and_the_read_counts(g: rg.Graph) -> None:
    x = g.input(1.0)
    zero = x * 0.0
    y = zero + 1.0
    y.value
    x.set(2.0)
    assert y.is_stale
    zero.cutoff = "equal"
    assert g.forward(zero).cut_off == [zero]
    assert not y.is_stale
    assert not g.forward(y).ran
    g.check_invariants()


def test_a_cutoff_that_is_removed_between_a_change_and_the_read_is_gone(g: rg.Graph) -> None:
    x = g.input(1.0)
    zero = x * 0.0
    zero.cutoff = "equal"
    y = zero + 1.0
    y.value
    x.set(2.0)
    assert y.is_stale
    zero.cutoff = None
    g.check_invariants()
    assert g.forward(y).ran == [zero, y]


def test_touch_of_a_function_runs_it_and_what_follows_once(g: rg.Graph) -> None:
    x = g.input(1.0)
    f = rg.lift(lambda v: v)(x)
    y = f + 1.0
    y.value
    f.touch()
    assert g.forward(y).ran == [f, y]
    assert g.forward(y).ran == []
    assert (f.value_version, f.parent_versions) == (2, (1,))


def test_touch_does_not_change_what_is_recorded_of_the_last_run(g: rg.Graph) -> None:
    """``parent_versions`` are those that the value was computed from, until it is recomputed."""
    x = g.input(1.0)
    f = rg.lift(lambda v: v)(x)
    f.value
    f.touch()
    assert f.is_stale
    assert f.parent_versions == (1,)


def test_touch_of_a_leaf_keeps_its_value_also_while_someone_holds_it(g: rg.Graph) -> None:
    """Large values are handed out without a copy; touching must not take them for overwritten."""
    for array in (np.arange(3.0), np.arange(100_000.0)):
        x = g.input(array)
        y = x + 1.0
        held = x.value
        y.value
        x.touch()
        assert np.array_equal(x.value, array)
        assert g.forward(y).ran == [y]
        assert np.array_equal(held, array)


def test_touch_of_an_adopted_leaf_keeps_its_value(g: rg.Graph) -> None:
    x = g.input([0.0, 0.0])
    x.set(np.array([1.0, 2.0]), copy=False)
    x.touch()
    assert x.value.tolist() == [1.0, 2.0]
    assert (x + 1.0).value.tolist() == [2.0, 3.0]


def test_a_leaf_without_a_value_is_stale_and_what_follows_too(g: rg.Graph) -> None:
    x = g.input(shape=(2,))
    y = x + 1.0
    assert (x.state, y.state, x.value_version) == ("unset", "stale", 0)
    x.set([1.0, 2.0])
    assert (x.state, x.value_version) == ("clean", 1)
    assert y.value.tolist() == [2.0, 3.0]


def test_marks_that_move_are_noted_for_those_who_are_heeded_and_for_nobody_else(
    g: rg.Graph,
) -> None:
    x = g.input(1.0)
    a, b = x + 1.0, x + 2.0
    staleness = g._scheduler.staleness
    g.forward(a, b)
    staleness.heed({a._slot})
    x.set(2.0)
    staleness.flush()
    assert staleness.moved == {a._slot}
    staleness.moved.clear()
    staleness.flush()
    g.forward(b)
    assert staleness.moved <= {a._slot}
    g.forward(a)
    assert staleness.moved == {a._slot}
    staleness.heed(())
    assert (staleness.moved, type(staleness)) == (set(), Staleness)
    g.check_invariants()
