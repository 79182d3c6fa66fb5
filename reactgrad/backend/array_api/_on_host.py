"""Kernels that a device of the array API standard has not: they are computed by NumPy, on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend._device import cpu
from reactgrad.backend._registry import Binder, find_binder, register_binder


def on_host(names: Iterable[str]) -> Callable[[Any], None]:
    """Return the call that registers these ops for a device, whose operands are copied to NumPy and back."""
    known = tuple(names)

    def register(device: Any) -> None:
        for name in known:
            register_binder(name, device.kind, _binder(name, device))

    return register


def _binder(name: str, device: Any) -> Binder:
    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        def values() -> list[Any]:
            return [device.to_numpy(one) if device.owns(one) else one for one in inputs]

        if out is None:  # only the kernel finds out how long the result is
            return lambda: device.xp.asarray(find_binder(name, cpu.kind)(values(), None, attrs)())
        result = np.empty(out.shape, np.dtype(device.dtype_name(out)))

        def step() -> None:
            find_binder(name, cpu.kind)(values(), result, attrs)()
            # A copy, since the next call writes into `result` again.
            out[...] = device.xp.asarray(result, copy=True)

        return step

    return bind
