"""Devices: array libraries, with the few things that the engine does to arrays outside kernels."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from reactgrad._errors import DeviceError
from reactgrad.backend._spec import DType
from reactgrad.scheduler import safe_repr

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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


class Numbered(Device, Protocol):
    """One of several devices of a kind, each with memory of its own, such as ``"cuda:1"``.

    A kind of such devices is registered as any of them. Nothing of this is asked of a kind that is one device.
    """

    def names(self) -> list[str]:
        """Return the names of all devices of the kind, the one for the bare kind first."""
        ...

    def at(self, name: str) -> Device:
        """Return the device of this name."""
        ...

    def guard(self) -> AbstractContextManager[object] | None:
        """Return a block in which the library computes on this device; ``None`` if it always does.

        The same object is entered for each kernel.
        """
        ...


# By kind: the packages that register a kind when it is first met, and those whose arrays are of that kind.
_LATE: Final = {"cuda": ("reactgrad.backend.cupy", "cupy")}

_NOWHERE_ELSE: Final = nullcontext()
_devices: dict[str, Device] = {}
_named: dict[str, Device] = {}


def register_device(device: Device) -> None:
    """Register a device under its kind."""
    _devices[device.kind] = device
    for name in [name for name in _named if kind_of(name) == device.kind]:
        del _named[name]


def kind_of(name: str) -> str:
    """Return the kind of a device: its name up to the colon."""
    return name.partition(":")[0]


def device_of_kind(kind: str) -> Device:
    """Return the device of this kind; of several the first.

    Raises
    ------
    DeviceError
        If none is registered.
    """
    found = _devices.get(kind)
    if found is None and kind in _LATE:
        import_module(_LATE[kind][0]).register()
        found = _devices[kind]
    if found is None:
        raise DeviceError(
            f"no device kind {safe_repr(kind)}; known are: {', '.join(sorted(_devices))}."
        )
    return found


def guard_of(name: str) -> AbstractContextManager[object] | None:
    """Return a block in which the library of a device computes on it; ``None`` if it always does."""
    if (
        ":" not in name
    ):  # a kind that is one device, or kernels that call each other on the current one
        return None
    guard = getattr(device_of(name), "guard", None)
    return None if guard is None else guard()


def on(name: str) -> AbstractContextManager[object]:
    """Return a block in which the library of a device computes on it."""
    return guard_of(name) or _NOWHERE_ELSE


def device_of(name: str) -> Device:
    """Return the device of this name, as specs have it.

    Raises
    ------
    DeviceError
        If there is none.
    """
    found = _named.get(name)
    if found is None:
        found = device_of_kind(kind_of(name))
        at = getattr(found, "at", None)
        found = _named[name] = found if at is None else at(name)
    return found


def _names(device: Device) -> list[str]:
    names = getattr(device, "names", None)
    return [device.kind] if names is None else names()


def devices() -> tuple[str, ...]:
    """Return the names of all devices on which arrays may live here.

    ``"cpu"`` comes first. GPUs, ``"cuda:0"`` and so on, are among them where CuPy is installed and finds
    one; asking imports CuPy.

    Examples
    --------
    >>> import reactgrad as rg
    >>> "cpu" in rg.devices()
    True
    """
    from importlib.util import find_spec

    for kind, (_, library) in _LATE.items():
        if kind not in _devices and find_spec(library) is not None:
            try:
                device_of_kind(kind)
            except DeviceError:  # without a driver or a GPU
                continue
    return tuple([name for device in _devices.values() for name in _names(device)])


def read_device(what: str, device: object) -> str:
    """Return the full name of the device that a caller wrote: ``"cuda"`` is ``"cuda:0"``.

    Raises
    ------
    DeviceError
        If there is no such device.
    """
    if not isinstance(device, str):
        raise DeviceError(
            f"{what}: device={safe_repr(device):.60} must be the name of a device, such as 'cpu' or 'cuda:0'."
        )
    kind = kind_of(device)
    if kind in _devices or kind in _LATE:
        names = _names(device_of_kind(kind))
        if device in names:
            return device
        if device == kind and names:
            return names[0]
    raise DeviceError(
        f"{what}: there is no device {safe_repr(device)}; there are {', '.join(devices())}."
    )


def is_device_name(text: str) -> bool:
    """Return whether a text means a device rather than a dtype."""
    kind = kind_of(text)
    return kind in _devices or kind in _LATE


def owner(value: object) -> Device | None:
    """Return the device whose array `value` is, of several the first; ``None`` for other objects."""
    for device in _devices.values():
        if device.owns(value):
            return device
    library = type(value).__module__.partition(".")[0]
    for kind, (_, one) in _LATE.items():
        if library == one and kind not in _devices:
            device = device_of_kind(kind)
            return device if device.owns(value) else None
    return None


def holder(value: object) -> Device | None:
    """Return the very device that holds the array `value`; ``None`` for other objects."""
    found = owner(value)
    return None if found is None else device_of(found.name_of(value))


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
