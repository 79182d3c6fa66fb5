"""Populations: each genome's outputs are those of its own network; what is alike runs once."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reactgrad import neat
from tests.neat.mutations import TAME, Mutations, config, expressed, new_genome

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
    assert len(evaluator.graph) == len(once.graph)


def test_pairs_as_neat_python_gives_them() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    result = neat.evaluate([(1, genome), (2, genome)], X, SETTINGS)
    assert (result.ran, result.neurons) == (2, 4)
    np.testing.assert_array_equal(result.outputs[0], result.outputs[1])
