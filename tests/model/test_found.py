"""What the state machine found, each in its shortest form."""

from __future__ import annotations

import gc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Abort(Exception):
    """What ends a transaction."""


def fail(*args: object) -> float:
    raise ZeroDivisionError("on purpose")


def test_an_empty_inner_transaction_does_not_cost_the_outer_one_its_notes() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    with pytest.raises(Abort):
        with graph.transaction():
            with graph.transaction():
                pass
            x.set(2.0)
            raise Abort
    assert x.value == 1.0


def test_an_edit_that_an_inner_transaction_took_back_stays_taken_back() -> None:
    graph = rg.Graph()
    a, b = graph.input(1.0), graph.input(2.0)
    y = a * a
    with pytest.raises(Abort):
        with graph.transaction():
            with pytest.raises(Abort):
                with graph.transaction():
                    y.replace_parent(0, b)
                    raise Abort
            raise Abort
    assert y.parents == [a, a]


def test_a_pin_that_an_inner_transaction_took_back_stays_taken_back() -> None:
    graph = rg.Graph()
    a = graph.input([1.0])
    y = a * a
    with pytest.raises(Abort):
        with graph.transaction():
            with pytest.raises(Abort):
                with graph.transaction():
                    y.pin([5.0])
                    raise Abort
            raise Abort
    assert not y.pinned


def test_an_unpinned_scalar_is_pinned_again_by_a_rollback() -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    y = a + a
    y.pin(5.0)
    with pytest.raises(Abort):
        with graph.transaction():
            y.unpin()
            raise Abort
    assert y.pinned
    assert y.value == 5.0


def test_releasing_values_spares_a_pinned_one() -> None:
    graph = rg.Graph()
    a, b = graph.param([1.0, 2.0]), graph.param([3.0, 4.0])
    y = a + a
    z = (y * b).sum()
    y.pin([5.0, 6.0])
    z.backward(retain_graph=False)
    assert y.value.tolist() == [5.0, 6.0]


def test_releasing_values_spares_one_that_a_cutoff_kept() -> None:
    """It could not be rebuilt: its parents have moved on."""
    graph = rg.Graph()
    a = graph.param([1.0, 2.0])
    y = a * a
    y.cutoff = rg.tolerance(atol=0.5)
    z = (y * y).sum()
    z.value
    a.set([1.01, 2.0])
    assert y.value.tolist() == [1.0, 4.0]
    z.backward(retain_graph=False)
    assert y.value.tolist() == [1.0, 4.0]
    assert y.value_version == 1


def test_a_function_that_catches_the_error_of_what_it_reads_has_a_value() -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    broken = rg.lift(fail)(a)

    def catch(value: float) -> float:
        try:
            return broken.value
        except ZeroDivisionError:
            return -value

    y = rg.lift(catch)(a)
    assert y.value == -1.0
    graph.check_invariants()
    assert not graph.forward(y).ran
    graph.forget_marks()
    assert not graph.forward(y).ran


def test_a_function_that_read_an_error_is_not_called_again_for_it() -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    broken = rg.lift(fail)(a)
    calls = []

    def read(value: float) -> float:
        calls.append(value)
        return broken.value

    y = rg.lift(read)(a)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            graph.forward(y)
        assert sorted(v.name for v in graph.last_run.failed) == sorted([broken.name, y.name])
    assert calls == [1.0]


def test_in_a_fork_a_function_reads_the_twins() -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    double = a + a
    y = rg.lift(lambda value: value + double.value)(a)
    assert y.value == 3.0
    twin = graph.fork()
    twin[a].set(5.0)
    assert twin[y].value == 15.0
    assert y.value == 3.0


def test_observers_are_told_of_a_pin_and_of_what_it_makes_stale() -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    y = a + a
    z = y + a
    graph.forward(z)
    told: list[object] = []
    observers = [
        y.observe(lambda old, new: told.append((float(old), float(new)))),
        z.observe(lambda var: told.append("stale"), kind="stale"),
    ]
    y.pin(7.0)
    graph.stabilize()
    assert told == ["stale", (2.0, 7.0)]
    assert all(observer.active for observer in observers)


