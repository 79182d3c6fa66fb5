"""Ops of images in files, with their gradients and second derivatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import reactgrad as rg


def _built(g: rg.Graph, unknown: bool) -> tuple[list[Any], list[Any]]:
    shape: Any = (None, 2, None, None) if unknown else (2, 2, 6, 5)
    x = g.input(shape=shape, dtype="f8", name="x")
    w = g.param(np.random.default_rng(0).standard_normal((2, 2, 3, 2)), name="w")
    grid = g.input(shape=(shape[0], 3, 3, 2), dtype="f8", name="grid")
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
        slopes = [s for s in rg.grad((one**3).sum(), leaves, allow_unused=True) if s is not None]
        found += slopes
        found.append(rg.grad((slopes[0] ** 2).sum(), x))
    return [x, grid], found


def test_a_loaded_graph_computes_the_same_gradients(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for unknown in (False, True):
        g = rg.Graph()
        (x, grid), found = _built(g, unknown)
        for i, one in enumerate(found):
            one.name = f"result_{i}"
        path = tmp_path / f"{unknown}.safetensors"
        g.save(path)
        again = rg.load(path)
        image, places = rng.standard_normal((2, 2, 6, 5)), rng.uniform(-1.0, 1.0, (2, 3, 3, 2))
        g.set({x: image, grid: places})
        again.set({again["x"]: image, again["grid"]: places})
        for i, one in enumerate(found):
            np.testing.assert_array_equal(again[f"result_{i}"].value, one.value)
        again.check_invariants()
