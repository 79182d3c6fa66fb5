"""Mutating and forking for long keeps nothing of what was."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import pytest

from reactgrad import neat
from tests.neat.mutations import (
    TAME,
    Mutations,
    affected,
    config,
    expressed,
    neat_python,
    new_genome,
)

SETTINGS = config()
SAMPLES = [[0.1, -0.4, 2.0], [1.0, 2.0, 3.0]]


@pytest.mark.slow
def test_each_of_10_000_mutations_runs_what_it_reaches_and_leaves_nothing_behind() -> None:
    draw = random.Random(0)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    net = neat.Network.create(genome, SETTINGS)
    net.activate(SAMPLES)
    before = expressed(genome, SETTINGS)
    for _ in range(10_000):
        mutations.step(genome)
        net.update(genome)
        outputs = net.activate(SAMPLES)
        after = expressed(genome, SETTINGS)
        assert set(net.ran) == affected(before, after)
        before = after
        peer = neat_python.nn.FeedForwardNetwork.create(genome, SETTINGS)
        for ours, one in zip(outputs.tolist(), SAMPLES, strict=True):
            assert ours == pytest.approx(peer.activate(one), rel=1e-12, abs=1e-12)
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
