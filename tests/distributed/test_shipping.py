"""A graph in another process, kept in step by what changed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd


def named(var: Any, name: str) -> Any:
    var.name = name
    return var


def test_only_changed_leaves_travel() -> None:
    g = rg.Graph()
    big, x = g.input(np.arange(10_000.0), name="big"), g.input(1.0, name="x")
    y = named((big * x).sum(), "y")
    y.value
    shipper, receiver = rd.Shipper(g), rd.Receiver()
    h = receiver.take(shipper.pack())
    assert h["y"].value == y.value
    x.set(2.0)
    changes = shipper.pack()
    assert not shipper.whole
    assert len(changes) < 1000
    assert receiver.take(changes) is h
    assert h["y"].value == y.value
    assert len(h.last_run.ran) == 2
    assert len(shipper.pack()) < 200  # nothing has changed


def test_edits_travel_alone() -> None:
    g = rg.Graph()
    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    y = named(a * 3.0, "y")
    shipper, receiver = rd.Shipper(g), rd.Receiver()
    h = receiver.take(shipper.pack())
    y.rewire(b, y.parents[1])
    z = named(rg.exp(y)[None], "z")
    c = g.input(5.0, name="c")
    receiver.take(shipper.pack())
    assert not shipper.whole
    assert h["y"].value == y.value == 6.0
    np.testing.assert_array_equal(h["z"].value, z.value)
    assert h["c"].value == c.value
    h["b"].set(1.0)
    assert h["z"].value == np.exp(3.0)


def test_the_whole_graph_travels_again_where_gradients_follow_an_edit() -> None:
    g = rg.Graph()
    a, b = g.param(1.0, name="a"), g.input(2.0, name="b")
    y = named(a * b, "y")
    slope = rg.grad(y, a)
    slope.value
    shipper, receiver = rd.Shipper(g), rd.Receiver()
    receiver.take(shipper.pack())
    y.replace_parent(1, a)
    h = receiver.take(shipper.pack())
    assert shipper.whole
    assert rg.grad(h["y"], h["a"]).value == slope.value == 2.0


def test_what_cannot_travel_is_named() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    shipper = rd.Shipper(g)
    shipper.pack()
    bad = rg.lift(lambda v: v)(x)
    with pytest.raises(rg.SaveError, match="node 'bad', function 'lambda', cannot be shipped"):
        shipper.pack()
    del bad
    with pytest.raises(rd.DistributedError, match="the graph has not come yet"):
        rd.Receiver().take(pickle.dumps(("changes", ({}, [], {}, []))))
    with pytest.raises(rd.DistributedError, match="no node number 77"):
        rd.Receiver().node(77)
