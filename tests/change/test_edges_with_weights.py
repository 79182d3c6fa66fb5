"""A set that gives a leaf another shape belongs to the edits of its block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def graph() -> tuple[rg.Graph, Any, Any, Any, Any, Any]:
    g = rg.Graph()
    a, b, w = g.input([1.0, 2.0], name="a"), g.input([3.0, 4.0], name="b"), g.param([2.0], name="w")
    inputs = rg.stack([a])
    return g, a, b, w, inputs, rg.matmul(w, inputs)


@pytest.mark.parametrize("weights_first", [True, False])
def test_an_edge_and_its_weight_in_one_edit(weights_first: bool) -> None:
    g, a, b, w, inputs, y = graph()
    slope = rg.grad(rg.sum(y), w)
    assert slope.value.tolist() == [3.0]
    with g.edit():
        if weights_first:
            w.set([2.0, 10.0])
        inputs.rewire(a, b)
        if not weights_first:
            w.set([2.0, 10.0])
        assert w.value.tolist() == [2.0]  # reads see the old graph
        assert y.value.tolist() == [2.0, 4.0]
    assert y.value.tolist() == [32.0, 44.0]
    assert slope.value.tolist() == [3.0, 7.0]
    assert w.value_version == 2
    g.check_invariants()


def test_what_does_not_fit_changes_nothing() -> None:
    g, a, b, w, inputs, y = graph()
    slope = rg.grad(rg.sum(y), w)
    before = y.value, slope.value
    with pytest.raises(rg.ShapeError, match=r"matmul of float64\[3\]"), g.edit():
        inputs.rewire(a, b)
        w.set([1.0, 2.0, 3.0])
    assert w.value.tolist() == [2.0]
    assert w.value_version == 1
    assert y.value is before[0]
    assert slope.value is before[1]
    assert not y.is_stale
    with pytest.raises(rg.ShapeError, match="matmul"), g.edit():
        w.set([1.0, 2.0])
    assert w.value.tolist() == [2.0]


def test_the_last_set_counts_and_others_act_at_once() -> None:
    g, a, b, w, inputs, y = graph()
    with g.edit():
        w.set([5.0, 6.0])
        a.set([0.0, 1.0])
        assert a.value.tolist() == [0.0, 1.0]
        w.set([7.0])  # the present shape, but later than the one that waits
    assert w.value.tolist() == [7.0]
    values = np.array([1.0, 1.0])
    with g.edit():
        g.set({w: values, b: [1.0, 0.0]})
        values[:] = 9.0  # sets copy
        inputs.rewire(a, b)
    assert y.value.tolist() == [1.0, 1.0]


def test_a_transaction_takes_it_back() -> None:
    g, a, b, w, inputs, y = graph()
    _ = y.value
    with pytest.raises(ZeroDivisionError), g.transaction():
        with g.edit():
            inputs.rewire(a, b)
            w.set([1.0, 1.0])
        assert y.value.tolist() == [4.0, 6.0]
        _ = 1 / 0
    assert w.value.tolist() == [2.0]
    assert y.value.tolist() == [2.0, 4.0]


def test_inner_blocks_hand_their_sets_on() -> None:
    g, a, b, w, inputs, y = graph()
    with g.edit():
        with g.edit():
            w.set([1.0, 1.0])
        assert w.shape == (1,)
        inputs.rewire(b, a)
    assert y.value.tolist() == [4.0, 6.0]


def test_observers_hear_of_it() -> None:
    g, a, b, w, inputs, y = graph()
    heard: list[Any] = []
    _ = y.value
    watches = [
        one.observe(lambda old, new: heard.append((old.tolist(), new.tolist()))) for one in (w, y)
    ]
    with g.edit():
        inputs.rewire(a, b)
        w.set([1.0, 4.0])
    g.stabilize()
    assert heard == [([2.0], [1.0, 4.0]), ([2.0, 4.0], [13.0, 18.0])]
    assert len(watches) == 2


def test_places_are_checked() -> None:
    g, a, b, w, inputs, _ = graph()
    with pytest.raises(rg.ShapeError, match=r"carry\(w, \.\.\.\) was given 1 places"), g.edit():
        inputs.rewire(a, b)
        w.set([1.0, 4.0])
        rg.extend.carry(w, [0])
    assert w.value.tolist() == [2.0]
    with pytest.raises(rg.DTypeError, match="a place is an index from 0, or None"):
        rg.extend.carry(w, [-1])
