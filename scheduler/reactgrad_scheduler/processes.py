"""Locks in a forked process, in which only the thread that forked goes on.

A lock that another thread held at that moment is held for ever in the child. The child is told of it, so
that it raises where it would wait.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import ref


class Forked(Protocol):
    """An object with a lock."""

    def forked(self) -> None:
        """Put the lock right, in the child, in its only thread."""
        ...


# Weak references to living objects; each leaves when its object goes.
_living: set[ref[Forked]] = set()


def watch_forks(lock: Forked) -> None:
    """Call ``lock.forked()`` in every child of this process, while the object lives."""
    _living.add(ref(lock, _living.discard))


def _forked() -> None:
    for living in [*_living]:
        lock = living()
        if lock is not None:
            lock.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_forked)
