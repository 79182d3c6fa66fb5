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
    return [
        one if type(one) is not np.ndarray else _stretched(one, shape, size) for one in inputs
    ]


def _stretched(one: Any, shape: tuple[int, ...], size: int) -> Any:
    if one.size == 1:
        return one.reshape(())
    if one.shape == shape:
        return one if any(one.strides) or one.dtype.char not in "fd" else _number(one)
    if one.size == size and one.flags.c_contiguous:
        return one.reshape(shape)
    return one


def _number(one: Any) -> Any:
    """The one element that an array repeats."""
    return one[(slice(0, 1),) * one.ndim].reshape(())
