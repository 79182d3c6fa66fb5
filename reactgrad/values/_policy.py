"""The questions that the storage of a graph asks the policy that decides which values stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class Policy(Protocol):
    """A memory policy: asked before an allocation, told after a store, and asked around a run.

    A graph without one has ``None`` in its place, and asks nothing.
    """

    limit: int  # bytes

    def allocate(self, slot: int, size: int, *, running: bool) -> None:
        """Make room for the value of a node, `running` if it replaces one in the middle of a step.

        Raises
        ------
        NoRoomError
            If nodes are being bound together, and their storage does not fit as a whole.
        """
        ...

    def allocated(self, slot: int) -> None:
        """Count the memory that a node was given."""
        ...

    def stored(self, slot: int) -> None:
        """Count the value of a node again: it is another one, or gone."""
        ...

    def moved(self, slot: int) -> None:
        """As ``stored``; the memory may be of another size, too."""
        ...

    def given(self, slot: int) -> None:
        """Make room after a caller has given a node its value."""
        ...

    def recovered(self) -> None:
        """Count every value again: an interrupt came while one was written."""
        ...

    def released(self, slots: Iterable[int]) -> None:
        """Note that these values were released, and will be computed again when they are needed."""
        ...

    def removed(self, slot: int) -> None:
        """Forget a node that is gone."""
        ...

    def bind(self, slot: int) -> None:
        """Note that the step of a node is asked for: it is about to run, by itself or in a plan."""
        ...

    def read_within(self, slots: tuple[int, ...], read: Callable[[], Any]) -> Any:
        """Return what a read of these nodes returns that keeps to the policy."""
        ...

    def close(self) -> None:
        """Drop every reference back to the storage, when the graph goes."""
        ...

    def check(self) -> None:
        """Raise ``InvariantError`` if what was counted is not what is there."""
        ...
