"""Kernels for Fourier transforms along several axes.

A transform along several axes is one along each, in place as far as possible. Half floats are computed in
float32: NumPy would round the factor by which it scales to a half float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn

Call = Callable[[], object]

# The norm with which the other direction is scaled in the same way.
_OTHER: Final = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def step(name: str, x: Any, n: int | None, axis: int, norm: str, out: Any) -> Call:
        function = getattr(xp.fft, name)
        if xp is np and out.dtype.char != "e":
            return partial(function, x, n, axis, norm, out)
        return lambda: xp.copyto(out, function(x, n, axis, norm), "same_kind")

    def wide(x: Any, calls: list[Call]) -> Any:
        if x.dtype.char != "e":
            return x
        copy = xp.empty(x.shape, np.float32)
        calls.append(partial(xp.copyto, copy, x))
        return copy

    def shaped(x: Any, shape: Sequence[int], dtype: Any, calls: list[Call]) -> Any:
        """Return `x` cut, or filled up with zeros, to a shape, in new memory."""
        copy = xp.empty(shape, dtype)
        part = tuple([slice(min(m, n)) for m, n in zip(x.shape, shape, strict=True)])
        if copy[part].size < copy.size:
            calls.append(partial(copy.fill, 0))
        calls.append(partial(xp.copyto, copy[part], x[part]))
        return copy

    def bind_complex(name: str) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            lengths, axes, norm = _counted(inputs[0], attrs)
            calls: list[Call] = []
            x = wide(inputs[0], calls)
            if len(axes) == 1:
                calls.append(step(name, x, lengths[0], axes[0], norm, out))
                return _in_turn(calls)
            if x.shape != out.shape:
                x = shaped(x, out.shape, x.dtype, calls)
            for axis in axes[::-1]:
                calls.append(step(name, x, None, axis, norm, out))
                x = out
            return _in_turn(calls)

        return bind

    def bind_rfft(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        lengths, axes, norm = _counted(inputs[0], attrs)
        calls: list[Call] = []
        x = wide(inputs[0], calls)
        rest = _with(out.shape, axes[-1], x.shape[axes[-1]])
        if x.shape != rest:
            x = shaped(x, rest, x.dtype, calls)
        calls.append(step("rfft", x, lengths[-1], axes[-1], norm, out))
        calls += [step("fft", out, None, axis, norm, out) for axis in axes[-2::-1]]
        return _in_turn(calls)

    def bind_irfft(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        _, axes, norm = _counted(inputs[0], attrs)
        calls: list[Call] = []
        x, last = wide(inputs[0], calls), axes[-1]
        if len(axes) > 1:
            x = shaped(x, _with(out.shape, last, x.shape[last]), _spectral(out.dtype), calls)
            calls += [step("ifft", x, None, axis, norm, x) for axis in axes[:-1]]
        calls.append(step("irfft", x, out.shape[last], last, norm, out))
        return _in_turn(calls)

    def bind_rfft_transposed(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (g,), (_, axes, norm) = inputs, _counted(inputs[0], attrs)
        last = axes[-1]
        spectrum = xp.empty(g.shape, _spectral(out.dtype))
        calls: list[Call] = [partial(xp.copyto, spectrum, g)]
        calls += [step("fft", spectrum, None, axis, norm, spectrum) for axis in axes[-2::-1]]
        counts = _counts(xp, out.shape[last], last, out)
        calls += [
            # The inverse counts those in the middle twice, and each number is wanted once.
            partial(xp.divide, spectrum, counts, spectrum),
            partial(xp.conjugate, spectrum, spectrum),
            step("irfft", spectrum, out.shape[last], last, _OTHER[norm], out),
        ]
        return _in_turn(calls)

    def bind_irfft_transposed(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        _, axes, norm = _counted(inputs[0], attrs)
        calls: list[Call] = []
        g, last = wide(inputs[0], calls), axes[-1]
        counts = _counts(xp, g.shape[last], last, out)
        calls += [
            step("rfft", g, None, last, _OTHER[norm], out),
            partial(xp.conjugate, out, out),
            partial(xp.multiply, out, counts, out),
            *[step("ifft", out, None, axis, norm, out) for axis in axes[:-1]],
        ]
        return _in_turn(calls)

    register_binder("fft", kind, bind_complex("fft"))
    register_binder("ifft", kind, bind_complex("ifft"))
    register_binder("rfft", kind, bind_rfft)
    register_binder("irfft", kind, bind_irfft)
    register_binder("rfft_transposed", kind, bind_rfft_transposed)
    register_binder("irfft_transposed", kind, bind_irfft_transposed)


def _counted(x: Any, attrs: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...], str]:
    """Return attributes with a length for each axis, and axes counted from the front."""
    lengths, axes, norm = attrs
    axes = tuple(range(x.ndim)) if axes is None else tuple([axis % x.ndim for axis in axes])
    return lengths or (None,) * len(axes), axes, norm


def _with(shape: Sequence[int], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _spectral(dtype: Any) -> Any:
    """Return the dtype of the spectrum of real numbers."""
    return np.dtype(np.complex128 if dtype.char == "d" else np.complex64)


def _counts(xp: Any, n: int, axis: int, out: Any) -> Any:
    """Return how often the numbers of half a spectrum of `n` stand in the whole one, along an axis."""
    real = np.float64 if out.dtype.char in "dD" else np.float32
    counts = np.full(n // 2 + 1, 2, real)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return xp.asarray(counts.reshape(_with((1,) * out.ndim, axis, -1)))


def _in_turn(calls: list[Call]) -> Call:
    return calls[0] if len(calls) == 1 else InTurn(*calls)
