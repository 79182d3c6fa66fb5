"""Kernels that reduce axes: products, deviations, norms, logarithms of sums, positions, truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import sum_step

Call = Callable[[], object]

NAMES: Final = (
    *("prod", "all", "any", "count_nonzero", "argmax", "argmin", "nanmax", "nanmin"),
    *("nanargmax", "nanargmin", "var", "std", "logsumexp", "norm"),
)


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace that mirrors NumPy."""

    def wide(dtype: Any) -> Any:
        return np.dtype("f4") if dtype.char == "e" else dtype

    def reduced(ufunc: Any) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            axis, keepdims = attrs
            return partial(ufunc.reduce, inputs[0], axis, None, out, keepdims)

        return bind

    def total(x: Any, axis: Any, out: Any, keepdims: bool) -> Call:
        careful = sum_step(x, axis, out) if xp is np else None
        return careful or partial(xp.add.reduce, x, axis, None, out, keepdims)

    def bind_prod(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (axis, keepdims) = inputs, attrs
        if out.dtype.char != "e":
            return partial(xp.multiply.reduce, x, axis, out.dtype, out, keepdims)
        scratch = xp.empty(out.shape, "f4")
        return InTurn(
            partial(xp.multiply.reduce, x, axis, scratch.dtype, scratch, keepdims),
            partial(xp.copyto, out, scratch, "same_kind"),
        )

    def bind_count(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (axis, keepdims) = inputs, attrs

        def count() -> None:
            out[...] = xp.count_nonzero(x, axis, keepdims=keepdims)

        return count

    def position(name: str) -> Callable[..., Call]:
        function = getattr(xp, name)

        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            axis, keepdims = attrs
            return partial(function, inputs[0], axis, out, keepdims=keepdims)

        return bind

    def deviations(x: Any, axis: Any, dtype: Any) -> tuple[Any, list[Call]]:
        """Return an array for the differences from the mean, and the calls that fill it."""
        kept = tuple(1 if axis is None or i in axis else n for i, n in enumerate(x.shape))
        average, apart = xp.empty(kept, dtype), xp.empty(x.shape, dtype)
        calls: list[Call] = []
        if x.dtype != dtype:
            own = apart
            calls = [partial(xp.copyto, own, x, "same_kind" if x.dtype.kind in "fc" else "unsafe")]
        else:
            own = x
        size = max(1, average.size)
        count = xp.asarray(x.size // size, dtype)
        calls += [
            total(own, axis, average, True),
            partial(xp.divide, average, count, average),
            partial(xp.subtract, own, average, apart),
        ]
        return apart, calls

    def bind_deviation(root: bool) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            (x,), (axis, keepdims, correction) = inputs, attrs
            dtype = wide(x.dtype if x.dtype.kind in "fc" else out.dtype)
            axes = tuple(range(x.ndim)) if axis is None else axis
            axes = tuple(i % x.ndim for i in (axes if isinstance(axes, tuple) else (axes,)))
            apart, calls = deviations(x, axes, dtype)
            if dtype.kind == "c":
                squares = xp.empty(x.shape, out.dtype)
                other = xp.empty(x.shape, out.dtype)
                calls += [
                    partial(xp.multiply, apart.real, apart.real, squares),
                    partial(xp.multiply, apart.imag, apart.imag, other),
                    partial(xp.add, squares, other, squares),
                ]
            else:
                squares = apart
                calls.append(partial(xp.multiply, apart, apart, apart))
            result = out if out.dtype == squares.dtype else xp.empty(out.shape, squares.dtype)
            count = x.size // out.size if out.size else 0
            least = xp.asarray(max(count - correction, 0), squares.dtype)
            calls += [
                total(squares, axes, result, keepdims),
                partial(xp.divide, result, least, result),
            ]
            if root:
                calls.append(partial(xp.sqrt, result, out))
            elif result is not out:
                calls.append(partial(xp.copyto, out, result, "same_kind"))
            return InTurn(*calls)

        return bind

    def bind_logsumexp(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, axis = inputs[0], attrs[0]
        dtype = wide(out.dtype)

        def run() -> None:
            own = x.astype(dtype, copy=False)
            most = xp.maximum.reduce(own, axis, None, None, True, -np.inf)
            most[~xp.isfinite(most)] = 0  # an infinite one or a NaN then shows in the sum
            below = own - most
            largest = below == 0
            many = xp.add.reduce(largest, axis, dtype, None, True)
            rest = xp.exp(below, below)
            rest -= largest  # their exponentials are 1, and counted apart
            sums = xp.empty(most.shape, dtype)
            total(rest, axis, sums, True)()
            none = many == 0
            many[none] = 1
            sums[none] -= 1
            rest = sums
            found = most + (xp.log(many) + xp.log1p(rest / many))
            xp.copyto(out, found.reshape(out.shape), "same_kind")

        return run

    def bind_norm(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (power, axis, keepdims) = inputs, attrs
        dtype = wide(out.dtype)
        terms = xp.empty(x.shape, dtype)
        result = out if dtype == out.dtype else xp.empty(out.shape, dtype)
        calls: list[Call]
        if power == 2 and x.dtype == dtype and axis is None and x.size and _in_one_piece(x):
            flat, number = x.reshape(-1), result.reshape(())
            if x.size <= 2048 or (dtype.char == "d" and x.size <= 8192):
                calls = [partial(xp.dot, flat, flat, number)]
                return InTurn(*calls, partial(xp.sqrt, result, out))
        if power == 2 and x.dtype.kind != "c":
            calls = [partial(xp.multiply, x, x, terms, dtype=dtype, casting="unsafe")]
        else:
            calls = [partial(xp.absolute, x, terms, casting="unsafe")]
            if dtype != x.dtype and x.dtype.kind != "c":
                calls.insert(0, partial(xp.copyto, terms, x, "unsafe"))
                calls[1] = partial(xp.absolute, terms, terms)
            exponent = xp.asarray(power, dtype)
            if power == 2:
                calls.append(partial(xp.multiply, terms, terms, terms))
            else:
                calls.append(partial(xp.power, terms, exponent, terms))
        calls.append(total(terms, axis, result, keepdims))
        if power == 2:
            calls.append(partial(xp.sqrt, result, out))
        else:
            root = xp.asarray(1.0 / power, dtype)
            calls.append(partial(xp.power, result, root, result))
            if result is not out:
                calls.append(partial(xp.copyto, out, result, "same_kind"))
        return InTurn(*calls)

    binders = (
        *(bind_prod, reduced(xp.logical_and), reduced(xp.logical_or), bind_count),
        *(position("argmax"), position("argmin"), reduced(xp.fmax), reduced(xp.fmin)),
        *(position("nanargmax"), position("nanargmin")),
        *(bind_deviation(False), bind_deviation(True), bind_logsumexp, bind_norm),
    )
    for name, binder in zip(NAMES, binders, strict=True):
        register_binder(name, kind, binder)


def _in_one_piece(x: Any) -> bool:
    return x.dtype.char in "fd" and (x.flags.c_contiguous or x.flags.f_contiguous)
