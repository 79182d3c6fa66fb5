"""Gradients of many params at once: what is remembered between two backwards follows every change."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def reached(y: Any) -> set[Any]:
    """The unfrozen params that `y` is computed from, by a walk over ``parents``."""
    found: dict[Any, None] = {}
    stack = [y]
    while stack:
        at = stack.pop()
        if at not in found:
            found[at] = None
            stack += at.parents
    return {p for p in y.graph.params if p in found and not p.frozen}


@pytest.mark.parametrize("seed", range(8))
def test_backward_reaches_what_a_walk_reaches_after_any_edit(seed: int) -> None:
    pick = Random(seed)
    g = rg.Graph()
    params = [g.param(float(i + 1)) for i in range(12)]
    nodes = [params[i] * params[i + 1] for i in range(6)]
    for _ in range(12):
        nodes.append(pick.choice(nodes) + pick.choice(nodes))
    total = nodes[0]
    for node in nodes[1:]:
        total = total + node
    for _ in range(25):
        kind = pick.choice(["edit", "edit", "edit", "freeze", "unfreeze", "undone", "none"])
        if kind in ("edit", "undone"):
            n = pick.randrange(len(nodes))
            parent = pick.choice([*params, *nodes[: min(n, 6)]])
            try:
                with g.transaction():
                    nodes[n].replace_parent(pick.randrange(2), parent)
                    if kind == "undone":
                        if pick.random() < 0.5:
                            total.backward()
                        raise ZeroDivisionError
            except (ZeroDivisionError, rg.CycleError):
                pass
        elif kind == "freeze":
            pick.choice(params).freeze()
        elif kind == "unfreeze":
            pick.choice(params).unfreeze()
        wanted = reached(total)
        assert total.requires_grad == bool(wanted)
        g.zero_grad()
        if wanted:
            total.backward()
        else:
            with pytest.raises(rg.GradientError, match="nothing trainable"):
                total.backward()
        assert {p for p in params if p.grad is not None} == wanted
        g.check_invariants()
    twin = g.fork()
    for p in params:
        twin[p].unfreeze()
    twin[total].backward()
    after = reached(twin[total])
    assert {twin[p] for p in params if twin[p].grad is not None} == after


def test_the_second_backward_makes_no_node_and_adds_up() -> None:
    g = rg.Graph()
    params = [g.param(float(i)) for i in range(50)]
    x = g.input(2.0)
    total = params[0] * x
    for p in params[1:]:
        total = total + p * x
    total.backward()
    size = len(g)
    x.set(3.0)
    total.backward()
    assert len(g) == size
    assert [p.grad for p in params] == [5.0] * 50


@pytest.mark.parametrize("cutoff", [None, "equal"])
def test_a_gradient_summed_over_axes_of_length_one_keeps_the_sign_of_zero(cutoff: Any) -> None:
    """Its value is a view of its parent's where it may be one, and the same bits where not."""
    g = rg.Graph()
    w = g.param(2.0)
    x = g.input([-0.0])
    y = (w * x).sum()
    gradient = rg.grad(y, w)
    gradient.cutoff = cutoff
    assert np.signbit(gradient.value)
    held = gradient.value
    x.set([3.0])
    assert gradient.value == 3.0
    assert np.signbit(held)
