"""Errors of nodes: stored without frames, raised again, and annotated by the engine."""

from __future__ import annotations

from collections.abc import Iterable

from reactgrad_scheduler.exceptions import notes_of, set_notes, without_frames
from reactgrad_scheduler.texts import fitting

# Errors that tell nothing about the parents of a node, but about the machine at that moment, or about the
# stack of the caller: the next read runs the node again.
FLEETING = MemoryError, RecursionError


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
        notes = [note for note in notes_of(error) if not isinstance(note, Note) or note != AGAIN]
        set_notes(error, notes if turn == self.turn else [*notes, AGAIN])
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
    notes = notes_of(error)
    if not any(error is one for one in passed_on):
        notes = [note for note in notes if not isinstance(note, Note)]
    set_notes(error, [*notes, Note(fitting(text))])
