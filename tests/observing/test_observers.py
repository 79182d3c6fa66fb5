"""What observers are told, in which order, and what they may do meanwhile; see ``_observe.py``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.core import _observers
from reactgrad.core._held import held, removed
from reactgrad.observing import _tell
from tests.reactive.callbacks import logged
from tests.reactive.steps import inverse, plus


def raising(error: Exception) -> Callable[..., None]:
    def callback(*arguments: object) -> None:
        raise error

    return callback


class Abort(Exception):
    """What ends a transaction."""


# --- sets inside of callbacks ---------------------------------------------------------------------


def test_a_set_inside_an_observer_keeps_the_value_of_that_moment(g: rg.Graph) -> None:
    x, copy, scalar = g.input(1), g.input([0.0, 0.0]), g.param(0.0)
    follower = copy + 1.0
    array = np.array([1.0, 2.0])

    def callback(old: object, new: object) -> None:
        copy.set(array)
        scalar.set(np.array(4.0))
        array[:] = 7.0
        assert follower.value.tolist() == [1.0, 1.0]  # what is computed waits
        with copy.mutate() as values:  # also this is a set, of what the set before has left
            values[0] = 5.0

    x.observe(callback)
    x.set(2)
    g.forward(x)
    assert (copy.value.tolist(), copy.value_version) == ([5.0, 2.0], 3)
    assert (scalar.value, scalar.shape) == (4.0, ())
    g.check_invariants()


def test_sets_inside_an_observer_that_belong_together_are_made_together_or_not_at_all(
    g: rg.Graph,
) -> None:
    x = g.input(1)
    a, b, c = g.input([1.0, 2.0]), g.input([1.0, 2.0]), g.input(0)
    both = a + b

    def callback(old: object, new: object) -> None:
        g.set({a: [1.0, 2.0, 3.0], b: [1.0, 2.0, 3.0]})
        assert a.shape == (2,)
        with pytest.raises(rg.ShapeError), g.transaction():
            c.set(5)
            a.set([1.0, 2.0, 3.0, 4.0])
        with g.transaction():
            with suppress(Abort), g.transaction():
                c.set(6)
                assert c.value == 6
                raise Abort
            assert c.value == 0

    x.observe(callback)
    x.set(2)
    g.stabilize()
    assert (both.value.tolist(), c.value, c.value_version) == ([2.0, 4.0, 6.0], 0, 5)
    g.check_invariants()


def test_a_queued_set_that_fits_no_more_is_an_error_of_its_observer_alone(g: rg.Graph) -> None:
    x, a, other = g.input(1), g.input([1.0, 2.0]), g.input(0)
    total = a.sum()
    y = total + 0.0

    def callback(old: object, new: object) -> None:
        g.set({other: 3, a: [1.0, 2.0, 3.0]})  # fits now, and not any more when it is made
        y.replace_parent(0, rg.add(a, [1.0, 1.0]))

    x.observe(callback)
    x.observe(lambda old, new: other.set(4))
    x.set(2)
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    (error,) = caught.value.exceptions
    assert isinstance(error, rg.ShapeError)
    assert any("in an observer (changed)" in note for note in error.__notes__)
    assert (other.value, a.value.tolist()) == (4, [1.0, 2.0])
    g.check_invariants()


@pytest.mark.parametrize("leave", ["cancel", "remove"])
def test_an_observer_that_raises_names_its_node_also_when_it_is_none_any_more(
    g: rg.Graph, leave: str
) -> None:
    x = g.input(1, name="x")

    def once(old: int, new: int) -> None:
        if leave == "cancel":
            observer.cancel()
        else:
            g.remove(x)
        raise ValueError("once")

    observer = x.observe(once)
    x.set(2)
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    (note,) = caught.value.exceptions[0].__notes__
    assert note.endswith("of node 'x'" if leave == "cancel" else "of a node that was removed")


def test_a_set_that_is_refused_raises_where_it_is_made(g: rg.Graph) -> None:
    x, number = g.input(1), g.const(2)
    refused: list[object] = []

    def callback(old: object, new: object) -> None:
        with pytest.raises(rg.SetError):
            number.set(3)
        refused.append(new)

    x.observe(callback)
    x.set(2)
    g.stabilize()
    assert refused == [2]


# --- other changes inside of callbacks -----------------------------------------------------------


def test_all_observers_of_a_node_are_told_the_same_whatever_the_first_one_does(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    z = plus(y)
    log: list[object] = []

    def pin(old: object, new: object) -> None:
        log.append(("first", old, new))
        if new == 2:
            y.pin(9)
            z.touch()
            assert (y.value, z.value) == (9, 10)

    y.observe(pin)
    y.observe(logged(log, "second"))
    z.observe(logged(log, "z"))
    g.stabilize()
    # What was computed at first is told first, to everybody; then what the pin has brought.
    assert log == [
        ("first", None, 2),
        ("second", None, 2),
        ("z", None, 3),
        ("first", 2, 9),
        ("second", 2, 9),
        ("z", 3, 10),
    ]
    g.check_invariants()


@pytest.mark.parametrize("change", ["touch", "pin", "edit", "cutoff", "observe"])
def test_stabilize_makes_another_pass_after_any_change_by_an_observer(
    g: rg.Graph, change: str
) -> None:
    x, z = g.input(1), g.input(50)
    y, w = plus(x), plus(x, 10)
    log: list[object] = []
    changes = {
        "touch": w.touch,
        "pin": lambda: w.pin(11),
        "edit": lambda: w.replace_parent(0, z),
        "cutoff": lambda: setattr(w, "cutoff", lambda old, new: False),
        "observe": lambda: plus(z).observe(logged(log, "new")),
    }
    y.observe(lambda old, new: changes[change]())
    w.observe(logged(log, "w"))
    assert g.stabilize() == 2
    assert (
        log
        == {
            "touch": [("w", None, 11), ("w", 11, 11)],
            "pin": [("w", None, 11), ("w", 11, 11)],
            "edit": [("w", None, 11), ("w", 11, 60)],
            "cutoff": [("w", None, 11)],
            "observe": [("w", None, 11), ("new", None, 51)],
        }[change]
    )
    assert not w.is_stale
    assert g.stabilize() == 1
    g.check_invariants()


def test_a_read_makes_no_pass_for_what_observers_have_set(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    y, follower = plus(x), plus(copy)
    log: list[object] = []
    y.observe(lambda old, new: copy.set(new))
    copy.observe(logged(log, "copy"))
    follower.observe(logged(log, "follower"))
    assert y.value == 2
    assert log == []
    assert follower.value == 3
    assert log == [("copy", 0, 2), ("follower", None, 3)]


def test_what_was_read_is_handed_out_before_observers_change_it(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = x[::-1]  # a view of what the observer sets
    z = rg.tanh(x * 0.0)
    y.observe(lambda old, new: x.set([7.0, 8.0]))
    z.observe(lambda old, new: x.set([1.0, 2.0, 3.0]))
    assert y.value.tolist() == [2.0, 1.0]
    assert y.value.tolist() == [8.0, 7.0]
    assert z.value.tolist() == [0.0, 0.0]
    assert z.value.tolist() == [0.0, 0.0, 0.0]


def test_observers_see_the_gradients_of_the_backward_that_calls_them(g: rg.Graph) -> None:
    w = g.param([1.0, 2.0])
    loss = (w * w).sum()
    seen: list[object] = []

    def callback(old: object, new: object) -> None:
        seen.append(None if w.grad is None else w.grad.tolist())
        if len(seen) == 1:
            w.set([1.0, 2.0, 3.0])

    loss.observe(callback)
    loss.backward()
    assert seen == [[2.0, 4.0]]
    assert loss.value == 14.0


def test_stabilize_inside_an_observer_is_left_to_the_one_under_way(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    y, follower = plus(x), plus(copy)
    passes: list[int] = []

    def callback(old: object, new: int) -> None:
        copy.set(new)
        passes.append(g.stabilize())

    y.observe(callback)
    follower.observe(lambda old, new: passes.append(new))
    assert g.stabilize() == 2
    assert passes == [0, 1, 3]


def test_stabilize_inside_a_node_is_refused(g: rg.Graph) -> None:
    y = rg.lift(lambda v: g.stabilize())(g.input(1))
    with pytest.raises(rg.BusyError):
        y.value


# --- what is news --------------------------------------------------------------------------------


def test_a_rollback_is_a_change_like_any_other(g: rg.Graph) -> None:
    x, other = g.input(1), g.input(5)
    y = plus(x)
    log: list[object] = []
    for word, var in (("x", x), ("y", y), ("other", other)):
        var.observe(logged(log, word))
    y.observe(logged(log, "stale"), kind="stale")
    g.stabilize()
    log.clear()
    with pytest.raises(Abort), g.transaction():
        x.set(2)
        raise Abort
    assert log == [("stale", y)]
    log.clear()
    g.stabilize()
    assert log == [("x", 1, 1), ("y", 2, 2)]


def test_what_was_computed_in_a_transaction_that_fails_is_told_at_its_end(g: rg.Graph) -> None:
    """Nothing was set: the value stays, and is news."""
    y = plus(g.input(1))
    log: list[object] = []
    y.observe(logged(log, "y"))
    with pytest.raises(Abort), g.transaction():
        assert y.value == 2
        assert log == []
        raise Abort
    assert log == [("y", None, 2)]


def test_a_node_that_is_cut_off_later_is_told_of_what_it_became_before(g: rg.Graph) -> None:
    x = g.input(1)
    y = rg.lift(lambda v: v > 5, cutoff="equal")(x)
    log: list[object] = []
    y.value
    y.observe(logged(log, "y"))
    with g.transaction():
        x.set(6)
        assert y.value is True
        x.set(7)
    assert log == []  # who knows what it is
    g.stabilize()
    assert g.last_run.cut_off == [y]
    assert log == [("y", False, True)]


def test_a_node_that_was_interrupted_between_two_others(g: rg.Graph) -> None:
    """What had run is news, told after the next run that leaves it clean."""
    x = g.input(1)
    first = plus(x)

    def interrupt(v: int) -> int:
        if v == 2:
            raise KeyboardInterrupt
        return v

    last = rg.lift(interrupt)(first)
    log: list[object] = []
    first.observe(logged(log, "first"))
    with pytest.raises(KeyboardInterrupt):
        last.value
    assert log == []
    assert g.input(3).value == 3
    x.observe(print)
    g.forward(first)
    assert log == [("first", None, 2)]
    g.check_invariants()


def test_observers_behind_an_interrupted_one_are_told_the_next_time(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x * 2.0
    log: list[object] = []
    y.observe(logged(log, "y"))
    y.observe(logged(log, "stale"), kind="stale")

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    first = x.observe(interrupt)
    x.set(2.0)
    with pytest.raises(KeyboardInterrupt):
        g.stabilize()
    first.cancel()
    assert log == []
    g.stabilize()
    assert log == [("y", None, 4.0)]
    x.set(3.0)
    g.stabilize()
    assert log == [("y", None, 4.0), ("stale", y), ("y", 4.0, 6.0)]
    g.check_invariants()


def test_who_is_cancelled_after_an_interruption_is_not_told(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x * 2.0
    log: list[object] = []

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    first, second = x.observe(interrupt), y.observe(logged(log, "y"))
    x.set(2.0)
    with pytest.raises(KeyboardInterrupt):
        g.stabilize()
    first.cancel()
    second.cancel()
    g.stabilize()
    assert y.value == 4.0
    assert log == []


def test_inside_a_transaction_stabilize_computes_and_calls_nobody(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    log: list[object] = []
    y.observe(logged(log, "y"))
    with g.transaction():
        assert g.stabilize() == 1
        assert y.value_version == 1
        assert log == []
    assert log == [("y", None, 2)]


# --- staleness ---------------------------------------------------------------------------------------


def test_a_node_found_clean_behind_a_cutoff_turns_stale_anew(g: rg.Graph) -> None:
    x = g.input(1)
    sign = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    middle = rg.lift(lambda v: not v)(sign)
    end = rg.lift(lambda v: not v)(middle)
    log: list[object] = []
    end.value
    end.observe(log.append, kind="stale")
    for value in (2, 3):
        x.set(value)
        assert log == [end]
        x.set(value)
        assert log == [end]
        sign.value  # only this one; it is cut off, so the end is clean again
        assert not end.is_stale
        log.clear()
    x.set(-1)
    assert log == [end]
    sign.value
    x.set(-2)
    assert log == [end]  # stale all the time


def test_a_node_that_is_clean_again_at_the_end_of_a_transaction_did_not_turn_stale(
    g: rg.Graph,
) -> None:
    x = g.input(1)
    y, z = plus(x), plus(x)
    log: list[object] = []
    g.forward(y, z)
    for var in (y, z):
        var.observe(log.append, kind="stale")
    with g.transaction():
        x.set(2)
        y.value
        assert log == []
    assert log == [z]


def test_observers_of_staleness_may_read_and_set(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    y, follower = plus(x), plus(copy)
    g.forward(y, follower)
    log: list[object] = []

    def refresh(var: rg.Var) -> None:
        copy.set(var.value)
        log.append("y")

    y.observe(logged(log, "new"))
    y.observe(refresh, kind="stale")
    follower.observe(logged(log, "follower"), kind="stale")
    x.set(5)
    assert log == ["y", ("new", 2, 6), ("follower", follower)]
    assert (copy.value, y.is_stale) == (6, False)


def test_observers_of_staleness_that_never_rest_are_stopped(g: rg.Graph) -> None:
    x = g.input(1, name="x")
    y = plus(x)
    y.value
    calls: list[int] = []

    def again(var: rg.Var) -> None:
        calls.append(var.value)
        x.set(var.value)

    y.observe(again, kind="stale")
    y.name = "y"
    with pytest.raises(rg.StabilizeError, match=r"\(y\)"):
        x.set(5)
    assert len(calls) == _tell.MAX_ROUNDS
    g.check_invariants()


# --- errors -----------------------------------------------------------------------------------------


def test_an_error_is_that_of_the_operand_that_has_one(g: rg.Graph) -> None:
    x, z = g.input(0), g.input(0)
    a, b = inverse(x), inverse(z)
    both = rg.lift(lambda *values: sum(values))(a, b)
    end = plus(both)
    caught = rg.lift(lambda v: v)(x)

    def careful(v: int) -> object:
        with suppress(ZeroDivisionError):
            return a.value
        return "caught"

    reader = rg.lift(careful)(caught)
    log: list[object] = []
    for var in (a, both, end, reader):
        var.observe(lambda error, var=var: log.append((var, error.__notes__[0])), kind="error")
    assert reader.value == "caught"
    notes = [getattr(v, "__notes__", [""])[0] for v in (_error(a), _error(b))]
    # Whether they were read or not: they cannot be computed. The reader can, and was.
    assert log == [(a, notes[0]), (both, notes[0]), (end, notes[0])]
    log.clear()
    for _ in range(2):
        with suppress(ZeroDivisionError):
            b.value
        with suppress(ZeroDivisionError):
            end.value
    assert log == []
    x.set(2)
    with suppress(ZeroDivisionError):
        end.value
    assert log == [(both, notes[1]), (end, notes[1])]
    g.check_invariants()


def _error(var: rg.Var) -> Exception:
    try:
        var.value
    except Exception as error:
        return error
    raise AssertionError(f"{var.name} has a value")


def test_an_error_that_is_mended_before_the_transaction_ends_is_not_told(g: rg.Graph) -> None:
    x = g.input(1)
    y = inverse(x)
    log: list[object] = []
    y.observe(lambda error: log.append(type(error)), kind="error")
    with g.transaction():
        x.set(0)
        _error(y)
        x.set(2)
    g.stabilize()
    assert log == []
    with g.transaction():
        x.set(0)
        _error(y)
    assert log == [ZeroDivisionError]


def test_the_same_mistake_made_again_is_another_error(g: rg.Graph) -> None:
    x = g.input(0)
    y = inverse(x)
    log: list[object] = []
    y.observe(lambda error: log.append(type(error)), kind="error")
    for _ in range(2):
        _error(y)
    assert len(log) == 1
    x.set(0)
    g.stabilize()
    assert len(log) == 2
    with suppress(ZeroDivisionError):
        g.forward(y, retry=True)
    assert len(log) == 3


def test_an_error_that_a_later_pass_mends_is_not_raised(g: rg.Graph) -> None:
    x = g.input(0)
    y, z = inverse(x), plus(x)
    z.observe(lambda old, new: x.set(2) if new == 1 else None)
    log: list[object] = []
    y.observe(logged(log, "y"))
    assert g.stabilize() == 2
    assert log == [("y", None, 0.5)]


def test_one_failing_node_hides_no_other(g: rg.Graph) -> None:
    x = g.input(0)
    told, untold, sound = inverse(x), inverse(x), plus(x)
    untold.name = "untold"
    log: list[object] = []
    told.observe(lambda error: log.append(type(error)), kind="error")
    untold.observe(logged(log, "untold"))
    sound.observe(logged(log, "sound"))
    with pytest.raises(ZeroDivisionError) as caught:
        g.stabilize()
    assert "'untold'" in caught.value.__notes__[0]
    assert log == [ZeroDivisionError, ("sound", None, 1)]
    mistake = KeyError("mistake")
    sound.observe(raising(mistake))
    x.set(0)
    with pytest.raises(ExceptionGroup) as group:
        g.stabilize()
    first, second = group.value.exceptions
    assert first is mistake
    assert isinstance(second, ZeroDivisionError)
    assert "'untold'" in second.__notes__[0]


def test_the_errors_of_a_read_and_of_its_observers_come_together(g: rg.Graph) -> None:
    x = g.input(0)
    y, z = inverse(x), plus(x)
    mistake = KeyError("mistake")
    z.observe(raising(mistake))
    with pytest.raises(ExceptionGroup) as caught:
        g.forward(y, z)
    assert [type(error) for error in caught.value.exceptions] == [KeyError, ZeroDivisionError]
    assert g.last_run.failed == [y]
    with pytest.raises(ExceptionGroup) as caught:
        with g.transaction():
            x.set(2)
            z.value
        assert (y.value, z.value) == (0.5, 3)
    assert caught.value.exceptions == (mistake,)


def test_all_passes_are_made_whoever_raises(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    y, follower = plus(x), plus(copy)
    first, second = KeyError("first"), KeyError("second")

    def callback(old: object, new: object) -> None:
        copy.set(new)
        raise first

    y.observe(callback)
    follower.observe(lambda old, new: raising(second)() if new == 3 else None)
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    assert caught.value.exceptions == (first, second)
    assert not follower.is_stale


# --- removal ----------------------------------------------------------------------------------------


def test_who_observes_removal_is_told_once_and_all_observers_end(g: rg.Graph) -> None:
    x = g.input(1)
    y, z = plus(x), plus(x)
    log: list[object] = []
    handles = [y.observe(logged(log, kind), kind=kind) for kind in _observers.KINDS]
    z.observe(logged(log, "z"))
    with held(g):
        removed(g, y._slot)
        x.set(2)
        z.value
        assert log == []
    assert log == [("removed", y), ("z", None, 3)]
    assert not any(handle.active for handle in handles)
    assert len(g._observers) == 1
    for handle in handles:
        handle.cancel()
        assert "cancelled" in repr(handle)
    removed(g, y._slot)
    g.stabilize()
    assert len(log) == 2


def test_who_observes_removal_alone_is_told_and_may_raise(g: rg.Graph) -> None:
    y = plus(g.input(1))
    mistake = KeyError("mistake")
    y.observe(raising(mistake), kind="removed")
    assert g.stabilize() == 1
    assert y.value_version == 0  # nobody wants its value
    with pytest.raises(ExceptionGroup) as caught:
        removed(g, y._slot)
    assert caught.value.exceptions == (mistake,)
    assert not g._observers
