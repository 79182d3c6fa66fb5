"""Kernels that round float32 to the numbers of a shorter float, and keep them as float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder, register_kernel

# Arrays, since a kernel takes them faster than Python numbers.
_SHIFT, _ONE, _HALF, _KEPT, _QUIET = (
    np.array(n, np.uint32) for n in (16, 1, 0x7FFF, 0xFFFF0000, 0x00400000)
)
_BITS: Final = np.dtype(np.uint32)


def round_on_host(x: Any, out: Any, dtype: str) -> None:
    """Round to the nearest, ties to even; every NaN stays one."""
    if dtype == "float16":
        np.copyto(out, x.astype(np.float16), "same_kind")
        return
    bits = x.view(_BITS)
    rounded = np.right_shift(bits, _SHIFT)
    np.bitwise_and(rounded, _ONE, rounded)
    np.add(rounded, _HALF, rounded)
    np.add(rounded, bits, rounded)  # past the end of the bits that are kept, if they are to grow
    np.bitwise_and(rounded, _KEPT, out.view(_BITS))
    if _has_nan(x):  # whose bits may have become those of an infinity
        np.copyto(out.view(_BITS), (bits | _QUIET) & _KEPT, where=np.isnan(x))


def _has_nan(x: Any) -> bool:
    if not x.flags.c_contiguous:
        return bool(np.isnan(x).any())
    flat = x.reshape(-1)  # no square is negative: their sum is NaN only with a NaN among them
    return bool(np.isnan(np.dot(flat, flat)))


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def rounded(x: Any, out: Any, dtype: str) -> None:
        if dtype == "float16":
            xp.copyto(out, x.astype(np.float16))
            return
        bits = x.view(_BITS)
        up = ((bits >> 16) & 1) + 0x7FFF + bits
        wanted = xp.where(xp.isnan(x), bits | int(_QUIET), up) & int(_KEPT)
        xp.copyto(out, wanted.view(np.float32))

    register_kernel("round_to", kind, round_on_host if xp is np else rounded)


def register_standard(device: Any) -> None:
    """Register the kernel of a device of the array API standard, which has no views of bits: on the host."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        def step() -> None:
            x = device.to_numpy(inputs[0]).astype(np.float32)
            result = np.empty_like(x)
            find_binder("round_to", "cpu")([x], result, attrs)()
            device.assign(out, result)

        return step

    register_binder("round_to", device.kind, bind)
