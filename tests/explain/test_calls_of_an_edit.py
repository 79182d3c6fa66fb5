"""How many Python functions an edit calls, whatever the size of the graph: what it pays, without a clock.

The counts are bounds: who makes one smaller tightens it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.change._change import Change
from tests.explain.test_free_when_off import python_calls

pytestmark = [pytest.mark.trusting, pytest.mark.whole]


def chain(length: int) -> tuple[rg.Graph, list[rg.Var], rg.Var]:
    """Nodes that each add a constant to the one before."""
    g = rg.Graph()
    zero = g.const(np.zeros(1))
    nodes: list[rg.Var] = [g.input(np.ones(1))]
    for _ in range(length):
        nodes.append(nodes[-1] + zero)
    return g, nodes, zero


def calls(edit: Callable[[], None]) -> int:
    for _ in range(3):
        edit()
    return python_calls(edit)


@pytest.mark.parametrize("length", [20, 400])
def test_edges_added_and_removed(length: int) -> None:
    _, nodes, zero = chain(length)
    node, other = nodes[-2], nodes[-9]

    def edit() -> None:
        node.replace_parent(1, other)
        node.replace_parent(1, zero)

    assert calls(edit) <= 160


@pytest.mark.parametrize("length", [20, 400])
def test_edges_that_gradients_pass(length: int) -> None:
    g, nodes, zero = chain(length)
    node, other = nodes[-2], nodes[-9]
    gradient = rg.grad(nodes[-1].sum(), nodes[0])
    g.forward(gradient)

    def edit() -> None:
        node.replace_parent(1, other)
        node.replace_parent(1, zero)

    assert calls(edit) <= 475
    assert gradient.value == 1.0


def test_what_an_edit_changes_in_a_gradient_is_changed_together() -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    p, q = x * 2.0, x * 3.0
    node = p + x
    total = (rg.tanh(p) + rg.sin(p) + rg.tanh(q) + rg.sin(q) + node).sum()
    gradients = rg.grad(total, [x, p, q])
    g.forward(*gradients)
    defined: list[int] = []
    define = Change.define

    def counted(change: Change, definitions: Any, specs: Any = None) -> None:
        defined.append(len(definitions))
        define(change, definitions, specs)

    with patch.object(Change, "define", counted):
        node.replace_parent(0, q)
    assert defined == [1, 2], "the node itself; the sums of what `p` and `q` are given"
    fresh = rg.grad(total, [x, p, q], gradient=np.float64(1.0))
    for one, other in zip(gradients, fresh, strict=True):
        assert np.allclose(one.value, other.value)
    assert np.allclose(gradients[1].value, np.cos(2.0) + 1.0 / np.cosh(2.0) ** 2)
