"""Kernels for diagonals of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def diagonal(x: Any, out: Any, offset: int, axis1: int, axis2: int, same: bool) -> None:
        xp.copyto(out, x.diagonal(offset, axis1, axis2))

    def bind_place(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (_, offset, axis1, axis2, _) = inputs, attrs
        return InTurn(
            partial(out.fill, 0),
            partial(
                xp.copyto, _diagonal(xp, xp.moveaxis(out, (axis1, axis2), (-2, -1)), offset), x
            ),
        )

    register_kernel("diagonal", kind, diagonal)
    register_binder("place_diagonal", kind, bind_place)


def _diagonal(xp: Any, matrices: Any, offset: int) -> Any:
    """Return a diagonal of matrices as a view that can be written."""
    part = matrices[..., max(0, -offset) :, max(0, offset) :]
    length = min(part.shape[-2:])
    step = part.strides[-2] + part.strides[-1]
    return xp.lib.stride_tricks.as_strided(
        part, (*part.shape[:-2], length), (*part.strides[:-2], step)
    )
