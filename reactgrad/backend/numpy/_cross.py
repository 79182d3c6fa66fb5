"""The kernel for the cross product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind_cross(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        a, b = inputs
        product = xp.empty(out.shape[:-1], out.dtype)
        calls: list[Callable[[], object]] = []
        for i in range(3):
            j, k, target = (i + 1) % 3, (i + 2) % 3, out[..., i]
            calls += [
                partial(xp.multiply, a[..., j], b[..., k], target),
                partial(xp.multiply, a[..., k], b[..., j], product),
                partial(xp.subtract, target, product, target),
            ]
        return InTurn(*calls)

    register_binder("cross", kind, bind_cross)
