"""The questions that the storage of a graph asks the policy that decides which values stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class Policy(Protocol):
    """A memory policy: asked before an allocation, notified after a store, and wrapped around reads.

    ``None`` stands for no policy, and costs nothing.
    """

    limit: int  # bytes

    def allocate(self, slot: int, size: int, *, running: bool) -> None:
        """Make room for the value of a node; ``running``: in the middle of a step, for a new buffer.

        Raises
        ------
        NoRoomError
            If nodes are being bound together, and their storage does not fit as a whole.
        """
        ...

    def allocated(self, slot: int) -> None:
        """Count the memory that was allocated for a node."""
        ...

    def stored(self, slot: int) -> None:
        """Note that the value of a node was replaced or dropped, so that it is counted again."""
        ...

    def moved(self, slot: int) -> None:
        """Do what ``stored`` does; the memory may have another size, too."""
        ...

    def given(self, slot: int) -> None:
        """Make room after a caller has set the value of a node."""
        ...

    def recovered(self) -> None:
        """Count every value again: an interrupt may have come between a change and its count."""
        ...

    def released(self, slots: Iterable[int]) -> None:
        """Note that these values were released; they are computed again when needed."""
        ...

    def removed(self, slot: int) -> None:
        """Forget a node that was removed."""
        ...

    def bind(self, slot: int) -> None:
        """Note that the step of a node is asked for, since it is about to run, alone or in a plan."""
        ...

    def read_within(self, slots: tuple[int, ...], read: Callable[[], Any]) -> Any:
        """Call ``read``, which reads these nodes, within the policy. Return its result."""
        ...

    def close(self) -> None:
        """Drop every reference to the storage when the graph is freed."""
        ...

    def check(self) -> None:
        """Raise ``InvariantError`` if the counts differ from what is there."""
        ...
