"""Changes that observers make: transactions act at once, sets alone see those before them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

import reactgrad as rg
from tests.reactive.steps import inverse


def when(x: rg.Var, callback: Callable[[], object]) -> None:
    """Call a function, inside of an observer, after the next change of ``x``."""
    x.observe(lambda old, new: callback())


@pytest.mark.parametrize("times", [1, 3])
def test_no_update_is_lost(times: int, g: rg.Graph) -> None:
    x, n = g.input(0), g.input(0)
    twice = n * 2

    def add() -> None:
        for _ in range(times):
            n.set(n.value + 1)

    for _ in range(3):
        when(x, add)
    x.set(1)
    g.stabilize()
    assert (n.value, twice.value) == (3 * times, 6 * times)
    g.check_invariants()


def test_sets_and_transactions_of_observers_follow_each_other(g: rg.Graph) -> None:
    x, n = g.input(0), g.input(1)
    seen: list[int] = []

    def times_ten() -> None:
        n.set(n.value * 10)
        with g.transaction():
            n.set(n.value + 1)
        n.set(n.value * 2)

    def look() -> None:
        seen.append(n.value)
        with g.transaction():
            n.set(n.value + 1)
            seen.append(n.value)

    when(x, times_ten)
    when(x, look)
    x.set(1)
    g.stabilize()
    assert seen == [22, 23]
    assert n.value == 23


def test_a_transaction_inside_an_observer_sees_pins_sets_and_edits(g: rg.Graph) -> None:
    x, a, b = g.input(0.0), g.input(1.0), g.input(7.0)
    p = a * 2.0
    total = p + a
    seen: list[float] = []

    def act() -> None:
        with g.transaction():
            p.pin(100.0)
            a.set(5.0)
            seen.append(total.value)
            total.replace_parent(1, b)
            seen.append(total.value)
            p.unpin()
            seen.append(total.value)

    when(x, act)
    x.set(1.0)
    g.stabilize()
    assert seen == [105.0, 107.0, 17.0]
    assert total.value == 17.0
    g.check_invariants()


def test_gradients_inside_are_those_of_the_new_values(g: rg.Graph) -> None:
    x, w = g.input(0.0), g.param(2.0)
    loss = w * w * w
    slope = rg.grad(loss, w)
    curvature = rg.grad(slope, w)
    slope.value
    seen: list[float] = []

    def act() -> None:
        with g.transaction():
            w.set(3.0)
            loss.backward()
            seen.extend([slope.value, curvature.value, w.grad, rg.grad(loss * 2.0, w).value])

    when(x, act)
    x.set(1.0)
    g.stabilize()
    assert seen == [27.0, 18.0, 27.0, 54.0]


def test_forks_and_what_ifs_inside_start_from_the_new_values(g: rg.Graph) -> None:
    x, a = g.input(0.0), g.input(1.0)
    y = a + 1.0
    seen: list[float] = []

    def act() -> None:
        with g.transaction():
            a.set(5.0)
            with g.whatif({a: 10.0}) as w:
                seen.append(w[y].value)
            seen.append(g.fork()[y].value)
            seen.append(y.value)

    when(x, act)
    x.set(1.0)
    g.stabilize()
    assert seen == [11.0, 6.0, 6.0]


def test_a_failed_transaction_inside_is_taken_back_and_what_was_set_before_stays(
    g: rg.Graph,
) -> None:
    x, a, b = g.input(0.0), g.input(1.0), g.input(2.0)
    y = a + b
    seen: list[float] = []

    def act() -> None:
        a.set(10.0)
        with suppress(KeyError), g.transaction():
            b.set(20.0)
            with g.transaction():
                a.set(a.value + 1.0)
            seen.append(y.value)
            raise KeyError
        seen.append(y.value)

    when(x, act)
    x.set(1.0)
    g.stabilize()
    assert seen == [31.0, 12.0]
    assert (a.value, b.value, y.value) == (10.0, 2.0, 12.0)
    g.check_invariants()


def test_observers_of_what_a_transaction_changed_are_called_in_the_next_round(g: rg.Graph) -> None:
    x, a = g.input(0.0), g.input(1.0)
    y = a + 1.0
    log: list[object] = []

    def act() -> None:
        with g.transaction():
            a.set(5.0)
            y.value
        log.append("act")

    y.value
    when(x, act)
    y.observe(lambda old, new: log.append((old, new)))
    x.set(1.0)
    g.stabilize()
    assert log == ["act", (2.0, 6.0)]


def test_an_observer_whose_transactions_set_it_off_for_ever_is_stopped(g: rg.Graph) -> None:
    n = g.input(0, name="n")

    def count(old: int, new: int) -> None:
        with g.transaction():
            n.set(n.value + 1)

    n.observe(count)
    n.set(1)
    with pytest.raises(rg.StabilizeError, match=r"\(n\)"):
        g.stabilize()
    g.check_invariants()


@pytest.mark.parametrize("kind", ["error", "stale", "removed"])
def test_it_is_the_same_in_observers_of_any_kind(kind: str, g: rg.Graph) -> None:
    x, n = g.input(1.0), g.input([0.0, 1.0])
    y, total = inverse(x), n.sum()
    seen: list[float] = []

    def act(argument: object) -> None:
        n.set(n.value + 1.0)
        with g.transaction():
            n.set(np.append(n.value, 4.0))
            seen.append(total.value)

    y.value
    y.observe(act, kind=kind)
    if kind == "removed":
        g.remove(y)
    else:
        x.set(0.0)
        with suppress(ZeroDivisionError):
            g.stabilize()
    assert seen == [7.0]
    assert n.value.tolist() == [1.0, 2.0, 4.0]


def test_an_observer_of_staleness_that_reads_its_node_hears_of_its_own_change(g: rg.Graph) -> None:
    x, left = g.input(1), [3]
    y = x + 1
    y.value

    def act(var: rg.Var) -> None:
        seen.append(var.value)
        if left[0]:
            left[0] -= 1
            with g.transaction():
                x.set(x.value + 1)

    seen: list[int] = []
    y.observe(act, kind="stale")
    x.set(10)
    assert seen == [11, 12, 13, 14]
