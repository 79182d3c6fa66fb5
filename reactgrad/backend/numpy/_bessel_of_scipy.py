"""Kernels of Bessel functions of any order, which are SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError
from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder

NAMES = ("jv", "yv", "iv", "kv")


def register(xp: Any, kind: str) -> None:
    """Register them for NumPy."""
    if xp is np:
        for name in NAMES:
            register_binder(name, kind, binder(_of_scipy(name)))


def _of_scipy(name: str) -> Any:
    def compute(order: Any, x: Any) -> Any:
        try:
            from scipy import special  # type: ignore[import-untyped]  # optional
        except ImportError:
            raise MissingExtraError(
                f"rg.{name} is computed by SciPy, which is not installed: pip install scipy."
            ) from None
        return getattr(special, name)(order, x)

    return compute
