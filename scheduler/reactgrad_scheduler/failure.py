"""Errors of nodes: stored without frames, raised again, and annotated by the engine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import cast


class StoredError:
    """The error of a node, with what the node had seen of its parents (see ``Scheduler.seen``)."""

    __slots__ = ("error", "number", "turn", "versions")

    def __init__(self, error: Exception, versions: tuple[int, ...], number: int, turn: int) -> None:
        self.error = error
        self.versions = versions
        self.number = number  # unique in its graph; nodes that see the error record it
        self.turn = turn  # number of the run in which it was raised

    def again(self, turn: int) -> Exception:
        """Return a copy to raise in the run with this number, so that the stored one gets no frames."""
        error = without_frames(self.error)
        _keep_notes(error, lambda note: note != AGAIN)
        if turn != self.turn:
            error.add_note(AGAIN)
        return error


class Note(str):
    """A line that the engine added to an exception, in contrast to lines of user code."""

    __slots__ = ()


AGAIN = Note(
    "raised before and not run again, since its parents are as they were; "
    "g.forward(..., retry=True) runs it again"
)


def annotate(error: Exception, text: str, passed_on: Iterable[Exception]) -> None:
    """Add a note to ``error`` that names the node that raised it.

    Notes of earlier failures are removed first, since a function may raise one object again and again;
    not if the node passes on an error that a read has raised in it.
    """
    if not any(error is one for one in passed_on):
        _keep_notes(error, lambda note: not isinstance(note, Note))
    error.add_note(Note(text))


def _keep_notes(error: Exception, keep: Callable[[str], bool]) -> None:
    notes: object = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        error.__notes__ = [note for note in cast("list[str]", notes) if keep(note)]


def without_frames(error: Exception) -> Exception:
    """Return a copy of an error and its causes that keeps no frame, and so no local variable, alive."""
    # Causes may form a graph, even with cycles: first copy each once, then connect the copies.
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
    """Return a copy of one exception without traceback, or itself if its class allows no copy."""
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
    # Bypass the constructors of the class, which may need any arguments.
    base = next(b for b in type(error).__mro__ if b.__module__ == "builtins")
    twin = base.__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin
