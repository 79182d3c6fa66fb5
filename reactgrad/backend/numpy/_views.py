"""Kernels that copy a view of their operand: where a view itself cannot be the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def copied(xp: Any, view: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that copies ``view(x, *attrs)``."""

    def copy(x: Any, out: Any, *attrs: Any) -> None:
        xp.copyto(out, view(x, *attrs))

    return copy
