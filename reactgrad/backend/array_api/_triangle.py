"""Kernels of the array API standard for triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernels for a device of the standard."""
    xp, kind = device.xp, device.kind

    def part(kept: Any) -> Callable[..., None]:
        def kernel(x: Any, out: Any, k: int) -> None:
            out[...] = kept(xp.broadcast_to(x, out.shape), k=k)

        return kernel

    register_kernel("tril", kind, part(xp.tril))
    register_kernel("triu", kind, part(xp.triu))
