"""Floats that NumPy has no dtype for, as wider ones that hold each of their numbers exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def widened(bits: Array, kind: str) -> Array:
    """Return the numbers of these bits.

    Parameters
    ----------
    bits : numpy.ndarray
        Unsigned integers.
    kind : str
        ``"bfloat16"``, ``"float8_e5m2"`` or ``"float8_e4m3fn"``.
    """
    if kind == "bfloat16":  # the upper half of a float32
        wide = bits.astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    if kind == "float8_e5m2":  # the upper half of a float16
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    return _E4M3FN[bits]


def _e4m3fn() -> Array:
    """Return the numbers of all 256 codes (Micikevicius and others, FP8 formats for deep learning, 2022)."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, np.ldexp(fraction, -9), np.ldexp(fraction + 8.0, exponent - 10))
    size[codes & 127 == 127] = np.nan
    return np.where(codes & 128, -size, size).astype(np.float32)


_E4M3FN = _e4m3fn()

# Their bits, by the names that PyTorch has for them.
BITS = {
    "bfloat16": np.dtype(np.uint16),
    "float8_e5m2": np.dtype(np.uint8),
    "float8_e4m3fn": np.dtype(np.uint8),
}
