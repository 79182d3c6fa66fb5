"""A Sequential in parts: values of k parts are kept, and gradients are those without, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.random.default_rng(0).normal(size=(400, 30))


def trained(segments: int | None) -> tuple[int, int, list[Any], list[int]]:
    """Return the bytes after the forward, the nodes rebuilt, all gradients, and sizes of a loop's graph."""
    g = rg.Graph()
    with g:
        layers = [one for i in range(8) for one in (rg.nn.Linear(30, 30, rng=i), rg.nn.Tanh())]
        net = rg.nn.Sequential(*layers)
        sizes: list[int] = []
        held = rebuilt = 0
        x = g.input(ROWS)
        for _ in range(4):
            net.zero_grad()
            y = net(x) if segments is None else rg.checkpoint_sequential(net, segments, x)
            loss = (y * y).sum()
            g.forward(loss)
            held = held or g.stats().bytes
            rebuilt = len(loss.backward().rebuilt)
            sizes.append(len(g))
            x.set(ROWS)
        return held, rebuilt, [one.grad for one in net.parameters()], sizes


def test_parts_keep_less_and_give_the_same_gradients() -> None:
    whole, none, grads, _ = trained(None)
    one, also_none, same, _ = trained(1)
    assert (none, also_none) == (0, 0)
    assert one == whole
    rest = {k: trained(k) for k in (2, 4, 8)}
    for held, rebuilt, found, sizes in rest.values():
        assert held < whole
        assert rebuilt > 0
        assert len(set(sizes[1:])) == 1
        for a, b, c in zip(grads, found, same, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)
    assert rest[4][0] < 0.6 * whole


def test_any_functions_are_taken(g: rg.Graph) -> None:
    x = g.input([0.5, -0.5], name="x")
    y = rg.checkpoint_sequential([rg.tanh, rg.exp, lambda v: v * 2.0], 2, x)
    np.testing.assert_array_equal(y.value, np.exp(np.tanh([0.5, -0.5])) * 2.0)


def test_parts_that_cannot_be_are_refused(g: rg.Graph) -> None:
    x = g.input(1.0)
    for segments in (0, 3, True, "2"):
        with pytest.raises(rg.DTypeError, match="an integer from 1 to that of the functions"):
            rg.checkpoint_sequential([rg.tanh, rg.exp], segments, x)  # type: ignore[arg-type]
