"""The kernel of the array API standard for spectra with the frequency 0 in the middle."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp = device.xp

    def shift(x: Any, out: Any, axes: Any, back: bool) -> None:
        along = tuple(range(x.ndim)) if axes is None else tuple({axis % x.ndim for axis in axes})
        steps = tuple([-(x.shape[i] // 2) if back else x.shape[i] // 2 for i in along])
        out[...] = xp.roll(x, steps, axis=along) if along else x

    register_kernel("fftshift", device.kind, shift)
