"""Kernels of NumPy for devices that lack an op: operands are copied to the host, and the result back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend._device import holder
from reactgrad.backend._registry import Binder, find_binder


def through_host(name: str) -> Binder:
    """Return the binder of an op for devices of any kind; each run waits for the device."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        devices = [holder(x) for x in inputs]
        device = next(one for one in devices if one is not None)

        def run() -> Any:
            values = [
                x if one is None else one.to_numpy(x)
                for x, one in zip(inputs, devices, strict=True)
            ]
            if out is None:  # only the kernel finds out how long the result is
                found = find_binder(name, "cpu")(values, None, attrs)()
                return device.asarray(found, found.dtype)
            result = np.empty(tuple(out.shape), np.dtype(str(out.dtype).rpartition(".")[2]))
            find_binder(name, "cpu")(values, result, attrs)()
            device.assign(out, result)
            return None

        return run

    return bind
