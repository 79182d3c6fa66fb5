"""Kernels that copy a view of their operand: where a view itself cannot be the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def copied(xp: Any, view: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that copies ``view(x, *attrs)``."""

    def copy(x: Any, out: Any, *attrs: Any) -> None:
        xp.copyto(out, view(x, *attrs))

    return copy


def refilled(xp: Any, x: Any, out: Any, *attrs: Any) -> None:
    """Copy the elements of `x`, in C order, into `out`, which lies in one piece and has another shape."""
    xp.copyto(out.reshape(x.shape), x)
