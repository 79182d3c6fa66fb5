"""Ready-made hooks that keep values between runs in files or in the memory of the host."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad.backend import holder, owner
from reactgrad.flow._saved import SavedHooks

if TYPE_CHECKING:
    from pathlib import Path


class _Folder:
    """A folder for temporary files: a given one, or one that is removed with its last file."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        from pathlib import Path
        from tempfile import mkdtemp

        if path is None:
            self.path = Path(mkdtemp(prefix="reactgrad-"))
            weakref.finalize(self, _remove_folder, self.path)
        else:
            self.path = Path(path)
            self.path.mkdir(parents=True, exist_ok=True)


class _File:
    """An array in a file that is removed with this object."""

    def __init__(self, folder: _Folder, array: np.ndarray[Any, Any]) -> None:
        from tempfile import mkstemp

        handle, name = mkstemp(".npy", "value-", folder.path)
        self.path = folder.path / name
        self._folder = folder  # keeps the folder until all its files are gone
        weakref.finalize(self, _remove_file, self.path)
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)

    def load(self) -> np.ndarray[Any, Any]:
        return np.load(self.path, allow_pickle=False)


def _remove_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def _remove_folder(path: Path) -> None:
    if path.exists():
        for file in path.iterdir():  # when the interpreter ends, finalizers run in any order
            _remove_file(file)
        path.rmdir()


def save_on_disk(folder: str | os.PathLike[str] | None = None) -> SavedHooks:
    """Keep the values of nodes built in a block in files between the runs that read them.

    See ``saved_tensors_hooks``. Each value has a file in NumPy's format ``.npy``. It is removed when
    its node gets another value or is gone. Arrays of Python objects stay in memory.

    Parameters
    ----------
    folder : str or path-like, optional
        The folder for the files; made if needed. By default a temporary one, removed with the last
        file.

    Returns
    -------
    context manager

    Raises
    ------
    OSError
        By a read, if a file cannot be written (the value then stays in memory), or cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(np.ones(1000))
    >>> with rg.save_on_disk():
    ...     h = rg.tanh(rg.exp(w))
    >>> y = h.sum()
    >>> run = y.backward()
    >>> w.grad[0] > 0.04
    np.True_
    """
    place = _Folder(folder)

    def pack(array: Any) -> Any:
        array = _on_host(array)
        # Arrays of Python objects cannot be saved without pickle: they are kept as they are.
        return array if array.dtype.hasobject else _File(place, array)

    return SavedHooks(pack, lambda kept: kept.load() if isinstance(kept, _File) else kept)


def save_on_cpu(pin_memory: bool = False) -> SavedHooks:
    """Keep the values of nodes built in a block in the memory of the host between runs.

    See ``saved_tensors_hooks``. This is for nodes on another device; for nodes on the host it saves
    nothing.

    Parameters
    ----------
    pin_memory : bool
        True for host memory that the system does not move, which a GPU reads and writes faster. It is
        taken from the memory of the whole machine. Values on other devices are kept as without it.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> with rg.save_on_cpu():
    ...     y = (w * w).sum()
    >>> run = y.backward()
    >>> w.grad
    array([2., 4.])
    """
    return SavedHooks(_pinned if pin_memory else _on_host, lambda array: array)


def _pinned(array: Any) -> np.ndarray[Any, Any]:
    """Return an array as a NumPy array, in pinned memory where its device has such memory."""
    device = None if isinstance(array, np.ndarray) else holder(array)
    to_pinned = getattr(device, "to_pinned", None)
    return _on_host(array) if to_pinned is None else to_pinned(array)


def _on_host(array: Any) -> np.ndarray[Any, Any]:
    """Return an array as a NumPy array."""
    if isinstance(array, np.ndarray):
        return array
    device = owner(array)
    assert device is not None  # arrays come from nodes
    return device.to_numpy(array)
