"""The kernel of the array API standard for the Kronecker product."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp, kind = device.xp, device.kind

    def kron(a: Any, b: Any, out: Any) -> None:
        shapes = [(1,) * (out.ndim - one.ndim) + tuple(one.shape) for one in (a, b)]
        left = xp.reshape(a, tuple([n for m in shapes[0] for n in (m, 1)]))
        right = xp.reshape(b, tuple([n for m in shapes[1] for n in (1, m)]))
        if out.dtype == xp.bool:  # the standard has no products of booleans
            out[...] = xp.reshape(xp.logical_and(left, right), out.shape)
        else:
            product = xp.astype(left, out.dtype) * xp.astype(right, out.dtype)
            out[...] = xp.reshape(product, out.shape)

    register_kernel("kron", kind, kron)
