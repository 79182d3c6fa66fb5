"""Who is told what, and how often, in shapes that have tripped reactive engines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import reactgrad as rg
from tests.reactive.steps import plus, total

# --- observers -----------------------------------------------------------------------------------


def logged(log: list[object], word: object) -> Callable[[object, object], None]:
    return lambda old, new: log.append((word, old, new))


def test_observers_are_called_in_topological_order_and_then_as_attached(g: rg.Graph) -> None:
    x = g.input(1)
    a = plus(x)
    b = plus(a)
    log: list[object] = []
    for word, var in (("b1", b), ("a", a), ("b2", b), ("x", x)):
        var.observe(logged(log, word))
    assert g.stabilize() == 1
    assert log == [("a", None, 2), ("b1", None, 3), ("b2", None, 3)]
    log.clear()
    x.set(2)
    g.stabilize()
    assert log == [("x", 1, 2), ("a", 2, 3), ("b1", 3, 4), ("b2", 3, 4)]


def test_observers_are_called_once_for_several_sets_and_not_for_none(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(2)
    y = total(x, z)
    log: list[object] = []
    y.observe(logged(log, "y"))
    g.stabilize()
    x.set(5)
    z.set(6)
    x.set(7)
    g.stabilize()
    g.stabilize()
    y.value
    assert log == [("y", None, 3), ("y", 3, 13)]


def test_a_cut_off_node_tells_nobody(g: rg.Graph) -> None:
    x = g.input(1)
    y = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    log: list[object] = []
    y.observe(logged(log, "y"))
    for value in (1, 2, 3, -1, -2):
        x.set(value)
        g.stabilize()
    assert log == [("y", None, True), ("y", True, False)]


def test_any_read_calls_observers_also_of_nodes_on_the_way(g: rg.Graph) -> None:
    x = g.input(1)
    a = plus(x)
    b = plus(a)
    log: list[object] = []
    a.observe(logged(log, "a"))
    assert b.value == 3
    assert log == [("a", None, 2)]


def test_observers_that_raise_stop_nobody_and_reach_the_caller(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    y.name = "y"
    log: list[object] = []

    def bad(error: Exception) -> Callable[[object, object], None]:
        def callback(old: object, new: object) -> None:
            raise error

        return callback

    first, second = ValueError("first"), KeyError("second")
    y.observe(bad(first))
    y.observe(logged(log, "between"))
    y.observe(bad(second))
    plus(y).observe(logged(log, "after"))
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    assert caught.value.exceptions == (first, second)
    assert all("'y'" in error.__notes__[0] for error in caught.value.exceptions)
    assert log == [("between", None, 2), ("after", None, 3)]
    assert y.state == "clean"
    assert g.stabilize() == 1  # told is told, also to those that raised
    x.set(2)
    with pytest.raises(ExceptionGroup):
        y.value
    assert y.value == 3
    g.check_invariants()


def test_observers_added_and_cancelled_while_running(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    log: list[object] = []
    handles = {}

    def first(old: object, new: object) -> None:
        log.append("first")
        handles["late"] = y.observe(logged(log, "late"))
        handles["second"].cancel()
        handles["first"].cancel()

    handles["first"] = y.observe(first)
    handles["second"] = y.observe(logged(log, "second"))
    y.observe(logged(log, "third"))
    g.stabilize()
    assert log == ["first", ("third", None, 2)]
    assert [handle.active for handle in handles.values()] == [False, False, True]
    log.clear()
    x.set(5)
    g.stabilize()
    assert log == [("third", 2, 6), ("late", 2, 6)]


def test_sets_inside_observers_wait_until_the_observer_has_returned(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    y = plus(x)
    follower = plus(copy, 100)
    log: list[object] = []

    def set_copy(old: int, new: int) -> None:
        copy.set(new)
        log.append(("before", follower.value))

    y.observe(set_copy)
    y.observe(lambda old, new: log.append(("after", copy.value, follower.value)))
    follower.observe(logged(log, "follower"))
    assert g.stabilize() == 2
    assert log == [
        ("before", 100),
        ("after", 2, 102),
        ("follower", None, 100),  # as all was when the round began
        ("follower", 100, 102),
    ]
    assert copy.value == 2
    g.check_invariants()


def test_of_several_sets_inside_observers_the_last_one_wins(g: rg.Graph) -> None:
    x, copy = g.input(1), g.input(0)
    x.observe(lambda old, new: copy.set(5))
    x.observe(lambda old, new: copy.set(6))
    x.set(2)
    g.stabilize()
    assert copy.value == 6


def test_of_several_sets_inside_observers_the_last_one_wins_also_if_it_says_no_change(
    g: rg.Graph,
) -> None:
    x, copy = g.input(1), g.input(0, cutoff="equal")
    x.observe(lambda old, new: copy.set(5))
    x.observe(lambda old, new: copy.set(0))
    x.set(2)
    g.stabilize()
    assert copy.value == 0


def test_a_set_inside_an_observer_that_does_not_fit_is_that_observers_error(g: rg.Graph) -> None:
    x, array = g.input(1), g.input([1.0, 2.0])
    other = g.input(0)
    joined = array + g.const([1.0, 1.0])
    x.observe(lambda old, new: array.set([1.0, 2.0, 3.0]))
    x.observe(lambda old, new: other.set(new))
    x.set(2)
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    assert [type(error) for error in caught.value.exceptions] == [rg.ShapeError]
    assert (joined.shape, array.value.tolist(), other.value) == ((2,), [1.0, 2.0], 2)
    g.check_invariants()


def test_a_failed_transaction_inside_an_observer_leaves_no_set_behind(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(50)

    def callback(old: object, new: object) -> None:
        with g.transaction():
            z.set(77)
            raise KeyError

    x.observe(callback)
    x.set(2)
    with pytest.raises(ExceptionGroup):
        g.stabilize()
    g.stabilize()
    assert z.value == 50


def test_observers_that_set_each_other_off_for_ever_are_stopped(g: rg.Graph) -> None:
    x = g.input(1, name="x")
    y = plus(x)
    y.name = "y"
    y.observe(lambda old, new: x.set(new))
    with pytest.raises(RecursionError, match=r"\(.*[xy].*\)"):  # names what goes round
        g.stabilize()
    g.check_invariants()


def test_a_read_inside_an_observer_tells_the_observers_of_what_it_ran(g: rg.Graph) -> None:
    x = g.input(1)
    y, z = plus(x), plus(x, 10)
    log: list[object] = []
    y.observe(lambda old, new: log.append(z.value))
    z.observe(logged(log, "z"))
    assert y.value == 2
    assert log == [11, ("z", None, 11)]


def test_after_stabilize_nothing_observed_is_stale_also_if_observers_edit(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(50)
    y, w = plus(x), plus(x, 10)
    log: list[object] = []
    y.observe(lambda old, new: w.replace_parent(0, z))
    w.observe(logged(log, "w"))
    g.stabilize()
    assert not w.is_stale
    assert log[-1][2] == 60  # type: ignore[index]
    g.check_invariants()


def test_observers_see_nothing_of_a_transaction_before_its_end(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    log: list[object] = []
    y.observe(logged(log, "y"))
    g.stabilize()
    log.clear()
    with g.transaction():
        for value in (5, 6):
            x.set(value)
            assert y.value == value + 1
        assert not log
    assert log == [("y", 2, 7)]
    log.clear()
    with pytest.raises(KeyError):
        with g.transaction():
            x.set(9)
            assert y.value == 10
            raise KeyError
    assert not log
    g.check_invariants()


def test_observers_of_what_a_function_reads_follow_it(g: rg.Graph) -> None:
    which, z = g.input(False), g.input(5)
    y = rg.lift(lambda w: z.value if w else -1)(which)
    log: list[object] = []
    y.observe(logged(log, "y"))
    for w, value in ((False, 1), (True, 1)):
        g.set({which: w, z: value})
        g.stabilize()
    z.set(2)
    g.stabilize()
    which.set(False)
    g.stabilize()
    z.set(3)
    g.stabilize()
    assert log == [("y", None, -1), ("y", -1, 1), ("y", 1, 2), ("y", 2, -1)]


def test_an_error_is_told_once_and_again_after_a_recovery(g: rg.Graph) -> None:
    x = g.input(0)
    y = plus(rg.lift(lambda v: 1 / v)(x))
    log: list[object] = []
    y.observe(lambda error: log.append(type(error)), kind="error")
    y.observe(logged(log, "y"))
    for value in (None, 2, 0, None, 4):
        if value is not None:
            x.set(value)
        g.stabilize()
        g.stabilize()
    assert log == [
        ZeroDivisionError,
        ("y", None, 1.5),
        ZeroDivisionError,
        ("y", 1.5, 1.25),
    ]


def test_an_error_is_told_again_after_a_recovery_behind_a_cutoff(g: rg.Graph) -> None:
    x = g.input(2)
    y = plus(rg.lift(lambda v: 1 if v else 1 / v, cutoff="equal")(x))
    log: list[object] = []
    y.observe(lambda error: log.append(type(error)), kind="error")
    for value in (2, 0, 2, 0):
        x.set(value)
        g.stabilize()
    assert log == [ZeroDivisionError, ZeroDivisionError]


def test_an_error_that_no_observer_of_errors_sees_is_raised(g: rg.Graph) -> None:
    x = g.input(0)
    log: list[object] = []
    broken, sound = rg.lift(lambda v: 1 / v)(x), plus(x)
    broken.observe(logged(log, "broken"))
    sound.observe(logged(log, "sound"))
    with pytest.raises(ZeroDivisionError):
        g.stabilize()
    assert log == [("sound", None, 1)]
    sound.observe(lambda error: log.append(error), kind="error")  # of another node's errors
    x.set(0)
    with pytest.raises(ZeroDivisionError):
        g.stabilize()


STALE_MAKERS: dict[str, Callable[[rg.Var, rg.Var, rg.Var], object]] = {
    "set": lambda x, y, z: x.set(5),
    "touch a leaf": lambda x, y, z: x.touch(),
    "touch a node": lambda x, y, z: y.touch(),
    "pin": lambda x, y, z: y.pin(7),
    "edit": lambda x, y, z: y.replace_parent(0, z),
}


@pytest.mark.parametrize("how", STALE_MAKERS)
def test_turning_stale_is_told_once_however_it_comes_about(g: rg.Graph, how: str) -> None:
    x, z = g.input(1), g.input(2)
    y = plus(x)
    end = plus(y)
    log: list[object] = []
    end.observe(log.append, kind="stale")
    end.value
    STALE_MAKERS[how](x, y, z)
    assert end.is_stale
    assert log == [end]
    STALE_MAKERS[how](x, y, z)
    assert log == [end]
    end.value
    assert log == [end]
    g.check_invariants()


def test_a_pin_and_a_touch_are_told_as_changes(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    log: list[object] = []
    x.observe(logged(log, "x"))
    y.observe(logged(log, "y"))
    g.stabilize()
    y.pin(7)
    g.stabilize()
    assert log == [("y", None, 2), ("y", 2, 7)]
    log.clear()
    x.touch()
    g.stabilize()
    assert log == [("x", 1, 1)]


def work(task: Callable[[], object]) -> int:
    """How many calls, of Python functions and of built-in ones, a task makes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        task()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["changed", "stale", "error"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_attaching_and_dropping_100_000_observers_is_linear_work(
    kind: str, backwards: bool
) -> None:
    def attach_and_drop(count: int) -> None:
        y = plus(rg.Graph().input(1))
        y.value
        handles = [y.observe(print, kind=kind) for _ in range(count)]
        for handle in reversed(handles) if backwards else handles:
            handle.cancel()
        assert not y.graph._observers

    few, many = work(lambda: attach_and_drop(1_000)), work(lambda: attach_and_drop(50_000))
    assert many <= 50 * few


@pytest.mark.slow
def test_100_000_observers_are_each_called_once() -> None:
    g = rg.Graph()
    calls = [0]

    def called(old: object, new: object) -> None:
        calls[0] += 1

    x = g.input(1)
    nodes = [plus(x) for _ in range(10_000)]
    handles = [node.observe(called) for _ in range(10) for node in nodes]
    assert g.stabilize() == 1
    assert calls == [100_000]
    for handle in handles[::-2]:
        handle.cancel()
    x.set(2)
    g.stabilize()
    assert calls == [150_000]


@pytest.mark.trusting
def test_attaching_along_a_chain_that_was_never_read_is_linear_work() -> None:
    def attach(count: int) -> None:
        node = rg.Graph().input(1)
        for _ in range(count):
            node = plus(node)
            node.observe(print)

    assert work(lambda: attach(400)) <= 2.1 * work(lambda: attach(200))


@pytest.mark.trusting
def test_a_set_does_not_ask_after_observers_of_staleness_that_it_does_not_reach() -> None:
    def one_set(observed: int) -> int:
        g = rg.Graph()
        x, other = g.input(1), g.input(2)
        handles = [plus(other) for _ in range(observed)]
        for node in handles:
            node.value
            node.observe(print, kind="stale")
        y = plus(x)
        y.value
        return work(lambda: x.set(2))

    assert one_set(200) <= one_set(2) + 20
