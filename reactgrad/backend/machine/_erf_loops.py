"""The kernels of ``numpy._erf`` as compiled loops, for graphs with ``jit``: the same bits in one pass.

This module needs numba, and so is imported only where it is used. Numba compiles each loop when it is first
used, and keeps it on disk until this file changes: if coefficients in ``_erf`` change, save this file, too.

Formulas, ranges and the order of operations are those of ``_erf``. Exponentials are computed by NumPy's own
loop, for a stretch of elements at a time.
"""

from __future__ import annotations

from functools import cache
from math import copysign
from typing import Any, Final

import numpy as np
from numba import cfunc, njit, types

from reactgrad.backend.machine._machine import call_loop, read_64
from reactgrad.backend.numpy import _erf

# The number of elements of a stretch: all intermediate results for them stay in the first-level cache.
_STRETCH: Final = 256


def _compile(function: Any) -> Any:
    return njit(nogil=True, error_model="numpy")(function)


def _coefficients(ratio: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of numerator and denominator, the highest power first."""
    return tuple(map(float, ratio.numerator)), (1.0, *map(float, ratio.denominator))


_NORM_NEAR: Final = _coefficients(_erf.NORM_NEAR)
_ERFC_NEAR: Final = _coefficients(_erf.ERFC_NEAR)
_ERF_NEAR: Final = _coefficients(_erf.ERF_NEAR)
_FAR: Final = _coefficients(_erf.FAR)
_NORM_SCALE: Final = _erf.NORM.far_scale
_ERFC_SCALE: Final = _erf.ERFC.far_scale
_ERF_REACH: Final = _erf.ERF_REACH
_EXPONENT_REACH: Final = _erf.EXPONENT_REACH


@_compile
def _divide(ratio: Any, z: Any) -> Any:
    top, bottom = ratio[0][0], ratio[1][0]
    for c in ratio[0][1:]:
        top = top * z + c
    for c in ratio[1][1:]:
        bottom = bottom * z + c
    return top / bottom


@_compile
def _exp(numbers: Any, row: Any, size: int, loop: int) -> None:
    """Replace the first `size` of `numbers` by their exponentials; `row` holds the loop's arguments.

    The caller must own both arrays: numba frees an array made here after its last use, and does not
    count the use of its address.
    """
    row[0] = row[1] = numbers.ctypes.data
    row[2], row[3], row[4] = size, 8, 8
    args = row.ctypes.data
    data = read_64(loop + 8)
    call_loop(read_64(loop), args, args + 16, args + 24, data)  # pyright: ignore[reportCallIssue]


@_compile
def _tail(
    z: Any,
    places: Any,
    found: int,
    small: Any,
    parts: Any,
    row: Any,
    loop: int,
    rate: float,
    scale: float,
) -> None:
    """Write the function on its small side at the first `found` of `places`, where z is large."""
    for k in range(found):
        one = min(z[places[k]], 40.0)
        high = np.float64(np.float32(one))
        parts[k] = rate * high * high
        parts[found + k] = rate * (one - high) * (one + high)
    _exp(parts, row, 2 * found, loop)
    for k in range(found):
        one = min(z[places[k]], 40.0)
        exponential = parts[k] * parts[found + k]
        small[places[k]] = _divide(_FAR, one * one * (-2.0 * rate)) * exponential / (one * scale)


@_compile
def _upper(
    args: Any, count: int, loop: int, rate: float, near: Any, scale: float, rises: bool
) -> None:
    """Compute ``norm_cdf`` if `rises`, small on the left, or else ``erfc``, small on the right."""
    x, out = args[0], args[1]
    z, small, exponents = np.empty(_STRETCH), np.empty(_STRETCH), np.empty(_STRETCH)
    places, parts, row = np.empty(_STRETCH, np.int64), np.empty(2 * _STRETCH), np.empty(5, np.int64)
    for begin in range(0, count, _STRETCH):
        size = min(_STRETCH, count - begin)
        far = 0
        for i in range(size):
            one = np.float64(x[begin + i])
            z[i] = abs(one)
            exponents[i] = one * rate * one
            far += exponents[i] <= _EXPONENT_REACH
        for i in range(size):
            small[i] = _divide(near, z[i])
        if far:
            far = 0
            for i in range(size):
                if exponents[i] <= _EXPONENT_REACH:
                    places[far] = i
                    far += 1
        _exp(exponents, row, size, loop)
        for i in range(size):
            small[i] *= exponents[i]
        if far:
            _tail(z, places, far, small, parts, row, loop, rate, scale)
        for i in range(size):
            one = np.float64(x[begin + i])
            if rises:
                out[begin + i] = (0.5 + copysign(0.5, one)) - copysign(small[i], one)
            else:
                out[begin + i] = (1.0 - copysign(1.0, one)) + copysign(small[i], one)


def _norm_cdf(args: Any, sizes: Any, steps: Any, loop: int) -> None:
    _upper(args, sizes[0], loop, -0.5, _NORM_NEAR, _NORM_SCALE, True)


def _erfc(args: Any, sizes: Any, steps: Any, loop: int) -> None:
    _upper(args, sizes[0], loop, -1.0, _ERFC_NEAR, _ERFC_SCALE, False)


def _erf_each(args: Any, sizes: Any, steps: Any, loop: int) -> None:
    x, out = args[0], args[1]
    places, parts, row = np.empty(_STRETCH, np.int64), np.empty(_STRETCH), np.empty(5, np.int64)
    square = np.empty(_STRETCH)
    for begin in range(0, sizes[0], _STRETCH):
        size = min(_STRETCH, sizes[0] - begin)
        far = 0
        for i in range(size):
            one = np.float64(x[begin + i])
            square[i] = one * one
            far += square[i] >= _ERF_REACH
        for i in range(size):
            out[begin + i] = np.float64(x[begin + i]) * _divide(_ERF_NEAR, square[i])
        if far:
            far = 0
            for i in range(size):
                if square[i] >= _ERF_REACH:
                    places[far] = begin + i
                    one = min(abs(np.float64(x[begin + i])), 6.5)
                    parts[far] = -one * one
                    far += 1
            _exp(parts, row, far, loop)
            for k in range(far):
                one = np.float64(x[places[k]])
                small = parts[k] * _divide(_ERFC_NEAR, min(abs(one), 6.5))
                out[places[k]] = copysign(1.0 - small, one)


_LOOPS: Final = {"norm_cdf": _norm_cdf, "erfc": _erfc, "erf": _erf_each}


@cache
def address(name: str, dtype: str) -> int | None:
    """Return the address of the loop of this name for floats of a dtype; ``None`` if there is none."""
    of = {"d": types.float64, "f": types.float32}.get(dtype)
    if of is None:
        return None
    numbers = types.CPointer(types.intp)
    form = types.void(types.CPointer(types.CPointer(of)), numbers, numbers, types.intp)
    return cfunc(form, cache=True, error_model="numpy")(_LOOPS[name]).address
