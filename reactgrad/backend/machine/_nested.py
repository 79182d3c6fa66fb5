"""Instructions for steps that one loop over elements does not do: by rows, and products of matrices.

They call loops of the driver, which call NumPy's own in turn, so bits are the same. Only the driver has them, the
machine of numba has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.machine._code import HEAD, OPERANDS, row, rows
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loops import Loop, address_of, find_loop

# Products of more multiplications gain nothing, and an interrupt should not wait for them.
MOST_PRODUCTS: Final = 1 << 18

# Results of these are exact, or rounded once: they do not depend on how elements are divided among calls.
_EXACT: Final = frozenset(
    getattr(np, name)
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "positive", "negative"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_not", "absolute", "sqrt", "square", "isnan"),
    )
)


class Strided(NamedTuple):
    """An operand of a loop over rows: its address, the bytes from row to row, and from element to element."""

    address: int
    outer: int
    inner: int


def by_rows(
    loop: Loop, operands: Sequence[Strided], count: int, size: int, extent: int
) -> bytes | None:
    """Return the instruction that calls a loop once for each row, the result last; see ``by_rows`` of the driver.

    Parameters
    ----------
    count, size : int
        The number of rows, and of the elements of each.
    extent : int
        The number of bytes of the result.
    """
    driver = _loop("by rows")
    if driver is None:
        return None
    last = operands[-1].address
    addresses = [one.address for one in operands]
    steps = [one.inner for one in operands] + [one.outer for one in operands]
    numbers = [*addresses, count, size, *loop, last]
    # The last step is 0, so that no thread takes the row for one whose elements may be shared.
    steps += [0] * (len(numbers) - len(steps))
    return row(driver, len(operands), count * size, numbers, steps, extent)


@cache
def _loop(name: str) -> int | None:
    driver = find_driver()
    return None if driver is None else driver.LOOPS.get(name)


def broadcast(ufunc: np.ufunc, inputs: Sequence[Any], out: Any) -> bytes | None:
    """Return the instruction for an exact elementwise `ufunc` whose operands two steps reach each."""
    if ufunc not in _EXACT or not all(type(one) is np.ndarray for one in inputs):
        return None
    loop = find_loop(ufunc, "".join([one.dtype.char for one in (*inputs, out)]))
    if loop is None:
        return None
    try:
        arrays = [*(np.broadcast_to(one, out.shape) for one in inputs), out]
    except ValueError:  # the step itself will say so
        return None
    if not all(one.flags.aligned for one in arrays):
        return None
    axes = _joined(out.shape, [one.strides for one in arrays])
    if len(axes) > 2:
        return None
    none = [0] * len(arrays)
    axes = [*[(1, none)] * (2 - len(axes)), *axes]
    # The longer rows; where both are as long, those that lie in memory so.
    (count, outer), (size, inner) = axes
    if count > size:
        count, outer, size, inner = size, inner, count, outer
    found = [Strided(address_of(array), *steps) for array, *steps in zip(arrays, outer, inner)]
    return by_rows(loop, found, count, size, out.nbytes) if out.flags.c_contiguous else None


def _joined(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
    """Return axes with the strides of all operands, where those that one step reaches are one axis."""
    found: list[tuple[int, list[int]]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        steps = [one[axis] for one in strides]
        if found and all(
            before == step * length for before, step in zip(found[-1][1], steps, strict=True)
        ):
            found[-1] = (found[-1][0] * length, steps)
        else:
            found.append((length, steps))
    return found


def reduced(ufunc: np.ufunc, x: Any, axis: Any, out: Any) -> bytes | None:
    """Return the instruction that adds (or the like) all rows, or each row, to what the result has.

    In the order in which NumPy does it: row by row if it reduces the first axes, and within each row by its
    own loop if it reduces the last ones.
    """
    char = x.dtype.char
    loop = find_loop(ufunc, 3 * char)
    fits = out.dtype == x.dtype and x.flags.c_contiguous and out.flags.c_contiguous
    if loop is None or not fits or not (x.flags.aligned and out.flags.aligned) or not x.size:
        return None
    axes = {one % x.ndim for one in ([axis] if isinstance(axis, int) else axis)}
    stay = [one for one in range(x.ndim) if one not in axes and x.shape[one] > 1]
    go = [one for one in axes if x.shape[one] > 1]
    item, size = x.itemsize, out.size
    count = x.size // size
    if go and stay and max(stay) < min(go):
        # Each row by itself.
        total = Strided(address_of(out), item, 0)
        terms = Strided(address_of(x), item * count, item)
        return by_rows(loop, [total, terms, total], size, count, out.nbytes)
    if not go or (stay and max(go) < min(stay)):
        total = Strided(address_of(out), 0, item)
        terms = Strided(address_of(x), item * size, item)
        return by_rows(loop, [total, terms, total], count, size, out.nbytes)
    return None


def product(x: Any, y: Any, out: Any) -> bytes | None:
    """Return the instruction for the product of two matrices: the loop of ``np.matmul``."""
    driver = _loop("product")
    arrays = (x, y, out)
    if driver is None or not all(type(one) is np.ndarray and one.ndim == 2 for one in arrays):
        return None
    loop = find_loop(np.matmul, "".join([one.dtype.char for one in arrays]))
    (rows, inner), columns = x.shape, y.shape[1]
    work = rows * inner * columns
    if loop is None or not 0 < work <= MOST_PRODUCTS or not out.flags.c_contiguous:
        return None
    steps: list[int] = []
    for one in arrays:
        flags, item = one.flags, one.itemsize
        if not flags.aligned or not (flags.c_contiguous or flags.f_contiguous):
            return None
        first, last = one.shape
        steps += (last * item, item) if flags.c_contiguous else (item, first * item)
    numbers = [*map(address_of, arrays), rows, inner, columns, *loop, address_of(out)]
    return row(driver, 0, work, numbers, [*steps, 0, 0, 0], out.nbytes)


def places_of_addresses(code: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the positions of the words of a code that are addresses of arrays, as an array of int64."""
    driver = find_driver()
    if driver is not None:
        first = address_of(code)
        return np.frombuffer(driver.places(first, first + code.nbytes), np.int64)
    found: list[int] = []  # no instruction nests a loop without the driver
    begin = 0
    for one in rows(code.tolist()):
        found += range(begin + HEAD, begin + HEAD + one[OPERANDS])
        begin += len(one)
    return np.array(found, np.int64)
