"""Depth costs no stack and width no more than its edges (rule E5)."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import reactgrad as rg


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """A stack that has room for the calls of the engine, and for no recursion over a graph."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    yield
    sys.setrecursionlimit(limit)


def chain(x: rg.Var, length: int) -> rg.Var:
    for _ in range(length):
        x = x + 1.0
    return x


@pytest.mark.slow
@pytest.mark.usefixtures("shallow_stack")
def test_nothing_recurses_over_a_chain(g: rg.Graph) -> None:
    length = 3000
    x = g.param(1.0)
    y = chain(x, length)
    assert len(g.plan(y)) == length
    assert y.is_stale
    assert float(y.value) == 1.0 + length
    x.set(2.0)
    assert len(g.forward(y).ran) == length
    gradient = rg.grad(y, x)
    assert float(gradient.value) == 1.0
    y.backward()
    assert float(x.grad) == 1.0
    assert y.requires_grad
    assert "clean" in repr(y)
    assert str(len(g)) in repr(g)
    g.forget_marks()
    assert not y.is_stale
    assert not g.forward(y).ran
    g.check_invariants()
    first = y
    while first.parents[0] is not x:
        first = first.parents[0]
    with pytest.raises(rg.CycleError) as caught:
        first.replace_parent(0, y)
    assert len(caught.value.path) == length + 1
    y.backward(retain_graph=False)
    assert float(first.value) == 3.0
    assert len(g.last_run.rebuilt) == 1
    del gradient
    z = chain(x, length)
    x.set(5.0)
    z.value
    del caught, first, y, z
    gc.collect()
    assert len(g) <= 3


@pytest.mark.usefixtures("shallow_stack")
def test_nothing_recurses_over_a_chain_of_products_or_its_second_derivative(g: rg.Graph) -> None:
    x = g.param(1.0)
    y = x
    for _ in range(300):
        y = rg.sin(y) * 1.01
    slope = rg.grad(y, x)
    bend = rg.grad(slope, x)
    assert np.isfinite(float(bend.value))
    x.set(0.5)
    g.forward(y, slope, bend)
    g.check_invariants()


def test_a_failure_at_the_bottom_of_a_chain_and_its_retry(g: rg.Graph) -> None:
    broken = True

    def moody(value: float) -> float:
        if broken:
            raise ValueError("no")
        return value

    start = rg.lift(moody, shape=())(g.input(1.0))
    y = chain(start, 2000)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            y.value
    broken = False
    assert len(g.forward(y, retry=True).ran) == 2001


@pytest.mark.slow
def test_a_chain_of_a_million_nodes_is_built_read_differentiated_printed_and_dropped() -> None:
    length = 1_000_000
    g = rg.Graph()
    x = g.param(1.0)
    y = chain(x, length)
    assert len(g) == length + 2
    y.value
    assert len(g._scheduler.last_run.ran) == length
    assert float(y.value) == 1.0 + length
    for i in range(3):  # the third time by a plan
        x.set(float(i))
        assert float(y.value) == i + length
        assert len(g._scheduler.last_run.ran) == length
    y.backward()
    assert float(x.grad) == 1.0
    assert repr(y).startswith("<Var")
    assert "1000002" in repr(g) or str(len(g)) in repr(g)
    assert y.value_version == 4
    middle = g._handle(length // 2)
    assert middle.value_version == 4
    assert not y.is_stale
    del middle
    del y
    assert len(g) == 1


def test_forty_stacked_diamonds_run_each_node_once(g: rg.Graph) -> None:
    levels = 40
    calls: list[int] = []
    x = g.param(1.0)
    y: rg.Var = x
    double = rg.lift(lambda v: calls.append(1) or v * 0.5, shape=(), vjp=lambda g, a, v: (g * 0.5,))
    for _ in range(levels):
        y = double(y) + rg.sin(y)
    for i in range(4):
        x.set(float(i))
        calls.clear()
        assert len(g.forward(y).ran) == 3 * levels
        assert len(calls) == levels
    size = len(g)
    gradient = rg.grad(y, x)
    assert len(g) < size + 10 * levels
    assert len(g.forward(gradient).ran) < 10 * levels
    x.set(9.0)
    ran = g.forward(y, gradient).ran
    assert len({id(v) for v in ran}) == len(ran) < 13 * levels


def test_a_wide_fan_in_and_fan_out_runs_and_differentiates_each_node_once(g: rg.Graph) -> None:
    x = g.param(2.0)
    parts = [x * float(i) for i in range(2000)]
    total = rg.stack(parts).sum()
    assert float(total.value) == 2.0 * sum(range(2000))
    assert float(rg.grad(total, x).value) == sum(range(2000))
    x.set(1.0)
    assert len(g.forward(total).ran) == 2002


def test_stopping_in_the_middle_of_a_long_read_keeps_what_was_done(g: rg.Graph) -> None:
    stop = False

    def interrupt(value: float) -> float:
        if stop:
            raise KeyboardInterrupt
        return float(value)

    x = g.input(0.0)
    y = chain(rg.lift(interrupt, shape=())(chain(x, 500)), 500)
    for i in range(5):
        x.set(float(i))
        y.value
    stop = True
    x.set(50.0)
    with pytest.raises(KeyboardInterrupt):
        y.value
    assert len(g.last_run.ran) == 500
    stop = False
    assert len(g.forward(y).ran) == 501
    assert float(y.value) == 1050.0
