"""Recurrent networks: neat-python's, step by step; unrolled, the same with gradients."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import TAME, Mutations, config, connect, neat_python, new_genome

SETTINGS = config(feed_forward=False)
SEQUENCE = np.random.default_rng(2).normal(size=(5, 3))


def grown(seed: int, steps: int) -> Any:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME, cycles=True)
    for _ in range(steps):
        mutations.step(genome)
    return genome


@given(st.integers(0, 2**32), st.integers(0, 30))
def test_each_step_is_neat_pythons(seed: int, steps: int) -> None:
    genome = grown(seed, steps)
    net = neat.RecurrentNetwork.create(genome, SETTINGS)
    peer = neat_python.nn.RecurrentNetwork.create(genome, SETTINGS)
    for _ in range(2):
        for one in SEQUENCE.tolist():
            np.testing.assert_allclose(
                net.activate(one), peer.activate(one), rtol=1e-12, atol=1e-12
            )
        net.reset()
        peer.reset()
    net.graph.check_invariants()


@given(st.integers(0, 2**32))
def test_unrolled_it_gives_what_steps_give_for_many_sequences_at_once(seed: int) -> None:
    net = neat.RecurrentNetwork.create(grown(seed, 15), SETTINGS)
    unrolled = net.unroll(5)
    sequences = np.stack([SEQUENCE, SEQUENCE[::-1], -SEQUENCE], axis=1)
    together = np.stack([net.activate(one) for one in sequences])
    np.testing.assert_array_equal(unrolled.activate(sequences), together)
    net.reset()
    alone = np.stack([net.activate(one.tolist()) for one in SEQUENCE])
    np.testing.assert_allclose(unrolled.activate(SEQUENCE), alone, rtol=1e-12, atol=1e-12)


def test_gradients_pass_time() -> None:
    genome = grown(11, 0)
    connect(genome, 0, 0, 0.7)
    net = neat.RecurrentNetwork.create(genome, SETTINGS)
    unrolled = net.unroll(4)
    unrolled.activate(SEQUENCE[:4])
    slope = rg.grad(unrolled[0, 3].sum(), net.genes(0)).value
    start = net.genes(0).value
    for i in range(len(start)):
        ends = []
        for step in (1e-6, -1e-6):
            net.genes(0).set(start + step * (np.arange(len(start)) == i))
            ends.append(unrolled.activate(SEQUENCE[:4])[-1, 0])
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-9)
    # The first step's input has a say in the last output.
    assert np.any(rg.grad(unrolled[0, 3].sum(), unrolled[-1, 0]).value)


def test_another_number_of_samples_needs_a_reset() -> None:
    net = neat.RecurrentNetwork.create(grown(3, 5), SETTINGS)
    net.activate(np.ones((2, 3)))
    with pytest.raises(rg.ShapeError, match="middle of 2 sequences"):
        net.activate(np.ones((3, 3)))
    net.reset()
    assert net.activate(np.ones((3, 3))).shape == (3, 2)
    with pytest.raises(rg.ShapeError, match="unrolled over 2 steps"):
        net.unroll(2).activate(np.ones((3, 3)))
    with pytest.raises(rg.DTypeError, match="at least 1"):
        net.unroll(0)


def test_genes_that_are_set_between_steps_leave_what_was() -> None:
    genome = grown(11, 0)
    connect(genome, 0, 0, 0.7)
    net = neat.RecurrentNetwork.create(genome, SETTINGS)
    peer = neat_python.nn.RecurrentNetwork.create(genome, SETTINGS)
    for one in SEQUENCE.tolist():
        assert net.activate(one) == pytest.approx(peer.activate(one), rel=1e-12)
        net.genes(0).set(net.genes(0).value * 1.1)
        at = next(i for i, node in enumerate(peer.node_evals) if node[0] == 0)
        key, activation, aggregation, bias, response, links = peer.node_evals[at]
        links = [(source, weight * 1.1) for source, weight in links]
        scaled = (key, activation, aggregation, bias * 1.1, response * 1.1, links)
        peer.node_evals[at] = scaled
    net.graph.check_invariants()


def test_a_step_that_fails_is_not_made() -> None:
    def shy(z: float) -> float:
        if z > 100.0:
            raise ValueError("too much")
        return z

    settings = config(feed_forward=False)
    settings.genome_config.add_activation("shy", shy)
    genome = new_genome(settings, random.Random(1))
    connect(genome, 0, 0, 0.7)
    genome.nodes[0].activation = "shy"
    nets = [neat.RecurrentNetwork.create(genome, settings) for _ in range(2)]
    for one in SEQUENCE.tolist():
        first, other = [net.activate(one) for net in nets]
        assert first == other
        with pytest.raises(ValueError, match="too much"):
            nets[0].activate([1e9 * np.sign(nets[0].genes(0).value[2]), 0.0, 0.0])
        with pytest.raises(rg.ShapeError, match="3 inputs"):
            nets[0].activate([0.0])


def test_sequences_that_are_no_numbers() -> None:
    unrolled = neat.RecurrentNetwork.create(grown(3, 5), SETTINGS).unroll(2)
    with pytest.raises(rg.DTypeError, match="no real numbers"):
        unrolled.activate([["a", "b", "c"], ["d", "e", "f"]])
    with pytest.raises(rg.ShapeError, match="make no array"):
        unrolled.activate([[1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]]])
