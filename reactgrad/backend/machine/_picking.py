"""Elements of rows by their numbers, and back: calls of the driver, each with its check of the numbers.

They are no instructions of a program, as a number that no row has must raise at its own node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import register_binder
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loops import address_of


class Checked:
    """A call that returns whether its numbers are in their rows; if they are not, the check raises."""

    __slots__ = ("_call", "_check", "operands")

    def __init__(
        self, call: Callable[[], bool], check: Callable[[], None], operands: Sequence[Any]
    ) -> None:
        self._call, self._check = call, check
        self.operands = operands  # they keep the arrays at the addresses alive

    def __call__(self) -> None:
        if not self._call():
            self._check()


def _bound(name: str, rows: Any, numbers: Any, chosen: Any, axis: int) -> Checked | None:
    """Return the call for arrays of this layout; ``None`` if the driver cannot take it."""
    call = getattr(find_driver(), name, None)
    arrays = (rows, numbers, chosen)
    if (
        call is None
        or not all(
            type(one) is np.ndarray and one.flags.c_contiguous and one.flags.aligned
            for one in arrays
        )
        or rows.dtype != chosen.dtype
        or rows.itemsize not in (4, 8)
        or numbers.dtype != np.int64
        or chosen.shape != numbers.shape
    ):
        return None
    at = axis % rows.ndim
    outer, length, inner = prod(rows.shape[:at]), rows.shape[at], prod(rows.shape[at + 1 :])
    places = [*map(address_of, arrays), outer, length, inner, rows.itemsize]
    return Checked(partial(call, *places), numbers_check(numbers, rows.shape, axis), arrays)


def _bind_pick(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Checked | None:
    x, numbers = inputs
    return _bound("pick", x, numbers, out, *attrs)


def _bind_place(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Checked | None:
    g, numbers, _ = inputs
    return _bound("place", out, numbers, g, *attrs)


register_binder("pick", "jit", _bind_pick)
register_binder("place", "jit", _bind_place)
