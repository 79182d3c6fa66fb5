"""What a node raised: kept without frames, shown again, and what the engine writes on it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import cast


class StoredError:
    """What a node raised, and what it had seen of its parents (see ``Scheduler.seen``)."""

    __slots__ = ("error", "number", "turn", "versions")

    def __init__(self, error: Exception, versions: tuple[int, ...], number: int, turn: int) -> None:
        self.error = error
        self.versions = versions
        self.number = number  # of this error in its graph: what nodes that see it record
        self.turn = turn  # of the run in which it was raised

    def again(self, turn: int) -> Exception:
        """A fresh object, for the run with this number: raising it adds no frames to the stored one."""
        error = without_frames(self.error)
        _keep_notes(error, lambda note: note != AGAIN)
        if turn != self.turn:
            error.add_note(AGAIN)
        return error


class Note(str):
    """A line that the engine, and not the code of the user, added to an exception."""

    __slots__ = ()


AGAIN = Note(
    "raised before and not run again, since its parents are as they were; "
    "g.forward(..., retry=True) runs it again"
)


def annotate(error: Exception, text: str, passed_on: Iterable[Exception]) -> None:
    """Write on `error` which node raised it.

    Unless the node passes it on as a read gave it to it, what earlier failures wrote on the same
    object goes: a function may raise one object again and again.
    """
    if not any(error is one for one in passed_on):
        _keep_notes(error, lambda note: not isinstance(note, Note))
    error.add_note(Note(text))


def _keep_notes(error: Exception, keep: Callable[[str], bool]) -> None:
    notes: object = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        error.__notes__ = [note for note in cast("list[str]", notes) if keep(note)]


def without_frames(error: Exception) -> Exception:
    """A copy of `error`, with its causes, that keeps no frame and so no local variable alive."""
    twins: dict[int, BaseException] = {}
    stack: list[BaseException] = [error]
    while stack:
        one = stack.pop()
        if id(one) not in twins:
            twins[id(one)] = _bare(one)
            stack += [link for link in (one.__cause__, one.__context__) if link is not None]
    originals: list[BaseException] = [error]
    seen: set[int] = set()
    while originals:
        one = originals.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        twin = twins[id(one)]
        if twin is not one:
            twin.__cause__ = None if one.__cause__ is None else twins[id(one.__cause__)]
            twin.__context__ = None if one.__context__ is None else twins[id(one.__context__)]
            twin.__suppress_context__ = one.__suppress_context__
        originals += [link for link in (one.__cause__, one.__context__) if link is not None]
    twin = twins[id(error)]
    assert isinstance(twin, Exception)
    return twin


def _bare(error: BaseException) -> BaseException:
    """One exception copied without its traceback; itself where its class allows no copy."""
    try:
        twin = _faithful_copy(error)
    except Exception:
        return error
    twin.__traceback__ = None
    if hasattr(error, "__notes__"):
        twin.__notes__ = list(error.__notes__)
    return twin


def _faithful_copy(error: BaseException) -> BaseException:
    if isinstance(error, BaseExceptionGroup):
        members = [_bare(one) for one in cast("tuple[BaseException, ...]", error.exceptions)]
        return cast("BaseException", error.derive(members))  # pyright: ignore[reportUnknownMemberType]
    try:
        twin = copy.copy(error)
        if type(twin) is type(error) and str(twin) == str(error):
            return twin
    except Exception:
        pass
    # Past the class's own constructors, which may want anything.
    base = next(b for b in type(error).__mro__ if b.__module__ == "builtins")
    twin = base.__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin
