"""A live network after any mutations is neat-python's fresh one, and recomputes what they reach."""

from __future__ import annotations

import copy
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import (
    TAME,
    Mutations,
    add_gene,
    affected,
    by_hand,
    config,
    connect,
    expressed,
    neat_python,
    new_genome,
)

SAMPLES = np.random.default_rng(0).normal(size=(4, 3))
SETTINGS = config()


def theirs(genome: Any, settings: Any = SETTINGS, samples: Any = SAMPLES) -> Any:
    net = neat_python.nn.FeedForwardNetwork.create(genome, settings)
    return np.array([net.activate(one) for one in samples.tolist()])


def assert_same(net: Any, genome: Any) -> None:
    np.testing.assert_allclose(net.activate(SAMPLES), theirs(genome), rtol=1e-12, atol=1e-12)


def grown(seed: int, steps: int) -> tuple[Any, Mutations]:
    """A genome after some mutations, and what goes on to mutate it."""
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    for _ in range(steps):
        mutations.step(genome)
    return genome, mutations


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_after_each_mutation_outputs_are_neat_pythons_and_what_ran_is_what_was_reached(
    seed: int, steps: int
) -> None:
    genome, mutations = grown(seed, 0)
    net = neat.Network.create(genome, SETTINGS)
    assert_same(net, genome)
    before = expressed(genome, SETTINGS)
    assert set(net.ran) == set(before)
    for _ in range(steps):
        kind = mutations.step(genome)
        after = expressed(genome, SETTINGS)
        net.update(genome)
        assert_same(net, genome)
        assert set(net.ran) == affected(before, after), kind
        assert set(net.phenotype.neurons) == set(after)
        before = after
    net.graph.check_invariants()


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_a_lineage_of_forks_recomputes_what_each_child_differs_in_and_keeps_nothing_else(
    seed: int,
) -> None:
    genome, mutations = grown(seed, 10)
    parent = neat.Network.create(genome, SETTINGS)
    assert_same(parent, genome)
    for _ in range(12):
        child_genome = copy.deepcopy(genome)
        for _ in range(mutations.draw.randint(1, 3)):
            mutations.step(child_genome)
        child = parent.fork(child_genome)
        assert_same(child, child_genome)
        before, after = expressed(genome, SETTINGS), expressed(child_genome, SETTINGS)
        assert set(child.ran) == affected(before, after)
        assert_same(parent, genome)
        assert parent.ran == ()
        genome, parent = child_genome, child
    parent.graph.check_invariants()
    fresh = neat.Network.create(genome, SETTINGS)
    # Python numbers that an aggregation divides by are shared constants, which forks keep.
    assert len(parent.graph) - len(fresh.graph) <= 12
    assert len(parent.graph.params) == len(fresh.graph.params)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_forks_and_updates_in_any_order(seed: int) -> None:
    genome, mutations = grown(seed, 6)
    net = neat.Network.create(genome, SETTINGS)
    for _ in range(10):
        before = expressed(genome, SETTINGS)
        net.activate(SAMPLES)
        for _ in range(mutations.draw.randint(1, 2)):
            mutations.step(genome)
        how = mutations.draw.randrange(3)
        if how == 0:
            net = net.fork(genome)
        else:
            net = net.fork() if how == 1 else net
            net.update(genome)
        assert_same(net, genome)
        assert set(net.ran) == affected(before, expressed(genome, SETTINGS))
    net.graph.check_invariants()


def test_a_copy_is_a_network_of_its_own() -> None:
    genome, mutations = grown(3, 12)
    net = neat.FeedForwardNetwork.create(genome, SETTINGS)
    outputs = net.activate(SAMPLES)
    net.genes(0).set(net.genes(0).value + 1.0)
    changed = net.activate(SAMPLES)
    assert not np.array_equal(outputs, changed)
    for copied in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(copied) is neat.FeedForwardNetwork
        np.testing.assert_array_equal(copied.activate(SAMPLES), changed)
        mutations.step(genome)
        copied.update(genome)
        np.testing.assert_array_equal(net.activate(SAMPLES), changed)