@pytest.mark.parametrize("change", ["unpin", "touch", "edit"])
def test_observers_of_staleness_are_told_of_every_kind_of_change(change: str) -> None:
    graph = rg.Graph()
    a = graph.input(1.0)
    y = a + a
    z = y + a
    if change == "unpin":
        y.pin(3.0)
    graph.forward(z)
    told: list[rg.Var] = []
    observer = z.observe(told.append, kind="stale")
    if change == "unpin":
        y.unpin()
    elif change == "touch":
        y.touch()
    else:
        y.replace_parent(0, graph.input(4.0))
    assert len(told) == 1
    assert observer.active


def test_an_operand_that_got_another_shape_while_a_node_was_pinned() -> None:
    graph = rg.Graph()
    x = graph.input([1.0, 2.0, 3.0])
    y = x + x
    y.pin([5.0, 6.0, 7.0])
    x.set([1.0, 2.0])
    y.unpin()
    assert y.shape == (2,)
    assert y.value.tolist() == [2.0, 4.0]


def test_a_rollback_gives_two_leaves_their_former_shape_together() -> None:
    graph = rg.Graph()
    a, b = graph.input([1.0, 2.0]), graph.input([3.0, 4.0])
    y = a + b
    with pytest.raises(Abort):
        with graph.transaction():
            graph.set({a: [1.0, 2.0, 3.0], b: [4.0, 5.0, 6.0]})
            raise Abort
    assert a.value.tolist() == [1.0, 2.0]
    assert y.value.tolist() == [4.0, 6.0]


def test_a_rollback_is_not_stopped_by_what_a_function_read_inside() -> None:
    """What it read would close a cycle with the edge that comes back; but it is stale by now."""
    graph = rg.Graph()
    choice, b = graph.input(0), graph.input(7.0)
    later: list[rg.Var] = []
    reader = rg.lift(lambda chosen: later[0].value if chosen else 1.0)(choice)
    middle = reader + b
    y = middle + middle
    later.append(y)
    assert y.value == 16.0
    with pytest.raises(Abort):
        with graph.transaction():
            y.replace_parent(0, b)
            y.replace_parent(1, b)
            choice.set(1)
            assert reader.value == 14.0
            raise Abort
    assert choice.value == 0
    assert y.parents == [middle, middle]
    assert y.value == 16.0


def test_what_a_function_read_is_no_operand_to_replace() -> None:
    graph = rg.Graph()
    choice, a, b = graph.input(0), graph.input(1.0), graph.input(7.0)
    reader = rg.lift(lambda chosen: a.value)(choice)
    reader.value
    with pytest.raises(rg.EditError):
        reader.replace_parent(1, b)


def test_retry_reaches_what_a_function_reads() -> None:
    graph = rg.Graph()
    choice, a = graph.input(0), graph.input(1.0)
    broken = [True]
    moody = rg.lift(lambda value: fail() if broken else value)(a)
    reader = rg.lift(lambda chosen: moody.value)(choice)
    with pytest.raises(ZeroDivisionError):
        reader.value
    broken.clear()
    graph.forward(reader, retry=True)
    assert reader.value == 1.0


def test_an_error_that_went_away_without_a_new_value_is_not_raised_again() -> None:
    """The operand has its former value and version again; what was computed from it is valid."""
    graph = rg.Graph()
    a, choice = graph.input(1.0), graph.input(0)
    operand = rg.lift(lambda value: fail() if value == 2.0 else 5.0, cutoff="equal")(a)
    reader = rg.lift(lambda chosen: operand.value + 1.0)(choice)
    assert reader.value == 6.0
    a.set(2.0)
    with pytest.raises(ZeroDivisionError):
        reader.value
    a.set(3.0)
    assert reader.value == 6.0


def test_observers_are_not_told_of_values_that_were_outdated_before_the_transaction_ended() -> None:
    graph = rg.Graph()
    x, z = graph.input(1.0), graph.input(2.0)
    y = x + z
    graph.forward(y)
    told: list[tuple[float, float]] = []
    observer = y.observe(lambda old, new: told.append((float(old), float(new))))
    with graph.transaction():
        x.set(10.0)
        y.value
        z.set(20.0)
    assert told == []
    graph.stabilize()
    assert told == [(3.0, 30.0)]
    assert observer.active


