"""The cost of computing released values again, summed over values that depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

# The forest is built anew when it has this many entries for each value that is released now.
_MOST_ENTRIES = 4


class Gaps:
    """Released values in sets of neighbours: a union-find forest with the sum of costs at each root.

    A value that comes back subtracts its cost from its set but does not split the set, so a set may
    reach further than its values do (Kirisame et al., 2021, accept the same). Building the forest
    anew now and then corrects that, and drops old entries.

    Parameters
    ----------
    neighbours
        Returns the slots of a node's parents and children.
    cost
        Returns the cost of computing a node.
    """

    __slots__ = ("_above", "_cost", "_entry", "_neighbours", "_own", "_sum")

    def __init__(
        self, neighbours: Callable[[int], Iterable[int]], cost: Callable[[int], int]
    ) -> None:
        self._neighbours = neighbours
        self._cost = cost
        self._entry: dict[int, int] = {}  # by slot
        self._own: dict[int, int] = {}  # by slot: the cost that it added to a sum
        self._above: list[int] = []  # by entry: the entry above it; a root has itself
        self._sum: list[int] = []  # by entry: the cost of its set; valid at roots only

    def add(self, slot: int) -> None:
        """Add a value that was released."""
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
        # An interrupt between these two lines leaves one list longer. Assigning to the tail from
        # `root` on makes them equal again the next time.
        self._sum[root:] = [self._own[slot]]
        self._above[root:] = [root]
        self._entry[slot] = root  # a value released again has a new entry; the old one stays unused
        for other in self._roots(slot):
            self._above[other] = root
            self._sum[root] += self._sum[other]

    def discard(self, slot: int) -> None:
        """Take out a value that is there again, or whose node is gone."""
        entry = self._entry.pop(slot, None)
        if entry is not None:
            self._sum[self._root(entry)] -= self._own.pop(slot)

    def around(self, slot: int) -> int:
        """Return the cost of all sets that a value is a neighbour of, without its own set."""
        return sum(map(self._sum.__getitem__, self._roots(slot)))

    def _roots(self, slot: int) -> set[int]:
        entry = self._entry
        return {self._root(entry[other]) for other in self._neighbours(slot) if other in entry} - {
            self._root(entry[slot]) if slot in entry else -1
        }

    def _root(self, entry: int) -> int:
        # Path halving: each entry on the way moves up to its grandparent.
        above = self._above
        while above[entry] != entry:
            above[entry] = entry = above[above[entry]]
        return entry
