"""The interface to transient values, which stay only while a run reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Transient(ABC):
    """The way in which values of some nodes are dropped and come back.

    Attributes
    ----------
    recomputed : bool
        True if values come back by running their nodes again (rule E17), which needs their operands.
    lasting : bool
        True if values stay until all nodes of the run have read them. False if they stay only until
        nodes of their own order have, and come back for gradients.
    """

    recomputed: bool
    lasting: bool = False

    @abstractmethod
    def let_go(self, host: Any, slot: int) -> bool:
        """Drop the value of a clean node that no run needs now. Return ``False`` if it must stay."""

    @abstractmethod
    def bring_back(self, host: Any, slot: int) -> None:
        """Give a clean node its value back, unless it must be computed again."""

    def put_away(self, host: Any, slot: int, array: Any, version: int) -> None:
        """Store an array, owned by the callee, as the node's value at this version."""
        raise NotImplementedError  # not for nodes that are computed again

    def fetch(self, host: Any, slot: int) -> Any:
        """Return the value that ``put_away`` has stored for a node."""
        raise NotImplementedError
