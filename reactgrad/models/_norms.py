"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, converts, with_open


def _by_channel(x: Any, rank: int) -> Any:
    return rg.reshape(x, (-1, *[1] * (rank - 2)))


@converts("BatchNormalization")
def _batch_norm(call: Call) -> Any:
    x, rank, eps = call[0], call.rank(0), call.attr("epsilon", 1e-5)
    scale, bias = (_by_channel(call[i], rank) for i in (1, 2))
    if not call.attr("training_mode", 0):
        mean, variance = (_by_channel(call[i], rank) for i in (3, 4))
        return rg.astype((x - mean) / rg.sqrt(variance + eps) * scale + bias, call.dtype(0))
    axes = (0, *range(2, rank))
    mean = rg.mean(x, axis=axes, keepdims=True)
    variance = rg.mean(rg.square(x - mean), axis=axes, keepdims=True)
    y = (x - mean) / rg.sqrt(variance + eps) * scale + bias
    keep = call.attr("momentum", 0.9)
    running = [
        call[3 + i] * keep + rg.reshape(v, (-1,)) * (1 - keep)
        for i, v in enumerate((mean, variance))
    ]
    return rg.astype(y, call.dtype(0)), *running


@converts("InstanceNormalization")
def _instance_norm(call: Call) -> Any:
    x, rank = call[0], call.rank(0)
    axes = tuple(range(2, rank))
    y = _standard(x, axes, call.attr("epsilon", 1e-5))
    return y * _by_channel(call[1], rank) + _by_channel(call[2], rank)


def _standard(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    mean = rg.mean(x, axis=axes, keepdims=True)
    moved = x - mean
    return moved / rg.sqrt(rg.mean(rg.square(moved), axis=axes, keepdims=True) + eps)


@converts("GroupNormalization")
def _group_norm(call: Call) -> Any:
    groups = call.attr("num_groups")
    shape = with_open((call.shape_or_none(0)[0], call.length(0, 1), *call.space()))
    x = rg.reshape(call[0], (shape[0], groups, shape[1] // groups, math.prod(shape[2:])))
    x = _standard(x, (2, 3), call.attr("epsilon", 1e-5))
    scale, bias = call[1], call[2]
    if call.version >= 21:
        y = rg.reshape(x, shape)
        return y * _by_channel(scale, len(shape)) + _by_channel(bias, len(shape))
    y = x * rg.reshape(scale, (1, groups, 1, 1)) + rg.reshape(bias, (1, groups, 1, 1))
    return rg.reshape(y, shape)


@converts("LayerNormalization")
def _layer_norm(call: Call) -> Any:
    x, rank = call[0], call.rank(0)
    axes = tuple(range(call.axis(call.attr("axis", -1)), rank))
    mean = rg.mean(x, axis=axes, keepdims=True)
    moved = x - mean
    inverse = rg.reciprocal(
        rg.sqrt(rg.mean(rg.square(moved), axis=axes, keepdims=True) + call.attr("epsilon", 1e-5))
    )
    y = moved * inverse * call[1]
    return rg.astype(y + call[2] if call.has(2) else y, call.dtype(0)), mean, inverse


@converts("RMSNormalization")
def _rms_norm(call: Call) -> Any:
    x, rank = call[0], call.rank(0)
    axes = tuple(range(call.axis(call.attr("axis", -1)), rank))
    size = rg.sqrt(rg.mean(rg.square(x), axis=axes, keepdims=True) + call.attr("epsilon", 1e-5))
    return rg.astype(x / size * call[1], call.dtype(0))


@converts("LRN")
def _lrn(call: Call) -> Any:
    size, x = call.attr("size"), call[0]
    before = (size - 1) // 2
    width = [(0, 0)] * call.rank(0)
    width[1] = (before, size - 1 - before)
    squares = rg.pad(rg.square(x), width)
    channels = call.length(0, 1)
    total: Any = 0
    for i in range(size):
        total = total + squares[:, i : i + channels]
    alpha, beta, bias = call.attr("alpha", 1e-4), call.attr("beta", 0.75), call.attr("bias", 1.0)
    return x / rg.power(bias + total * (alpha / size), beta)


@converts("MeanVarianceNormalization")
def _mean_variance(call: Call) -> Any:
    axes = tuple(call.attr("axes") or (0, 2, 3))
    x = call[0]
    mean = rg.mean(x, axis=axes, keepdims=True)
    moved = x - mean
    return moved / (rg.sqrt(rg.mean(rg.square(moved), axis=axes, keepdims=True)) + np.float32(1e-9))
