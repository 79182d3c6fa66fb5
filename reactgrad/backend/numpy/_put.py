"""Kernels of values in which some parts are replaced or changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER

_UFUNCS = {"max": "maximum", "min": "minimum"}


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def bind_put(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        x, *indices, v = inputs
        index, how, distinct = attrs
        at = index.filled([None, *indices], g.shape)
        copy = partial(xp.copyto, out, x)
        if how == "set":
            return InTurn(copy, partial(out.__setitem__, at, v))
        ufunc = getattr(xp, _UFUNCS.get(how, how))
        if index.basic:
            part = out[at if Ellipsis in at else (*at, ...)]
            return InTurn(copy, partial(ufunc, part, v, part))
        if distinct:

            def change() -> None:
                xp.copyto(out, x)
                out[at] = ufunc(out[at], v)

            return change
        # So many may be added to one place that the errors of a short dtype could be seen.
        wide = WIDER.get(out.dtype.char) if how in ("add", "subtract") else None
        if wide is not None and (out.dtype.char == "e" or v.size > ALONE or indices):

            def add() -> None:
                total = x.astype(wide)
                ufunc.at(total, at, v.astype(wide))
                xp.copyto(out, total, "same_kind")

            return add

        def repeat() -> None:
            xp.copyto(out, x)
            ufunc.at(out, at, v.astype(out.dtype, copy=False))

        return repeat

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
        if (times > 1).any():
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
