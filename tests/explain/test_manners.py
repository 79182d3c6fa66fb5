"""Without a record of events, too, `g.why` says how a node changed: not every change of a leaf is a set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import reactgrad as rg


def model() -> tuple[rg.Graph, rg.Var, rg.Var, rg.Var]:
    g = rg.Graph(rng=0)
    x = g.input(1.0, name="x")
    y = x * g.param([1.0, 2.0], name="w")
    y.name = "y"
    z = y.sum()
    z.value
    return g, x, y, z


def _undone(change: Callable[[], object], g: rg.Graph) -> None:
    with pytest.raises(KeyError), g.transaction():
        change()
        raise KeyError


def _edit(g: rg.Graph, y: rg.Var) -> None:
    with g.edit():
        y.replace_parent(0, g.input(3.0))


CHANGES: dict[str, tuple[Callable[[rg.Graph, rg.Var, rg.Var], object], str]] = {
    "set": (lambda g, x, y: x.set(2.0), "x was set: version 1 -> 2"),
    "set of several": (lambda g, x, y: g.set({x: 2.0}), "x was set: version 1 -> 2"),
    "set in a transaction": (
        lambda g, x, y: g.transaction().__enter__() or x.set(2.0),
        "x was set: version 1 -> 2",
    ),
    "part": (lambda g, x, y: g["w"].set_at(0, 4.0), "w was set: version 1 -> 2"),
    "dtype": (lambda g, x, y: g["w"].set(np.ones(2, "f4")), "w was set: version 1 -> 2"),
    "touch": (lambda g, x, y: x.touch(), "x was touched: version 1 -> 2"),
    "touch of a param": (lambda g, x, y: g["w"].touch(), "w was touched: version 1 -> 2"),
    "touch, then set": (lambda g, x, y: (x.touch(), x.set(2.0)), "x was set: version 1 -> 3"),
    "set, then touch": (lambda g, x, y: (x.set(2.0), x.touch()), "x was set: version 1 -> 3"),
    "touch of a computed node": (lambda g, x, y: y.touch(), "y was touched"),
    "edit": (lambda g, x, y: y.replace_parent(0, g.input(3.0)), "y was edited"),
    "block of edits": (lambda g, x, y: _edit(g, y), "y was edited"),
    "insertion": (lambda g, x, y: g.insert(x, y, rg.exp), "y was edited"),
    "pin": (lambda g, x, y: y.pin([5.0, 5.0]), "y was pinned: version 1 -> 2"),
    "unpin": (lambda g, x, y: (y.pin([5.0, 5.0]), y.unpin()), "y was unpinned"),
    "set taken back": (
        lambda g, x, y: _undone(lambda: x.set(2.0), g),
        "x was given back by a transaction that failed: version 1 -> 3",
    ),
    "edit taken back": (
        lambda g, x, y: _undone(lambda: y.replace_parent(0, g.input(3.0)), g),
        "y was given back by a transaction that failed",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_true_cause_is_named(name: str) -> None:
    change, words = CHANGES[name]
    g, x, y, z = model()
    change(g, x, y)
    assert f"  {words}\n" in str(g.why(z))


def test_in_forks_each_side_knows_its_own(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = x * 2.0
    y.value
    x.touch()
    fork = g.fork()
    assert "x was touched" in str(fork.why(fork[y]))
    fork[x].set(3.0)
    fork[y].value
    fork[x].set(4.0)
    assert "x was set" in str(fork.why(fork[y]))
    assert "x was touched" in str(g.why(y))


def test_after_a_run_the_way_is_still_known(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = x * 2.0
    y.value
    x.touch()
    y.value
    assert "x was touched" in str(g.why(y))
    x.set(2.0)
    y.value
    assert "x was set" in str(g.why(y))


@pytest.mark.parametrize("act", ["touch", "reseed"])
def test_other_random_numbers(g: rg.Graph, act: str) -> None:
    with g:
        draw = rg.random.normal((2,))
    y = draw * 2.0
    y.value
    draw.touch() if act == "touch" else g.reseed(7)
    assert "got other random numbers, by a touch of its draw or by g.reseed" in str(g.why(y))


def test_a_switch_of_the_mode(g: rg.Graph) -> None:
    with g:
        y = rg.dropout(rg.input(np.ones(3)), 0.5)
    y.value
    g.eval()
    assert "was switched, by g.train() or g.eval(): version 1 -> 2" in str(g.why(y))
