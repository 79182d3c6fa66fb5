"""Random numbers are the same on every device: drawn by the graph's seed and their key, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api

from .stand_in import Counts

DRAWS: dict[str, Callable[[], Any]] = {
    "normal": lambda: rg.random.normal((3, 2)),
    "uniform": lambda: rg.random.uniform((4,)),
    "permutation": lambda: rg.random.permutation(5),
    "gamma": lambda: rg.random.gamma((3,), 2.0),
    "dropout": lambda: rg.dropout(rg.ones((4, 4)), 0.5),
}


def values(draw: Callable[[], Any], device: str) -> list[np.ndarray]:
    g = rg.Graph(device=device, rng=5)
    with g:
        node = draw()
        assert node.device == device
        found = [node.numpy()]
        node.touch()
        found.append(node.numpy())
        g.reseed(7)
        found.append(node.numpy())
    return found


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("device", ["fake:0", "fake:1", "strict"])
def test_draws(name: str, device: str) -> None:
    if device == "strict":
        strict = pytest.importorskip(
            "array_api_strict", reason="array-api-strict is in the dev extra"
        )
        register_array_api(strict, "strict")
    for one, other in zip(values(DRAWS[name], device), values(DRAWS[name], "cpu"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_draw_waits_only_when_it_is_drawn(counts: Counts) -> None:
    g = rg.Graph(device="fake:0")
    x = g.input(np.ones(4))
    with g:
        noise = rg.random.normal((4,))
    y = x + noise
    g.forward(y)
    counts.clear()
    for number in range(3):
        x.set(np.full(4, float(number)))
        g.forward(y)
    assert counts.syncs == 0
