"""Operands in the shape in which NumPy broadcasts them fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def stretched(inputs: Sequence[Any], out: Any) -> list[Any]:
    """The operands of an elementwise kernel, which broadcast to `out`, as views that do so, too.

    NumPy goes through arrays of one shape, and numbers without an axis beside them, in one loop. It takes
    two to four times as long for a small array whose operands broadcast in any other way, if only by axes
    of length 1. The loop, and so each bit, is the same.

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
    """Whether an array is one element, repeated.

    Not of half floats and complex numbers: the sign of a NaN, or the last bit, depends on how they lie.
    """
    plain = one.dtype.kind in "biuf" and one.dtype.char != "e"
    return bool(plain and one.size and not any(one.strides))
