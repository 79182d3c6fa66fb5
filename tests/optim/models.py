"""Small models as graphs, and their data."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg


def mlp(seed: int = 0, dtype: Any = np.float64) -> tuple[rg.Graph, list[rg.Var], rg.Var]:
    """Return a graph, its params ``w1, b1, w2, b2``, and the mean squared error of two layers."""
    rng = np.random.default_rng(seed)
    g = rg.Graph()
    x, y = rng.normal(size=(6, 3)).astype(dtype), rng.normal(size=(6, 2)).astype(dtype)
    shapes = {"w1": (3, 5), "b1": (5,), "w2": (5, 2), "b2": (2,)}
    params = [
        g.param(0.4 * rng.normal(size=shape).astype(dtype), name=name)
        for name, shape in shapes.items()
    ]
    w1, b1, w2, b2 = params
    out = rg.linear(rg.tanh(rg.linear(g.input(x, name="x"), w1, b1)), w2, b2)
    return g, params, ((out - g.input(y, name="y")) ** 2).mean()


def cnn(seed: int = 0) -> tuple[rg.Graph, list[rg.Var], rg.Var]:
    """Return a graph, its params, and the mean squared error of a convolution, pooling and a layer."""
    rng = np.random.default_rng(seed)
    g = rg.Graph()
    x, y = rng.normal(size=(3, 1, 6, 6)), rng.normal(size=(3, 2))
    shapes = {"kernel": (2, 1, 3, 3), "bias": (2,), "w": (8, 2), "b": (2,)}
    params = [g.param(0.4 * rng.normal(size=shape), name=name) for name, shape in shapes.items()]
    kernel, bias, w, b = params
    hidden = rg.max_pool2d(rg.relu(rg.conv2d(g.input(x, name="x"), kernel, bias)), 2)
    out = rg.linear(rg.reshape(hidden, (3, 8)), w, b)
    return g, params, ((out - g.input(y, name="y")) ** 2).mean()
