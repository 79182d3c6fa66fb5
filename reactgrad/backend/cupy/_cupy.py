"""CuPy's arrays as devices, one for each GPU."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from reactgrad._errors import DeviceError
from reactgrad.backend._device import register_device
from reactgrad.backend._spec import DType


class Guard:
    """A block in which a GPU is the current one of the thread; may be open several times, in several threads."""

    __slots__ = ("_local", "_number", "_runtime")

    def __init__(self, runtime: Any, number: int) -> None:
        self._runtime = runtime
        self._number = number
        self._local = threading.local()

    def __enter__(self) -> None:
        runtime = self._runtime
        former = runtime.getDevice()
        if former != self._number:
            runtime.setDevice(self._number)
        try:
            self._local.former.append(former)
        except AttributeError:
            self._local.former = [former]

    def __exit__(self, *exc: object) -> None:
        former = self._local.former.pop()
        if former != self._number:
            self._runtime.setDevice(former)


class CuPyDevice:
    """The arrays of one GPU.

    Kernels run in the order in which they are called, on the current stream, and nothing here waits for them
    but ``to_numpy``. Memory comes from CuPy's pool, which keeps what is freed.

    Attributes
    ----------
    xp
        The module ``cupy``.
    kind, views
        As in ``Device``.
    name : str
        Its name, such as ``"cuda:0"``.
    """

    views = True

    def __init__(self, xp: Any, kind: str, number: int = 0) -> None:
        self.xp = xp
        self.kind = kind
        self.name = f"{kind}:{number}"
        self._number = number
        self._here = Guard(xp.cuda.runtime, number)

    # --- which device ------------------------------------------------------------------------------

    def names(self) -> list[str]:
        count = self.xp.cuda.runtime.getDeviceCount()
        return [f"{self.kind}:{number}" for number in range(count)]

    def at(self, name: str) -> CuPyDevice:
        if name not in self.names():
            raise DeviceError(f"there is no device {name!r}; there are {', '.join(self.names())}.")
        number = int(name.rpartition(":")[2])
        return self if number == self._number else CuPyDevice(self.xp, self.kind, number)

    def guard(self) -> Guard | None:
        return self._here if self.xp.cuda.runtime.getDeviceCount() > 1 else None

    def owns(self, value: object) -> bool:
        return isinstance(value, self.xp.ndarray)

    def name_of(self, array: Any) -> str:
        return f"{self.kind}:{array.device.id}"

    # --- arrays ------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        with self._here:
            return self.xp.empty(shape, dtype)

    def asarray(self, value: Any, dtype: DType) -> Any:
        with self._here:
            if not self.owns(value):
                # Cast on the host, where Python numbers and lists are read as everywhere else.
                return self.xp.asarray(np.asarray(value, dtype))
            if value.device.id != self._number:
                value = value.copy()  # onto the current device
            return value.astype(dtype, copy=False)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)

    def assign(self, target: Any, value: Any) -> None:
        with self._here:
            if self.owns(value):
                if value.device.id != self._number:
                    value = value.copy()
                self.xp.copyto(target, value, "same_kind")
                return
            value = np.asarray(value)
            if not np.can_cast(value.dtype, target.dtype, "same_kind") and value.ndim:
                raise TypeError(
                    f"cannot cast {value.dtype} to {target.dtype} without loss of its kind"
                )
            with np.errstate(all="ignore"):
                value = value.astype(target.dtype)
            if value.size == 1:
                target.fill(value.reshape(())[()])
            else:
                target.set(np.ascontiguousarray(np.broadcast_to(value, target.shape)))

    def hand_out(self, array: Any) -> tuple[Any, bool]:
        # CuPy has no read-only arrays: a caller gets a copy, and can change only that.
        with self._here:
            return array.copy(), False

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        with self._here:
            return self.xp.asnumpy(array if array.device.id == self._number else array.copy())

    def to_pinned(self, array: Any) -> np.ndarray[Any, DType]:
        """Return a copy in memory of the host that the system does not move."""
        with self._here:
            memory = self.xp.cuda.alloc_pinned_memory(array.nbytes)
            host = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
            array.get(out=host)
            return host


def register_cupy(xp: Any, special: Any, kind: str) -> None:
    """Register the GPUs that a module finds as devices of a kind, with their kernels.

    Parameters
    ----------
    xp, special : module
        ``cupy`` and ``cupyx.scipy.special``, or what has their names.
    kind : str
        ``"cuda"``.
    """
    from reactgrad.backend.cupy._kernels import register_kernels

    register_device(CuPyDevice(xp, kind))
    register_kernels(xp, special, kind)
