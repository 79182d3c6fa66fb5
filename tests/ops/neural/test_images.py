"""Ops of images in files, with their gradients and second derivatives, and a few images at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.numpy import _columns, _pooling


def _built(g: rg.Graph) -> list[Any]:
    x = g.input(np.zeros((2, 2, 6, 5)), name="x")
    w = g.param(np.random.default_rng(0).standard_normal((2, 2, 3, 2)), name="w")
    grid = g.input(np.zeros((2, 3, 3, 2)), name="grid")
    rows = [
        rg.conv2d(x, w, np.ones(2), stride=2, padding=1),
        rg.conv_transpose2d(x, w, stride=2, output_padding=1),
        rg.max_pool2d(x, 2, return_indices=True)[0],
        rg.max_pool2d(x, 6, 1, 3),
        rg.avg_pool2d(x, 3, 2, 1),
        rg.adaptive_max_pool2d(x, 4),
        rg.interpolate(x, (4, 9), mode="bicubic", antialias=True),
        rg.unfold(x, (3, 2), padding=1),
        rg.grid_sample(x, grid, "bicubic"),
        rg.pixel_shuffle(rg.pixel_unshuffle(rg.interpolate(x, (8, 8)), 2), 2),
        rg.local_response_norm(x, 3),
    ]
    leaves = [x, w, grid]
    found = list(rows)
    for one in rows:
        slopes = rg.grad(one * one, leaves, gradient=one, allow_unused=True)
        found += [slope for slope in slopes if slope is not None]
        found.append(rg.grad(slopes[0], x, gradient=x))
    return found


def test_a_loaded_graph_computes_the_same_gradients(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    g = rg.Graph()
    found = _built(g)
    for i, one in enumerate(found):
        one.name = f"result_{i}"
    g.save(tmp_path / "graph.safetensors")
    again = rg.load(tmp_path / "graph.safetensors")
    image, places = rng.standard_normal((2, 2, 6, 5)), rng.uniform(-1.0, 1.0, (2, 3, 3, 2))
    for graph in (g, again):
        graph.set({graph["x"]: image, graph["grid"]: places})
    for i, one in enumerate(found):
        np.testing.assert_array_equal(again[f"result_{i}"].value, one.value)
    again.check_invariants()


def test_a_few_images_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    image, places = rng.standard_normal((2, 2, 6, 5)), rng.uniform(-1.0, 1.0, (2, 3, 3, 2))
    found = []
    for most in (1 << 19, 1, 900):
        monkeypatch.setattr(_columns, "MOST_BYTES", most)
        monkeypatch.setattr(_pooling, "MOST_BYTES", most)
        g = rg.Graph()
        nodes = _built(g)
        g.set({g["x"]: np.concatenate([image] * 3), g["grid"]: np.concatenate([places] * 3)})
        found.append([one.value for one in nodes])
    for one in found[1:]:
        for value, other in zip(one, found[0], strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-12, atol=1e-12)
