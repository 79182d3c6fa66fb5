"""All or nothing: the undo log of transactions.

Every change inside a transaction notes how to take it back. Taking back is itself a change like
any other, so that versions only grow (rule E7).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

Undo = Callable[[], None]


class UndoLog:
    """The notes of the open transactions, innermost last."""

    __slots__ = ("_open", "_undoing")

    def __init__(self) -> None:
        self._open: list[list[Undo]] = []
        self._undoing = False

    def __bool__(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._open)

    def note(self, undo: Undo) -> None:
        """Remember how to take back what is about to happen, if a transaction is open."""
        if self._open and not self._undoing:
            self._open[-1].append(undo)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Keep what the block does if it ends normally; otherwise take all of it back.

        A transaction inside another one hands its notes to the outer one when it ends.
        """
        notes: list[Undo] = []
        self._open.append(notes)
        try:
            yield
        except BaseException:
            # Closed first, so that the undoing is not noted in turn.
            self._close(notes)
            self._undoing = True  # what is taken back needs no notes for an outer transaction
            try:
                for undo in reversed(notes):
                    undo()
            finally:
                self._undoing = False
            raise
        self._close(notes)
        if self._open:
            self._open[-1].extend(notes)

    def _close(self, notes: list[Undo]) -> None:
        closed = self._open.pop()
        assert closed is notes, "transactions end innermost first"
