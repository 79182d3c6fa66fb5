"""The kernel for axes that are cut, or filled up with zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,) = inputs
        part = tuple([slice(min(m, n)) for m, n in zip(x.shape, out.shape, strict=True)])
        copy = partial(xp.copyto, out[part], x[part])
        return copy if out[part].shape == out.shape else InTurn(partial(out.fill, 0), copy)

    register_binder("fit_shape", kind, bind)
