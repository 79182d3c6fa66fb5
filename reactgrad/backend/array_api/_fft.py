"""Kernels of the array API standard for Fourier transforms along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reactgrad.backend._registry import register_kernel

# The norm with which the other direction is scaled in the same way.
_OTHER: Final = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def register(device: Any) -> None:
    """Register the kernels for a device of the standard; none if it has no transforms."""
    xp, kind = device.xp, device.kind
    if not hasattr(xp, "fft"):
        return

    def spectral(x: Any) -> Any:
        name = device.dtype_name(x)
        return xp.astype(x, xp.complex128 if name in ("float64", "complex128") else xp.complex64)

    def cut(x: Any, axis: int, n: int | None) -> Any:
        """Return `x` with an axis cut, or filled up with zeros."""
        m = x.shape[axis]
        if n is None or n == m:
            return x
        if n < m:
            return x[(*[slice(None)] * axis, slice(n), ...)]
        shape = list(x.shape)
        shape[axis] = n - m
        return xp.concat([x, xp.zeros(tuple(shape), dtype=x.dtype)], axis=axis)

    def whole(x: Any, lengths: Any, axes: Any) -> tuple[Any, Sequence[int]]:
        """Return `x` in the lengths of all axes but the last, and the axes counted from the front."""
        along = tuple(range(x.ndim)) if axes is None else tuple([axis % x.ndim for axis in axes])
        for axis, n in zip(along[:-1], (lengths or (None,) * len(along))[:-1], strict=True):
            x = cut(x, axis, n)
        return x, along

    def counts(n: int, axis: int, x: Any) -> Any:
        real = xp.real(x).dtype
        found = xp.full((n // 2 + 1,), 2.0, dtype=real)
        found[0] = 1.0
        if n % 2 == 0:
            found[-1] = 1.0
        shape = [1] * x.ndim
        shape[axis] = -1
        return xp.astype(xp.reshape(found, tuple(shape)), x.dtype)

    def put(out: Any, result: Any) -> None:
        out[...] = xp.astype(result, out.dtype)

    def complex_kernel(name: str) -> Any:
        def kernel(x: Any, out: Any, lengths: Any, axes: Any, norm: str) -> None:
            x, along = whole(spectral(x), lengths, axes)
            x = cut(x, along[-1], out.shape[along[-1]])
            for axis in along[::-1]:
                x = getattr(xp.fft, name)(x, axis=axis, norm=norm)
            put(out, x)

        return kernel

    def rfft(x: Any, out: Any, lengths: Any, axes: Any, norm: str) -> None:
        x, along = whole(xp.real(spectral(x)), lengths, axes)
        x = xp.fft.rfft(
            cut(x, along[-1], lengths[-1] if lengths else None), axis=along[-1], norm=norm
        )
        for axis in along[-2::-1]:
            x = xp.fft.fft(x, axis=axis, norm=norm)
        put(out, x)

    def irfft(x: Any, out: Any, lengths: Any, axes: Any, norm: str) -> None:
        x, along = whole(spectral(x), lengths, axes)
        for axis in along[:-1]:
            x = xp.fft.ifft(x, axis=axis, norm=norm)
        put(out, xp.fft.irfft(x, n=out.shape[along[-1]], axis=along[-1], norm=norm))

    def rfft_transposed(g: Any, out: Any, lengths: Any, axes: Any, norm: str) -> None:
        x, along = whole(spectral(g), None, axes)
        for axis in along[-2::-1]:
            x = xp.fft.fft(x, axis=axis, norm=norm)
        n = out.shape[along[-1]]
        x = xp.conj(x / counts(n, along[-1], x))
        put(out, xp.fft.irfft(x, n=n, axis=along[-1], norm=_OTHER[norm]))

    def irfft_transposed(g: Any, out: Any, lengths: Any, axes: Any, norm: str) -> None:
        x, along = whole(xp.real(spectral(g)), None, axes)
        n = x.shape[along[-1]]
        x = xp.conj(xp.fft.rfft(x, axis=along[-1], norm=_OTHER[norm]))
        x = x * counts(n, along[-1], x)
        for axis in along[:-1]:
            x = xp.fft.ifft(x, axis=axis, norm=norm)
        put(out, x)

    register_kernel("fft", kind, complex_kernel("fft"))
    register_kernel("ifft", kind, complex_kernel("ifft"))
    register_kernel("rfft", kind, rfft)
    register_kernel("irfft", kind, irfft)
    register_kernel("rfft_transposed", kind, rfft_transposed)
    register_kernel("irfft_transposed", kind, irfft_transposed)
