"""A network as a formula, which computes it, and as a drawing, which shows each connection once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import ACTIVATIONS, AGGREGATIONS, Mutations, config, connect, new_genome

SETTINGS = config()


def mutated(seed: int, cycles: bool = False) -> Any:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, ACTIVATIONS, AGGREGATIONS, cycles)
    for _ in range(25):
        mutations.step(genome)
    return genome


@pytest.mark.parametrize("seed", range(30))
def test_the_python_form_computes_the_network(seed: int) -> None:
    net = neat.Network.create(mutated(seed), SETTINGS)
    scope: dict[str, Any] = {}
    exec(net.formula("python"), scope)
    for sample in np.random.default_rng(seed).normal(size=(5, 3)).tolist():
        expected = net.activate(sample)
        try:
            found = scope["network"](*sample)
        except OverflowError:  # of a cube, as in neat-python
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def small() -> Any:
    draw = random.Random(1)
    genome = new_genome(SETTINGS, draw)
    for key, gene in genome.nodes.items():
        gene.bias, gene.response, gene.activation = 0.5 - key, 2.0, ("tanh", "identity")[key]
    for i, gene in enumerate(genome.connections.values()):
        gene.weight = (-1.0) ** i * 0.25 * (i + 1)
    genome.nodes[1].aggregation = "max"
    return genome


def test_texts() -> None:
    net = neat.Network.create(small(), SETTINGS)
    assert net.formula() == (
        "y0 = tanh(0.5 + 0.5 x1 - 1 x2 + 1.5 x3)\n"
        "y1 = -0.5 + 2 max(-1 x1, 1.25 x2, -1.5 x3)\n"
        "where tanh(z) = tanh(2.5 z)"
    )
    named = net.formula(names={-1: "age", 0: "risk"}, digits=1)
    assert named.startswith("risk = tanh(0.5 + 0.5 age - 1 x2")
    assert net.formula("latex") == (
        "\\begin{aligned}\n"
        "y_{0} &= \\tanh(2.5 (0.5 + 0.5 x_{1} - 1 x_{2} + 1.5 x_{3})) \\\\\n"
        "y_{1} &= -0.5 + 2 \\mathrm{max}(-1 x_{1}, 1.25 x_{2}, -1.5 x_{3})\n"
        "\\end{aligned}"
    )
    genome = small()
    connect(genome, 0, 1, 3.0)
    connect(genome, 1, 0, 4.0)
    recurrent = neat.RecurrentNetwork.create(genome, SETTINGS).formula()
    assert "y0[t] = tanh(0.5 + 0.5 x1[t] - 1 x2[t] + 1.5 x3[t] + 8 y1[t-1])" in recurrent
    net.genes(0).set([1.0, 1.0, 0.0, 0.0, 0.0])
    assert net.formula().startswith("y0 = tanh(1 + 0 x1")  # the present genes


def test_messages(tmp_path: Path) -> None:
    net = neat.Network.create(small(), SETTINGS)
    with pytest.raises(rg.DTypeError, match=r"form='c'.*'text', 'latex', 'python'"):
        net.formula("c")
    with pytest.raises(rg.DTypeError, match="a name in Python"):
        net.formula("python", names={-1: "x 1"})
    with pytest.raises(rg.DTypeError, match="for feed-forward networks"):
        neat.RecurrentNetwork.create(small(), SETTINGS).formula("python")
    with pytest.raises(rg.VizError, match=r"ends with \.svg"):
        net.draw(tmp_path / "net.png")


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_drawing_has_each_neuron_and_each_connection_once(seed: int, cycles: bool) -> None:
    kind = neat.RecurrentNetwork if cycles else neat.Network
    net = kind.create(mutated(seed, cycles), SETTINGS)
    picture = net.draw()
    root = ElementTree.fromstring(picture.svg)
    space = "{http://www.w3.org/2000/svg}"
    told = [one.text or "" for one in root.iter(f"{space}title")]
    links = {
        f"{source} to {key}: {weight:.6g}"
        for key, one in net.phenotype.neurons.items()
        for source, weight in zip(one.sources, one.genes[2:], strict=True)
    }
    assert {one for one in told if " to " in one} == links
    assert len([one for one in told if one.startswith("neuron ")]) == len(net.phenotype.neurons)
    assert len([one for one in told if one.startswith("input ")]) >= 3
    rects = list(root.iter(f"{space}rect"))[1:]
    places = {(one.get("x"), one.get("y")) for one in rects}
    assert len(places) == len(rects)  # none hides another
    if not cycles:  # sources stand to the left
        x = {
            title.text.split(":")[0].split()[1]: float(group.find(f"{space}rect").get("x"))
            for group in root.iter(f"{space}g")
            if (title := group.find(f"{space}title")) is not None and title.text
        }
        for key, one in net.phenotype.neurons.items():
            assert all(x[str(source)] < x[str(key)] for source in one.sources)


def test_it_shows_what_differs_from_a_parent(tmp_path: Path) -> None:
    parent = neat.Network.create(small(), SETTINGS)
    genome = small()
    del genome.connections[-1, 0]
    connect(genome, 0, 1, 0.62)
    child = neat.Network.create(genome, SETTINGS)
    picture = child.draw(tmp_path / "child.svg", parent=parent, ran={1}, names={-1: "<age>"})
    assert (tmp_path / "child.svg").read_text("utf-8") == picture.svg == picture._repr_svg_()
    assert picture.svg.count('stroke="#1a7f37"') == 1
    assert "-1 to 0: removed" in picture.svg
    assert "&lt;age&gt;" in picture.svg
    assert picture.svg.count('fill="#a9dfb2"') == 1
    assert picture.svg.count(">0.62<") == 2
    assert ">0.62<" not in child.draw(weights=False).svg
    assert repr(picture).startswith("<Drawing: ")
