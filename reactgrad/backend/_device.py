"""Devices: array libraries, with the few things that the engine does to arrays outside kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from reactgrad._errors import DeviceError
from reactgrad.backend._spec import DType

# Values up to this many bytes are handed out as a copy, made once a version. Larger ones are handed out
# as a read-only view; if the caller still holds it, the next value goes to new memory (rule E8).
COPY_LIMIT = 128 * 1024


class Device(Protocol):
    """An array library as the engine uses it.

    Attributes
    ----------
    kind
        The name of the library, such as ``"cpu"``; in the name of a device it stands before the colon.
    views
        True if reshaped, sliced and transposed arrays share memory that may be written.
    """

    kind: str
    views: bool

    def owns(self, value: object) -> bool:
        """Return whether `value` is an array of this library."""
        ...

    def name_of(self, array: Any) -> str:
        """Return the name of the device that holds `array`, such as ``"cpu"``."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """Return a new array, contiguous in C order, whose elements are not set."""
        ...

    def asarray(self, value: Any, dtype: DType) -> Any:
        """Return `value` as an array, which may share its memory."""
        ...

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return the contiguous `array` in another shape, sharing its memory."""
        ...

    def assign(self, target: Any, value: Any) -> None:
        """Copy `value` into `target`; dtypes are cast within the same kind."""
        ...

    def hand_out(self, array: Any) -> tuple[Any, bool]:
        """Return a read-only value for callers, and whether it shares memory with `array`."""
        ...

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        """Return a writable copy in the memory of the host."""
        ...


_devices: dict[str, Device] = {}


def register_device(device: Device) -> None:
    """Register a device under its kind."""
    _devices[device.kind] = device


def device_of_kind(kind: str) -> Device:
    """Return the device of this kind.

    Raises
    ------
    DeviceError
        If none is registered.
    """
    try:
        return _devices[kind]
    except KeyError:
        raise DeviceError(
            f"no device kind {kind!r}; known are: {', '.join(sorted(_devices))}."
        ) from None


def owner(value: object) -> Device | None:
    """Return the device whose array `value` is, or ``None``."""
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
            # A view of a read-only array: NumPy refuses to make it writable again.
            return copy.view(), False
        # NumPy makes the owner of memory the base of a view. The memoryview hides the buffer, so that
        # the returned array is the base of all views that the caller makes of it: while any of them
        # lives, a weak reference to the returned array is alive.
        return np.asarray(memoryview(array).toreadonly()), True

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        return np.array(array)


cpu = CPU()
register_device(cpu)
