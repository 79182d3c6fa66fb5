"""Errors of the scheduler; each is also the builtin that a caller would think of catching."""

from __future__ import annotations

from collections.abc import Callable


class ReactgradError(Exception):
    """Base of every error that reactgrad raises on purpose."""


class CycleError(ReactgradError, ValueError):
    """An edge would make a node depend on itself.

    Attributes
    ----------
    path : tuple
        The nodes of the cycle in the direction of the data, the first one repeated at the end;
        those that are still there, since an error keeps no node alive.
    """

    def __init__(self, message: str, nodes: Callable[[], tuple[object, ...]] = tuple) -> None:
        super().__init__(message)
        self._nodes = nodes

    @property
    def path(self) -> tuple[object, ...]:
        return self._nodes()


class BusyError(ReactgradError, RuntimeError):
    """A node tried to change its own graph while the graph was running it."""


class BlockError(ReactgradError, RuntimeError):
    """A ``with`` block of a graph ended before one that was opened inside of it, or elsewhere than it began."""

    @classmethod
    def of(cls, what: str) -> BlockError:
        """The error of a kind of block."""
        return cls(
            f"{what} ended out of order: of two blocks that are open the one opened last has to end first. Nothing "
            "of both is made. Hold blocks open by nested `with` statements, or by one contextlib.ExitStack; "
            "generators that hold one each are closed in the opposite order."
        )


class ExecutorError(ReactgradError, ValueError):
    """A way to run nodes that there is none of."""


class Cancelled(ReactgradError, RuntimeError):
    """A run was stopped by ``cancel`` or its time limit; what had not run is stale."""


class Later(BaseException):
    """A read has to wait for what another thread is computing, and is to be made again then.

    Never seen by callers; no ``Exception``, so that code of the user lets it pass.

    Attributes
    ----------
    void : int
        Number of the gate through which it came, if all that goes on there is to be made again.
    until : int
        Number of the gate that must be closed before.
    """

    def __init__(self, void: int, until: int) -> None:
        super().__init__(void, until)
        self.void = void
        self.until = until


class InvariantError(ReactgradError, AssertionError):
    """The tables contradict each other: a bug in reactgrad, never in the caller's code."""
