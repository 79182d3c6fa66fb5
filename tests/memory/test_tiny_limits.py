"""Under limits that hold no two values a read of depth n rebuilds some n**2 values, and ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Level = Callable[[rg.Var, rg.Var], tuple[rg.Var, rg.Var]]

LEVELS: dict[str, Level] = {
    "ops": lambda a, b: (rg.sin(a) * b, rg.sin(b) * a),
    "views": lambda a, b: (rg.tanh(a[::-1]) * b, (a + b)[::-1]),
    "functions": lambda a, b: (rg.lift(lambda v, w: v * np.sin(w))(a, b), rg.sin(a) * b),
    "reads": lambda a, b: (rg.lift(lambda v: v * b.value)(a), rg.lift(lambda v: v + a.value)(b)),
}


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.BudgetWarning)
        yield


def pair(g: rg.Graph, level: Level, depth: int) -> tuple[rg.Var, rg.Var]:
    a = x = g.param([0.5, 1.0, 1.5])
    b = g.param([0.3, 0.2, 0.1])
    for _ in range(depth):
        a, b = level(a, b)
    return x, a


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 100])
@pytest.mark.parametrize("level", LEVELS)
def test_a_first_read_rebuilds_a_square_of_its_depth(level: str, limit: int) -> None:
    def rebuilt(depth: int) -> int:
        _, y = pair(rg.Graph(max_bytes=limit), LEVELS[level], depth)
        _, expected = pair(rg.Graph(), LEVELS[level], depth)
        assert y.value.tobytes() == expected.value.tobytes()
        run = y.graph.last_run
        assert len(run.rebuilt) <= len(run.ran) ** 2
        y.graph.check_invariants()
        return len(run.rebuilt)

    assert rebuilt(32) < 5.5 * rebuilt(16)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, rg.Threads(2)])
def test_a_gradient_rebuilds_a_square_of_its_depth(executor: Any) -> None:
    def rebuilt(depth: int) -> int:
        x, y = pair(rg.Graph(max_bytes=0), LEVELS["ops"], depth)
        z, expected = pair(rg.Graph(), LEVELS["ops"], depth)
        gradient = rg.grad(y.sum(), x)
        run = y.graph.forward(gradient, executor=executor)
        assert gradient.value.tobytes() == rg.grad(expected.sum(), z).value.tobytes()
        assert len(run.rebuilt) <= len(run.ran) ** 2
        assert not y.graph._scheduler.awaited
        assert not y.graph._scheduler.locked
        return len(run.rebuilt)

    assert rebuilt(12) < 5.5 * rebuilt(6)


@pytest.mark.slow
def test_each_of_many_reads_rebuilds_a_part_of_that() -> None:
    g = rg.Graph(max_bytes=0)
    _, y = pair(g, LEVELS["ops"], 10)
    nodes = [node for node in g.nodes if node.parents]
    y.value
    for node in nodes:
        node.value
        assert len(g.last_run.rebuilt) <= len(nodes) ** 1.5 + 2 * len(nodes)
    assert len(g.forward(*nodes).rebuilt) <= len(nodes) ** 1.5 + 2 * len(nodes)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 200])
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_with_gradients_end(seed: int, limit: int) -> None:
    def build(g: rg.Graph) -> list[rg.Var]:
        pick = Random(seed)
        nodes = [g.param(np.array([0.5, 0.3, 0.1]) * (i + 1)) for i in range(3)]
        for _ in range(40):
            x, y = pick.choice(nodes[-12:]), pick.choice(nodes)
            kinds = (rg.sin(x) * y, x + y, x * y * 0.1, rg.tanh(x) - y[::-1])
            nodes.append(pick.choice(kinds))
        gradients = rg.grad(nodes[-1].sum(), nodes[:3], allow_unused=True)
        return [nodes[0], nodes[-1], *[one for one in gradients if one is not None]]

    x, *tight = build(rg.Graph(max_bytes=limit))
    z, *free = build(rg.Graph())
    for value in ([0.5, 0.3, 0.1], [0.1, 0.2, 0.3]):
        x.set(value)
        z.set(value)
        run, other = x.graph.forward(*tight), z.graph.forward(*free)
        assert len(run.ran) == len(other.ran)
        assert len(run.rebuilt) <= len(x.graph) ** 2
        for one, two in zip(tight, free, strict=True):
            assert one.value.tobytes() == two.value.tobytes()


@pytest.mark.slow
def test_a_limit_that_fits_is_kept_in_a_deep_gradient() -> None:
    """The rule is for reads that rebuild without end: others release what they await."""
    size, room = 40_000, 8
    g = rg.Graph(max_bytes=room * size)
    w = g.param(np.linspace(0.1, 1.0, size // 8))
    y = w
    for _ in range(80):
        y = rg.tanh(y) * 1.1
    loss = y.sum()
    for _ in range(2):
        run = loss.backward(retain_graph=False)
        assert 0 < len(run.rebuilt) < 5 * len(g)
        assert g.stats().peak_bytes <= room * size
