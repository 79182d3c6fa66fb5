"""Operands of elementwise kernels, reshaped to what NumPy broadcasts fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def stretched(inputs: Sequence[Any], out: Any) -> list[Any]:
    """Return the operands of an elementwise kernel as views that broadcast to `out` as well, but faster.

    NumPy runs one loop over arrays of one shape, beside which numbers without an axis may stand. If the
    operands of a small array broadcast in any other way, even only by axes of length 1, it takes two to
    four times as long. The loop, and so each bit of the result, is the same.

    Examples
    --------
    >>> x, row, number = np.ones((1, 3)), np.ones(3), np.ones(1)
    >>> [one.shape for one in stretched([x, row, number], np.empty((1, 3)))]
    [(1, 3), (1, 3), ()]
    """
    shape, size = out.shape, out.size
    found: list[Any] = []
    for one in inputs:
        if type(one) is np.ndarray:
            if one.size == 1:
                one = one.reshape(())
            elif one.shape != shape:
                if one.size == size and one.flags.c_contiguous:
                    one = one.reshape(shape)
            elif not one.strides[-1] and repeats(one):
                one = one[(slice(0, 1),) * one.ndim].reshape(())
        found.append(one)
    return found


def repeats(one: Any) -> bool:
    """Return whether all elements of an array are one place in memory, so that a number may replace it.

    False for half floats and complex numbers, where the sign of a NaN, or the last bit of a result,
    depends on the layout of the operand.
    """
    plain = one.dtype.kind in "biuf" and one.dtype.char != "e"
    return bool(plain and one.size and not any(one.strides))
