"""Errors of the scheduler. Each is also the builtin error that a caller would expect to catch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reactgrad_scheduler.texts import fitting


class ReactgradError(Exception):
    """Base of every error that reactgrad raises on purpose.

    Its message has at most about 2,000 letters, however long the names and values in it are.
    """

    def __init__(self, *args: object, **fields: object) -> None:
        super().__init__(*[fitting(one) if isinstance(one, str) else one for one in args], **fields)


class CycleError(ReactgradError, ValueError):
    """An edge would make a node depend on itself.

    Attributes
    ----------
    path : tuple
        The nodes of the cycle in the direction of the data, with the first one repeated at the end.
        Nodes that are gone are left out, since an error keeps no node alive. Where the error was
        pickled, it has their names.
    """

    def __init__(self, message: str, nodes: Callable[[], tuple[object, ...]] = tuple) -> None:
        super().__init__(message)
        self._nodes = nodes

    @property
    def path(self) -> tuple[object, ...]:
        return self._nodes()

    def __copy__(self) -> CycleError:
        twin = type(self)(str(self.args[0]), self._nodes)
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> tuple[object, ...]:
        names = tuple([str(getattr(node, "name", node)) for node in self.path])
        return type(self), self.args, {**self.__dict__, "_nodes": partial(tuple, names)}


class BusyError(ReactgradError, RuntimeError):
    """A node tried to change its own graph while the graph was running it."""


class BlockError(ReactgradError, RuntimeError):
    """A ``with`` block of a graph ended before a block inside of it, or in another thread or task."""

    @classmethod
    def of(cls, what: str) -> BlockError:
        """Return the error for a kind of block."""
        return cls(
            f"{what} ended out of order: of two blocks that are open the one opened last has to end first. Nothing "
            "of both is made. Hold blocks open by nested `with` statements, or by one contextlib.ExitStack; "
            "generators that hold one each are closed in the opposite order."
        )


class ExecutorError(ReactgradError, ValueError):
    """An executor that does not exist was asked for."""


class Cancelled(ReactgradError, RuntimeError):
    """A run was stopped by ``cancel`` or its time limit. Nodes that had not run are stale."""


class Later(BaseException):
    """A read has to wait for another thread's computation, and must be made again after it.

    It never reaches callers. It is no ``Exception``, so that ``except Exception`` in user code does not
    catch it.

    Attributes
    ----------
    void : int
        Number of the gate through which the thread came, if all work behind it must be made again.
    until : int
        Number of the gate that must be closed first.
    """

    def __init__(self, void: int, until: int) -> None:
        super().__init__(void, until)
        self.void = void
        self.until = until


class InvariantError(ReactgradError, AssertionError):
    """The tables contradict each other: a bug in reactgrad, never in the caller's code."""