def test_threads_that_share_a_network_get_the_outputs_of_their_own_samples() -> None:
    genome, _ = grown(4, 12)
    net = neat.Network.create(genome, SETTINGS)
    given = np.random.default_rng(2).normal(size=(400, 2, 3))
    expected = [net.activate(one) for one in given]
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for outputs, wanted in zip(pool.map(net.activate, given), expected, strict=True):
                np.testing.assert_array_equal(outputs, wanted)
    finally:
        sys.setswitchinterval(former)


@pytest.mark.parametrize("kind", [int, np.float32], ids=["integers", "single precision"])
def test_genes_of_any_numbers_are_taken_in_double_precision(kind: Any) -> None:
    genome, _ = grown(6, 4)
    exact = copy.deepcopy(genome)

    def numbers(one: Any, kind: Any) -> Any:
        one = copy.deepcopy(one)
        for gene in one.nodes.values():
            gene.bias, gene.response = kind(gene.bias), kind(gene.response)
        for gene in one.connections.values():
            gene.weight = kind(gene.weight)
        return one

    genome = numbers(genome, kind)
    net = neat.Network.create(genome, SETTINGS)
    assert_same(net, numbers(genome, float))
    net.update(exact)
    assert_same(net, exact)
    neat.RecurrentNetwork.create(genome, SETTINGS)
    neat.fit(genome, SAMPLES, SAMPLES[:, :2], SETTINGS, steps=1)


def test_keys_of_neurons_and_inputs() -> None:
    genome, _ = grown(5, 12)
    net = neat.Network.create(genome, SETTINGS)
    assert list(net) == [-1, -2, -3, *net.phenotype.neurons]
    assert all(key in net and net[key].name for key in net)
    assert 99 not in net
    assert repr(net) == f"<Network: 3 inputs, {len(net.phenotype.neurons)} neurons, 2 outputs>"


@given(st.integers(0, 2**32))
def test_each_neuron_has_neat_pythons_value_with_all_functions(seed: int) -> None:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw)
    net = neat.Network.create(genome, SETTINGS)
    for _ in range(30):
        mutations.step(genome)
    net.update(genome)
    net.activate(SAMPLES)
    by_hand(genome, SETTINGS, net, len(SAMPLES))


def test_one_sample_is_a_list_as_in_neat_python() -> None:
    genome, _ = grown(1, 15)
    net = neat.FeedForwardNetwork.create(genome, SETTINGS)
    peer = neat_python.nn.FeedForwardNetwork.create(genome, SETTINGS)
    result = net.activate([0.5, -1.0, 2.0])
    assert type(result) is list
    assert result == pytest.approx(peer.activate([0.5, -1.0, 2.0]), rel=1e-12)
    assert (net.input_nodes, net.output_nodes) == (peer.input_nodes, peer.output_nodes)
    for key, value in net.values.items():
        assert value == pytest.approx(peer.values[key], rel=1e-12)
    assert net.activate(np.zeros((7, 3))).shape == (7, 2)
    with pytest.raises(rg.ShapeError, match="has 3 inputs and was given an array of shape"):
        net.activate([1.0, 2.0])


def test_the_same_samples_again_run_nothing() -> None:
    genome, _ = grown(2, 10)
    net = neat.Network.create(genome, SETTINGS)
    net.activate(SAMPLES)
    net.activate(SAMPLES)
    assert net.ran == ()


def test_weights_may_be_given_or_drawn_as_in_neat_python() -> None:
    genome, _ = grown(3, 10)
    peer = copy.deepcopy(genome)
    net = neat.Network.create(genome, SETTINGS, unique_value=0.5)
    expected = neat_python.nn.FeedForwardNetwork.create(peer, SETTINGS, unique_value=0.5)
    assert net.activate([1.0, 2.0, 3.0]) == pytest.approx(expected.activate([1.0, 2.0, 3.0]))
    neat.Network.create(genome, SETTINGS, random_values=True)
    used = [
        genome.connections[s, k].weight for k, n in net.phenotype.neurons.items() for s in n.sources
    ]
    assert len(set(used)) == len(used)
    assert all(abs(weight) <= 1.0 for weight in used)


def softish(z: float) -> float:
    return z / (1.0 + abs(z))


def widest(values: list[float]) -> float:
    return max(values) - min(values) if values else 7.0


