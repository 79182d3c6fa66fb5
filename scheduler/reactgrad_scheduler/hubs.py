"""Hubs: nodes with so many consumers that a change must not visit all of them.

A change marks only nodes that it newly reaches. After the first change of a node with 10,000 unread
consumers, all of them are stale, and visiting each of them at every further change would cost more than
the read. So nodes that leave ``STALE`` are recorded, and the next change of a hub visits only those of
them that are its consumers.
"""

from __future__ import annotations

from collections.abc import Iterable

from reactgrad_scheduler.topology import Consumers

# Nodes with more consumers than ``MANY`` are hubs. More than ``LEFT_LIMIT`` records are dropped together.
MANY = 64
LEFT_LIMIT = 65536


class Hubs:
    """Records of consumers of hubs that may have other marks than ``STALE``.

    Invariant: a consumer of a hub that is not ``STALE`` is in ``left``, at a position after the hub's last
    push, which made all its consumers ``STALE``. So code that takes the mark ``STALE`` from a node must
    record the node first, and code that gives a hub a consumer that is not ``STALE`` must drop all
    records.
    """

    __slots__ = ("left", "room", "since")

    def __init__(self) -> None:
        self.left: list[int] = []  # nodes that have left ``STALE``, in that order
        self.room = LEFT_LIMIT  # the number of records that may still be added
        self.since: dict[int, int] = {}  # by hub: the length of ``left`` when it was last pushed

    def reached(self, hub: int, consumers: Consumers) -> Iterable[int]:
        """Return all consumers of a hub that are not ``STALE``, maybe more; the caller marks them now."""
        left, end = self.left, len(self.left)
        begin = self.since.get(hub)
        self.since[hub] = end
        # Without a record, or with too many, all consumers are visited.
        if begin is None or end - begin > len(consumers):
            return consumers
        return [slot for slot in left[begin:] if slot in consumers]

    def remove(self, slot: int) -> None:
        """Forget a node that is about to be removed."""
        self.since.pop(slot, None)
