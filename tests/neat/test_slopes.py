"""Gradients without a graph are those of the graph, compiled or in NumPy; training of populations and sequences."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.neat import _fit, _slopes
from reactgrad.neat._program import FEED_FORWARD, RECURRENT, read
from reactgrad.neat._slopes import CompiledTape, PlainTape, genes_of, is_fast
from tests.neat.mutations import ACTIVATIONS, AGGREGATIONS, TAME, Mutations, config, new_genome

SETTINGS = config()
KINDS = [
    PlainTape,
    pytest.param(
        CompiledTape,
        marks=pytest.mark.skipif(
            not _slopes._COMPILED, reason="there was no compiler when the package was built"
        ),
    ),
]


def mutated(
    seed: int, cycles: bool = False, steps: int = 25, activations: Any = ACTIVATIONS
) -> Any:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, activations, AGGREGATIONS, cycles)
    for _ in range(steps):
        mutations.step(genome)
    return genome


def assert_close(found: Any, expected: Any) -> None:
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10 * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(25))
def test_gradients_are_those_of_the_graph(kind: Any, seed: int) -> None:
    genome = mutated(seed)
    program = read(FEED_FORWARD, genome, SETTINGS)
    rng = np.random.default_rng(seed)
    X, seeds = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    tape = kind(program)
    out = tape.forward(genes_of(program), np.ascontiguousarray(X.T[None]))
    net = neat.Network.create(genome, SETTINGS)
    expected = net.activate(X)
    if not np.isfinite(expected).all():
        pytest.skip("it overflows")
    np.testing.assert_allclose(out[0].T, expected, rtol=1e-9, atol=1e-12)
    slope = tape.backward(np.ascontiguousarray(seeds.T[None]), 1)
    total = (net.outputs * seeds).sum()
    genes = [net.genes(key) for key in net.phenotype.neurons]
    by_graph = [
        np.zeros(one.shape) if found is None else found.value
        for one, found in zip(genes, rg.grad(total, genes, allow_unused=True), strict=True)
    ]
    if np.isfinite(np.concatenate(by_graph)).all():
        assert_close(slope, np.concatenate(by_graph))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_gradients_through_time_are_those_of_the_unrolled_graph(kind: Any, seed: int) -> None:
    genome = mutated(seed, cycles=True, activations=TAME)
    for gene in genome.nodes.values():
        gene.aggregation = gene.aggregation if gene.aggregation != "product" else "sum"
    program = read(RECURRENT, genome, SETTINGS)
    rng = np.random.default_rng(seed)
    steps, samples = 6, 3
    X, seeds = rng.normal(size=(steps, samples, 3)), rng.normal(size=(steps, samples, 2))
    tape = kind(program)
    out = tape.forward(genes_of(program), np.ascontiguousarray(X.transpose(0, 2, 1)))
    net = neat.RecurrentNetwork.create(genome, SETTINGS)
    unrolled = net.unroll(steps)
    np.testing.assert_allclose(out.transpose(0, 2, 1), unrolled.activate(X), rtol=1e-9, atol=1e-12)
    slope = tape.backward(np.ascontiguousarray(seeds.transpose(0, 2, 1)), steps)
    terms = [
        (unrolled[key, t] * seeds[t, :, k]).sum()
        for t in range(steps)
        for k, key in enumerate(net.phenotype.outputs)
    ]
    genes = [net.genes(key) for key in net.phenotype.neurons]
    found = rg.grad(sum(terms), genes, allow_unused=True)
    by_graph = [
        np.zeros(one.shape) if slope is None else slope.value
        for one, slope in zip(genes, found, strict=True)
    ]
    assert_close(slope, np.concatenate(by_graph))


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_passes_a_window(kind: Any) -> None:
    """One window of the sequence, begun from the state before it, has the gradient of that window."""
    genome = mutated(3, cycles=True, activations=("tanh",))
    for gene in genome.nodes.values():
        gene.aggregation, gene.activation = "sum", "tanh"
    program = read(RECURRENT, genome, SETTINGS)
    genes = genes_of(program)
    x = np.random.default_rng(1).normal(size=(6, 3, 2))
    seeds = np.ones((6, 2, 2))
    tape = kind(program)
    tape.forward(genes, x)
    whole, cut = tape.backward(seeds, 6), tape.backward(seeds, 2)
    assert np.abs(whole - cut).max() > 1e-6
    # Each window, by differences of the genes in its own steps alone.
    net = neat.RecurrentNetwork.create(genome, SETTINGS)
    keys = list(net.phenotype.neurons)

    def outputs_of(moved: Any, begin: int) -> float:
        state = neat.RecurrentNetwork.create(genome, SETTINGS)
        for t in range(begin):
            state.activate(x[t].T)
        at = 0
        for key in keys:
            count = state.genes(key).size
            state.genes(key).set(moved[at : at + count])
            at += count
        return sum(float(state.activate(x[t].T).sum()) for t in (begin, begin + 1))

    for place in range(0, len(genes), 4):
        step = np.zeros_like(genes)
        step[place] = 1e-6
        slopes = [
            (outputs_of(genes + step, begin) - outputs_of(genes - step, begin)) / 2e-6
            for begin in (0, 2, 4)
        ]
        assert cut[place] == pytest.approx(sum(slopes), rel=1e-5, abs=1e-7)


def numbers(genome: Any) -> list[Any]:
    nodes = [(one.bias, one.response) for one in genome.nodes.values()]
    return [*nodes, *[one.weight for one in genome.connections.values()]]


def population(count: int, cycles: bool = False) -> dict[int, Any]:
    return {
        i: mutated(i, cycles=cycles, activations=("tanh", "sigmoid", "identity"))
        for i in range(count)
    }


def test_a_population_is_trained_as_each_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    monkeypatch.setattr(_fit, "_SHARED", 1)
    monkeypatch.setattr(rg, "get_num_threads", lambda: 3)
    together, alone = population(7), population(7)
    found = neat.fit(together, X, y, SETTINGS, steps=15)
    for (key, genome), (losses, net) in zip(alone.items(), found, strict=True):
        expected = neat.fit(genome, X, y, SETTINGS, steps=15)
        assert losses == expected.losses
        assert net.phenotype == expected.network.phenotype
        assert numbers(genome) == numbers(together[key])
        assert net.phenotype == neat.Network.create(genome, SETTINGS).phenotype


def test_compiled_training_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    sequences, wanted = rng.normal(size=(6, 4, 3)), rng.normal(size=(6, 4, 2))
    options = {"steps": 12, "write_back": False, "learning_rate": 0.02}
    genomes, loops = population(4), population(4, cycles=True)

    def train() -> list[Any]:
        return [
            *neat.fit(genomes, X, y, SETTINGS, **options),
            *neat.fit(loops, sequences, wanted, SETTINGS, recurrent=True, window=3, **options),
        ]

    before = [numbers(one) for one in (*genomes.values(), *loops.values())]
    fast = train()
    assert [numbers(one) for one in (*genomes.values(), *loops.values())] == before  # Baldwin
    monkeypatch.setattr(_slopes, "_COMPILED", False)
    assert not is_fast([])
    for one, other in zip(fast, train(), strict=True):
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-7)


def test_a_recurrent_genome_learns_to_remember() -> None:
    """The input before the present one, which needs memory; no window of one step can learn it."""
    settings = config(1, 1, feed_forward=False)
    genome = new_genome(settings, random.Random(1))
    Mutations(settings, random.Random(2), ("tanh",), ("sum",), cycles=True).add_node(genome)
    for gene in genome.nodes.values():
        gene.activation, gene.bias = "tanh", 0.1
    X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(30, 5, 1))
    y = np.zeros_like(X)
    y[1:] = X[:-1]
    first, second = copy.deepcopy(genome), copy.deepcopy(genome)
    losses, net = neat.fit(genome, X, y, settings, steps=400, learning_rate=0.02)
    assert type(net) is neat.RecurrentNetwork
    assert losses[-1] < losses[0] / 10.0
    made = neat.RecurrentNetwork.create(genome, settings)
    outputs = np.array([made.activate(one) for one in X])
    assert np.square(outputs - y).mean() == pytest.approx(losses[-1], rel=1e-9)
    short, _ = neat.fit(first, X, y, settings, steps=400, learning_rate=0.02, window=5)
    assert short[-1] < short[0] / 10.0
    ((hidden,),) = [[key for key in second.nodes if key != 0]]
    before = second.connections[-1, hidden].weight
    neat.fit(second, X, y, settings, steps=50, learning_rate=0.02, window=1)
    assert second.connections[-1, hidden].weight == before


def test_a_loss_of_ones_own_is_built_once_for_all() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    calls: list[Any] = []

    def loss(outputs: Any, y: Any) -> Any:
        calls.append(outputs.shape)
        return rg.mean(rg.square(outputs - y))

    own, plain = population(5), population(5)
    found = neat.fit(own, X, y, SETTINGS, steps=10, loss=loss)
    assert calls == [(20, 2)]
    for one, other in zip(found, neat.fit(plain, X, y, SETTINGS, steps=10), strict=True):
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-9)


def test_messages() -> None:
    genome, X, y = mutated(1), np.zeros((4, 3)), np.zeros((4, 2))
    with pytest.raises(rg.DTypeError, match=r"window=3.*networks with memory"):
        neat.fit(genome, X, y, SETTINGS, window=3)
    with pytest.raises(rg.ShapeError, match=r"X of 4 steps and 1 samples, and y of 3"):
        neat.fit(genome, X, y[:3], SETTINGS, recurrent=True)
    with pytest.raises(rg.ShapeError, match=r"y of shape \(4,\).*memory of 2 outputs"):
        neat.fit(genome, X, np.zeros(4), SETTINGS, recurrent=True)
    with pytest.raises(rg.DTypeError, match="It returns a scalar Var"):
        neat.fit(genome, X, y, SETTINGS, loss=lambda outputs, y: outputs)
    own = copy.deepcopy(SETTINGS)
    own.genome_config.add_activation("mine", lambda z: z)
    genome.nodes[0].activation = "mine"
    with pytest.raises(rg.GradientError, match="activation function .* is your own"):
        neat.fit(genome, X, y, own)
    assert neat.fit([], X, y, SETTINGS) == []
