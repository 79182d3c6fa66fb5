"""Kernels that join the rows of segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import Direct, register_binder
from reactgrad.backend.numpy._scatter import adder, bind_rows, places
from reactgrad.backend.numpy._sums import WIDER

Call = Callable[[], object]

NAMES = ("segment_sum", "segment_max", "segment_min")


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy.

    Elsewhere than on the host numbers are not checked: an error would have to wait for it.
    """
    for name, bind in _binders(xp).items():
        register_binder(name, kind, _as_many(xp, bind, name == "segment_sum"))


def _as_many(xp: Any, bind: Callable[..., Call], adds: bool) -> Callable[..., Call]:
    """Return a binder that counts the segments itself where nobody has."""

    def counted(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        if out is not None:
            return bind(inputs, out, attrs)

        def segments() -> Any:
            data, numbers = inputs
            many = int(xp.max(numbers).item()) + 1 if numbers.size else 0
            dtype = np.add.reduce(np.zeros(0, data.dtype)).dtype if adds else data.dtype
            found = xp.empty((max(many, 0), *data.shape[1:]), dtype)
            bind(inputs, found, attrs)()
            return found

        return segments

    return counted


def _binders(xp: Any) -> dict[str, Callable[..., Call]]:
    if xp is np:
        return {
            "segment_sum": _bind_sum,
            "segment_max": _extremum(np.maximum, _least),
            "segment_min": _extremum(np.minimum, _most),
        }

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

    return {
        "segment_sum": Direct(total),
        "segment_max": Direct(extremum(xp.maximum, _least)),
        "segment_min": Direct(extremum(xp.minimum, _most)),
    }


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
        at: Any = places(out.shape, attrs[1], (numbers,))

        def extremum() -> None:
            check()
            out.fill(least)
            ufunc.at(out.reshape(-1), at.flat().reshape(-1), data.reshape(-1))

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
