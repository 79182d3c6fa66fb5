"""The cost of a probability, given what happened."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend._registry import register_kernel

LEAST_LOG: Final = -100.0  # the logarithm of a probability of 0 counts as this, as in PyTorch


def register(xp: Any, kind: str) -> None:
    """Register the kernel of binary cross entropy."""

    def binary_cross_entropy(p: Any, t: Any, out: Any) -> None:
        if (
            xp is np and p.size and (p.min() < 0 or p.max() > 1)
        ):  # elsewhere it would wait for the host
            raise ParameterError(
                f"binary_cross_entropy of numbers from {p.min():.6g} to {p.max():.6g}: they are probabilities, from 0 "
                "to 1. For scores write binary_cross_entropy_with_logits, or rg.nn.BCEWithLogitsLoss; else take "
                "rg.sigmoid of them first."
            )
        yes = xp.maximum(xp.log(p), LEAST_LOG)
        no = xp.maximum(xp.log1p(-p), LEAST_LOG)
        out[...] = (t - 1) * no - t * yes

    register_kernel("binary_cross_entropy", kind, binary_cross_entropy)
