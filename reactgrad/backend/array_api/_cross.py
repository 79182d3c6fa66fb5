"""The kernel of the array API standard for the cross product."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp, kind = device.xp, device.kind

    def cross(a: Any, b: Any, out: Any) -> None:
        a, b = xp.astype(a, out.dtype), xp.astype(b, out.dtype)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]

    register_kernel("cross", kind, cross)
