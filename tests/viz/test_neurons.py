"""Neurons are one box each in pictures and in the explorer, with weights at their lines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import snapshot
from reactgrad.viz._picture import picture


def shown(graph: Any, **options: Any) -> tuple[set[str], dict[tuple[str, str], str], Any]:
    found = picture(snapshot(graph, None, True), **options)
    name = {box.key: box.label for box in found.boxes}
    lines = {(name[line.parent], name[line.child]): line.label for line in found.lines}
    return set(name.values()), lines, found


def grown() -> tuple[Any, Any, Any, Any]:
    g = rg.Graph()
    x, z = g.input([1.0, 2.0], name="x"), g.input([0.5, 0.5], name="z")
    h = rg.neuron([x], weights=[0.5], name="h")
    o = rg.neuron([h, z], weights=[1.25, -2.0], name="o")
    loss = rg.sum(rg.square(o.node))
    loss.name = "loss"
    _ = loss.value
    return g, h, o, loss


def test_a_neuron_is_one_box_with_weights_at_its_lines() -> None:
    g, h, o, loss = grown()
    names, lines, found = shown(g)
    assert {"x", "z", "h", "o", "loss"} <= names
    assert not any("genes" in name or "neuron_weighted" in name for name in names)
    weights = {("x", "h"): "0.5", ("h", "o"): "1.25", ("z", "o"): "-2"}
    assert {ends: label for ends, label in lines.items() if label} == weights
    (box,) = [box for box in found.boxes if box.label == "o"]
    assert len(box.members) == 3
    assert found.hidden == 0
    dot = g.to_dot()
    assert re.search(r'label="-2", fontsize="9"', dot)
    gradient = rg.grad(loss, h.genes)
    _ = gradient.value
    assert "genes of h" not in shown(g)[0]
    assert "genes of h" in shown(g, layer="all")[0]  # a picture of gradients needs all nodes
    o.set_weight(h, 3.0)
    assert shown(g)[1]["h", "o"] == "3"
    o.disconnect(h)
    assert ("h", "o") not in shown(g)[1]


def test_marks_of_edits_and_stale_genes() -> None:
    g, h, o, _ = grown()
    before = g.snapshot()
    x = g["x"]
    o.connect(x, 0.75)
    _, lines, found = shown(g, former=before)
    assert lines["x", "o"] == "0.75"
    assert {line.mark for line in found.lines if line.label == "0.75"} == {"added"}
    looks = {box.label: box.look for box in found.boxes}
    assert (looks["o"], looks["h"]) == ("stale", "clean" if looks["h"] == "clean" else "ran")
    h.set_weight(x, 1.0)
    assert {box.label: box.look for box in shown(g)[2].boxes}["h"] == "stale"


def test_what_is_used_elsewhere_is_a_box_of_its_own() -> None:
    g, h, o, _ = grown()
    total = h._sum * 2.0
    assert total is not None
    names, _, _ = shown(g)
    assert any(name.startswith("neuron_weighted") for name in names)
    penalty = rg.sum(o.genes)
    assert penalty is not None
    assert "genes of o" in shown(g)[0]


def test_a_network_of_a_genome_is_its_neurons() -> None:
    pytest.importorskip("neat")
    import random

    from reactgrad import neat
    from tests.neat.mutations import config, connect, new_genome

    settings = config(2, 1)
    genome = new_genome(settings, random.Random(1))
    from tests.neat.mutations import add_gene

    draw = random.Random(2)
    add_gene(genome, 5, draw).aggregation = "max"
    connect(genome, -1, 5, 0.25)
    connect(genome, -2, 5, -0.75)
    connect(genome, 5, 0, 1.5)
    net = neat.Network.create(genome, settings)
    net.activate(np.ones((3, 2)))
    names, lines, found = shown(net.graph)
    assert names == {"input -1", "input -2", "neuron 0", "neuron 5", "outputs"}
    assert lines["neuron 5", "neuron 0"] == "1.5"
    assert lines["input -1", "neuron 5"] == "0.25"
    assert lines["input -2", "neuron 5"] == "-0.75"
    assert found.hidden == 0


def test_the_explorer_draws_weights_anew_when_they_change() -> None:
    pytest.importorskip("pygraphviz")
    from reactgrad.viz._session import Session

    g, h, _, loss = grown()
    sent: list[Any] = []
    session = Session(g, sent.append, targets=[loss])
    try:
        session.receive({"kind": "open"})
        wait(lambda: any(one["kind"] == "view" for one in sent))
        (view,) = [one for one in sent if one["kind"] == "view"]
        assert "0.5" in {line.get("label") for line in view["lines"]}
        h.set_weight(g["x"], 0.625)
        wait(lambda: sum(one["kind"] == "view" for one in sent) > 1)
        (_, view) = [one for one in sent if one["kind"] == "view"][:2]
        assert "0.625" in {line.get("label") for line in view["lines"]}
    finally:
        session.close()


def wait(is_done: Any) -> None:
    import time

    for _ in range(200):
        if is_done():
            return
        time.sleep(0.02)
    pytest.fail("no message came")
