"""The root of the mean square of rows, in which no square leaves the dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register the kernel of root mean squares."""

    def root_mean_square(x: Any, out: Any, axis: Any, eps: float) -> None:
        wide = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
        own = x if x.dtype == wide else x.astype(wide)
        count = max(1, x.size // max(1, out.size))
        scale: Any = 1.0
        if own.size:
            size = abs(own).max(axis, keepdims=True)
            if xp is not np or not _fits(size, wide):
                # A power of 2 changes no digit. Each row has its own, so that its bits are those it has alone.
                scale = xp.exp2(-xp.floor(xp.log2(xp.maximum(size, float(np.finfo(wide).tiny)))))
                scale = xp.where(xp.isfinite(size), scale, xp.ones_like(scale))
                own = own * scale
        squares = xp.add.reduce(own * own, axis, keepdims=True) / wide.type(count)
        root = xp.sqrt(squares + eps * scale * scale)
        out[...] = root / scale

    register_kernel("root_mean_square", kind, root_mean_square)


def _fits(size: Any, dtype: Any) -> bool:
    """Return whether the squares of numbers up to these sizes stay in the dtype with all digits."""
    limits = np.finfo(dtype)
    least, most = math.sqrt(limits.tiny / limits.eps), math.sqrt(limits.max) / 4096.0
    return bool(((size == 0.0) | ((size > least) & (size < most))).all())
