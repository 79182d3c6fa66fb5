"""Mutating and forking for long keeps nothing of what was."""

from __future__ import annotations

import copy
import gc
import os
import random
import weakref
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
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


@pytest.mark.slow
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


@pytest.mark.slow
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


# What is in them for continuous integration; the whole, some minutes: 100_000 and 10_000.
EDITS = int(os.environ.get("REACTGRAD_EDITS", "3000"))
FORKS = int(os.environ.get("REACTGRAD_FORKS", "300"))


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def slopes_of(net: Any, total: Any) -> list[Any]:
    found = rg.grad(total, [net.genes(key) for key in (0, 1)])
    return [one.value for one in found]


@pytest.mark.slow
def test_many_edits_leave_nothing_behind() -> None:
    """Away from a genome by ten mutations and back to it, again and again; gradients follow."""
    draw = random.Random(3)
    home = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME, ("sum",))
    for _ in range(20):
        mutations.step(home)
    net = neat.Network.create(home, SETTINGS)
    total = net.outputs.sum()
    counts = []
    for turn in range(EDITS // 11):
        away = copy.deepcopy(home)
        mutations.next_key = 100  # so that nothing grows with the names
        for _ in range(10):
            mutations.step(away)
            net.update(away)
        net.activate(SAMPLES)
        slopes_of(net, total)
        net.update(home)
        outputs, slopes = net.activate(SAMPLES), slopes_of(net, total)
        if turn in (EDITS // 55, EDITS // 11 - 1):
            counts.append((len(net.graph), len(net.graph._scheduler.topology.parents), objects()))
    (nodes, slots, there), (nodes_after, slots_after, there_after) = counts
    assert nodes_after - nodes <= 50  # gradients by genes that are gone go some at a time
    assert slots_after <= slots * 2  # rows are used again
    assert there_after - there < 1500
    fresh = neat.Network.create(home, SETTINGS)
    np.testing.assert_array_equal(outputs, fresh.activate(SAMPLES))
    for ours, other in zip(slopes, slopes_of(fresh, fresh.outputs.sum()), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_many_forks_of_a_family_leave_nothing_behind() -> None:
    """Children and grandchildren are evaluated and forgotten; the first parent stays."""
    draw = random.Random(4)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    for _ in range(20):
        mutations.step(genome)
    parent = neat.Network.create(genome, SETTINGS)
    outputs = parent.activate(SAMPLES)
    graphs = []
    counts = []
    for turn in range(FORKS // 2):
        net, changed = parent, copy.deepcopy(genome)
        mutations.next_key = 100
        for _ in range(2):
            for _ in range(3):
                mutations.step(changed)
            net = net.fork(changed)
            graphs.append(weakref.ref(net.graph))
            assert net.activate(SAMPLES).shape == outputs.shape
        del net
        if turn in (FORKS // 10, FORKS // 2 - 1):
            counts.append((len(parent.graph), objects() - len(graphs)))
    assert not any(ref() is not None for ref in graphs)
    (nodes, there), (nodes_after, there_after) = counts
    assert nodes_after == nodes
    assert there_after - there < 300
    parent.activate(SAMPLES)
    assert parent.ran == ()
