"""Observers of nodes whose computation fails: an error settles a node as a value does."""

from __future__ import annotations

from contextlib import suppress

import pytest

import reactgrad as rg
from tests.reactive.steps import inverse, plus


def read(node: rg.Var) -> None:
    with suppress(ZeroDivisionError):
        node.value


def test_a_node_that_has_raised_turns_stale_anew(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = inverse(x)
    first: list[float] = []
    second: list[float] = []
    y.value
    y.observe(lambda var: first.append(x.value), kind="stale")
    y.observe(lambda var: second.append(x.value), kind="stale")
    for value in (0.0, 2.0, 0.0, 0.0, 4.0):
        x.set(value)
        read(y)
    assert first == second == [0.0, 2.0, 0.0, 0.0, 4.0]
    g.check_invariants()


def test_it_is_told_once_until_it_is_read(g: rg.Graph) -> None:
    x = g.input(0.0)
    y = inverse(x)
    log: list[rg.Var] = []
    read(y)
    y.observe(log.append, kind="stale")  # attached while it raises
    x.set(1.0)
    x.set(2.0)
    assert log == [y]


@pytest.mark.parametrize("how", ["operand", "read", "handled"])
def test_what_depends_on_a_failure_turns_stale_anew(how: str, g: rg.Graph) -> None:
    x, one = g.input(1.0), g.input(1.0)
    y = inverse(x)

    def handle(value: float) -> float:
        with suppress(ZeroDivisionError):
            return y.value
        return -value

    z = {
        "operand": lambda: plus(y),
        "read": lambda: rg.lift(lambda value: value + y.value)(one),
        "handled": lambda: rg.lift(handle)(one),
    }[how]()
    read(z)
    log: list[rg.Var] = []
    z.observe(log.append, kind="stale")
    for count, value in enumerate((0.0, 2.0, 0.0, 4.0), 1):
        x.set(value)
        assert len(log) == count
        read(z)
    g.check_invariants()


def test_a_retry_that_raises_again_is_another_error_and_one_that_does_not_turns_others_stale(
    g: rg.Graph,
) -> None:
    x, works = g.input(1.0), [False]

    def call(value: float) -> float:
        if not works[0]:
            raise ZeroDivisionError
        return value

    y = rg.lift(call)(x)
    z = plus(y)
    log: list[object] = []
    z.observe(lambda var: log.append("stale"), kind="stale")
    z.observe(lambda error: log.append("error"), kind="error")
    z.observe(lambda old, new: log.append(new), kind="changed")
    read(z)
    with suppress(ZeroDivisionError):
        g.forward(y, retry=True)
    assert log == ["error", "error"]
    works[0] = True
    g.forward(y, retry=True)
    assert log == ["error", "error", "stale"]
    z.value
    assert log == ["error", "error", "stale", 2.0]


@pytest.mark.parametrize("change", ["edit", "pin", "touch", "transaction", "rollback"])
def test_any_change_makes_a_node_stale_that_has_raised(change: str, g: rg.Graph) -> None:
    x, other = g.input(0.0), g.input(2.0)
    y = inverse(x)
    z = plus(y)
    read(z)
    log: list[rg.Var] = []
    z.observe(log.append, kind="stale")
    if change == "edit":
        y.replace_parent(0, other)
    elif change == "pin":
        y.pin(1.0)
    elif change == "touch":
        y.touch()
    elif change == "transaction":
        with g.transaction():
            x.set(1.0)
    else:
        with pytest.raises(KeyError), g.transaction():
            x.set(1.0)
            raise KeyError
    assert log == [z]


def test_forks_and_what_ifs_tell_nobody_and_change_nothing_that_is_told(g: rg.Graph) -> None:
    x = g.input(0.0)
    y = inverse(x)
    read(y)
    log: list[rg.Var] = []
    y.observe(log.append, kind="stale")
    with g.whatif({x: 2.0}) as w:
        assert w[y].value == 0.5
    twin = g.fork()
    twin[x].set(4.0)
    assert twin[y].value == 0.25
    assert log == []
    x.set(1.0)
    assert log == [y]
