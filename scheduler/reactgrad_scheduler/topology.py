"""Nodes and edges: flat tables indexed by slot.

A node is a row, and its *slot* is the row's index. Slots of dropped nodes are used again, so code that
stores a slot without keeping its node alive must also store the node's *serial* (the number of its
creation, never used again) and compare it before use.

Rows are added in blocks. A free row holds the defaults of a new node, so that making a node writes only
what differs. All other tables that are indexed by slot add rows when the topology does.

Invariants (checked by ``check_invariants``): ``children`` is exactly the reverse of ``parents``;
a free slot has serial 0, no parents and no children; ``rank`` grows along every edge.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import cast

from reactgrad_scheduler.overlay import Column, Overlay, share

# Distance between the ranks of two nodes created one after the other. An insertion on an edge
# takes the middle, so that some 20 insertions on one edge need no reordering.
RANK_GAP = 1 << 20

# Distance of nodes that are moved above others which nothing is above.
RANK_STEP = 1 << 8

# The consumers of a node, each once, in order: a tuple while there are few, as for most nodes, since it
# takes a quarter of the memory of a dict.
Consumers = tuple[int, ...] | dict[int, None]
FEW = 8

# Of forks, in which no row is ever parked or taken: an empty dict for each would be a large part of a fork.
_NOTHING: dict[int, int] = {}

_END = sys.maxsize  # a position after the end of any list

# The largest number of rows added at a time: a fork copies the list of free rows.
MAX_BLOCK = 256


class Topology:
    """Parents, children, ranks and serials of all nodes."""

    __slots__ = (
        "children",
        "free",
        "next_serial",
        "numbers",
        "parents",
        "parked",
        "rank",
        "serial",
        "shared",
        "size",
    )

    def __init__(self) -> None:
        self.parents: Column[tuple[int, ...]] = []
        self.children: Column[Consumers] = []
        self.rank: Column[int] = []
        self.serial: Column[int] = []
        self.free: list[int] = []
        self.size = 0  # the number of rows; after an interrupt columns may have more, unused ones
        self.next_serial = 1
        # Rows that are neither free nor of a node, with the serials of the last ones; see ``Tables.park``.
        self.parked: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # of nodes that have taken a parked row
        self.shared = 0  # the number of rows when it was forked, or when it became a fork

    def fork(self) -> Topology:
        """Return separate tables with the same rows, which are shared until they are written."""
        twin = Topology()
        self.parents, twin.parents = share(self.parents)
        self.children, twin.children = share(self.children)
        self.rank, twin.rank = share(self.rank)
        self.serial, twin.serial = share(self.serial)
        self.shared = twin.shared = twin.size = self.size
        for slot, consumers in [*twin.children.items()]:
            if type(consumers) is dict:
                twin.children[slot] = consumers.copy()
        twin.free = self.free.copy()
        twin.next_serial = self.next_serial
        twin.parked = _NOTHING
        twin.numbers = self.numbers.copy() if self.numbers else _NOTHING
        return twin

    def __len__(self) -> int:
        """Return the number of live nodes."""
        return self.size - len(self.free) - len(self.parked)

    def number(self, slot: int) -> int:
        """Return the number of a node in the order of creation: its serial, unless its row was parked.

        It is 0 if there is no node in this slot.
        """
        serial = self.serial[slot]
        return self.numbers.get(slot, serial) if serial else 0

    def block(self) -> int:
        """Return the number of rows to add to all tables when no slot is free."""
        return min(8 + (self.size - self.shared) // 8, MAX_BLOCK)

    def extend(self, rows: int) -> None:
        """Add free rows; there must be none left."""
        self.parents.extend([()] * rows)
        self.children.extend([()] * rows)
        self.rank.extend([0] * rows)
        self.serial.extend([0] * rows)
        size = self.size + rows
        self.size, self.free = size, [*range(size - 1, self.size - 1, -1)]

    def remove(self, slot: int) -> None:
        """Free the slot of a node without children. A call after an interrupted one completes it."""
        for parent in self.parents[slot]:
            self.detach(parent, slot)
        self.parents[slot] = ()
        self.children[slot] = ()
        if self.numbers:
            self.numbers.pop(slot, None)
        # In one step, so that an interrupt leaves the row either live or free.
        self.serial[slot], self.free[_END:] = 0, (slot,)

    def attach(self, parent: int, slot: int) -> None:
        """Make ``slot`` the last consumer of ``parent``, unless it is one already."""
        known = self.children[parent]
        if type(known) is dict:
            self._of_its_own(parent, known)[slot] = None
        elif slot not in known:
            more = (*known, slot)
            self.children[parent] = more if len(more) <= FEW else dict.fromkeys(more)

    def detach(self, parent: int, slot: int) -> None:
        """Make ``slot`` no longer a consumer of ``parent``."""
        known = self.children[parent]
        if type(known) is dict:
            self._of_its_own(parent, known).pop(slot, None)
        elif known == (slot,):
            self.children[parent] = ()
        elif slot in known:
            self.children[parent] = tuple([child for child in known if child != slot])

    def _of_its_own(self, parent: int, consumers: dict[int, None]) -> dict[int, None]:
        """Return the consumers of a node as a dict that may be written: not one that a fork shares."""
        children = self.children
        if not isinstance(children, Overlay):
            return consumers
        if parent not in children:
            children[parent] = consumers.copy()
        # Read again: `Overlay.keep`, in another thread, may have put a copy here meanwhile.
        return cast("dict[int, None]", children[parent])

    def relink(self, slot: int, parents: tuple[int, ...]) -> None:
        """Replace the parents of ``slot``. The caller must have made the ranks fit (see ``order``).

        Through edges that stay, the node keeps its place among the consumers of a parent.
        """
        stay = set(parents)
        for parent in self.parents[slot]:
            if parent not in stay:
                self.detach(parent, slot)
        self.parents[slot] = parents
        for parent in parents:
            self.attach(parent, slot)

    def room_above(self, rank: int, count: int) -> int:
        """Return a rank that leaves room for so many nodes above the given one, and is below all new ones.

        It lies close, so that the next nodes that are to be above these find room, too.
        """
        ceiling = rank + (count + 1) * RANK_STEP
        if ceiling > self.next_serial * RANK_GAP:
            self.next_serial = 1 + ceiling // RANK_GAP
        return ceiling

    def find(self, number: int) -> int | None:
        """Return the slot of the node with this number, ``None`` if it is gone."""
        serials = [*self.serial]
        found = [serials.index(number)] if number in serials else []
        found += [slot for slot, one in self.numbers.items() if one == number]
        return next((slot for slot in found if self.number(slot) == number), None)

    def by_number(self) -> dict[int, int]:
        """Return the slots of all live nodes by their numbers."""
        found = dict(zip(self.serial, range(len(self.serial)), strict=True))
        found.pop(0, None)
        renumbered = [slot for slot in self.numbers if self.serial[slot]]
        for slot in renumbered:  # first all: the number of one may be the serial of another
            del found[self.serial[slot]]
        found.update([(self.numbers[slot], slot) for slot in renumbered])
        return found

    def slots(self) -> list[int]:
        """Return the slots of all live nodes in order of creation."""
        serial = self.serial
        order = self.number if self.numbers else serial.__getitem__
        return sorted([slot for slot, one in enumerate(serial) if one], key=order)

    def ancestors(
        self, targets: Iterable[int], keep: Callable[[int], object] | None = None
    ) -> set[int]:
        """Return ``targets`` and all nodes that they are computed from; only slots that ``keep`` accepts."""
        return self._closure(self.parents, targets, keep)

    def descendants(
        self, sources: Iterable[int], keep: Callable[[int], object] | None = None
    ) -> set[int]:
        """Return ``sources`` and all nodes computed from them; only slots that ``keep`` accepts."""
        return self._closure(self.children, sources, keep)

    @staticmethod
    def _closure(
        edges: Column[tuple[int, ...]] | Column[Consumers],
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
        """Return these slots in topological order."""
        return sorted(slots, key=self.rank.__getitem__)
