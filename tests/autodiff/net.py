"""A small network whose weights a subgraph closes over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Net:
    """Two layers; counts how often it was built."""

    def __init__(self, g: rg.Graph, width: int = 3) -> None:
        rng = np.random.default_rng(0)
        self.w = g.param(rng.normal(size=(2, width)))
        self.v = g.param(rng.normal(size=width))
        self.built = 0

    @rg.subgraph
    def __call__(self, x: Any) -> Any:
        self.built += 1
        return self.plain(x)

    def plain(self, x: Any) -> Any:
        return (rg.tanh(x @ self.w) * self.v).sum()


ROWS = np.array([[0.5, -1.0], [2.0, 0.25]])


@pytest.fixture(name="g")
def current_graph() -> Any:
    """A graph that is the current one while the test runs."""
    graph = rg.Graph()
    with graph:
        yield graph
    graph.check_invariants()
