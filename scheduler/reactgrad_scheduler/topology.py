"""Who depends on whom: flat tables of nodes and edges, indexed by slot.

A node is a row; its *slot* is the row's index. Slots of dropped nodes are used again, so whoever
keeps a slot without keeping its node alive also keeps the node's *serial* (the number of its
creation, never used again) and compares it before use.

Invariants (checked by ``check_invariants``): ``children`` is exactly the reverse of ``parents``;
a free slot has serial 0, no parents and no children; ``rank`` grows along every edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

# Distance between the ranks of two nodes created one after the other. An insertion on an edge
# takes the middle, so that some 20 insertions on one edge need no reordering.
RANK_GAP = 1 << 20


class Topology:
    """Parents, children, ranks and serials of all nodes."""

    __slots__ = ("children", "free", "next_serial", "parents", "rank", "serial")

    def __init__(self) -> None:
        self.parents: list[tuple[int, ...]] = []
        self.children: list[dict[int, None]] = []  # insertion-ordered set of consumers
        self.rank: list[int] = []
        self.serial: list[int] = []
        self.free: list[int] = []
        self.next_serial = 1

    def copy(self) -> Topology:
        """Tables of their own with the same rows."""
        twin = Topology()
        twin.parents = self.parents.copy()
        twin.children = [children.copy() for children in self.children]
        twin.rank = self.rank.copy()
        twin.serial = self.serial.copy()
        twin.free = self.free.copy()
        twin.next_serial = self.next_serial
        return twin

    def __len__(self) -> int:
        """Number of live nodes."""
        return len(self.parents) - len(self.free)

    def add(self, parents: tuple[int, ...]) -> int:
        """Create a node after all others and return its slot."""
        serial = self.next_serial
        self.next_serial = serial + 1
        if self.free:
            slot = self.free.pop()
            self.parents[slot] = parents
            self.rank[slot] = serial * RANK_GAP
            self.serial[slot] = serial
        else:
            slot = len(self.parents)
            self.parents.append(parents)
            self.children.append({})
            self.rank.append(serial * RANK_GAP)
            self.serial.append(serial)
        children = self.children
        for parent in parents:
            children[parent][slot] = None
        return slot

    def remove(self, slot: int) -> None:
        """Free the slot of a node that has no children."""
        children = self.children
        for parent in self.parents[slot]:
            children[parent].pop(slot, None)
        self.parents[slot] = ()
        children[slot] = {}
        self.serial[slot] = 0
        self.free.append(slot)

    def relink(self, slot: int, parents: tuple[int, ...]) -> None:
        """Replace the parents of `slot`; the caller has made the ranks fit (see ``order``).

        Where an edge stays, the consumer keeps its place among those of the parent.
        """
        children, stay = self.children, set(parents)
        for parent in self.parents[slot]:
            if parent not in stay:
                children[parent].pop(slot, None)
        self.parents[slot] = parents
        for parent in parents:
            children[parent][slot] = None

    def slots(self) -> list[int]:
        """Slots of all live nodes in order of creation."""
        serial = self.serial
        return sorted((s for s in range(len(serial)) if serial[s]), key=serial.__getitem__)

    def ancestors(
        self, targets: Iterable[int], keep: Callable[[int], object] | None = None
    ) -> set[int]:
        """`targets` and all that they are computed from; only slots that `keep` accepts."""
        return self._closure(self.parents, targets, keep)

    def descendants(
        self, sources: Iterable[int], keep: Callable[[int], object] | None = None
    ) -> set[int]:
        """`sources` and all that is computed from them; only slots that `keep` accepts."""
        return self._closure(self.children, sources, keep)

    @staticmethod
    def _closure(
        edges: list[tuple[int, ...]] | list[dict[int, None]],
        start: Iterable[int],
        keep: Callable[[int], object] | None,
    ) -> set[int]:
        stack = [slot for slot in start if keep is None or keep(slot)]
        found = set(stack)
        while stack:
            for other in edges[stack.pop()]:
                if other not in found and (keep is None or keep(other)):
                    found.add(other)
                    stack.append(other)
        return found

    def sort(self, slots: Iterable[int]) -> list[int]:
        """`slots` in topological order."""
        return sorted(slots, key=self.rank.__getitem__)
