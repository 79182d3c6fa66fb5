"""The kernel of the array API standard for axes that are cut, or filled up with zeros."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp = device.xp

    def fit(x: Any, out: Any, shape: Any) -> None:
        part = tuple([slice(min(m, n)) for m, n in zip(x.shape, out.shape, strict=True)])
        out[...] = xp.zeros_like(out)
        out[part] = x[part]

    register_kernel("fit_shape", device.kind, fit)