def test_an_observer_is_not_told_of_what_was_before_it() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    y = x + x
    graph.forward(y)
    told: list[float] = []
    observers = [y.observe(lambda old, new: told.append(float(new)))]
    with graph.transaction():
        x.set(10.0)
        y.value
        observers.append(y.observe(lambda old, new: told.append(-float(new))))
    assert told == [20.0]


def test_stabilize_raises_the_error_of_a_node_that_nobody_watches_for_errors() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    watched, other = rg.lift(fail)(x), rg.lift(fail)(x)
    told: list[Exception] = []
    observers = [
        watched.observe(told.append, kind="error"),
        other.observe(lambda old, new: None),
    ]
    with pytest.raises(ZeroDivisionError):
        graph.stabilize()
    assert len(told) == 1
    assert all(observer.active for observer in observers)


def test_the_name_of_the_first_node_is_taken_like_any_other() -> None:
    graph = rg.Graph()
    a, b = graph.input(1.0, name="price"), graph.input(2.0)
    with pytest.raises(rg.GraphError):
        b.name = "price"
    assert graph["price"] is a


def test_a_value_computed_in_a_failing_transaction_is_news_where_it_stays() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    y = x + x
    told: list[float] = []
    observer = y.observe(lambda old, new: told.append(float(new)))
    with pytest.raises(Abort):
        with graph.transaction():
            y.value
            raise Abort
    assert y.value_version == 1
    graph.stabilize()
    assert told == [2.0]
    assert observer.active


def test_observers_of_a_leaf_are_told_that_it_was_touched() -> None:
    graph = rg.Graph()
    x = graph.input([1.0])
    told: list[list[float]] = []
    observer = x.observe(lambda old, new: told.append(new.tolist()))
    x.touch()
    graph.stabilize()
    assert told == [[1.0]]
    assert observer.active


def test_a_touched_node_whose_cutoff_keeps_its_value_leaves_its_children_clean() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    y = x - x
    y.cutoff = "equal"
    z = y * x
    graph.forward(z)
    y.touch()
    assert graph.forward(y).cut_off == [y]
    assert not z.is_stale
    assert not graph.forward(z).ran


def test_a_function_that_reads_what_an_error_further_up_has_blocked_raises_that_error() -> None:
    graph = rg.Graph()
    a, choice = graph.input(1.0), graph.input(0)
    broken = rg.lift(lambda value: fail() if value == 2.0 else value)(a)
    blocked = broken + 1.0
    reader = rg.lift(lambda chosen: blocked.value)(choice)
    assert reader.value == 2.0
    a.set(2.0)
    with pytest.raises(ZeroDivisionError):
        reader.value
    a.set(3.0)
    assert reader.value == 4.0


def test_who_caught_an_error_looks_again_when_it_was_retried() -> None:
    graph = rg.Graph()
    a, choice = graph.input(1.0), graph.input(0)
    moods = ["first", "second"]

    def moody(value: float) -> float:
        raise ZeroDivisionError(moods[0])

    operand = rg.lift(moody)(a)

    def catch(chosen: int) -> str:
        try:
            return operand.value
        except ZeroDivisionError as error:
            return str(error)

    reader = rg.lift(catch)(choice)
    assert reader.value == "first"
    moods.pop(0)
    with pytest.raises(ZeroDivisionError, match="second"):
        graph.forward(operand, retry=True)
    graph.check_invariants()
    assert reader.value == "second"


def test_a_run_lists_a_failed_node_once() -> None:
    graph = rg.Graph()
    a, choice = graph.input(1.0), graph.input(0)
    broken = rg.lift(lambda value: fail() if value == 2.0 else value)(a)
    blocked = broken + 1.0
    reader = rg.lift(lambda chosen: blocked.value)(choice)
    graph.forward(reader)
    a.set(2.0)
    with pytest.raises(ZeroDivisionError):
        graph.forward(reader)
    assert sorted(var.name for var in graph.last_run.failed) == sorted([broken.name, reader.name])


