"""Errors of the system that name the file a caller asked for, whatever was written on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named_as(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the system inside name `path`, and not a file beside it that comes before it."""
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
    handle, name = mkstemp(prefix=f".{name}.", dir=folder or os.curdir)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
