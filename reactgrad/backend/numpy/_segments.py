"""Kernels that join the rows of segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._scatter import adder, bind_rows, positions
from reactgrad.backend.numpy._sums import WIDER

Call = Callable[[], object]

NAMES = ("segment_sum", "segment_max", "segment_min")


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy.

    Elsewhere than on the host numbers are not checked: an error would have to wait for it.
    """
    if xp is np:
        register_binder("segment_sum", kind, _bind_sum)
        register_binder("segment_max", kind, _extremum(np.maximum, _least))
        register_binder("segment_min", kind, _extremum(np.minimum, _most))
        return

    def total(data: Any, numbers: Any, out: Any, *attrs: Any) -> None:
        out.fill(0)
        parts = (
            [(out, data)]
            if out.dtype.kind != "c"
            else [(out.real, data.real), (out.imag, data.imag)]
        )
        for target, part in parts:
            xp.add.at(target, numbers, part.astype(target.dtype))

    def extremum(ufunc: Any, empty: Callable[[Any], Any]) -> Callable[..., None]:
        def kernel(data: Any, numbers: Any, out: Any, *attrs: Any) -> None:
            out.fill(empty(out.dtype))
            ufunc.at(out, numbers, data)

        return kernel

    register_kernel("segment_sum", kind, total)
    register_kernel("segment_max", kind, extremum(xp.maximum, _least))
    register_kernel("segment_min", kind, extremum(xp.minimum, _most))


def _bind_sum(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    data, numbers = inputs
    check = numbers_check(numbers, out.shape, 0)
    index = attrs[1]
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


def _extremum(ufunc: Any, empty: Callable[[Any], Any]) -> Callable[..., Call]:
    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        data, numbers = inputs
        check, least = numbers_check(numbers, out.shape, 0), empty(out.dtype)
        at: Any = positions(out.shape, attrs[1], (numbers,))

        def extremum() -> None:
            check()
            out.fill(least)
            ufunc.at(out.reshape(-1), at().reshape(-1), data.reshape(-1))

        return extremum

    return bind


def _least(dtype: Any) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    if dtype.kind == "f":
        return np.inf
    return True if dtype.kind == "b" else np.iinfo(dtype).max
