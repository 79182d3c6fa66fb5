"""Ways into the lock of a graph while its holder runs user code; see ``lock``."""

from __future__ import annotations

from threading import RLock
from typing import Any, Protocol


class Gate:
    """The way in for other threads while ``owner`` runs user code.

    Attributes
    ----------
    owner : int
        The thread that opened it.
    level : int
        The number of nodes that were being computed then: the last of them called the user code. 0: no
        node did.
    sure : bool
        True if the user code certainly waits for the thread inside. A read of a node that is being
        computed is then a cycle.
    number : int
        The number of this opening, never given again.
    void : int
        If the thread inside has to leave, and nothing it computes counts: the number of the gate that
        must be closed before it comes back. Else 0.
    lock
        Held while a thread is inside.
    inside, depth
        The thread inside and the number of its nested calls, or ``None`` and 0.
    lane
        If a crew computes: the lane that was left when the gate was opened. Else ``None``.
    """

    __slots__ = (
        "before",
        "depth",
        "held",
        "inside",
        "lane",
        "level",
        "lock",
        "number",
        "owner",
        "sure",
        "void",
    )

    def __init__(self) -> None:
        self.void = self.number = 0
        self.owner = self.level = 0
        self.sure = True
        # Re-entrant: an interrupted wait may have acquired it, and then waits again.
        self.lock = RLock()
        self.inside: int | None = None
        self.depth = 0
        self.lane: Lane | None = None
        self.held: Any = None  # the state of the lock that was given up for it


class Lane:
    """The nodes that one thread of a crew computes inside of each other, and their gates.

    While the thread works on the tables, these lists are in place in the scheduler and the lock. At
    other times they are stored here.
    """

    __slots__ = ("awaits", "computing", "gates", "retried")

    def __init__(self, computing: list[int], retried: int) -> None:
        self.computing = computing
        self.gates: list[Gate] = []
        self.retried = retried
        self.awaits: object = None  # the request for which its thread waits for other lanes, if any


class Lanes(Protocol):
    """The interface of a crew for the lock.

    Attributes
    ----------
    lanes : dict
        The lane of each thread. Two threads of one lane never run at the same time.
    inside : Lane or None
        The lane in place: its thread holds the lock. ``None`` while no thread of the crew holds it.
    """

    lanes: dict[int, Lane]
    inside: Lane | None

    def enter(self, lane: Lane) -> None:
        """Put a lane in place; the calling thread holds the lock."""
        ...

    def leave(self) -> Lane:
        """Take away the lane that is in place, and return it; the caller gives up the lock next."""
        ...

    def needed_by(self, target: int | None) -> list[Lane]:
        """Return the lanes with nodes under way that ``target`` needs; the caller holds the lock."""
        ...

    def others(self) -> list[int]:
        """Return the nodes under way in lanes that are not in place."""
        ...
