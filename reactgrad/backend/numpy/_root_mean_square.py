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
        # A power of 2 changes no digit. It is taken for all rows at once, if one of them needs it.
        size = float(abs(own).max(initial=0.0)) if own.size else 0.0
        scale = (
            2.0 ** -math.frexp(size)[1] if math.isfinite(size) and not _fits(size, wide) else 1.0
        )
        if scale != 1.0:
            own = own * wide.type(scale)
        squares = xp.add.reduce(own * own, axis, keepdims=True) / wide.type(count)
        root = xp.sqrt(squares + wide.type(eps * scale * scale))
        out[...] = root / wide.type(scale)

    register_kernel("root_mean_square", kind, root_mean_square)


def _fits(size: float, dtype: Any) -> bool:
    """Return whether the squares of numbers up to this size stay in the dtype with all digits."""
    limits = np.finfo(dtype)
    return (
        size == 0.0 or math.sqrt(limits.tiny / limits.eps) < size < math.sqrt(limits.max) / 4096.0
    )
