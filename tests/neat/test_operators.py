"""Genomes as arrays after every operator: valid, and with neat-python's outputs, over 10,000 random mutations."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactgrad import neat
from reactgrad.demo import neat_config
from reactgrad.neat import _program
from reactgrad.neat._genome import forget
from tests.neat.mutations import TAME, neat_python
from tests.neat.test_population import assert_valid

pytestmark = pytest.mark.skipif(
    not _program.is_compiled(), reason="there was no compiler when the package was built"
)
MUTATIONS = int(os.environ.get("REACTGRAD_MUTATIONS", "2000"))


def config_with(feed_forward: bool, **changes: Any) -> Any:
    options = {
        "num_inputs": 3,
        "num_outputs": 2,
        "num_hidden": 1,
        "pop_size": 12,
        "fitness_threshold": 1e9,
        "feed_forward": feed_forward,
        "enabled_mutate_rate": 0.05,
        "activation_options": " ".join(TAME),
        "activation_mutate_rate": 0.1,
        "response_mutate_rate": 0.1,
        "response_mutate_power": 0.1,
    }
    return neat_config(**{**options, **changes})


def alone(config: Any, **rates: float) -> Any:
    """The genome config with one kind of mutation of the structure, which then is certain."""
    found = config.genome_config
    for name in ("node_add", "node_delete", "conn_add", "conn_delete"):
        setattr(found, f"{name}_prob", rates.get(name, 0.0))
    forget(found)
    return found


def begun(seed: int, feed_forward: bool) -> tuple[Any, list[Any]]:
    population = neat.Population(config_with(feed_forward), seed=seed)
    config = population.config
    reproduction = population.reproduction
    tracker = getattr(reproduction, "innovation_tracker", None)
    if tracker is not None:
        config.genome_config.innovation_tracker = tracker
    return config, list(population.population.values())


@pytest.mark.parametrize("feed_forward", [True, False])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**20), kinds=st.lists(st.sampled_from(range(6)), max_size=25))
def test_genomes_are_valid_after_every_operator(
    feed_forward: bool, seed: int, kinds: list[int]
) -> None:
    config, genomes = begun(seed, feed_forward)
    random.seed(seed)
    for step, kind in enumerate(kinds):
        genome = genomes[step % 3]
        if kind == 5:
            first, second = genomes[step % 3], genomes[(step + 1) % 3]
            first.fitness, second.fitness = random.random(), random.random()
            child = type(genome)(100 + step)
            child.configure_crossover(first, second, config.genome_config)
            genomes[step % 3] = genome = child
        else:
            names = ("node_add", "node_delete", "conn_add", "conn_delete", "")
            genome.mutate(alone(config, **{names[kind]: 1.0}))
        assert_valid(genome, config)


def outputs_agree(genome: Any, config: Any, samples: Any, feed_forward: bool) -> None:
    plain = genome.plain()
    name = "FeedForwardNetwork" if feed_forward else "RecurrentNetwork"
    theirs = getattr(neat_python.nn, name).create(plain, config)
    ours = getattr(neat, name).create(genome, config)
    for one in samples:
        np.testing.assert_allclose(ours.activate(one), theirs.activate(one), rtol=1e-12, atol=1e-12)
    if feed_forward:
        together = neat.evaluate([genome], samples, config).outputs[0]
        expected = [theirs.activate(one) for one in samples]
        np.testing.assert_allclose(together, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("feed_forward", [True, False])
def test_random_mutations_compute_what_neat_python_does(feed_forward: bool) -> None:
    """10,000 of them with REACTGRAD_MUTATIONS=10000: 1e-12 after each, in arrays of samples, too."""
    config, genomes = begun(1, feed_forward)
    genome = genomes[0]
    kinds = ("node_add", "node_delete", "conn_add", "conn_delete", "")
    draw = random.Random(2)
    samples = np.random.default_rng(3).uniform(-1.0, 1.0, size=(4, 3)).tolist()
    for _ in range(MUTATIONS // 2):
        nodes, _ = genome.size()
        kind = draw.choice(kinds if nodes < 14 else ("node_delete", "conn_delete", ""))
        genome.mutate(alone(config, **{kind: 1.0}))
        outputs_agree(genome, config, samples, feed_forward)
    assert_valid(genome, config)
