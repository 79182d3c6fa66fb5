"""An interrupt at any line of the engine during an edit, a pin, a transaction, or a set of another shape.

The graph is as before or as after, in all of its nodes and gradients, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.interrupts import interrupted

Nodes = dict[str, Any]


def model(g: rg.Graph, size: int) -> Nodes:
    """Nodes with a shared operand, a view, a cutoff, a function and a gradient of them all."""
    x, w = g.input(np.full(size, 0.5)), g.param(np.full(size, 2.0))
    z = g.input(3.0)
    a = x * w
    b = rg.tanh(a) + z
    c = rg.clip(b, -1.0, 1.0)
    c.cutoff = "equal"
    view = b[1:]
    f = rg.lift(lambda u, v: u.sum() * v)(b, z)
    s = (a * b).sum() + c.sum() + view.sum()
    return {"x": x, "w": w, "z": z, "a": a, "b": b, "c": c, "view": view, "f": f, "s": s}


def with_gradients(nodes: Nodes) -> Nodes:
    dx, dw = rg.grad(nodes["s"], [nodes["x"], nodes["w"]])
    return {**nodes, "dx": dx, "dw": dw}


def split(g: rg.Graph, n: Nodes) -> None:
    n["b"].replace_parent(0, rg.exp(n["a"]))


def insert(g: rg.Graph, n: Nodes) -> None:
    g.insert(n["a"], n["b"].parents[0], lambda v: v * 0.5)


def rewire(g: rg.Graph, n: Nodes) -> None:
    n["a"].rewire(n["w"], n["w"])


def detached(g: rg.Graph, n: Nodes) -> None:
    n["a"].replace_parent(0, n["x"].detach())


def block(g: rg.Graph, n: Nodes) -> None:
    with g.edit():
        n["a"].replace_parent(1, n["x"])
        n["b"].replace_parent(1, n["w"])


def turned(g: rg.Graph, n: Nodes) -> None:
    """An edge the other way round, so that ranks move."""
    tanh = n["b"].parents[0]
    with g.edit():
        tanh.replace_parent(0, n["w"])
        n["a"].replace_parent(0, tanh)


def remove(g: rg.Graph, n: Nodes) -> None:
    g.remove(n.pop("f"))


def pin(g: rg.Graph, n: Nodes) -> None:
    n["b"].pin(np.full(n["b"].shape, 0.25))


def repinned(g: rg.Graph, n: Nodes) -> None:
    n["f"].unpin()


def transaction(g: rg.Graph, n: Nodes) -> None:
    with g.transaction():
        n["z"].set(7.0)
        n["a"].replace_parent(0, n["w"])
        n["w"].set(n["w"].value + 1.0)
        n["c"].cutoff = None


def grown(g: rg.Graph, n: Nodes) -> None:
    g.set({n["x"]: np.full(5, 0.25), n["w"]: np.full(5, 4.0)})


ACTS: dict[str, Callable[[rg.Graph, Nodes], None]] = {
    act.__name__: act
    for act in (
        split,
        insert,
        rewire,
        detached,
        block,
        turned,
        remove,
        pin,
        repinned,
        transaction,
        grown,
    )
}


def prepared(with_grad: bool) -> tuple[rg.Graph, Nodes]:
    g = rg.Graph()
    nodes = model(g, 3)
    if with_grad:
        nodes = with_gradients(nodes)
    nodes["f"].pin(1.5)
    for turn in range(3):
        nodes["z"].set(3.0 + turn)
        g.forward(*nodes.values())
    return g, nodes


def values(g: rg.Graph, nodes: Nodes) -> dict[str, Any]:
    return {name: np.array(node.value) for name, node in nodes.items()}


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return found.keys() <= wanted.keys() and all(
        np.array_equal(found[name], wanted[name]) for name in found
    )


def go_on(g: rg.Graph, n: Nodes) -> dict[str, Any]:
    """What comes of sets and edits after it."""
    n["z"].set(-1.5)
    n["x"].set(n["x"].value * 3.0)
    first = values(g, n)
    n["s"].replace_parent(0, n["s"].parents[0] + n["z"])
    second = values(g, n)
    return first | {f"{name} later": value for name, value in second.items()}


@pytest.mark.slow
@pytest.mark.parametrize("with_grad", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("act", ACTS)
def test_an_interrupted_edit_was_made_or_was_not(act: str, with_grad: bool) -> None:
    g, nodes = prepared(with_grad)
    before = values(g, nodes)
    before_on = go_on(g, nodes)
    g, nodes = prepared(with_grad)
    ACTS[act](g, nodes)
    after = values(g, nodes)
    after_on = go_on(g, nodes)
    # Every so many lines, others for every act: there are thousands.
    at, more, outcomes = 3 * list(ACTS).index(act), True, set[bool]()
    while more:
        at += 1 if at < 40 and not with_grad else 59
        g, nodes = prepared(with_grad)
        kept = dict(nodes)
        held = [node.value for node in nodes.values()]
        copies = [np.array(value) for value in held]
        more = interrupted(partial(ACTS[act], g, nodes), at)
        if act == "remove":  # the Var of a removed node says so
            nodes = {k: v for k, v in kept.items() if isinstance(v._graph, rg.Graph)}
        g.check_invariants()
        found = values(g, nodes)
        made = same(found, after) and (act != "remove" or "f" not in nodes)
        assert made or same(found, before), at
        assert more or made
        outcomes.add(made)
        assert all(map(np.array_equal, held, copies)), at
        assert same(go_on(g, nodes), after_on if made else before_on), at
        g.check_invariants()
    assert outcomes == ({True} if same(before, after) else {False, True})