def test_functions_of_users_own_compute_and_say_that_their_slope_is_not_known() -> None:
    settings = config()
    settings.genome_config.add_activation("softish", softish)
    settings.genome_config.add_aggregation("widest", widest)
    genome, _ = grown(4, 0)
    genome.nodes[0].activation, genome.nodes[0].aggregation = "softish", "widest"
    genome.nodes[1].aggregation = "widest"
    for source in (-1, -2, -3):
        del genome.connections[source, 1]
    net = neat.Network.create(genome, settings)
    np.testing.assert_allclose(net.activate(SAMPLES), theirs(genome, settings), rtol=1e-12)
    with pytest.raises(rg.GradientError, match="'softish' is your own"):
        rg.grad(net[0].sum(), net.genes(0))


def test_a_new_order_of_two_neurons_is_one_edit() -> None:
    genome, _ = grown(5, 0)
    for key in (2, 3):
        add_gene(genome, key, random.Random(key))
    connect(genome, -1, 2, 0.5)
    connect(genome, 2, 3, 0.5)
    connect(genome, 3, 0, 0.5)
    net = neat.Network.create(genome, SETTINGS)
    assert_same(net, genome)
    first, second = net[2], net[3]
    del genome.connections[2, 3], genome.connections[-1, 2], genome.connections[3, 0]
    connect(genome, -1, 3, 0.5)
    connect(genome, 3, 2, 0.5)
    connect(genome, 2, 0, 0.5)
    net.update(genome)
    assert_same(net, genome)
    assert net[2] is first
    assert net[3] is second


def state(net: Any) -> Any:
    return (
        net.phenotype,
        {var.name: (var.value_version, var.is_stale) for var in net.graph.nodes},
        {key: net[key].parents[0].name for key in net.phenotype.neurons},
    )


def test_an_update_that_fails_changes_nothing() -> None:
    genome, mutations = grown(6, 20)
    net = neat.Network.create(genome, SETTINGS)
    outputs = net.activate(SAMPLES)
    slope = rg.grad(net[0].sum(), net.genes(0))
    slope_before = slope.value.tolist(), slope.value_version
    before = state(net)
    child = copy.deepcopy(genome)
    mutations.step(child)
    connect(child, 99, 0, 1.0)
    with pytest.raises(neat.GenomeError, match="begins at node 99"):
        net.update(child)
    assert state(net) == before
    np.testing.assert_array_equal(net.activate(SAMPLES), outputs)
    assert (slope.value.tolist(), slope.value_version) == slope_before


def test_an_update_inside_a_transaction_that_fails_is_taken_back() -> None:
    genome, _ = grown(7, 15)
    net = neat.Network.create(genome, SETTINGS)
    outputs = net.activate(SAMPLES)
    slope = rg.grad(net[0].sum(), net.genes(0))
    kept = slope.value
    child = copy.deepcopy(genome)
    child.nodes[0].bias += 1.0
    add_gene(child, 50, random.Random(0))
    connect(child, -1, 50, 1.0)
    connect(child, 50, 0, 1.0)
    former = net.phenotype
    with pytest.raises(ValueError, match="as if nothing"):
        with net.graph.transaction():
            net.update(child)
            net.activate(SAMPLES)
            raise ValueError("as if nothing")
    net.update(genome)
    assert net.phenotype == former
    np.testing.assert_array_equal(net.activate(SAMPLES), outputs)
    np.testing.assert_array_equal(slope.value, kept)
    net.graph.check_invariants()


