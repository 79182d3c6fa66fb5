"""The cost of a probability, given what happened."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend._registry import register_kernel

LEAST_LOG: Final = -100.0  # the logarithm of a probability of 0 counts as this, as in PyTorch


def register(xp: Any, kind: str) -> None:
    """Register the kernel of binary cross entropy."""

    def binary_cross_entropy(p: Any, t: Any, out: Any) -> None:
        yes = xp.maximum(xp.log(p), LEAST_LOG)
        no = xp.maximum(xp.log1p(-p), LEAST_LOG)
        out[...] = (t - 1) * no - t * yes

    register_kernel("binary_cross_entropy", kind, binary_cross_entropy)
