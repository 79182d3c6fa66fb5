"""Graphs whose gradients pass hooks."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg


def two() -> tuple[Any, Any, Any, Any]:
    """w and v to h = w v, to the sum of h²."""
    g = rg.Graph()
    w, v = g.param([1.0, 2.0], name="w"), g.param([3.0, 4.0], name="v")
    h = w * v
    h.name = "h"
    return w, v, h, (h * h).sum()


def clip_by_norm(g: Any) -> Any:
    return g / np.maximum(1.0, np.sqrt((g * g).sum()))


def scaled_in_place(g: Any) -> Any:
    copy = np.array(g)
    copy *= 2.0
    return copy


# What PyTorch's users write, and what becomes of the gradient (3, -4).
REPLACING: dict[str, tuple[Any, list[float]]] = {
    "times two": (lambda g: g * 2, [6.0, -8.0]),
    "clip": (lambda g: np.clip(g, -1, 1), [1.0, -1.0]),
    "method": (lambda g: g.clip(-1.0, 1.0), [1.0, -1.0]),
    "by norm": (clip_by_norm, [0.6, -0.8]),
    "NumPy's norm": (lambda g: g / np.linalg.norm(g), [0.6, -0.8]),
    "if": (lambda g: g * 0.1 if np.abs(g).max() > 1 else g, [0.3, -0.4]),
    "zeros": (np.zeros_like, [0.0, 0.0]),
    "list": (lambda g: [1.0, 2.0], [1.0, 2.0]),
    "itself": (lambda g: g, [3.0, -4.0]),
    "other dtype": (lambda g: (g * 2).astype(np.float32), [6.0, -8.0]),
    "copy": (scaled_in_place, [6.0, -8.0]),
    "nothing": (lambda g: None, [3.0, -4.0]),
    "NaN": (lambda g: g * np.nan, [np.nan, np.nan]),
}
