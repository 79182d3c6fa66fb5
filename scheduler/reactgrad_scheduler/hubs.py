"""Hubs: nodes with so many consumers that looking at all of them again costs more than what is new.

A change marks what it newly reaches. Of a node with 10,000 consumers that nobody reads, all of them are stale
after its first change, and to look at each of them at every further one would cost more than the read. So it is
written down which nodes have left ``STALE``, and the next change of a hub looks at those of them that are its
consumers.
"""

from __future__ import annotations

from collections.abc import Iterable

from reactgrad_scheduler.topology import Consumers

# So many consumers make a hub; and so much may be written down before all is forgotten.
MANY = 64
LEFT_LIMIT = 65536


class Hubs:
    """Which consumers of hubs may have other marks than ``STALE``.

    Invariant: a consumer of a hub that is not ``STALE``, and was not when the hub was last pushed, is in
    ``left`` behind what was there then. So whoever takes the mark ``STALE`` from a node writes that down
    before, and who gives a hub a consumer that is not ``STALE`` forgets the hubs.
    """

    __slots__ = ("left", "room", "since")

    def __init__(self) -> None:
        self.left: list[int] = []  # nodes that have left ``STALE``, in that order
        self.room = LEFT_LIMIT  # how many more may, before it is too much to remember
        self.since: dict[int, int] = {}  # by hub: how many had when it was last pushed

    def reached(self, hub: int, consumers: Consumers) -> Iterable[int]:
        """Consumers of a hub that is pushed, all among them that are not ``STALE``; now they will be."""
        left, end = self.left, len(self.left)
        begin = self.since.get(hub)
        self.since[hub] = end
        if begin is None or end - begin > len(consumers):
            return consumers
        return [slot for slot in left[begin:] if slot in consumers]

    def remove(self, slot: int) -> None:
        """A node is going away."""
        self.since.pop(slot, None)
