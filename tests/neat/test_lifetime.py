"""Mutating and forking for long keeps nothing of what was."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import pytest

from reactgrad import neat
from tests.neat.mutations import TAME, Mutations, config, new_genome

SETTINGS = config()
SAMPLES = [[0.1, -0.4, 2.0], [1.0, 2.0, 3.0]]


@pytest.mark.slow
def test_after_10_000_mutations_the_graph_is_that_of_the_last_genome() -> None:
    draw = random.Random(0)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    net = neat.Network.create(genome, SETTINGS)
    for i in range(10_000):
        mutations.step(genome)
        net.update(genome)
        if i % 10 == 0:
            net.activate(SAMPLES)
    fresh = neat.Network.create(genome, SETTINGS)
    assert (net.activate(SAMPLES) == fresh.activate(SAMPLES)).all()
    assert len(net.graph) == len(fresh.graph)
    net.graph.check_invariants()


def test_a_dropped_network_goes_at_once() -> None:
    draw = random.Random(1)
    genome = new_genome(SETTINGS, draw)
    gc.collect()
    gc.disable()
    try:
        net: Any = neat.Network.create(genome, SETTINGS)
        net.activate(SAMPLES)
        child: Any = net.fork(genome)
        graphs = weakref.ref(net.graph), weakref.ref(child.graph)
        del net
        assert child.activate(SAMPLES).shape == (2, 2)
        del child
        assert [ref() for ref in graphs] == [None, None]
    finally:
        gc.enable()


def test_a_long_lineage_keeps_no_ancestor() -> None:
    draw = random.Random(2)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME, ("sum",))
    net = neat.Network.create(genome, SETTINGS)
    graphs = []
    for _ in range(200):
        mutations.step(genome)
        net = net.fork(genome)
        net.activate(SAMPLES)
        graphs.append(weakref.ref(net.graph))
    gc.collect()
    assert sum(ref() is not None for ref in graphs) == 1
    assert len(net.graph) == len(neat.Network.create(genome, SETTINGS).graph)
