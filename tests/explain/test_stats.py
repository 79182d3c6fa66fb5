"""``g.stats()``: figures that can be counted by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pytest

import reactgrad as rg
from tests.explain.models import chain_of_three, named


def test_size(g: rg.Graph) -> None:
    figures = asdict(g.stats())
    assert figures.pop("max_bytes") is None
    assert figures == dict.fromkeys(figures, 0)
    x = g.input([1.0, 2.0])
    y = x * x + g.param(3.0)
    stats = g.stats()
    assert (stats.nodes, stats.leaves, stats.edges) == (4, 2, 3), "x * x is one edge"
    del y
    assert g.stats().nodes == 1


def test_bytes_count_each_buffer_once(g: rg.Graph) -> None:
    x = g.input(np.zeros((100, 10)))
    assert g.stats().bytes == 8000
    views = [x.T, x[5:], x.reshape(1000), x.T[2:]]
    for view in views:
        view.value
    assert g.stats().bytes == 8000
    y = x + 1.0
    assert g.stats().bytes == 8000, "nothing computed, nothing there"
    y.value
    held = y.value
    assert g.stats().bytes == 16_000
    assert held.nbytes == 8000


def test_bytes_of_objects_functions_and_adopted_arrays(g: rg.Graph) -> None:
    x = g.input(np.zeros(100))
    twice = rg.lift(lambda v: np.concatenate([v, v]))(x)
    words = rg.lift(lambda v: ["word"] * 1000)(x)
    twice.value, words.value
    assert g.stats().bytes == 800 + 1600
    x.set(np.ones(100), copy=False)
    assert g.stats().bytes == 800 + 1600


@pytest.mark.trusting
def test_runs_and_plans_are_counted() -> None:
    g = rg.Graph()
    x, _, y = chain_of_three(g)
    y.value
    for turn in range(10):
        x.set(float(turn))
        y.value
    y.value
    stats = g.stats()
    assert (stats.runs, stats.ran) == (11, 22), "the last read found a clean value"
    assert stats.plan_hits + stats.plan_misses == stats.runs
    assert stats.plan_misses == 3, "the first read, and two that only see that reads repeat"
    assert stats.plans == 1
    assert g.stats() == stats, "asking counts for nothing"


def test_more_runs_than_the_journal_holds(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    before = g.stats()
    for turn in range(3000):
        x.set(float(turn))
        y.value
    stats = g.stats()
    assert (stats.runs - before.runs, stats.ran) == (3000, 6000)


def test_cut_off_failed_and_rebuilt(g: rg.Graph) -> None:
    x = g.input(1.2)
    f = rg.floor(x)
    f.cutoff = "equal"
    y = f + 1.0
    for value in (1.3, 1.4, 2.5):
        x.set(value)
        y.value
    assert (g.stats().cut_off, g.stats().ran) == (1, 5)
    bad = named(rg.lift(lambda v: 1 / (v - 2.5))(x), "bad")
    with pytest.raises(ZeroDivisionError):
        bad.value
    assert g.stats().failed == 1
    w = g.param(2.0)
    square = w * w
    rg.tanh(square).backward(retain_graph=False)
    square.value
    assert g.stats().rebuilt == 1


@pytest.mark.parametrize("turns", [1, 6])
def test_a_read_inside_a_node_is_not_counted_twice(g: rg.Graph, turns: int) -> None:
    x = g.input(1.0)
    inner = x * 2.0
    outer = rg.lift(lambda v: v + inner.value)(x)
    last = outer + 1.0
    expected = 0
    for turn in range(turns):
        x.set(float(turn))
        expected += len(g.forward(last).ran)
    stats = g.stats()
    assert (stats.runs, stats.ran) == (turns, expected)
    assert expected == 3 * turns


def test_observers(g: rg.Graph) -> None:
    y = g.input(1.0) + 1.0
    handles = [y.observe(lambda old, new: None) for _ in range(3)]
    assert g.stats().observers == 3
    handles[0].cancel()
    assert g.stats().observers == 2


def test_a_snapshot_is_immutable_and_does_not_follow(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    stats = g.stats()
    with pytest.raises(FrozenInstanceError):
        stats.nodes = 5  # type: ignore[misc]
    y.value
    x.set(2.0)
    assert stats.ran == 0
    assert g.stats().ran == 2


def test_text(g: rg.Graph) -> None:
    x = g.input(np.zeros(1000))
    y = x + 1.0
    y.value
    lines = str(g.stats()).splitlines()
    assert lines[0] == "nodes      3 (2 of them leaves), 2 edges"
    assert lines[1] == "values     15.6 KiB"
    assert lines[2] == "runs       1: ran 1, cut off 0, rebuilt 0, failed 0"