def test_a_node_of_the_user_refuses_in_a_fork_that_its_neuron_goes() -> None:
    genome, _ = grown(8, 0)
    add_gene(genome, 2, random.Random(1))
    connect(genome, -1, 2, 1.0)
    connect(genome, 2, 0, 1.0)
    fork = neat.Network.create(genome, SETTINGS).fork()
    mine = fork[2] * 2.0
    del genome.connections[2, 0]
    with pytest.raises(rg.EditError, match="'neuron 2' cannot be removed"):
        fork.update(genome)
    assert fork[2] is mine.parents[0]


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_what_is_held_of_a_neuron_follows_mutations(seed: int) -> None:
    """Its node, its genes, gradients to second order, and what users compute from it."""
    genome, mutations = grown(seed, 8)
    net = neat.Network.create(genome, SETTINGS)
    net.activate(SAMPLES)

    def derivatives(of: Any, key: int) -> list[rg.Var]:
        slope = rg.grad((of.outputs * of.outputs).sum(), of.genes(key))
        return [slope, rg.grad((slope * slope).sum(), of.genes(key)), of[key] * 2.0]

    held: dict[int, list[rg.Var]] = {}
    for _ in range(5):
        for key in net.phenotype.neurons:
            if key not in held:
                held[key] = [net[key], net.genes(key), *derivatives(net, key)]
        mutations.step(genome)
        net.update(genome)
        net.activate(SAMPLES)
        fresh = neat.Network.create(genome, SETTINGS)
        fresh.activate(SAMPLES)
        held = {key: held[key] for key in held if key in fresh}
        for key, (node, genes, *others) in held.items():
            assert net[key] is node
            assert net.genes(key) is genes
            for ours, theirs in zip(others, derivatives(fresh, key), strict=True):
                np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-9, atol=1e-9)
        net.graph.check_invariants()


def test_the_graph_of_a_network_goes_through_a_file(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="files: the extra `io`")
    genome, _ = grown(9, 20)
    net = neat.Network.create(genome, SETTINGS)
    outputs = net.activate(SAMPLES)
    net.graph.save(tmp_path / "net.safetensors")
    loaded = rg.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(loaded["outputs"].value, outputs)
    loaded["input -1"].set(np.zeros(len(SAMPLES)))
    np.testing.assert_array_equal(
        loaded["outputs"].value, net.activate(SAMPLES * np.array([0.0, 1.0, 1.0]))
    )


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_an_input_that_is_the_same_in_all_samples_may_be_one_number(seed: int, jit: bool) -> None:
    """Its gradient is the total of those of its samples, also where that was there before."""
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    for _ in range(25):
        mutations.step(genome)
    X = np.random.default_rng(seed).normal(size=(4, 3))

    def gradients(net: Any) -> list[Any]:
        total = (net.outputs * np.arange(1.0, 3.0)).sum()
        wanted = [net[-1], net[-2], *[net.genes(key) for key in net.phenotype.neurons]]
        return rg.grad(total, wanted, allow_unused=True)

    nets = [neat.Network.create(genome, SETTINGS) for _ in range(2)]
    for net in nets:
        net.graph.jit = jit
        net.activate(X)
    kept = gradients(nets[0])
    for _ in range(2):
        nets[0][-1].set(X[:1, 0])
        nets[1].activate(np.column_stack([np.full(4, X[0, 0]), X[:, 1:]]))
        for ours, other in zip(kept, gradients(nets[1]), strict=True):
            if ours is None:
                assert other is None
            elif ours.value.shape == (1,) != other.value.shape:
                np.testing.assert_allclose(ours.value, other.value.sum(keepdims=True), rtol=1e-12)
            else:
                np.testing.assert_allclose(ours.value, other.value, rtol=1e-12, atol=1e-15)
        for net in nets:
            net.activate(X)
        for ours, other in zip(kept, gradients(nets[1]), strict=True):
            if ours is not None:
                np.testing.assert_allclose(ours.value, other.value, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("inside", [True, False])
def test_who_holds_what_a_neuron_took_in_is_in_no_updates_way(inside: bool) -> None:
    genomes = []
    for links in ((-1, -2), (-1, -3), (-1,), (-1, -2, -3)):
        genome = new_genome(SETTINGS, random.Random(1))
        for source in (-1, -2, -3):
            genome.connections[source, 0].enabled = source in links
        genomes.append(genome)
    X = np.random.default_rng(1).normal(size=(4, 3))
    net = neat.Network.create(genomes[0], SETTINGS)
    net.activate(X)
    held = list(net.graph.nodes)
    with net.graph.transaction() if inside else nullcontext():
        for genome in genomes[1:]:
            net.update(genome)
            held += net.graph.nodes
    fresh = neat.Network.create(genomes[-1], SETTINGS)
    np.testing.assert_array_equal(net.activate(X), fresh.activate(X))
    net.graph.check_invariants()
    assert len(net.graph.nodes) == len(fresh.graph.nodes)
