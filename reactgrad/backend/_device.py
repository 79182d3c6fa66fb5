"""Devices: where arrays live, and the few things the engine does with arrays outside kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from reactgrad._errors import DeviceError
from reactgrad.backend._spec import DType

# Values up to this many bytes are handed out as a copy, made once a version; larger ones as a
# read-only view, at the price of moving to new memory if the caller still holds it (rule E8).
COPY_LIMIT = 128 * 1024


class Device(Protocol):
    """What the engine asks of an array library."""

    kind: str
    views: bool  # whether reshaped, sliced and transposed arrays share memory that may be written

    def owns(self, value: object) -> bool:
        """Whether `value` is an array of this library."""
        ...

    def name_of(self, array: Any) -> str:
        """Name of the device that holds `array`, such as ``"cpu"``."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """New memory, contiguous in C order."""
        ...

    def asarray(self, value: Any, dtype: DType) -> Any:
        """`value` as an array that may share its memory."""
        ...

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """The contiguous `array` in another shape, sharing its memory."""
        ...

    def assign(self, target: Any, value: Any) -> None:
        """Copy `value` into `target`, casting by the same kind."""
        ...

    def hand_out(self, array: Any) -> tuple[Any, bool]:
        """A read-only value for callers, and whether it shares memory with `array`."""
        ...

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        """A writable copy in the memory of the host."""
        ...


_devices: dict[str, Device] = {}


def register_device(device: Device) -> None:
    """Make a device kind known."""
    _devices[device.kind] = device


def device_of_kind(kind: str) -> Device:
    """The device of this kind."""
    try:
        return _devices[kind]
    except KeyError:
        raise DeviceError(
            f"no device kind {kind!r}; known are: {', '.join(sorted(_devices))}."
        ) from None


def owner(value: object) -> Device | None:
    """The device whose array `value` is."""
    for device in _devices.values():
        if device.owns(value):
            return device
    return None


class CPU:
    """NumPy arrays in the memory of the host."""

    kind = "cpu"
    views = True

    def owns(self, value: object) -> bool:
        return isinstance(value, np.ndarray | np.generic)

    def name_of(self, array: Any) -> str:
        return "cpu"

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return np.empty(shape, dtype)

    def asarray(self, value: Any, dtype: DType) -> Any:
        return np.asarray(value, dtype)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)

    def assign(self, target: Any, value: Any) -> None:
        np.copyto(target, value, casting="same_kind")

    def hand_out(self, array: Any) -> tuple[Any, bool]:
        if array.nbytes <= COPY_LIMIT:
            copy = array.copy()
            copy.setflags(False)
            # A view of a read-only owner: its flag cannot be switched back by accident.
            return copy.view(), False
        # Behind a memoryview the value, and not our buffer, is the base of all views that the
        # caller makes of it: a weak reference to the value tells whether any is still there.
        return np.asarray(memoryview(array).toreadonly()), True

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        return np.array(array)


cpu = CPU()
register_device(cpu)
