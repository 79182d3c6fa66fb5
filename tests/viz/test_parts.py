"""Folded scopes never have lines in both directions, and have as few boxes as that takes."""

from __future__ import annotations

from graphlib import TopologicalSorter
from random import Random

import pytest

import reactgrad as rg
from reactgrad.viz._picture import Picture, picture


def order(found: Picture) -> list[str]:
    """The boxes, parents first; raises if there is a cycle."""
    before: dict[str, set[str]] = {box.key: set() for box in found.boxes}
    for line in found.lines:
        before[line.child].add(line.parent)
    return list(TopologicalSorter(before).static_order())


def test_what_leads_back_into_a_scope_is_another_box_of_it(g: rg.Graph) -> None:
    with g.scope("book"):
        x = g.input(1.0, name="x")
        inner = rg.tanh(x)
    outside = rg.exp(inner)
    with g.scope("book"):
        y = rg.sin(outside) + inner
    now = g.snapshot()
    both = picture(now, fold=1)
    assert len([box for box in both.boxes if box.node is None]) == 1
    found = picture(now, fold=1, one_way=True)
    boxes = {box.key: box for box in found.boxes}
    assert order(found) == ["book/", str(boxes_key(found, "exp")), "book/(2)"]
    assert [boxes[key].label for key in ("book/", "book/(2)")] == ["book (1)", "book (2)"]
    assert {key for box in found.boxes for key in box.members} == {n.key for n in now.nodes}
    assert y.is_stale


def boxes_key(found: Picture, op: str) -> str:
    (key,) = [box.key for box in found.boxes if box.node is not None and box.node.op == op]
    return key


def test_a_scope_that_nothing_leads_back_into_is_one_box(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    for n in range(5):
        with g.scope(f"layer{n}"):
            x = rg.tanh(x * g.param(2.0, name="w") + g.param(0.5, name="b"))
    found = picture(g.snapshot(), fold=1, one_way=True)
    folded = [box.key for box in found.boxes if box.node is None]
    assert folded == [f"layer{n}/" for n in range(5)]
    assert all(box.part == 0 for box in found.boxes)
    order(found)


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_is_drawn_without_cycles(g: rg.Graph, seed: int) -> None:
    random = Random(seed)
    nodes: list[rg.Var] = [g.input(1.0)]
    for n in range(60):
        made = rg.add(random.choice(nodes), random.choice(nodes)) if n % 5 else g.input(float(n))
        made.name = f"s{random.randrange(4)}/{'abc'[random.randrange(3)]}/n{n}"
        nodes.append(made)
    now = g.snapshot()
    for options in ({"fold": 1}, {"fold": 2}, {"opened": ()}, {"opened": ("s0",)}):
        found = picture(now, one_way=True, **options)  # type: ignore[arg-type]
        order(found)
        members = [key for box in found.boxes for key in box.members]
        assert sorted(members) == sorted({node.key for node in now.nodes})


def test_what_is_repeated_across_scopes_needs_no_more_boxes(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    for _ in range(9):
        with g.scope("one"):
            y = rg.tanh(x)
        with g.scope("two"):
            y = rg.exp(y)
        with g.scope("one"):
            y = rg.sin(y)
    found = picture(g.snapshot(), fold=1, one_way=True)
    assert [box.label for box in found.boxes if box.node is None] == ["one (1)", "two", "one (2)"]
    order(found)
