"""Kernels for triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def bind_part(upper: bool) -> Callable[..., Callable[[], object]]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
            (x,), (k,), (m, n) = inputs, attrs, out.shape[-2:]
            below = xp.tri(m, n, k - 1 if upper else k, bool)
            away = below if upper else xp.logical_not(below)
            zero = xp.zeros((), out.dtype)
            return InTurn(
                partial(xp.copyto, out, x), partial(xp.copyto, out, zero, "same_kind", away)
            )

        return bind

    register_binder("tril", kind, bind_part(upper=False))
    register_binder("triu", kind, bind_part(upper=True))