@pytest.mark.parametrize("forked", [False, True])
def test_an_edit_leaves_the_old_value_for_the_cutoff_to_see(forked: bool) -> None:
    graph = rg.Graph()
    x = graph.input([1.0, 2.0])
    y = x + x
    y.cutoff = "equal"
    before = y.value
    twin = graph.fork() if forked else None
    y.replace_parent(0, x)
    assert graph.forward(y).cut_off == [y]
    assert y.value_version == 1
    assert y.value is before
    assert twin is None or twin[y].value.tolist() == [2.0, 4.0]


def test_marks_forgotten_inside_a_function_keep_no_other_node_from_running() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    double = x * 2.0

    def forget(value: float) -> float:
        graph.forget_marks()
        return value

    forgetful = rg.lift(forget)(x)
    other = double + 1.0
    graph.forward(other, forgetful)
    assert not other.is_stale
    assert other.value == 3.0


def test_a_function_that_read_a_blocked_node_breaks_no_invariant() -> None:
    graph = rg.Graph()
    x, choice = graph.input(1.0), graph.input(0)
    total = x + x
    looped = rg.lift(lambda chosen: total.value)(choice)
    total.replace_parent(1, looped)
    reader = rg.lift(lambda chosen: total.value)(choice)
    with pytest.raises(rg.CycleError):
        graph.forward(looped, reader)
    graph.check_invariants()


def test_an_edit_that_gradients_refuse_changes_nothing() -> None:
    graph = rg.Graph()
    w = graph.param([1.0, 2.0])
    y, other = w.max(), rg.lift(lambda value: value)(w)
    y.backward()
    version = y.value_version
    with pytest.raises(rg.GradientError):
        y.replace_parent(0, other)
    assert y.parents == [w]
    assert not y.is_stale
    assert y.value_version == version


def test_a_change_reaches_who_caught_the_error_of_a_blocked_node() -> None:
    graph = rg.Graph()
    a, choice = graph.input(2.0), graph.input(0)
    broken = rg.lift(lambda value: fail() if value == 2.0 else value)(a)
    blocked = broken + 1.0

    def catch(chosen: int) -> float:
        try:
            return float(blocked.value)
        except ZeroDivisionError:
            return -1.0

    reader = rg.lift(catch)(choice)
    assert reader.value == -1.0
    graph.check_invariants()
    a.set(3.0)
    assert reader.value == 4.0


def test_a_value_that_another_length_made_useless_is_not_rebuilt_before_it_is_needed() -> None:
    """It was, for a function that had read it, at its old version; its cutoff then saw no change."""
    graph = rg.Graph()
    x, choice = graph.input([3.0, -1.0]), graph.input(1)
    y = x * x
    y.cutoff = "equal"
    child = y + 0.0
    reader = rg.lift(lambda chosen: y.value if chosen else None)(choice)
    graph.forward(reader, child)
    x.set([1.0, 2.0, 3.0])
    choice.set(2)
    run = graph.forward(reader)
    assert not run.rebuilt
    assert not run.cut_off
    assert y.value_version == 2
    assert child.value.tolist() == [1.0, 4.0, 9.0]


def test_a_fork_counts_errors_on() -> None:
    """In the fork the new error had the number of the old one, and who had read that looked no more."""
    graph = rg.Graph()
    choice, operand_of = graph.input(0), graph.input(1.0)
    operand = rg.lift(fail)(operand_of)
    twins: list[rg.Graph] = [graph]
    calls = []

    def read(chosen: int) -> float:
        calls.append(chosen)
        return twins[-1][operand].value

    reader = rg.lift(read)(choice)
    with pytest.raises(ZeroDivisionError):
        reader.value
    twins.append(graph.fork())
    twins[-1][operand_of].set(2.0)
    with pytest.raises(ZeroDivisionError):
        twins[-1][reader].value
    assert calls == [0, 0]


def test_a_cutoff_given_to_a_stale_view_does_not_take_the_new_value_for_the_old() -> None:
    graph = rg.Graph()
    x = graph.input([1.0, 2.0])
    view = x[::-1]
    child = view + 0.0
    graph.forward(child)
    x.set([3.0, 4.0])
    view.cutoff = "equal"
    assert child.value.tolist() == [4.0, 3.0]


