"""Kernels of the array API standard for ops that move elements. What it cannot say runs on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reactgrad.backend._parts import block_keys
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.array_api._on_host import on_host

_BY_VALUES = on_host(("repeat_numbers", "resize", "resize_back", "trimmed"))


def register(device: Any) -> None:
    """Register the kernels for a device of the standard."""
    xp, kind = device.xp, device.kind
    _BY_VALUES(device)

    def flip(x: Any, out: Any, axes: Any) -> None:
        out[...] = xp.flip(x, axis=axes)

    def roll(x: Any, out: Any, shifts: Any, axes: Any) -> None:
        out[...] = xp.roll(x, shifts[0] if axes is None else shifts, axis=axes) if shifts else x

    def tile(x: Any, out: Any, reps: Any) -> None:
        out[...] = xp.tile(x, reps)

    def repeat(x: Any, out: Any, repeats: int, axis: int) -> None:
        out[...] = xp.repeat(x, repeats, axis=axis)

    def block(*operands: Any) -> None:
        *values, out, nest = operands
        keys = block_keys(nest, [tuple(x.shape) for x in values])
        for i, x in enumerate(values):
            out[keys[i]] = xp.astype(x, out.dtype)

    def regroup(x: Any, out: Any, *attrs: Any) -> None:
        out[...] = xp.reshape(x, out.shape)

    def beside(x: Any, *others: Any) -> None:
        others[-1][...] = xp.broadcast_to(x, others[-1].shape)

    register_kernel("block", kind, block)
    register_kernel("flip", kind, flip)
    register_kernel("roll", kind, roll)
    register_kernel("tile", kind, tile)
    register_kernel("repeat", kind, repeat)
    for name in ("regroup", "at_least", "one_axis"):
        register_kernel(name, kind, regroup)
    register_kernel("broadcast_beside", kind, beside)


def register_windows(device: Any) -> None:
    """Register the kernel of sliding windows for a device of the standard; their sum runs on the host."""
    xp = device.xp
    on_host(("window_sum",))(device)

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,) = inputs
        places = np.arange(int(np.prod(x.shape))).reshape(tuple(x.shape))
        at = xp.asarray(sliding_window_view(places, *attrs).ravel())
        return partial(_take, xp, x, at, out)

    register_binder("windows", device.kind, bind)


def _take(xp: Any, x: Any, at: Any, out: Any) -> None:
    out[...] = xp.reshape(xp.take(xp.reshape(x, (-1,)), at, axis=0), out.shape)
