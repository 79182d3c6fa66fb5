"""Kernels that join the rows of segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._scatter import adder, bind_rows, positions
from reactgrad.backend.numpy._sums import WIDER

Call = Callable[[], object]


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def bind_segment_sum(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        data, numbers = inputs
        check = numbers_check(numbers, out.shape, 0)
        index = attrs[1]
        if xp is not np:

            def simple() -> None:
                check()
                out.fill(0)
                xp.add.at(out, numbers, data.astype(out.dtype))

            return simple
        short = bind_rows([(data, index, (numbers,))], out)
        add, wide = adder(data, index, (numbers,), out.shape), WIDER.get(out.dtype.char)

        def segment_sum() -> None:
            check()
            if short is not None:
                short()
            elif wide is None:
                out.fill(0)
                add(out)
            else:
                total = np.zeros(out.shape, wide)
                add(total)
                np.copyto(out, total, "same_kind")

        return segment_sum

    def bind_extremum(ufunc: Any, most: bool) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            data, numbers = inputs
            check = numbers_check(numbers, out.shape, 0)
            at = positions(out.shape, attrs[1], (numbers,)) if xp is np else None
            empty = _least(out.dtype) if most else _most(out.dtype)

            def extremum() -> None:
                check()
                out.fill(empty)
                if at is None:
                    ufunc.at(out, numbers, data)
                else:
                    ufunc.at(out.reshape(-1), at().reshape(-1), data.reshape(-1))

            return extremum

        return bind

    register_binder("segment_sum", kind, bind_segment_sum)
    register_binder("segment_max", kind, bind_extremum(xp.maximum, True))
    register_binder("segment_min", kind, bind_extremum(xp.minimum, False))


def _least(dtype: Any) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    if dtype.kind == "f":
        return np.inf
    return True if dtype.kind == "b" else np.iinfo(dtype).max
