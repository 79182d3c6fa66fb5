"""The form of the kernels of special functions: they are computed in float64 and rounded once, by blocks.

Such a kernel is written as a function of arrays of float64 of one length, which returns a new array and
never writes into an operand. All it makes on its way stays in the cache, since a block is short. The result
for an element depends on that element alone: all is elementwise, and each element has the formula of
its own range. It has the same bits whether SciPy is installed or not.

NumPy's functions pass arrays of CuPy on to CuPy, so that the same functions are its kernels, without blocks and
without a call that waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import Binder

# Two rows fit into a second-level cache; see ``_erf``.
_BLOCK: Final = 8192
# On so few elements Python's numbers are faster than a call of NumPy for each coefficient.
_FEW: Final = 24

Function = Callable[..., Any]
Range = tuple[float, Function]


def numbers(text: str) -> tuple[float, ...]:
    """Return the coefficients that are written in a text, highest power first."""
    return tuple(map(float, text.split()))


def polynomial(coefficients: Sequence[float], t: Any) -> Any:
    """Return the values of a polynomial, highest power first, by Horner's scheme.

    Few elements are computed one by one. The operations are the same, and so are the bits.
    """
    first, *rest = coefficients
    if t.size <= _FEW and t.dtype == np.float64 and type(t) is np.ndarray:
        found = []
        for one in t.tolist():
            value = first
            for coefficient in rest:
                value = value * one + coefficient
            found.append(value)
        return np.array(found, np.float64).reshape(t.shape)
    value = np.full_like(t, first)
    for coefficient in rest:
        np.multiply(value, t, value)
        np.add(value, coefficient, value)
    return value


def on_interval(coefficients: Sequence[float], low: float, high: float, x: Any) -> Any:
    """Return the values of a polynomial in ``t``, which goes from -1 to 1 as `x` goes from `low` to `high`."""
    return polynomial(coefficients, (x - (low + high) / 2.0) * (2.0 / (high - low)))


def by_ranges(ranges: Sequence[Range], x: Any, *others: Any) -> Any:
    """Return the values of functions, each in its range of `x`.

    Parameters
    ----------
    ranges : sequence of (float, function)
        Pairs of the upper end of a range, which does not belong to it, and the function there. They
        rise; the last function is also that of NaN, whatever its end is.
    x : array of float64
        Chooses the ranges.
    *others : array of float64
        Further operands of the functions, of the same shape.
    """
    if type(x) is not np.ndarray:
        # On a device, where the host does not know who is in which range: all ranges for all elements.
        out = ranges[-1][1](x, *others)
        for end, function in reversed(ranges[:-1]):
            out = np.where(x < end, function(x, *others), out)
        return out
    which = np.zeros(x.shape, np.int8)
    for end, _ in ranges[:-1]:
        which += ~(x < end)
    first, last = (int(which.min()), int(which.max())) if x.size else (0, 0)
    if first == last:
        return ranges[first][1](x, *others)
    out = np.empty_like(x)
    for i in range(first, last + 1):
        places = np.flatnonzero(which == i)
        if places.size:
            out[places] = ranges[i][1](*[one[places] for one in (x, *others)])
    return out


def binder(function: Function) -> Binder:
    """Return the binder of a kernel ``kernel(*inputs, out, *attrs)`` that is a function of float64 arrays."""
    return partial(_bind, function, False)


def short_binder(function: Function) -> Binder:
    """Return the same, which computes float16 and float32 in float32: faster, and a few ulps less exact."""
    return partial(_bind, function, True)


def _bind(
    function: Function, short: bool, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object]:
    dtype = np.dtype(np.float32 if short and out.dtype.char in "ef" else np.float64)
    if type(out) is not np.ndarray:
        return partial(_on_device, function, dtype, inputs, out, attrs)
    one_block = 0 < out.size <= _BLOCK and out.flags.c_contiguous
    if one_block and all(_plain(one, out, dtype) for one in inputs):
        rows = [one.reshape(-1) for one in inputs]
        return partial(_compute, function, (*rows, *attrs), out.reshape(-1))
    return partial(_by_blocks, function, dtype, inputs, out, attrs)


def _plain(x: Any, out: Any, dtype: Any) -> bool:
    return x.shape == out.shape and x.dtype == dtype and x.flags.c_contiguous


def _compute(function: Function, operands: tuple[Any, ...], out: Any) -> None:
    np.copyto(out, function(*operands), "unsafe")


def _on_device(
    function: Function, dtype: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> None:
    found = function(*[one.astype(dtype, copy=False) for one in inputs], *attrs)
    np.copyto(out, found, "unsafe")


def _by_blocks(
    function: Function, dtype: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> None:
    rows = [np.broadcast_to(one, out.shape).reshape(-1) for one in inputs]
    target = out.reshape(-1) if out.flags.c_contiguous else np.empty(out.size, out.dtype)
    for start in range(0, out.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        parts = [row[block].astype(dtype, copy=False) for row in rows]
        np.copyto(target[block], function(*parts, *attrs), "unsafe")
    if not out.flags.c_contiguous:
        out[...] = target.reshape(out.shape)
