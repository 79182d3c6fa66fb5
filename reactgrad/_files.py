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
