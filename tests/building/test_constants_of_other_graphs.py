"""A constant never changes, so its value may enter any graph; anything else of another graph is refused."""

from __future__ import annotations

import pytest

import reactgrad as rg


def test_a_constant_of_the_default_graph_enters_the_graph_of_the_others() -> None:
    g = rg.Graph()
    x = g.input([1.0, -2.0], name="x")
    zero = rg.asarray(0.0)
    assert zero.graph is not g
    y = rg.where(x > 0.0, x, zero)
    assert y.graph is g
    assert y.value.tolist() == [1.0, 0.0]
    x.set([3.0, 4.0])
    assert y.value.tolist() == [3.0, 4.0]
    assert (zero + x).graph is g  # also where it stands first
    assert (zero + x).value.tolist() == [3.0, 4.0]


def test_what_is_computed_of_constants_enters_too() -> None:
    """xarray writes ``xp.where(xp.astype(xp.asarray(mask), bool), data, x)`` for ``array.where(mask, x)``."""
    g = rg.Graph()
    x = g.input(95.0, name="x")
    mask = rg.asarray([0.0, 1.0]).astype(bool)
    y = rg.where(mask, [1.0, 2.0], x)
    assert y.graph is g
    assert y.value.tolist() == [95.0, 2.0]
    x.set(96.0)
    assert y.value.tolist() == [96.0, 2.0]


def test_functions_and_pins_of_constants_are_refused() -> None:
    g, h = rg.Graph(), rg.Graph()
    x, other, pinned = g.input(1.0), h.input(2.0), h.const(2.0) * 3.0
    pinned.pin(7.0)
    for one in (
        rg.lift(lambda v: v + other.value)(h.const(1.0)),
        pinned,
        rg.random.normal(loc=h.const(0.0)),
    ):
        with pytest.raises(rg.GraphError, match="another graph"):
            _ = x + one


def test_a_number_stays_a_literal() -> None:
    g = rg.Graph()
    x = g.input([1.0], name="x").astype("float32")
    assert (x * rg.Graph().const(2.0)).dtype == "float32"


def test_what_may_change_is_refused() -> None:
    g, h = rg.Graph(), rg.Graph()
    x, y = g.input(1.0, name="x"), h.input(2.0, name="y")
    for one in (y, y * 1.0, h.const(2.0) * y):
        with pytest.raises(rg.GraphError, match="another graph"):
            _ = x + one
    assert len(g) == 1
