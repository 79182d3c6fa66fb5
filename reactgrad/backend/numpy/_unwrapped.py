"""The kernel of ``unwrap``."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register the kernel of a namespace that mirrors NumPy."""

    def unwrap(p: Any, out: Any, discont: Any, axis: int, period: Any) -> None:
        out[...] = xp.unwrap(p, discont, axis, period=period)

    register_kernel("unwrap", kind, unwrap)
