"""Where gradients pass, with the node of what passes, and where they stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._passage import passage
from reactgrad.explain._snapshot import key_of, vars_of


def stops(g: rg.Graph) -> dict[tuple[int, int], str]:
    return {(parent, child): why for parent, child, why in passage(g).stops}


def test_what_passes_each_edge_adds_up_to_the_gradient() -> None:
    g = rg.Graph()
    x = g.param(np.array([1.0, 2.0]), name="x")
    a, b = x * 3.0, x * x
    loss = (a + b).sum()
    slope = rg.grad(loss, x)
    slope.value
    found = passage(g)
    parts = [(child, node) for parent, child, node in found.passes if parent == key_of(g, x)]
    assert sorted({child for child, _ in parts}) == sorted([key_of(g, a), key_of(g, b)])
    nodes = vars_of(g, [node for _, node in parts])
    total = sum(nodes[node].value for _, node in parts)
    np.testing.assert_allclose(total, slope.value)
    assert (key_of(g, x), key_of(g, slope)) in found.adjoints


def _detached(g: rg.Graph, x: rg.Var) -> Any:
    return x.detach() * 2.0


def _not_float(g: rg.Graph, x: rg.Var) -> Any:
    return rg.argmax(x)


def _no_grad(g: rg.Graph, x: rg.Var) -> Any:
    with rg.no_grad():
        return x * 2.0


def _frozen(g: rg.Graph, x: rg.Var) -> Any:
    x.freeze()
    return x * 2.0


def _zero(g: rg.Graph, x: rg.Var) -> Any:
    return rg.floor(x)


def _no_rule(g: rg.Graph, x: rg.Var) -> Any:
    return rg.lift(lambda value: value * 2.0)(x)


def _pinned(g: rg.Graph, x: rg.Var) -> Any:
    y = x * 2.0
    y.pin(np.zeros(2))
    return y


@pytest.mark.parametrize(
    "build", [_detached, _not_float, _no_grad, _frozen, _zero, _no_rule, _pinned]
)
def test_each_reason_to_stop_is_named(build: Any) -> None:
    g = rg.Graph()
    x = g.param(np.array([1.0, 2.0]), name="x")
    y = build(g, x)
    g.forward(y)
    before = g._scheduler.last_run
    assert stops(g) == {(key_of(g, x), key_of(g, y)): build.__name__[1:]}
    assert g._scheduler.last_run is before


def test_an_open_edge_and_one_from_a_constant_are_no_stops() -> None:
    g = rg.Graph()
    x = g.param(np.array([1.0, 2.0]), name="x")
    (x[np.array([0, 1])] * np.array([1.0, 2.0])).sum()
    assert stops(g) == {}
