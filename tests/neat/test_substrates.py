"""HyperNEAT and ES-HyperNEAT: the weights that a CPPN gives point by point, and quadtrees one by one."""

from __future__ import annotations

import random
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.demo import neat_config
from tests.neat.mutations import neat_python

FUNCTIONS = "sin gauss tanh identity sigmoid abs"
INPUTS = [(-1.0, -1.0), (0.0, -1.0), (1.0, -1.0)]
OUTPUTS = [(-0.5, 1.0), (0.5, 1.0)]
HIDDEN = [[(-0.5, -0.2), (0.5, -0.2)], [(-0.5, 0.2), (0.0, 0.2), (0.5, 0.2)]]


def settings(inputs: int = 5, outputs: int = 1) -> Any:
    return neat_config(
        num_inputs=inputs,
        num_outputs=outputs,
        num_hidden=3,
        pop_size=6,
        activation_options=FUNCTIONS,
        activation_default="random",
    )


def painters(seed: int, config: Any) -> dict[int, Any]:
    found = neat_python.Population(config, seed=seed).population
    for genome in found.values():
        for _ in range(4):
            genome.mutate_add_node(config.genome_config)
            genome.mutate_add_connection(config.genome_config)
    return found


def weight_of(cppn: Any, source: Any, target: Any, output: int = 0, bias: bool = True) -> float:
    answer = cppn.activate([*source, *target, *([1.0] if bias else [])])[output]
    if abs(answer) <= 0.2:
        return 0.0
    return float((answer - np.sign(answer) * 0.2) / 0.8 * 5.0)


@pytest.mark.parametrize(("inputs", "outputs"), [(5, 1), (4, 1), (5, 2)])
def test_weights_are_those_of_the_cppn_point_by_point(inputs: int, outputs: int) -> None:
    config = settings(inputs, outputs)
    cppns = painters(1, config)
    substrate = neat.Substrate(INPUTS, OUTPUTS, HIDDEN)
    weights, biases = substrate.weights(cppns, config)
    layers = [INPUTS, *HIDDEN, OUTPUTS]
    assert [one.shape for one in weights] == [(6, 3, 2), (6, 2, 3), (6, 3, 2)]
    for i, genome in enumerate(cppns.values()):
        cppn = neat_python.nn.FeedForwardNetwork.create(genome, config)
        for k, (first, second) in enumerate(pairwise(layers)):
            for a, b in product(range(len(first)), range(len(second))):
                expected = weight_of(cppn, first[a], second[b], bias=inputs == 5)
                assert weights[k][i, a, b] == pytest.approx(expected, abs=1e-9)
            for b, place in enumerate(second):
                expected = weight_of(cppn, (0.0, 0.0), place, 1) if outputs == 2 else 0.0
                assert biases[k][i, b] == pytest.approx(expected, abs=1e-9)


def test_outputs_of_many_are_those_of_each_network() -> None:
    config = settings(5, 2)
    cppns = painters(2, config)
    substrate = neat.Substrate(INPUTS, OUTPUTS, HIDDEN, activation="sigmoid")
    X = np.random.default_rng(1).normal(size=(7, 3))
    found = substrate.evaluate(cppns, X, config)
    assert found.shape == (6, 7, 2)
    for genome, value in zip(cppns.values(), found, strict=True):
        net = substrate.network(genome, config)
        np.testing.assert_allclose(net.activate(X), value, rtol=1e-9, atol=1e-12)
        assert net.phenotype.outputs == (0, 1)
    slope = rg.grad(rg.mean(net.outputs), net.genes(0))
    assert slope.shape == net.genes(0).shape
    assert repr(substrate) == "<Substrate: layers of 3, 2, 3, 2>"