def test_marks_forgotten_inside_a_function_make_no_target_look_failed() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    broken = rg.lift(fail)(x)

    def catch(value: float) -> float:
        graph.forget_marks()
        try:
            return broken.value
        except ZeroDivisionError:
            return -1.0

    other = x + 1.0
    reader = rg.lift(catch)(x)
    run = graph.forward(other, reader)
    assert run.failed == [broken]
    assert other.value == 2.0
    assert reader.value == -1.0


def test_an_error_that_another_one_further_up_has_replaced_is_not_seen_any_more() -> None:
    graph = rg.Graph()
    a, choice = graph.input(2.0), graph.input(0)

    def first(value: float) -> float:
        if value == 3.0:
            raise KeyError("first")
        return value

    def second(value: float) -> float:
        raise ValueError("second")

    operand = rg.lift(second)(rg.lift(first)(a))

    def catch(chosen: int) -> float:
        try:
            return operand.value
        except ValueError:
            return -1.0

    reader = rg.lift(catch)(choice)
    assert reader.value == -1.0
    a.set(3.0)
    with pytest.raises(KeyError):
        reader.value


def test_a_rollback_of_an_edit_does_not_make_an_operand_of_what_was_read() -> None:
    graph = rg.Graph()
    choice, a = graph.input(1), graph.input(2.0)
    reader = rg.lift(lambda chosen: a.value if chosen else 0.0)(choice)
    assert reader.value == 2.0
    with pytest.raises(Abort):
        with graph.transaction():
            choice.set(0)
            reader.replace_parent(0, choice)
            assert reader.value == 0.0
            raise Abort
    assert reader.value == 2.0


def test_who_caught_an_error_is_as_clean_after_its_marks_were_forgotten() -> None:
    graph = rg.Graph()
    a, choice = graph.input(1.0), graph.input(0)
    broken = rg.lift(fail)(a)

    def catch(chosen: int) -> float:
        try:
            return broken.value
        except ZeroDivisionError:
            return -1.0

    reader = rg.lift(catch)(choice)
    reader.value
    before = reader.is_stale
    graph.forget_marks()
    assert reader.is_stale == before


def test_releasing_values_spares_one_that_a_former_cutoff_kept() -> None:
    graph = rg.Graph()
    a = graph.param([1.0, 2.0])
    y = a * a
    y.cutoff = rg.tolerance(atol=0.5)
    z = (y * y).sum()
    z.value
    a.set([1.01, 2.0])
    assert y.value.tolist() == [1.0, 4.0]
    y.cutoff = None
    z.backward(retain_graph=False)
    assert y.value.tolist() == [1.0, 4.0]
    assert y.value_version == 1


@pytest.mark.slow
def test_a_stored_cycle_keeps_no_node_alive() -> None:
    graph = rg.Graph()
    choice, later = graph.input(0), []
    reader = rg.lift(lambda chosen: later[0].value)(choice)
    later.append(reader + 1.0)
    name = later[0].name
    with pytest.raises(rg.CycleError):
        reader.value
    later.clear()
    gc.collect()
    assert name not in graph


def test_a_set_that_was_refused_is_not_taken_back() -> None:
    graph = rg.Graph()
    a, b = graph.input([1.0, 2.0]), graph.input(3.0)
    y = a[::-1]
    assert y.value.tolist() == [2.0, 1.0]
    with pytest.raises(Abort):
        with graph.transaction():
            with pytest.raises(rg.ReactgradError):
                graph.set({b: 4.0, a: 5.0})
            raise Abort
    assert (a.value_version, b.value_version) == (1, 1)
    assert not y.is_stale


def test_a_file_keeps_which_values_a_cutoff_has_kept_that_is_there_no_more(tmp_path: Path) -> None:
    """They cannot be computed again, so releasing values spares them."""
    graph = rg.Graph()
    a = graph.param([1.0, 2.0], name="a")
    y = a * a
    y.name = "y"
    y.cutoff = rg.tolerance(atol=0.5)
    loss = (y * y).sum()
    loss.name = "loss"
    loss.value
    a.set([1.01, 2.0])
    assert y.value.tolist() == [1.0, 4.0]
    y.cutoff = None
    graph.save(tmp_path / "graph")
    for one in (rg.load(tmp_path / "graph"), graph.fork()):
        one["loss"].backward(retain_graph=False)
        assert one["y"].value.tolist() == [1.0, 4.0]
        assert one["y"].value_version == 1


