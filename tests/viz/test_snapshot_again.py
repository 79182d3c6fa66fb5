"""A snapshot that takes over what is unchanged from an earlier one is the same as a fresh one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import snapshot
from reactgrad.explain._snapshots import Snapshots


@pytest.mark.parametrize("seed", range(12))
def test_it_equals_a_fresh_one(g: rg.Graph, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactgrad.explain._snapshots.MANY", 5)
    random = Random(seed)
    leaves = [g.param(float(n + 1), name=f"w{n}") for n in range(6)]
    nodes: list[rg.Var] = [*leaves]
    for n in range(60):
        pair = random.choice(nodes), random.choice(nodes)
        made = rg.add(*pair) if n % 3 else rg.lift(lambda a, b: bool(a > b), cutoff="equal")(*pair)
        nodes.append(rg.tanh(made) if n % 3 else rg.where(made, *pair))
    bad = rg.lift(lambda v: 1.0 / (v - 2.0))(leaves[0])
    g.forward(*nodes)
    snapshots = Snapshots(g)
    snapshots.take()
    parts = 0
    for step in range(40):
        match random.randrange(9):
            case 0 | 1 | 2:
                random.choice(leaves).set(random.choice([0.5, 2.0, 3.0]))
            case 3 | 4:
                g.forward(*random.sample(nodes, 5))
            case 5:
                try:
                    g.forward(bad)
                except ZeroDivisionError:
                    assert leaves[0].value == 2.0
            case 6:
                random.choice(nodes[6:]).name = f"named{step}"
            case 7:
                one = random.choice(leaves)
                _ = one.unfreeze() if one.frozen else one.freeze()
            case _:
                random.choice(leaves).touch()
        fresh = snapshot(g, None, True)
        if step % 3 == 0:  # what is shown comes first, and the leaves
            shown = {node.key for node in random.sample(fresh.nodes, 9)}
            part = snapshots.take(False, shown)
            seen = [node.key for node in fresh.nodes if node.key in shown or node.kind == "param"]
            assert [part.by_key[key] for key in seen] == [fresh.by_key[key] for key in seen]
            parts += bool(snapshots.left)
        again = snapshots.take(edited=False)
        assert again.nodes == fresh.nodes
        assert again.edges == fresh.edges
        assert again.by_key == fresh.by_key
        assert again._computed == fresh._computed
    assert parts, "some came in two parts"


def test_what_did_not_change_is_the_same_object(g: rg.Graph) -> None:
    x, z = g.input(1.0, name="x"), g.input(np.ones(3), name="z")
    y, other = rg.tanh(x), rg.exp(z)
    g.forward(y, other)
    x.set(2.0)
    g.forward(y)
    snapshots = Snapshots(g)
    former = snapshots.take()
    x.set(3.0)
    again = snapshots.take(edited=False)
    same = {node.name for node in again.nodes if former.by_key[node.key] is node}
    assert same == {z.label, other.label}


def test_it_follows_a_fork_and_a_graph_that_grows(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = rg.tanh(x)
    g.forward(y)
    twin = g.fork()
    snapshots = Snapshots(twin)
    snapshots.take()
    twin[x].set(3.0)
    twin.forward(twin[y])
    assert snapshots.take(edited=False).nodes == snapshot(twin, None, True).nodes
    z = rg.exp(twin[y])
    now = snapshots.take()
    assert now.nodes == snapshot(twin, None, True).nodes
    assert now.edges == snapshot(twin, None, True).edges
    del z
    assert len(snapshots.take().nodes) == 2
