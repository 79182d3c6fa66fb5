"""Networks in one graph: one feed, ensembles, shared genes; moments that stay with their connections."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import TAME, Mutations, config, new_genome

SETTINGS = config(activation_options=" ".join(TAME))
X = np.random.default_rng(1).normal(size=(6, 3))
Y = np.random.default_rng(2).normal(size=(6, 2))


def family(count: int, steps: int = 12) -> list[Any]:
    draw = random.Random(5)
    found = []
    for key in range(count):
        genome = new_genome(SETTINGS, draw)
        genome.key = key
        mutations = Mutations(SETTINGS, draw, activations=TAME, aggregations=("sum",))
        mutations.next_key = 2
        for _ in range(steps):
            mutations.step(genome)
        found.append(genome)
    return found


def test_networks_in_one_graph_compute_what_each_does_alone() -> None:
    g = rg.Graph()
    first, *others = family(3)
    nets = [neat.Network.create(first, SETTINGS, graph=g)]
    inputs = [nets[0][key] for key in nets[0].phenotype.inputs]
    nets += [neat.Network.create(one, SETTINGS, graph=g, inputs=inputs) for one in others]
    expected = [neat.Network.create(one, SETTINGS).activate(X) for one in (first, *others)]
    nets[0].activate(X)  # feeds all
    for net, value in zip(nets, expected, strict=True):
        np.testing.assert_allclose(net.outputs.value, value, rtol=1e-12, atol=1e-12)
    total: Any = sum(net.outputs for net in nets) / 3.0
    np.testing.assert_allclose(total.value, np.mean(expected, axis=0), rtol=1e-12, atol=1e-12)
    slope = rg.grad(rg.mean(rg.square(total - Y)), nets[1].genes(0))
    assert slope.shape == nets[1].genes(0).shape
    assert nets[1].graph is g
    assert g["genome 1/neuron 0"] is nets[1][0]
    nets[1].activate(X + 1.0)
    assert set(nets[1].ran) <= set(nets[1].phenotype.neurons)
    assert nets[1].ran


def test_one_of_them_is_updated_forked_and_pickled() -> None:
    g = rg.Graph()
    genomes = family(2)
    a = neat.Network.create(genomes[0], SETTINGS, graph=g, name="a")
    b = neat.Network.create(genomes[1], SETTINGS, graph=g, name="b")
    before = a.activate(X)
    b.activate(X)
    versions = {key: a[key].value_version for key in a.phenotype.neurons}
    mutations = Mutations(SETTINGS, random.Random(3), activations=TAME, aggregations=("sum",))
    mutations.next_key = 50
    for _ in range(5):
        mutations.step(genomes[1])
    b.update(genomes[1])
    alone = neat.Network.create(genomes[1], SETTINGS).activate(X)
    np.testing.assert_allclose(b.activate(X), alone, rtol=1e-12, atol=1e-12)
    assert {key: a[key].value_version for key in a.phenotype.neurons} == versions
    twin = b.fork(genomes[0])
    np.testing.assert_allclose(twin.activate(X), before, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b.activate(X), alone, rtol=1e-12, atol=1e-12)
    copied = pickle.loads(pickle.dumps(b))
    np.testing.assert_allclose(copied.activate(X), alone, rtol=1e-12, atol=1e-12)
    assert copied.graph is not g


def test_shared_genes_are_trained_by_one_network_for_all() -> None:
    g = rg.Graph()
    genes = neat.SharedGenes(g)
    genomes = family(4)
    nets: list[Any] = []
    for one in genomes:
        inputs = None if not nets else [nets[0][key] for key in nets[0].phenotype.inputs]
        nets.append(neat.Network.create(one, SETTINGS, graph=g, inputs=inputs, genes=genes))
    nets[0].activate(X)
    for net in nets:
        for key, neuron in net.phenotype.neurons.items():
            own = net.genes(key).value
            told = [genes.weight(source, key) for source in neuron.sources]
            assert own[2:].tolist() == told
    loss = rg.mean(rg.square(nets[0].outputs - Y))
    before = [net.outputs.value for net in nets]
    opt = rg.optim.Adam(genes.params, lr=0.05)
    first = loss.item()
    for _ in range(20):
        opt.zero_grad()
        loss.backward()
        opt.step()
    assert loss.item() < first
    assert not any(np.array_equal(a, net.outputs.value) for a, net in zip(before, nets))
    # Another genome joins; what is known of the first ones stays.
    state = opt.state_dict()["state"]["shared genes of 0"]["exp_avg"]
    late = family(6)[-1]
    joined = neat.Network.create(late, SETTINGS, graph=g, name="late", genes=genes)
    again = opt.state_dict()["state"]["shared genes of 0"]["exp_avg"]
    assert again[: len(state)].tolist() == state.tolist()
    assert joined.activate(X).shape == (6, 2)
    with pytest.raises(rg.EditError, match="the genes of this network are shared"):
        nets[1].update(genomes[0])
    assert repr(genes).startswith("<SharedGenes: ")
    with pytest.raises(rg.UnknownNameError, match=r"genes\.weight\(99, 0\)"):
        genes.weight(99, 0)


def test_moments_stay_with_their_connections_when_the_genome_changes() -> None:
    (genome,) = family(1, 0)
    net = neat.Network.create(genome, SETTINGS)
    net.activate(X)
    opt = rg.optim.Adam([net.genes(key) for key in (0, 1)], lr=0.01)
    loss = rg.mean(rg.square(net.outputs - Y))
    loss.backward()
    opt.step()
    net.adopt()
    name = net.genes(0).name
    before = opt.state_dict()["state"][name]["exp_avg"]
    sources = net.phenotype.neurons[0].sources
    del genome.connections[sources[1], 0]
    del genome.connections[sources[0], 1]
    net.update(genome)
    after = opt.state_dict()["state"]
    assert after[name]["exp_avg"].tolist() == np.delete(before, 3).tolist()
    assert len(after[net.genes(1).name]["exp_avg"]) == 4
    opt.zero_grad()
    loss.backward()
    opt.step()
    assert opt.state_dict()["state"][name]["step"] == 2


def test_messages() -> None:
    g, (genome,) = rg.Graph(), family(1)
    create: Any = neat.Network.create
    with pytest.raises(rg.GraphError, match=r"create\(genome, config, graph=g"):
        create(genome, SETTINGS, name="a")
    with pytest.raises(rg.ShapeError, match="1 Vars, and the genome has 3 inputs"):
        create(genome, SETTINGS, graph=g, inputs=[g.input(1.0)])
    with pytest.raises(rg.GraphError, match="each is a Var of the graph"):
        create(genome, SETTINGS, graph=g, inputs=[rg.Graph().input(1.0)] * 3)
    with pytest.raises(rg.GraphError, match="in another graph"):
        create(genome, SETTINGS, graph=g, genes=neat.SharedGenes(rg.Graph()))
    with pytest.raises(rg.DTypeError, match=r"neat\.SharedGenes\(g\)"):
        create(genome, SETTINGS, graph=g, genes={})
    with pytest.raises(rg.DTypeError, match="it is a graph"):
        create(genome, SETTINGS, graph=5)