def near(old: Fraction, new: Fraction) -> bool:
    return abs(old - new) < 1


def test_what_a_cutoff_kept_and_no_file_can_hold_runs_again_after_loading(tmp_path: Path) -> None:
    """Nobody can compute the same value again, so it has to count as changed."""
    graph = rg.Graph()
    a = graph.input(2.0, name="a")
    y = rg.lift(Fraction, cutoff=near)(a)
    y.name = "y"
    y.value
    a.set(2.5)
    assert y.value == 2
    graph.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    assert loaded["y"].is_stale
    assert loaded["y"].value == Fraction(5, 2)
    assert loaded["y"].value_version == 2


def test_a_refused_edit_leaves_what_is_certain_to_run_marked_so() -> None:
    graph = rg.Graph()
    a, scalar = graph.input([1.0, 2.0]), graph.input(3.0).sum()
    y = a + a
    z = y[::-1]
    with pytest.raises(rg.ReactgradError, match="dimension"):
        z.replace_parent(0, scalar)
    graph.check_invariants()
    assert graph.forward(z).ran == [y, z]


def test_a_view_gets_a_cutoff_while_only_versions_know_that_it_is_clean() -> None:
    graph = rg.Graph()
    x = graph.param([[0.3], [0.6]])
    y = rg.squeeze(x)
    y.value
    graph.forget_marks()
    y.cutoff = "equal"
    graph.check_invariants()
    total = y.sum()
    assert total.value == pytest.approx(0.9)
    assert y not in graph.last_run.ran
    total.backward(retain_graph=False)
    assert x.grad.tolist() == [[1.0], [1.0]]
    x.set([[0.3], [0.6]])
    assert graph.forward(total).cut_off == [y], "the cutoff compares with the value of before"


def test_a_view_of_what_has_run_since_gets_a_cutoff() -> None:
    graph = rg.Graph()
    x = graph.input([1.0, 2.0])
    y = x * 2.0
    z = y[:1]
    z.value
    x.set([3.0, 2.0])
    y.value
    z.cutoff = "equal"
    graph.check_invariants()
    assert z.value.tolist() == [6.0]
    assert z.value_version == 2


def test_a_view_whose_value_went_with_a_rollback_gets_a_cutoff() -> None:
    graph = rg.Graph()
    a, b = graph.param([1.0, 1.0]), graph.input([1.0, 1.0])
    c = a * b
    d = c[:1]
    e = rg.sigmoid(d)
    c.pin([5.0, 5.0])
    with pytest.raises(Abort), graph.transaction():
        a.set([2.0, 2.0])
        d.value
        raise Abort
    graph.forget_marks()
    a.value
    d.cutoff = "equal"
    graph.forget_marks()
    assert e.value == pytest.approx(0.99330715)
    graph.check_invariants()


@pytest.mark.parametrize("build", [lambda x: x @ x, lambda x: x[:1], rg.exp])
def test_threads_run_what_is_pinned_after_marks_are_forgotten(build: Any) -> None:
    graph = rg.Graph(executor=rg.Threads(2))
    x = graph.param([[1.0, 2.0], [3.0, 4.0]])
    y = build(x)
    pinned = np.full(y.shape, 5.0)
    y.pin(pinned)
    total = y.sum()
    graph.forget_marks()
    assert y.value.tolist() == pinned.tolist()
    assert total.value == pinned.sum()


@pytest.mark.parametrize("start", [[-2.0], -2.0, [[-2.0, 1.0]]])
def test_gradients_that_are_zero_follow_another_shape(start: Any) -> None:
    graph = rg.Graph()
    x = graph.input(np.array(start))
    y = rg.sign(x)
    total = y.sum()
    gradients = rg.grad(total, [x, y], allow_unused=True)
    for value in ([1.0, 2.0], [[3.0]], 4.0):
        x.set(np.array(value))
        graph.check_invariants()
        assert gradients[0].value.tolist() == np.zeros_like(value).tolist()
        assert gradients[1].value.tolist() == np.ones_like(value).tolist()
        assert not gradients[0].is_stale
