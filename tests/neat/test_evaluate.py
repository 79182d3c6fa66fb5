"""Populations: each genome's outputs are those of its own network; what is alike runs once."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactgrad import neat
from reactgrad.neat import _compiled
from tests.neat.mutations import TAME, Mutations, config, expressed, neat_python, new_genome

SETTINGS = config()
X = np.random.default_rng(1).normal(size=(5, 3))


def computations(genomes: list[Any]) -> set[Any]:
    """All neurons of all genomes, each spelled out down to the inputs."""
    found: set[Any] = set()
    for genome in genomes:
        neurons = expressed(genome, SETTINGS)
        spelled: dict[int, Any] = {key: key for key in SETTINGS.genome_config.input_keys}

        def spell(key: int, neurons: Any = neurons, spelled: Any = spelled) -> Any:
            if key not in spelled:
                *own, links = neurons[key]
                spelled[key] = (*own, tuple([(spell(source), weight) for source, weight in links]))
            return spelled[key]

        found |= {spell(key) for key in neurons}
    return found


def next_generation(genomes: list[Any], mutations: Mutations) -> list[Any]:
    children = copy.deepcopy(genomes)
    for one in children[1:]:
        for _ in range(mutations.draw.randint(0, 2)):
            mutations.step(one)
    return children


@given(st.integers(0, 2**32))
def test_a_population_runs_what_is_new_in_it_and_each_computation_once(seed: int) -> None:
    draw = random.Random(seed)
    ancestor = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    for _ in range(6):
        mutations.step(ancestor)
    genomes = [ancestor] * 3
    evaluator = neat.Evaluator(X, SETTINGS)
    known: set[Any] = set()
    for _ in range(4):
        genomes = next_generation(genomes, mutations)
        result = evaluator(genomes)
        present = computations(genomes)
        assert result.ran == len(present - known)
        assert result.neurons == sum(len(expressed(one, SETTINGS)) for one in genomes)
        for genome, outputs in zip(genomes, result.outputs, strict=True):
            fresh = neat.Network.create(genome, SETTINGS)
            np.testing.assert_array_equal(outputs, fresh.activate(X))
        known = present


@pytest.mark.parametrize("has_numba", [True, False])
@pytest.mark.parametrize("samples", [0, 1, 5])
def test_outputs_are_neat_pythons_with_and_without_compiled_loops(
    has_numba: bool, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiled, "_HAS_NUMBA", has_numba and _compiled._HAS_NUMBA)
    draw = random.Random(samples)
    genomes = [new_genome(SETTINGS, draw) for _ in range(8)]
    mutations = Mutations(SETTINGS, draw, TAME)
    evaluator = neat.Evaluator(X[:samples], SETTINGS)
    for _ in range(12):
        for one in genomes:
            mutations.step(one)
        for genome, outputs in zip(genomes, evaluator(genomes).outputs, strict=True):
            assert outputs.shape == (samples, 2)
            peer = neat_python.nn.FeedForwardNetwork.create(genome, SETTINGS)
            for ours, x in zip(outputs.tolist(), X, strict=False):
                assert ours == pytest.approx(peer.activate(x), rel=1e-12, abs=1e-12)


def test_functions_of_ones_own_run_and_an_error_in_one_forgets_nothing() -> None:
    settings = config()
    broken = False
    calls = 0

    def half(z: float) -> float:
        nonlocal calls
        calls += 1
        if broken:
            raise ZeroDivisionError("not today")
        return z / 2.0

    settings.genome_config.add_activation("half", half)
    settings.genome_config.add_aggregation("spread", lambda values: max(values) - min(values))
    genome = new_genome(settings, random.Random(2))
    genome.nodes[0].activation, genome.nodes[1].aggregation = "half", "spread"
    evaluator = neat.Evaluator(X, settings)
    first = evaluator([genome])
    assert (first.ran, calls) == (2, len(X))
    peer = neat_python.nn.FeedForwardNetwork.create(genome, settings)
    for ours, x in zip(first.outputs[0].tolist(), X, strict=True):
        assert ours == pytest.approx(peer.activate(x), rel=1e-12, abs=1e-12)
    child = copy.deepcopy(genome)
    child.nodes[0].bias += 1.0
    child.nodes[1].bias += 1.0
    broken = True
    with pytest.raises(ZeroDivisionError):
        evaluator([child])
    again = evaluator([genome])
    assert again.ran == 0
    assert again.outputs[0].tolist() == first.outputs[0].tolist()
    broken = False
    moved = evaluator([child])
    assert moved.ran == 2
    np.testing.assert_allclose(moved.outputs[0][:, 0], first.outputs[0][:, 0] + 0.5, rtol=1e-12)


def test_what_no_genome_has_any_more_goes() -> None:
    draw = random.Random(0)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    evaluator = neat.Evaluator(X, SETTINGS)
    for _ in range(50):
        mutations.step(genome)
        evaluator([genome])
    once = neat.Evaluator(X, SETTINGS)
    once([genome])
    assert len(evaluator) == len(once)


def test_pairs_as_neat_python_gives_them() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    result = neat.evaluate([(1, genome), (2, genome)], X, SETTINGS)
    assert (result.ran, result.neurons) == (2, 4)
    np.testing.assert_array_equal(result.outputs[0], result.outputs[1])
