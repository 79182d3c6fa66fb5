"""Whole numbers that leave their dtype: the result of a kernel is compared with that of Python's integers.

Kernels compute whole numbers as NumPy does, in int64 and the like, where results wrap around. Of single numbers
NumPy warns; a node of one number does so, too, and names its line. Of arrays NumPy says nothing, since it would
cost as much as the kernel, and neither do nodes of arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from reactgrad.backend import Binder
from reactgrad.scheduler import Step

_BEYOND: Final = 2**128  # in place of numbers that are at least so large


def _power(base: int, exponent: int) -> int:
    return _BEYOND if abs(base) > 1 and exponent > 64 else base**exponent


def _floor_divide(number: int, by: int) -> int:
    return number // by if by else 0  # as NumPy's


def _left_shift(number: int, by: int) -> int:
    return number << by if by <= 64 else number and _BEYOND


def _sum(array: Any) -> int:
    return sum(array.ravel().tolist())


def _prod(array: Any) -> int:
    if not (array.size and array.all()):
        return int(not array.size)
    if np.log2(np.abs(array.astype(np.float64))).sum() > 128:
        return _BEYOND
    return math.prod(array.ravel().tolist())


def _matmul(one: Any, other: Any) -> int:
    return sum(map(operator.mul, one.ravel().tolist(), other.ravel().tolist()))


_OF_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "absolute": abs,
    "square": lambda number: number * number,
    "power": _power,
    "floor_divide": _floor_divide,
    "left_shift": _left_shift,
}
_OF_ARRAYS: Final[dict[str, Callable[..., int]]] = {"sum": _sum, "prod": _prod, "matmul": _matmul}


def compared(name: str, binder: Binder, tell: Callable[[Any], object]) -> Binder:
    """Return the binder of an op of one whole number, with steps that tell the dtype which the number has left."""
    exact, of_arrays = _OF_NUMBERS.get(name), False
    if exact is None:
        exact, of_arrays = _OF_ARRAYS.get(name), True
    if exact is None:
        return binder

    def bind(inputs: Sequence[Any], out: Any, attrs: Any) -> Step:
        step = binder(inputs, out, attrs)
        operands = [np.asarray(one) for one in inputs]

        def compute() -> object:
            # Before the step, which may write over an operand.
            if of_arrays:
                meant = exact(*operands) if _may_leave(name, operands, out) else None
            else:
                meant = exact(*[int(one.item()) for one in operands])
            done = step()
            if meant is not None and meant != out.item():
                tell(out.dtype)
            return done

        return compute

    return bind


def _may_leave(name: str, arrays: Sequence[Any], out: Any) -> bool:
    """Return whether a reduction of arrays may leave the dtype. Their values are looked at only if that decides."""
    size = arrays[0].size
    for bound_of in (_most, _largest):
        bounds = [bound_of(one) for one in arrays]
        if name == "prod":
            may = bounds[0] > 1 and size * math.log2(bounds[0]) >= np.iinfo(out.dtype).bits - 1
        else:
            may = size * math.prod(bounds) > np.iinfo(out.dtype).max
        if not may:
            return False
    return True


def _most(array: Any) -> int:
    """Return what the dtype allows, in size."""
    return 1 if array.dtype.kind == "b" else -int(np.iinfo(array.dtype).min) or _BEYOND


def _largest(array: Any) -> int:
    """Return the largest element, in size."""
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0
