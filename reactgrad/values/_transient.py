"""Nodes whose values stay only as long as a run reads them, and where the values go meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Transient(ABC):
    """How the values of some nodes go, and how they come back.

    Attributes
    ----------
    recomputed : bool
        Whether they come back by running the nodes again (rule E17), for which the values that they
        are computed from are needed.
    lasting : bool
        Whether values stay until all of the run has read them; else only until nodes of their own order
        have, and come back for gradients.
    """

    recomputed: bool
    lasting: bool = False

    @abstractmethod
    def let_go(self, host: Any, slot: int) -> bool:
        """Release the value of a clean node, which no run needs now; ``False`` if it must stay."""

    @abstractmethod
    def bring_back(self, host: Any, slot: int) -> None:
        """Give a clean node its value back, if it was not released to be computed again."""

    def put_away(self, host: Any, slot: int, array: Any, version: int) -> None:
        """Keep an array of its own, the value of a node at a version, somewhere else."""
        raise NotImplementedError  # of nodes that are computed again

    def fetch(self, host: Any, slot: int) -> Any:
        """What was put away of a node, as it comes back."""
        raise NotImplementedError
