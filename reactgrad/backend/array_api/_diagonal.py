"""Kernels of the array API standard for diagonals of matrices."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernels for a device of the standard."""
    xp, kind = device.xp, device.kind

    def diagonal(x: Any, out: Any, offset: int, axis1: int, axis2: int, same: bool) -> None:
        out[...] = xp.linalg.diagonal(xp.moveaxis(x, (axis1, axis2), (-2, -1)), offset=offset)

    def place(
        x: Any, out: Any, shape: Any, offset: int, axis1: int, axis2: int, same: bool
    ) -> None:
        rows, columns = out.shape[axis1], out.shape[axis2]
        flat = xp.zeros((*x.shape[:-1], rows * columns), dtype=out.dtype)
        first, step = max(offset, -offset * columns), columns + 1
        if x.shape[-1]:
            flat[..., first : first + (x.shape[-1] - 1) * step + 1 : step] = x
        matrices = xp.reshape(flat, (*x.shape[:-1], rows, columns))
        out[...] = xp.moveaxis(matrices, (-2, -1), (axis1, axis2))

    register_kernel("diagonal", kind, diagonal)
    register_kernel("place_diagonal", kind, place)
