"""A collective under way, and the counts of what a rank has sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reactgrad.distributed._request import Request

Pack = Callable[[], np.ndarray]


@dataclass
class Traffic:
    """Counts of what one rank has sent.

    Attributes
    ----------
    bytes : int
        The bytes of arrays that this rank has given to collectives.
    messages : int
        The collectives in which data moved.
    skipped : int
        The collectives in which none did, since nothing had changed on any rank.
    resent : int
        Messages that were lost and sent again.
    """

    bytes: int = 0
    messages: int = 0
    skipped: int = 0
    resent: int = 0


class Work(ABC):
    """A collective that this rank has asked for.

    ``pack`` makes the array that this rank gives. It is called at once where the operands are stale, since
    their memory may be written again; else only if another rank needs the data. `into` is memory for what
    this rank gets; the array that is given may lie in it.
    """

    def __init__(
        self, request: Request, pack: Pack, stale: bool, into: np.ndarray | None = None
    ) -> None:
        self.request, self.stale = request, stale
        self.into = into
        self.given: np.ndarray | None = pack() if stale else None
        self._pack: Pack | None = None if stale else pack
        self._result: np.ndarray | None = None

    @property
    def is_done(self) -> bool:
        """True once the result has been taken, or no data moves: its memory may be used again."""
        return self._result is not None

    def attach(self) -> None:
        """Make the array that this rank gives, if it is not there."""
        if self._pack is not None:
            self.given, self._pack = self._pack(), None

    @abstractmethod
    def agree(self) -> bool:
        """Wait until all ranks have asked. Return whether an operand was stale on any."""

    @abstractmethod
    def _wait(self) -> np.ndarray:
        """Wait for what this rank gets."""

    def abandon(self) -> None:  # noqa: B027 - not all use the memory of operands
        """End the use of the operands' memory: nobody will ask for the result."""

    def result(self) -> np.ndarray:
        """Return what this rank gets; waits until it is there."""
        if self._result is None:
            self._result = self._wait()
            self.given = None
        return self._result


class Transport(ABC):
    """Moves arrays between the ranks of one group."""

    name: str
    rank: int
    size: int
    traffic: Traffic
    timeout: float

    @abstractmethod
    def post(
        self, request: Request, pack: Pack, stale: bool, into: np.ndarray | None = None
    ) -> Work:
        """Ask the other ranks for a collective; returns without waiting."""

    @abstractmethod
    def split(self, color: int | None, colors: list[int | None]) -> Transport | None:
        """Return the transport among the ranks of the same color; all ranks call it together."""

    def fail(self, error: BaseException) -> None:  # noqa: B027 - not all need it
        """Tell the other ranks that this one has raised."""

    def close(self, *given: Any) -> None:  # noqa: B027 - not all need it
        """Tell the other ranks that this one comes no more."""
