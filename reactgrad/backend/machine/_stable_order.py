"""Stable orders by NumPy's fastest sort, which is not stable, and a pass of the driver after it: see ``_order.h``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import Binder, find_binder, register_binder
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loops import address_of
from reactgrad.backend.numpy._ordering import FEWEST_IN_TWO_SORTS, settled

# Along shorter axes a stable sort takes no longer.
FEWEST: Final = 24


def _bind(
    otherwise: Binder, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object]:
    (x,), (axis, order, descending) = inputs, attrs
    settle = getattr(find_driver(), "settle", None)
    step = otherwise(inputs, out, attrs)
    if (
        settle is None
        or order != "stable"
        or descending
        or type(x) is not np.ndarray
        or x.ndim == 0
        or axis not in (-1, x.ndim - 1)
        or not x.size
        or x.shape[-1] < FEWEST
        # One or two bytes are counted, which is faster still.
        or x.dtype.kind not in "iuf"
        or x.itemsize not in (4, 8)
        or not (x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative)
        or np.dtype(np.intp).itemsize != 8
    ):
        return step
    return partial(_sort, settle, x, out, step)


def _sort(settle: Callable[..., bool], x: Any, out: Any, otherwise: Callable[[], object]) -> None:
    found = x.argsort(-1)
    length = x.shape[-1]
    given = address_of(x), address_of(found), x.size // length, length, x.itemsize
    if settle(*given, x.dtype.kind == "f"):
        out[...] = found
    elif length >= FEWEST_IN_TWO_SORTS:
        out[...] = settled(found, x, -1)
    else:
        otherwise()


def use_quick_sort() -> None:
    """Bind ``argsort``, which has a binder, to this where there is a driver."""
    register_binder("argsort", "cpu", partial(_bind, find_binder("argsort", "cpu")))
