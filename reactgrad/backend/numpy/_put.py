"""Kernels of values in which some parts are replaced or changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy import _scatter
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER

_UFUNCS = {"max": "maximum", "min": "minimum"}


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def bind_put(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        x, *indices, v = inputs
        index, how, distinct = attrs
        ufunc: Any = None if how == "set" else getattr(xp, _UFUNCS.get(how) or how)
        if index.basic:
            part = out[index.parts if Ellipsis in index.parts else (*index.parts, ...)]
            step: Any = (
                partial(xp.copyto, part, v, "unsafe")
                if ufunc is None
                else partial(ufunc, part, v, out=part)
            )
            return InTurn(partial(xp.copyto, out, x), step)
        if how == "add":
            return bind_add(x, v, index, indices, distinct, out)

        def change() -> None:
            xp.copyto(out, x)
            at = index.filled([None, *indices], x.shape)
            if ufunc is None:
                out[at] = v
            elif distinct:
                out[at] = ufunc(out[at], v)
            else:
                ufunc.at(out, at, v.astype(out.dtype, copy=False))

        return change

    def bind_add(
        x: Any, v: Any, index: Any, indices: Sequence[Any], distinct: bool, out: Any
    ) -> Callable[[], object]:
        def add_at(target: Any) -> None:
            at = index.filled([None, *indices], x.shape)
            xp.add.at(target, at, v.astype(target.dtype, copy=False))

        add_to = _scatter.adder(v, index, indices, x.shape) if xp is np else add_at

        # So many may be added to one place that the errors of a short dtype could be seen.
        wide = None if distinct else WIDER.get(out.dtype.char)
        if wide is not None and (out.dtype.char == "e" or v.size > ALONE):

            def add_up() -> None:
                total = x.astype(wide)
                add_to(total)
                xp.copyto(out, total, "same_kind")

            return add_up

        def add() -> None:
            xp.copyto(out, x)
            add_to(out)

        return add

    def winners(g: Any, *operands: Any) -> Any:
        *indices, out, index = operands
        at = index.filled([None, *indices], g.shape)
        found = g[at]
        numbers = xp.arange(found.size).reshape(found.shape)
        last = xp.empty(g.shape, numbers.dtype)
        last[at] = numbers
        found = xp.where(last[at] == numbers, found, xp.zeros((), g.dtype))
        if out is None:
            return found
        out[...] = found
        return None

    def distinct(g: Any, *operands: Any) -> Any:
        *indices, out, index = operands
        at = index.filled([None, *indices], g.shape)
        times = xp.zeros(g.shape, "i8")
        xp.add.at(times, at, 1)
        if xp is np and (times > 1).any():  # on a device the check would wait for the host
            raise IndexingError(
                "a place stands twice in an index of .multiply(...) or .power(...), and what each of the two "
                "does depends on the other: that has no gradient here. Multiply once for each, or join the "
                "factors first."
            )
        found = g[at]
        if out is None:
            return found
        out[...] = found
        return None

    register_binder("put", kind, bind_put)
    register_kernel("put_winners", kind, winners)
    register_kernel("gather_distinct", kind, distinct)
