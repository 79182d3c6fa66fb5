"""Largest elements of windows at random places (Graham, Fractional max-pooling, 2014), as PyTorch chooses them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.ops import floor, ordering
from reactgrad.ops._operand import node
from reactgrad.ops.neural._space import each
from reactgrad.ops.reductions import argmax
from reactgrad.random._draw import Draw
from reactgrad.random._dropout import _floats
from reactgrad.scheduler import safe_repr


def fractional_max_pool(
    axes: int,
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return the largest element of each window along the last axes; see ``FractionalMaxPool2d``."""
    name = f"fractional_max_pool{axes}d"
    x = _floats(name, input, 0.0)
    if x.ndim not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{name} of shape {x.shape}: it is (batch, channels, ...) with {axes} axes of space, or without the batch."
        )
    lengths = x.shape[-axes:]
    if None in lengths:
        raise ShapeError(
            f"{name} of shape {x.shape}: the places of windows depend on the lengths of the last {axes} axes, so "
            "declare them."
        )
    kernel = each(name, "kernel_size", kernel_size, axes, 1)
    found = _output(name, axes, lengths, output_size, output_ratio)
    for n, k, m in zip(lengths, kernel, found, strict=True):
        if k + m - 1 > n:
            raise ShapeError(
                f"{name} of shape {x.shape}: {m} windows of {k} need {k + m - 1} elements, and an axis has {n}. Use a "
                "smaller kernel_size or output_size."
            )
    alone = x.ndim == axes + 1
    x = ops.expand_dims(x, 0) if alone else x
    if _random_samples is None:
        draw: Any = Draw(name, None, None, x.dtype, graph=x._graph)
        kept = ops.sum(x.detach(), tuple(range(-axes, 0)), keepdims=True)
        like = ops.concatenate([kept.reshape((*kept.shape[:2], 1))] * axes, -1)
        draw.follow([like], like.shape)  # also another length
        samples = draw.standard("random")
    else:
        draw, samples = None, ops.astype(node(_random_samples, x), x.dtype)
    y, places = _pooled(x, samples, kernel, found, lengths)
    if alone:
        y, places = y[0], places[0]
    y = y if draw is None else draw.of(y)
    return (y, places) if return_indices else y


def _output(name: str, axes: int, lengths: Any, size: Any, ratio: Any) -> tuple[int, ...]:
    """Return the number of windows along each axis."""
    if (size is None) is (ratio is None):
        raise ParameterError(f"{name}: give output_size or output_ratio, one of the two.")
    if size is not None:
        return each(name, "output_size", size, axes, 1)
    ratios = ratio if isinstance(ratio, tuple | list) else (ratio,) * axes
    if len(ratios) != axes or not all(0.0 < one < 1.0 for one in ratios):
        raise ParameterError(
            f"{name}(output_ratio={safe_repr(ratio):.60}): a number between 0 and 1, or one for each of {axes} axes."
        )
    return tuple(int(n * one) for n, one in zip(lengths, ratios, strict=True))


def _starts(sample: Any, n: int, k: int, m: int) -> Any:
    """Return where the windows along one axis begin, for each sample."""
    if m == 1:
        return ops.astype(0.0 * sample, np.int64) + (n - k)
    alpha = (n - k) / (m - 1)
    steps = np.arange(m - 1, dtype=sample.dtype)
    inner = floor((sample + steps) * alpha) - floor(sample * alpha)
    last = 0.0 * sample + float(n - k)
    return ops.astype(ops.concatenate([inner, last], -1), np.int64)


def _pooled(x: Any, samples: Any, kernel: Any, found: Any, lengths: Any) -> tuple[Any, Any]:
    """Return the first largest element of each window, and its number among all places of space."""
    axes = len(kernel)
    # As PyTorch reads them: with two axes of space the first sample is that of the last axis.
    order = range(axes) if axes == 3 else (1, 0)
    number: Any = 0
    for i, (which, n, k, m) in enumerate(zip(order, lengths, kernel, found, strict=True)):
        starts = _starts(samples[..., which : which + 1], n, k, m)
        at = ops.expand_dims(starts, -1) + np.arange(k)  # (batch, channels, windows, places)
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = m, k
        number = number * n + at.reshape((*at.shape[:2], *shape))
    flat = x.reshape((*x.shape[:2], math.prod(lengths)))
    batch = number.shape[:2]
    rows = number.reshape((*batch, math.prod(found), math.prod(kernel)))
    windows = ordering.take_along_axis(ops.expand_dims(flat.detach(), -2), rows, -1)
    first = ops.expand_dims(argmax(windows, -1), -1)
    places = ordering.take_along_axis(rows, first, -1)[..., 0]
    y = ordering.take_along_axis(flat, places, -1)
    shape = (*batch, *found)
    return y.reshape(shape), places.reshape(shape)
