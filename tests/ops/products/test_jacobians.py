"""Jacobians through products: all directions in one pass, as ordinary nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 3))
V = RNG.normal(size=3)
W = RNG.normal(size=(3, 2, 4))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "einsum, first": lambda x: rg.einsum("abc,cad->bd", x, W),
    "einsum, second": lambda x: rg.einsum("cad,abc->bda", W, x),
    "einsum of both": lambda x: rg.einsum("abc,acd->dab", x, x),
    "axis of length 1": lambda x: rg.einsum("abc,abc->ca", x[:1], x),
    "diagonal": lambda x: rg.diagonal(x, 1, 2, 1) ** 2,
    "diagonal of one label": lambda x: rg.einsum("abb->ba", x) * 2.0,
    "diag": lambda x: rg.diag(x[0, 0], -1),
    "trace": lambda x: rg.trace(x, 0, 1, 2) * x[:, 0, 0],
    "triangle": lambda x: rg.tril(x) @ rg.triu(x, 1),
    "triangle of a vector": lambda x: rg.tril(x[0, 0]),
    "cross": lambda x: rg.cross(x, x[0, 1]),
    "cross of a vector": lambda x: rg.cross(x[0, 0], X),
    "kron": lambda x: rg.kron(x[0], x[1, :2]),
    "kron of a vector": lambda x: rg.kron(X[0], x[1, 0]),
    "vander": lambda x: rg.vander(x[0, 0], 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_direction_in_both_modes(name: str) -> None:
    g = rg.Graph()
    x = g.input(X)
    y = FUNCTIONS[name](x)
    columns = np.zeros((*y.shape, *X.shape))
    for at in np.ndindex(*X.shape):
        t = np.zeros(X.shape)
        t[at] = 1.0
        columns[(..., *at)] = rg.jvp(y, x, t).value
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(rg.jacobian(y, x, mode=mode).value, columns, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["einsum, first", "einsum, second", "diagonal", "trace", "triangle", "cross", "kron"]
)
def test_the_number_of_nodes_does_not_grow_with_the_directions(name: str) -> None:
    counts = []
    for n in (3, 5):
        g = rg.Graph()
        x = g.input(RNG.normal(size=(2, n, n)))
        w = RNG.normal(size=(n, 2, 4))
        f = {
            "einsum, first": lambda x, w=w: rg.einsum("abc,cad->bd", x, w),
            "einsum, second": lambda x, w=w: rg.einsum("cad,abc->bda", w, x),
            "diagonal": lambda x: rg.diagonal(x, 0, 2, 1),
            "trace": lambda x: rg.trace(x, 0, 1, 2),
            "triangle": rg.tril,
            "cross": lambda x: rg.cross(x[:, :3, :3], V),
            "kron": lambda x: rg.kron(x, V),
        }[name]
        y = f(x)
        before = len(g)
        kept = [rg.jacobian(y, x, mode=mode) for mode in ("forward", "reverse")]
        counts.append(len(g) - before)
        assert len(kept) == 2
    assert counts[0] == counts[1]
