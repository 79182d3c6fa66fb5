"""The kernel of the array API standard for matrices of powers, and of their derivatives."""

from __future__ import annotations

from math import perm
from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp = device.xp

    def vander(x: Any, out: Any, count: int | None, increasing: bool, order: int) -> None:
        power, columns = xp.ones(x.shape, dtype=out.dtype), out.shape[1]
        for i in range(columns):
            at = i if increasing else columns - 1 - i
            if i < order:
                out[:, at] = xp.zeros(x.shape, dtype=out.dtype)
            else:
                out[:, at] = power * perm(i, order)
                power = power * xp.astype(x, out.dtype)

    register_kernel("vander", device.kind, vander)
