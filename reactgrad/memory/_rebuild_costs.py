"""Released values that hang together, and what it would cost to compute them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

# Entries of the forest, for each value that is released now, before it is planted anew.
_MOST_ENTRIES = 4


class Gaps:
    """Sets of neighbours, as a union-find forest with a sum at each root.

    A value that comes back takes its cost out of its set but does not part it, so that a set may
    reach further than its values do (Kirisame et al., 2021, take the same liberty); planting the
    forest anew now and then sets that right, and lets go of old entries.

    Parameters
    ----------
    neighbours
        The slots of parents and children.
    cost
        What it costs to compute a node.
    """

    __slots__ = ("_above", "_cost", "_entry", "_neighbours", "_own", "_sum")

    def __init__(
        self, neighbours: Callable[[int], Iterable[int]], cost: Callable[[int], int]
    ) -> None:
        self._neighbours = neighbours
        self._cost = cost
        self._entry: dict[int, int] = {}  # by slot
        self._own: dict[int, int] = {}  # by slot: what it added to a sum
        self._above: list[int] = []  # by entry; a root is its own
        self._sum: list[int] = []  # by entry, right at roots

    def add(self, slot: int) -> None:
        """A value was released."""
        if slot in self._entry:
            return
        if len(self._above) > _MOST_ENTRIES * len(self._entry) + 64:
            slots = list(self._entry)
            self._entry.clear()
            self._above.clear()
            self._sum.clear()
            for other in slots:
                self._plant(other)
        self._own[slot] = self._cost(slot)
        self._plant(slot)

    def _plant(self, slot: int) -> None:
        root = len(self._above)
        # Also where an interrupt came in between the last time: both are as long as each other afterwards.
        self._sum[root:] = [self._own[slot]]
        self._above[root:] = [root]
        self._entry[slot] = root
        for other in self._roots(slot):
            self._above[other] = root
            self._sum[root] += self._sum[other]

    def discard(self, slot: int) -> None:
        """A value is there again, or its node is gone."""
        entry = self._entry.pop(slot, None)
        if entry is not None:
            self._sum[self._root(entry)] -= self._own.pop(slot)

    def around(self, slot: int) -> int:
        """What the sets beside a value cost together."""
        return sum(map(self._sum.__getitem__, self._roots(slot)))

    def _roots(self, slot: int) -> set[int]:
        entry = self._entry
        return {self._root(entry[other]) for other in self._neighbours(slot) if other in entry} - {
            self._root(entry[slot]) if slot in entry else -1
        }

    def _root(self, entry: int) -> int:
        above = self._above
        while above[entry] != entry:
            above[entry] = entry = above[above[entry]]
        return entry
