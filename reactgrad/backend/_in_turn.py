"""A kernel that is several calls."""

from __future__ import annotations

from collections.abc import Callable


class InTurn:
    """Calls that are made one after the other; a step like any other, that can be looked into."""

    __slots__ = ("calls", "code")

    def __init__(self, *calls: Callable[[], object]) -> None:
        self.calls = calls
        self.code: bytes | None  # see ``_instructions``; set when it is asked for

    def __call__(self) -> None:
        for call in self.calls:
            call()