def by_quadtrees(
    genome: Any, config: Any, depths: tuple[int, int], iterations: int, recurrent: bool
) -> dict[Any, float]:
    """Risi and Stanley (2012), one point and one square after the other, with neat-python."""
    cppn = neat_python.nn.FeedForwardNetwork.create(genome, config)

    def query(start: Any, end: Any, outgoing: bool) -> float:
        source, target = (start, end) if outgoing else (end, start)
        return weight_of(cppn, source, target)

    def divide(start: Any, x: float, y: float, width: float, level: int, outgoing: bool) -> Any:
        half = width / 2.0
        middles = [(x + a * half, y + b * half) for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
        parts = [[at, query(start, at, outgoing), half, []] for at in middles]
        varies = np.var([one[1] for one in parts]) > 0.5
        if level < depths[0] or (level < depths[1] and varies):
            for one in parts:
                one[3] = divide(start, one[0][0], one[0][1], half, level + 1, outgoing)
        return parts

    def leaves(part: Any) -> list[float]:
        if not part[3]:
            return [part[1]]
        return [weight for one in part[3] for weight in leaves(one)]

    def extract(start: Any, parts: Any, around: float, outgoing: bool) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for part in parts:
            (x, y), weight, width, inner = part
            if np.var(leaves(part)) > 0.03:
                found |= extract(start, inner, width, outgoing)
                continue
            aside = [
                abs(weight - query(start, (x + a * around, y + b * around), outgoing))
                for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))
            ]
            band = max(min(aside[:2]), min(aside[2:]))
            pair = (start, (x, y)) if outgoing else ((x, y), start)
            if band > 0.3 and weight != 0.0 and (recurrent or pair[0][1] < pair[1][1]):
                found[pair] = weight
        return found

    def grown(start: Any, outgoing: bool) -> dict[Any, float]:
        return extract(start, divide(start, 0.0, 0.0, 1.0, 1, outgoing), 1.0, outgoing)

    links: dict[Any, float] = {}
    explored: set[Any] = set()
    starts = list(INPUTS)
    for _ in range(iterations + 1):
        for start in starts:
            links |= grown(start, True)
        explored |= set(starts)
        starts = [end for end in dict.fromkeys(end for _, end in links) if end not in explored]
    for start in OUTPUTS:
        links |= grown(start, False)
    reached, leading = set(INPUTS), set(OUTPUTS)
    for _ in links:
        reached |= {b for a, b in links if a in reached}
        leading |= {a for a, b in links if b in leading}
    return {
        pair: weight
        for pair, weight in links.items()
        if pair[0] in reached and pair[1] in leading and pair[1] not in INPUTS
    }


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_neurons_are_found_where_quadtrees_one_by_one_find_them(seed: int, recurrent: bool) -> None:
    config = settings()
    random.seed(seed)
    genome = painters(seed, config)[1]
    depths, iterations = (seed % 2 + 1, 2), seed % 2 + 1
    substrate = neat.EvolvableSubstrate(
        INPUTS,
        OUTPUTS,
        initial_depth=depths[0],
        max_depth=depths[1],
        iteration_level=iterations,
        recurrent=recurrent,
    )
    found = substrate.connections(genome, config)
    expected = by_quadtrees(genome, config, depths, iterations, recurrent)
    assert found.keys() == expected.keys()
    for pair, weight in expected.items():
        assert found[pair] == pytest.approx(weight, abs=1e-9)
    net = substrate.network(genome, config)
    assert type(net) is (neat.RecurrentNetwork if recurrent else neat.Network)
    assert sum(len(one.sources) for one in net.phenotype.neurons.values()) == len(found)
    assert len(net.activate([1.0, -0.5, 0.2])) == 2


def test_without_a_compiler_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from reactgrad.neat import _query

    config = settings()
    genome = painters(1, config)[2]
    substrate = neat.EvolvableSubstrate(INPUTS, OUTPUTS)
    fast = substrate.connections(genome, config)
    monkeypatch.setattr(_query, "are_compiled", lambda programs: False)
    slow = substrate.connections(genome, config)
    assert slow.keys() == fast.keys()
    assert all(slow[pair] == pytest.approx(fast[pair], abs=1e-9) for pair in fast)


def test_messages() -> None:
    config, narrow = settings(), neat_config(num_inputs=3)
    genome = neat_python.Population(narrow, seed=1).population[1]
    with pytest.raises(rg.ShapeError, match="Set num_inputs = 4 in its config, or 5 for a bias"):
        neat.Substrate(INPUTS, OUTPUTS).network(genome, narrow)
    with pytest.raises(rg.ShapeError, match=r"\(neurons, coordinates\), not \(2,\)"):
        neat.Substrate([1.0, 2.0], OUTPUTS)
    with pytest.raises(rg.ShapeError, match="different numbers of coordinates"):
        neat.Substrate([[1.0]], OUTPUTS)
    with pytest.raises(rg.DTypeError, match="finite numbers"):
        neat.Substrate([[np.nan, 1.0]], OUTPUTS)
    with pytest.raises(rg.DTypeError, match="arrays of numbers"):
        neat.Substrate([["a", "b"]], OUTPUTS)
    with pytest.raises(rg.DTypeError, match="activation='bent'"):
        neat.Substrate(INPUTS, OUTPUTS, activation="bent")
    with pytest.raises(rg.DTypeError, match=r"threshold=1\.5"):
        neat.Substrate(INPUTS, OUTPUTS, threshold=1.5)
    with pytest.raises(rg.ShapeError, match=r"shape \(samples, 3\)"):
        neat.Substrate(INPUTS, OUTPUTS).evaluate([genome], [1.0, 2.0, 3.0], config)
    with pytest.raises(rg.ShapeError, match="divides a square"):
        neat.EvolvableSubstrate([[1.0]], OUTPUTS)
    with pytest.raises(rg.DTypeError, match="depths are 1 or more"):
        neat.EvolvableSubstrate(INPUTS, OUTPUTS, initial_depth=3, max_depth=2)
    with pytest.raises(rg.DTypeError, match="activation='bent'"):
        neat.EvolvableSubstrate(INPUTS, OUTPUTS, activation="bent")
    assert "depth 2" in repr(neat.EvolvableSubstrate(INPUTS, OUTPUTS))
