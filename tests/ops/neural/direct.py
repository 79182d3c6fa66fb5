"""Convolutions and pooling written down as their definitions say, element by element."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np


def conv(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int = 1,
) -> Any:
    """Return the convolution of images (N, C, ...) with a kernel, each argument a tuple of one for each axis."""
    axes = x.ndim - 2
    wide = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    lengths = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(wide.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    made, taken = w.shape[:2]
    y = np.zeros((x.shape[0], made, *lengths), np.result_type(x, w))
    y = y.astype(np.float32) if y.dtype == np.float16 else y
    for o, at in product(range(made), product(*map(range, lengths))):
        first = o // (made // groups) * taken
        part = wide[
            (
                slice(None),
                slice(first, first + taken),
                *[
                    slice(i * s, i * s + d * (k - 1) + 1, d)
                    for i, s, d, k in zip(at, stride, dilation, w.shape[2:], strict=True)
                ],
            )
        ]
        y[(slice(None), o, *at)] = (part.astype(y.dtype) * w[o].astype(y.dtype)).sum(
            tuple(range(1, axes + 2))
        )
    if b is not None:
        y = y + b.reshape(-1, *[1] * axes)
    return y.astype(np.result_type(x, w, *(() if b is None else (b,))))


def conv_transpose(x: Any, w: Any, *, stride: Any, padding: Any, more: Any, dilation: Any) -> Any:
    """Return the sum of multiples of the kernel, one for each element of the images."""
    spans = [
        (n - 1) * s + d * (k - 1) + 1
        for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    dtype = np.result_type(x, w)
    wide = np.float32 if dtype == np.float16 else dtype
    full = np.zeros(
        (x.shape[0], w.shape[1], *[n + m for n, m in zip(spans, more, strict=True)]), wide
    )
    for at in product(*map(range, x.shape[2:])):
        place = [
            slice(i * s, i * s + d * (k - 1) + 1, d)
            for i, s, d, k in zip(at, stride, dilation, w.shape[2:], strict=True)
        ]
        full[(slice(None), slice(None), *place)] += np.einsum(
            "nc,co...->no...", x[(slice(None), slice(None), *at)].astype(wide), w.astype(wide)
        )
    cut = [slice(p, n - p) for p, n in zip(padding, full.shape[2:], strict=True)]
    return full[(slice(None), slice(None), *cut)].astype(dtype)


def pool(
    x: Any,
    reduce: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any = None,
    *,
    ceil: bool = False,
) -> Any:
    """Return ``reduce(elements, windows)`` of each window: its elements, (N, C, count), and its size with padding."""
    axes = len(kernel)
    dilation = dilation or (1,) * axes
    space = x.shape[-axes:]
    counts = []
    for n, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        counts.append(count - (ceil and (count - 1) * s >= n + p))
    rows = []
    for at in product(*map(range, counts)):
        places, size = [], 1
        for i, n, k, s, p, d in zip(at, space, kernel, stride, padding, dilation, strict=True):
            own = [i * s - p + j * d for j in range(k)]
            size *= sum(one < n + p for one in own)
            places.append([one for one in own if 0 <= one < n])
        part = x[(..., *np.ix_(*places))].reshape(*x.shape[:-axes], -1)
        rows.append(reduce(part, size))
    return np.stack(rows, -1).reshape(*x.shape[:-axes], *counts)


def parts(x: Any, reduce: Any, lengths: Any) -> Any:
    """Return ``reduce`` of each part of images that are cut into equal parts."""
    axes = len(lengths)
    rows = []
    for at in product(*map(range, lengths)):
        places = [
            range(i * n // m, -(-(i + 1) * n // m))
            for i, n, m in zip(at, x.shape[-axes:], lengths, strict=True)
        ]
        rows.append(reduce(x[(..., *np.ix_(*places))].reshape(*x.shape[:-axes], -1)))
    return np.stack(rows, -1).reshape(*x.shape[:-axes], *lengths)
