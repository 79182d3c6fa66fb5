"""Running sums and products by the driver: one pass, in which totals of short dtypes are long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loops import address_of
from reactgrad.backend.numpy._sums import ALONE


class Pass:
    """A call of the driver, with the arrays whose addresses it has."""

    __slots__ = ("_call", "operands")

    def __init__(self, call: Callable[[], object], operands: Sequence[Any]) -> None:
        self._call = call
        self.operands = operands  # they keep the arrays at the addresses alive

    def __call__(self) -> None:
        self._call()


def _bind(
    product: bool, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object] | None:
    (x,), (axis, backwards) = inputs, attrs
    call = getattr(find_driver(), "accumulate", None)
    at = axis % x.ndim if x.ndim else 0
    if (
        call is None
        or x.dtype != out.dtype
        or x.dtype.char not in "fd"
        or not out.size
        or (x.dtype.char == "f" and x.shape[at] <= ALONE)  # NumPy's own floats are as exact there
        or not all(
            type(one) is np.ndarray and one.flags.c_contiguous and one.flags.aligned
            for one in (x, out)
        )
    ):
        return None
    places = prod(x.shape[:at]), x.shape[at], prod(x.shape[at + 1 :])
    row = address_of(x), address_of(out), *places, x.itemsize, backwards, product
    return Pass(partial(call, *row), (x, out))


register_binder("cumsum", "jit", partial(_bind, False))
register_binder("cumprod", "jit", partial(_bind, True))
