"""Kernels that reduce axes: products, deviations, norms, logarithms of sums, positions, truth."""

from __future__ import annotations

import math
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
    *("without_nan", "count_numbers", "nanvar", "nanstd", "length"),
)

# So many elements are looked through at once for NaN: they and their copy stay in the cache.
PIECE: Final = 65536


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

    def squared_deviations(
        x: Any, axes: tuple[int, ...], dtype: Any, real: Any, count: Any, bad: Any
    ) -> tuple[Any, list[Call]]:
        """Return an array for the squared differences from the mean, and the calls that fill it.

        Parameters
        ----------
        count
            The number of elements in a row; in an array where they differ, with the axes at length 1.
        bad
            Which elements are left out, or ``None``.
        """
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        average, apart = xp.empty(kept, dtype), xp.empty(x.shape, dtype)
        own, calls = x, list[Call]()
        if x.dtype != dtype or bad is not None:
            own = apart
            calls.append(partial(xp.copyto, own, x, "unsafe"))
        zero = xp.zeros((), dtype)
        if bad is not None:
            calls.append(partial(xp.copyto, own, zero, "no", bad))
        calls += [
            total(own, axes, average, True),
            partial(xp.divide, average, count, average),
            partial(xp.subtract, own, average, apart),
        ]
        if bad is not None:
            calls.append(partial(xp.copyto, apart, zero, "no", bad))
        if dtype.kind != "c":
            return apart, [*calls, partial(xp.multiply, apart, apart, apart)]
        squares, other = xp.empty(x.shape, real), xp.empty(x.shape, real)
        calls += [
            partial(xp.multiply, apart.real, apart.real, squares),
            partial(xp.multiply, apart.imag, apart.imag, other),
            partial(xp.add, squares, other, squares),
        ]
        return squares, calls

    def deviation(root: bool, nan: bool) -> Callable[..., Call]:
        """Return the binder of a variance, or of its root; of all elements, or of those that are no NaN."""

        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            (x,), (axis, keepdims, correction) = inputs, attrs
            dtype = wide(x.dtype if x.dtype.kind in "fc" else out.dtype)
            real = wide(out.dtype)
            axes = tuple(range(x.ndim)) if axis is None or not x.ndim else axis
            axes = tuple(i % x.ndim for i in (axes if isinstance(axes, tuple) else (axes,)))
            result = out if out.dtype == real else xp.empty(out.shape, real)
            length = x.size // out.size if out.size else 0
            bad = xp.empty(x.shape, bool) if nan else None
            count = xp.asarray(length, real)
            left = xp.asarray(max(length - correction, 0), real)
            calls: list[Call] = []
            if nan:
                kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
                count, left = xp.empty(kept, real), xp.empty(out.shape, real)

                def count_numbers() -> None:
                    xp.isnan(x, bad)
                    count[...] = length - xp.count_nonzero(bad, axes, keepdims=True)
                    xp.subtract(count.reshape(left.shape), correction, left)
                    left[left <= 0] = np.nan  # not 0, as without NaN: so NumPy has it

                calls = [count_numbers]
            squares, own = squared_deviations(x, axes, dtype, real, count, bad)
            calls += [
                *own,
                total(squares, axes, result, keepdims),
                partial(xp.divide, result, left, result),
            ]
            if root:
                calls.append(partial(xp.sqrt, result, out))
            elif result is not out:
                calls.append(partial(xp.copyto, out, result, "same_kind"))
            return InTurn(*calls)

        return bind

    def bind_logsumexp(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, axis = inputs[0], attrs[0]
        if not x.ndim:
            return partial(xp.copyto, out, x)
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
            calls = _squares_summed(xp, x.reshape(-1), result.reshape(()), total)
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

    def bind_without_nan(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,) = inputs
        if xp is np and x.flags.c_contiguous and out.flags.c_contiguous and x.dtype == out.dtype:
            scratch = np.empty(min(PIECE, out.size), bool)
            return partial(_without_nan, x.reshape(-1), out.reshape(-1), attrs[0], scratch)
        number, bad = xp.asarray(attrs[0]).astype(out.dtype), xp.empty(out.shape, bool)
        return InTurn(
            partial(xp.isnan, x, bad),
            partial(xp.copyto, out, x),
            partial(xp.copyto, out, number, "same_kind", bad),
        )

    def bind_count_numbers(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (axis, keepdims) = inputs, attrs
        bad = xp.empty(x.shape, bool)
        whole = x.size // out.size if out.size else 0

        def count() -> None:
            xp.isnan(x, bad)
            # As nearly always; to count along an axis costs much more. A device would have to wait.
            if xp is np and not bad.any():
                out[...] = whole
            else:
                out[...] = whole - xp.count_nonzero(bad, axis, keepdims=keepdims)

        return count

    def bind_length(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), axes = inputs, attrs[0]
        if axes is None or not x.ndim:
            axes = range(x.ndim)
        return partial(out.fill, math.prod([x.shape[i] for i in axes]))

    binders = (
        *(bind_prod, reduced(xp.logical_and), reduced(xp.logical_or), bind_count),
        *(position("argmax"), position("argmin"), reduced(xp.fmax), reduced(xp.fmin)),
        *(position("nanargmax"), position("nanargmin")),
        *(deviation(False, False), deviation(True, False), bind_logsumexp, bind_norm),
        *(
            bind_without_nan,
            bind_count_numbers,
            deviation(False, True),
            deviation(True, True),
            bind_length,
        ),
    )
    for name, binder in zip(NAMES, binders, strict=True):
        register_binder(name, kind, binder)


def _without_nan(x: Any, out: Any, number: float, scratch: Any) -> None:
    """Copy a row, with NaN replaced by a number."""
    for start in range(0, len(x), PIECE):
        part, copy = x[start : start + PIECE], out[start : start + PIECE]
        bad = scratch[: len(part)]
        np.isnan(part, bad)
        np.copyto(copy, part)
        if bad.any():
            np.copyto(copy, number, where=bad)


def _squares_summed(
    xp: Any, x: Any, out: Any, total: Callable[[Any, Any, Any, bool], Call]
) -> list[Call]:
    """Return the calls that sum the squares of a row by products of parts of it with themselves.

    In the library's own order of addition the error grows with the length of a product. So parts are so short that
    it stays in the last digits, and their sums are added as any others are; the bits do not depend on its threads.
    """
    length = 8192 if x.dtype.char == "d" else 2048
    count = x.size // length
    if x.size <= length or xp is not np:
        return [partial(xp.dot, x, x, out)]
    rows, rest = x[: count * length].reshape(count, length), x[count * length :]
    parts = np.empty(count + 1, x.dtype)
    return [
        partial(np.vecdot, rows, rows, parts[:count]),
        partial(np.dot, rest, rest, parts[count:].reshape(())),
        total(parts, None, out, False),
    ]


def _in_one_piece(x: Any) -> bool:
    return x.dtype.char in "fd" and (x.flags.c_contiguous or x.flags.f_contiguous)
