"""Neighbours in an axis that is stretched to another length, with PyTorch's rules for their places.

Sources of the formulas: cubic interpolation by Keys (1981) with A = -0.75, and with A = -0.5 where the
axis is smoothed before it is made shorter (``antialias``), as in Pillow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Rule = tuple[Any, ...]


def stretched_length(length: int | None, scale: float | None, n: int | None) -> int | None:
    """Return the length of a stretched axis: the one that was asked for, or by the scale.

    A negative scale gives the length only: places follow from the two lengths, as if it had been asked for.
    """
    if length is not None:
        return length
    assert scale is not None
    return None if n is None else math.floor(float(n) * abs(scale))


def neighbours(rule: Rule, n: int, length: int) -> tuple[Any, Any, Any, Any]:
    """Return tap numbers, results, elements and weights of the map to `length` results."""
    kind = rule[0]
    # As in PyTorch, a length that stays is no stretch, whatever the scale; except in some modes.
    keeps = {"nearest": rule[3], "nearest-exact": False, "linear": True, "cubic": rule[-1]}
    if n == length and keeps[kind]:
        same = np.arange(n)
        return np.zeros(n, int), same, same, None
    if kind.startswith("nearest"):
        outs = np.arange(length)
        return np.zeros(length, int), outs, _nearest(rule, n, length, outs), None
    _, _, scale, align, antialias = rule
    if antialias:
        return _smoothed(kind, n, length, _step(n, length, scale, align))
    step = _step(n, length, scale, align)
    outs = np.arange(length)
    at = outs * step if align else (outs + 0.5) * step - 0.5
    if kind == "linear":
        at = np.maximum(at, 0.0)
    floor = np.floor(at)
    beyond = at - floor
    floor = floor.astype(int)
    if kind == "linear":
        offsets, weights = (0, 1), (1.0 - beyond, beyond)
    else:
        offsets = (-1, 0, 1, 2)
        weights = tuple(_cubic(np.abs(beyond - k), -0.75) for k in offsets)
    ins = np.stack([np.clip(floor + k, 0, n - 1) for k in offsets])
    numbers, places = np.indices(ins.shape)
    return numbers.ravel(), places.ravel(), ins.ravel(), np.stack(weights).ravel()


def _step(n: int, length: int, scale: float | None, align: bool) -> float:
    """Return the distance of two neighbouring results, in elements."""
    if align:
        return (n - 1) / (length - 1) if length > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0.0 else n / length


def _nearest(rule: Rule, n: int, length: int, outs: Any) -> Any:
    kind, _, scale, whole = rule
    if whole and length == 2 * n:
        return outs // 2
    # PyTorch finds the places in float32, and they decide which element is taken.
    step = np.float32(1.0 / scale if scale is not None and scale > 0.0 else n / max(length, 1))
    shift = np.float32(0.5 if kind == "nearest-exact" else 0.0)
    at = np.floor((outs.astype(np.float32) + shift) * step).astype(int)
    return np.minimum(at, n - 1)


def _cubic(distance: Any, a: float) -> Any:
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    far = ((distance - 5.0) * distance + 8.0) * distance * a - 4.0 * a
    return np.where(distance <= 1.0, near, np.where(distance < 2.0, far, 0.0))


def _triangle(distance: Any) -> Any:
    return np.maximum(1.0 - distance, 0.0)


def _smoothed(kind: str, n: int, length: int, step: float) -> tuple[Any, Any, Any, Any]:
    """Return the map whose kernel is as wide as the distance of two results."""
    kernel: Callable[[Any], Any] = (
        _triangle if kind == "linear" else lambda distance: _cubic(distance, -0.5)
    )
    reach = 1.0 if kind == "linear" else 2.0
    wide = max(step, 1.0)
    support = reach * wide
    outs = np.arange(length)
    centres = step * (outs + 0.5)
    first = np.maximum((centres - support + 0.5).astype(int), 0)
    counts = np.minimum((centres + support + 0.5).astype(int), n) - first
    numbers, places = np.indices((int(counts.max(initial=0)), length))
    weights = kernel(np.abs((numbers + first - centres + 0.5) / wide))
    weights = np.where(numbers < counts, weights, 0.0)
    weights = weights / weights.sum(0)
    inside = numbers < counts
    ins = numbers + first
    return numbers[inside], places[inside], ins[inside], weights[inside]
