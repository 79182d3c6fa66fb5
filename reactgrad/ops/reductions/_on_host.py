"""Kernels for devices of the array API standard that have none of their own: computed on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend import find_binder, register_binder


def on_host(*names: str) -> Callable[[Any], None]:
    """Return the call that registers the kernels of these ops for a device, as those of NumPy on copies."""

    def register(device: Any) -> None:
        for name in names:
            register_binder(name, device.kind, _binder(name, device))

    return register


def _binder(name: str, device: Any) -> Callable[..., Callable[[], None]]:
    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], None]:
        dtype = np.dtype(device.dtype_name(out))

        def step() -> None:
            result = np.empty(tuple(out.shape), dtype)
            find_binder(name, "cpu")([device.to_numpy(x) for x in inputs], result, attrs)()
            device.assign(out, result)

        return step

    return bind
