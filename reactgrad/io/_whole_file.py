"""Files of bytes that appear whole or not at all, and that leave nothing behind when the process is killed.

The bytes are written to a file beside the target, which is then renamed: a rename within a file system is
atomic. Its writer holds a lock on it, which the system releases when the process ends in any way. So the next
write to the same target finds what killed ones have left by the name, tells it from files of living
processes by the lock, and removes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from reactgrad._errors import SaveError

try:
    import fcntl
except ImportError:  # on Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]


def write_whole(target: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file that then takes the place of ``target``, with its permissions and owner."""
    if target.exists() and not target.is_file() and not target.is_dir():
        raise SaveError(f"{target} is no regular file, and would be replaced by one: name another.")
    start = os.fsdecode(os.fsencode(target.name)[:100])  # names have a limit in bytes
    clear_away(target.parent, start)
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    opened, made = _beside(target.parent, start, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            write(file)
            file.flush()
            if before is not None:
                _like(made, before)
            os.fsync(opened)
            os.replace(made, target)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
    _sync(target.parent)


def clear_away(folder: Path, start: str) -> None:
    """Remove what killed writers of this target have left; never the file of one that lives."""
    pattern = re.compile(rf"\.{re.escape(start)}\.[0-9a-f]{{16}}\.tmp")
    for name in os.listdir(folder):
        if pattern.fullmatch(name) is None:
            continue
        with suppress(OSError):  # another one removes it, or it is locked
            opened = os.open(folder / name, os.O_RDONLY)
            try:
                _lock(opened, wait=False)
                os.unlink(folder / name)
            finally:
                os.close(opened)


def _beside(folder: Path, start: str, mode: int) -> tuple[int, Path]:
    """Make and lock a new file. Return its descriptor and its path."""
    while True:
        made = folder / f".{start}.{os.urandom(8).hex()}.tmp"
        opened = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        try:
            with suppress(OSError):  # some network file systems have no locks
                _lock(opened, wait=True)
            with suppress(FileNotFoundError):  # before it was locked, it looked like a dead one's
                if os.path.samestat(os.stat(made), os.fstat(opened)):
                    return opened, made
        except BaseException:
            os.close(opened)
            made.unlink(missing_ok=True)
            raise
        os.close(opened)


def _lock(opened: int, *, wait: bool) -> None:
    """Lock an open file; raise ``OSError`` if another process has locked it, and this one does not wait."""
    if fcntl is not None:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _like(made: Path, before: os.stat_result) -> None:
    """Give a file the owner, where that is allowed, and the permissions that another one had."""
    with suppress(PermissionError, AttributeError):
        now = made.stat()
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            os.chown(made, before.st_uid, before.st_gid)
    os.chmod(made, before.st_mode & 0o777)


def _sync(folder: Path) -> None:
    """Make a rename reach the disk, where the system can open folders for that."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
