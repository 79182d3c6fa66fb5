"""Topological ranks under edits, and cycles found before they exist.

The algorithm is that of Pearce and Kelly (2007), "A dynamic topological sort algorithm for directed
acyclic graphs", with two changes. Ranks have gaps (``RANK_GAP``), and the search goes from both ends at
once, edge by edge (as in Bender, Fineman, Gilbert and Tarjan (2016), "A new approach to incremental cycle
detection and related problems"): the side whose search ends first is moved into the gap beside the other
end. So an edge that agrees with the ranks costs nothing. An edge from a new node to an old one costs only
what is new, however many nodes depend on the old one. Only if a gap is used up are the nodes between both
ends reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.topology import RANK_GAP, Consumers, Topology


class Former:
    """Parents and ranks as they were before ``relink``; each is noted before it changes."""

    __slots__ = ("parents", "ranks")

    def __init__(self) -> None:
        self.parents: dict[int, tuple[int, ...]] = {}
        self.ranks: dict[int, int] = {}


def find_path(topology: Topology, start: int, goal: int, below: int | None = None) -> list[int]:
    """Return a path of slots along the data from ``start`` to ``goal``; ``[]`` if there is none.

    ``below`` limits the search to ranks up to that one, which is exact where ranks are consistent.
    """
    rank, children = topology.rank, topology.children
    came: dict[int, int] = {start: -1}
    stack = [start]
    while stack:
        slot = stack.pop()
        if slot == goal:
            return way_back(came, slot)[::-1]
        for child in children[slot]:
            if child not in came and (below is None or rank[child] <= below):
                came[child] = slot
                stack.append(child)
    return []


def way_back(came: Mapping[int, int], end: int) -> list[int]:
    """Return the slots from ``end`` back to the start of a search, whose entry in ``came`` is -1."""
    way = [end]
    while came[way[-1]] >= 0:
        way.append(came[way[-1]])
    return way


def cycle_through(topology: Topology, parent: int, child: int) -> list[int]:
    """Return the cycle that the edge ``parent`` → ``child`` would close; ``[]`` if there is none.

    The list starts and ends with ``parent``.
    """
    if parent == child:
        return [parent, parent]
    if topology.rank[parent] < topology.rank[child] or _between(topology, parent, child):
        return []
    return [parent, *find_path(topology, child, parent, below=topology.rank[parent])]


def admit(
    topology: Topology, parent: int, child: int, former: dict[int, int] | None = None
) -> list[int]:
    """Change ranks so that ``rank[parent] < rank[child]``. Return the cycle of the edge, if it closes one.

    Ranks that are changed are noted in ``former`` as they were.
    """
    rank = topology.rank
    if rank[parent] < rank[child]:
        return []
    found = _between(topology, parent, child) if parent != child else None
    if found is None:
        return cycle_through(topology, parent, child)
    low, high = rank[child], rank[parent]
    before, after = found
    parents, children = topology.parents, topology.children
    if before:
        floor = max((rank[p] for s in before for p in parents[s] if p not in before), default=0)
        ceiling = low
    else:
        floor = high
        above = [rank[c] for s in after for c in children[s] if c not in after]
        ceiling = min(above) if above else topology.room_above(floor, len(after))
    moved = topology.sort(before or after)
    step = (ceiling - floor) // (len(moved) + 1)
    ranks: Sequence[int] = range(floor + step, ceiling, step) if step else ()
    if not step:  # no room in the gap: both sides are reordered within the ranks that they have
        before = before or topology.ancestors([parent], lambda slot: rank[slot] >= low)
        after = after or topology.descendants([child], lambda slot: rank[slot] <= high)
        moved = topology.sort(before) + topology.sort(after)
        ranks = sorted(rank[slot] for slot in moved)
    former = {} if former is None else former
    for slot, new in zip(moved, ranks):
        former.setdefault(slot, rank[slot])
        rank[slot] = new
    if not step:
        _part(topology, parent, child, moved, former)
    return []


def _part(
    topology: Topology, parent: int, child: int, moved: Iterable[int], former: dict[int, int]
) -> None:
    """Raise nodes that are not above their parents after pooled ranks were given out, and nodes below them.

    Nodes without a path between them may have had one rank: the pool then holds it twice.
    """
    rank, children = topology.rank, topology.children
    todo = [(rank[slot], slot) for slot in moved]
    heapify(todo)
    while todo:
        own, slot = heappop(todo)
        if own != rank[slot]:  # an old entry: the node was raised since
            continue
        for other in (*children[slot], child) if slot == parent else children[slot]:
            if rank[other] <= own:
                former.setdefault(other, rank[other])
                rank[other] = own + 1
                heappush(todo, (own + 1, other))
        if own >= topology.next_serial * RANK_GAP:  # new nodes must be above all others
            topology.next_serial += 1


def _between(topology: Topology, parent: int, child: int) -> tuple[set[int], set[int]] | None:
    """Return the nodes to move for the edge ``parent`` → ``child``, whose ranks are the wrong way round.

    They are either ``parent`` and its ancestors down to the rank of ``child``, or ``child`` and its
    descendants up to the rank of ``parent``, whichever search ends first; the other set is empty.
    ``None``: there is a path from ``child`` to ``parent``.
    """
    rank = topology.rank
    low, high = rank[child], rank[parent]
    before, after = {parent}, {child}
    up = _walk(topology.parents, before, lambda slot: rank[slot] >= low)
    down = _walk(topology.children, after, lambda slot: rank[slot] <= high)
    # One edge of each search in turn: the cost is at most twice that of the shorter one.
    while True:
        step = next(up, None)
        if step is None:
            return before, set()
        if step == child:
            return None
        step = next(down, None)
        if step is None:
            return set(), after
        if step == parent:
            return None


def _walk(
    edges: Column[tuple[int, ...]] | Column[Consumers],
    found: set[int],
    accepts: Callable[[int], bool],
) -> Iterator[int]:
    """Complete ``found`` along these edges, and yield the far end of each edge on the way."""
    stack = list(found)
    while stack:
        for other in edges[stack.pop()]:
            if other not in found and accepts(other):
                found.add(other)
                stack.append(other)
            yield other


def relink(topology: Topology, links: Mapping[int, tuple[int, ...]], former: Former) -> list[int]:
    """Give these nodes other parents, all of them or none. Return the cycle that forbids it, if any.

    All old edges are removed before the first new one is added, so that an edge may be turned round. At
    any moment ``former`` holds what ``restore`` needs, so that an interrupt can be undone.
    """
    parents, children, rank = topology.parents, topology.children, topology.rank
    for slot, new in links.items():
        old = former.parents[slot] = parents[slot]
        stay = set(new)
        for parent in old:
            if parent not in stay:
                topology.detach(parent, slot)
        parents[slot] = tuple([parent for parent in old if parent in stay])
    for slot, new in links.items():
        for parent in new:
            if slot in children[parent]:
                continue
            if rank[parent] >= rank[slot]:
                cycle = admit(topology, parent, slot, former.ranks)
                if cycle:
                    restore(topology, former)
                    former.parents.clear()
                    former.ranks.clear()
                    return cycle
            parents[slot] = (*parents[slot], parent)
            topology.attach(parent, slot)
        parents[slot] = new
    return []


def restore(topology: Topology, former: Former) -> None:
    """Undo ``relink`` exactly. Everything changed since then must have been undone before."""
    for slot, parents in former.parents.items():
        topology.relink(slot, parents)
    for slot, rank in former.ranks.items():
        topology.rank[slot] = rank


def mend(topology: Topology) -> None:
    """Make children and ranks follow from parents again, wherever a change of them was cut short."""
    parents, children, rank = topology.parents, topology.children, topology.rank
    slots = topology.slots()
    for slot in slots:
        for child in [*children[slot]]:
            if slot not in parents[child]:
                topology.detach(slot, child)
        for parent in parents[slot]:
            topology.attach(parent, slot)
    if all(rank[parent] < rank[slot] for slot in slots for parent in parents[slot]):
        return
    missing = {slot: len(set(parents[slot])) for slot in slots}
    ready = [(rank[slot], slot) for slot, count in missing.items() if not count]
    heapify(ready)
    for number in range(1, len(slots) + 1):
        _, slot = heappop(ready)
        rank[slot] = number * RANK_GAP  # at most that of the last node
        for child in children[slot]:
            missing[child] -= 1
            if not missing[child]:
                heappush(ready, (rank[child], child))


def any_cycle(topology: Topology) -> list[int]:
    """Return some cycle among all nodes as a path; ``[]`` if there is none (Kahn, 1962)."""
    missing = {slot: len(set(topology.parents[slot])) for slot in topology.slots()}
    ready = [slot for slot, count in missing.items() if not count]
    while ready:
        slot = ready.pop()
        del missing[slot]
        for child in topology.children[slot]:
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    if not missing:
        return []
    # Each node left has a parent that is left, so walking up must come back to a node already seen.
    slot = next(iter(missing))
    walk: dict[int, None] = {}
    while slot not in walk:
        walk[slot] = None
        slot = next(parent for parent in topology.parents[slot] if parent in missing)
    steps = list(walk)
    return [slot, *reversed(steps[steps.index(slot) :])]
