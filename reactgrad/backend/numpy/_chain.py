"""Kernels of ``chain_times`` and ``chain_over``: a product and a quotient in which 0 wins.

Only a NaN can be wrong, and usually there is none. To look for one costs less than to choose between
two results for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend.numpy._in_turn import InTurn

# On so few elements a dot product finds a NaN faster than a minimum.
_FEW: Final = 512

# By kernel: how many of its factors win if they are 0.
_WINNING: Final = {np.multiply: 2, np.divide: 1}


def bind_times(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
    """Return the step that multiplies, with 0 where either factor is 0."""
    a, b = inputs
    return _bind(np.multiply, a, b, out)


def bind_over(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
    """Return the step that divides, with 0 where the dividend is 0."""
    g, x = inputs
    return _bind(np.divide, g, x, out)


def times(a: Any, b: Any, out: Any) -> None:
    """Write the product into `out`."""
    _many(np.multiply, a, b, out)


def over(g: Any, x: Any, out: Any) -> None:
    """Write the quotient into `out`."""
    _many(np.divide, g, x, out)


def _bind(ufunc: np.ufunc, a: Any, b: Any, out: Any) -> Callable[[], object]:
    if out.size == 1:
        return partial(_one, ufunc, a, b, out)
    if out.size <= _FEW and out.dtype.char in "fd" and out.flags.c_contiguous:
        return partial(_few, ufunc, a, b, out, out.reshape(-1), np.empty((), out.dtype))
    return partial(_many, ufunc, a, b, out)


def _one(ufunc: np.ufunc, a: Any, b: Any, out: Any) -> None:
    ufunc(a, b, out)
    found = out.item()
    if found != found:
        _mend(ufunc, a, b, out)


def _few(ufunc: np.ufunc, a: Any, b: Any, out: Any, row: Any, total: Any) -> None:
    ufunc(a, b, out)
    np.dot(row, row, total)  # NaN if there is one, and else a number or infinite
    found = total.item()
    if found != found:
        _mend(ufunc, a, b, out)


def _many(ufunc: np.ufunc, a: Any, b: Any, out: Any) -> None:
    ufunc(a, b, out)
    if out.size and np.isnan(np.minimum.reduce(out, None)):
        _mend(ufunc, a, b, out)


def _mend(ufunc: np.ufunc, a: Any, b: Any, out: Any) -> None:
    wins = np.equal(a, 0)
    if _WINNING[ufunc] == 2:
        wins = np.logical_or(wins, np.equal(b, 0))
    np.copyto(out, 0.0, where=np.logical_and(np.isnan(out), wins))


def plain_calls(ufunc: np.ufunc, a: Any, b: Any, out: Any) -> InTurn:
    """Return a step of the same result that makes the same calls each time, for the register machine."""
    wins, bad = np.empty(out.shape, bool), np.empty(out.shape, bool)
    zero = np.zeros((), out.dtype)
    # Comparisons with the mask at the end: where neither wins the result stays as it is.
    if _WINNING[ufunc] == 2:
        free = np.empty(out.shape, bool)
        found = [partial(np.logical_and, a, b, free), partial(np.logical_not, free, wins)]
    else:
        found = [partial(np.equal, a, zero, wins)]
    both = np.empty(out.shape, bool)
    return InTurn(
        partial(ufunc, a, b, out),
        *found,
        partial(np.isnan, out, bad),
        partial(np.logical_and, wins, bad, both),
        partial(np.copyto, out, zero, "same_kind", both),
    )
