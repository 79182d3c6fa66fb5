"""Kernels of attention: queries scaled by their length, and products with later keys left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn


def _factor(x: Any) -> float:
    return 1.0 / math.sqrt(x.shape[-1] or 1)


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def over_root_length(x: Any, out: Any) -> None:
        xp.multiply(x, _factor(x), out=out)

    def bind_causal(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        (x,) = inputs
        later = xp.logical_not(xp.tri(*out.shape[-2:], 0, bool))
        least = xp.full((), -math.inf, out.dtype)
        return InTurn(partial(xp.copyto, out, x), partial(xp.copyto, out, least, "no", later))

    register_kernel("over_root_length", kind, over_root_length)
    register_binder("causal", kind, bind_causal)


def register_standard(device: Any) -> None:
    """Register them for a device of the array API standard."""
    xp, kind = device.xp, device.kind

    def over_root_length(x: Any, out: Any) -> None:
        out[...] = xp.astype(x, out.dtype) * _factor(x)

    def causal(x: Any, out: Any) -> None:
        earlier = xp.tril(xp.ones_like(x, dtype=xp.bool))
        out[...] = xp.where(earlier, x, xp.full_like(x, -math.inf))

    register_kernel("over_root_length", kind, over_root_length)
    register_kernel("causal", kind, causal)
