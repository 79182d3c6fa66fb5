"""Files that appear whole or not at all, and errors that name the file that the caller named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named_as(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make an ``OSError`` raised inside name `path`, not the temporary file that becomes it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file that appears whole or not at all."""
    with named_as(path):
        _write(os.fspath(path), text)


def _write(target: str, text: str) -> None:
    from tempfile import mkstemp

    folder, name = os.path.split(target)
    # In the target's own folder: `os.replace` is atomic only within one file system.
    handle, name = mkstemp(prefix=f".{name}.", dir=folder or os.curdir)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp made the file private to its owner
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)  # the mask can only be read by setting another one
    os.umask(mask)
    return mask
