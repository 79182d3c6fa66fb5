"""Topological ranks under edits, and cycles found before they exist.

The algorithm is that of Pearce and Kelly (2007), "A dynamic topological sort algorithm for
directed acyclic graphs": an edge that agrees with the ranks costs nothing; another one reorders
only the nodes whose ranks lie between its two ends. Ranks have gaps (``RANK_GAP``), so that a
node can be placed between two others without touching a third.
"""

from __future__ import annotations

from reactgrad_scheduler.topology import Topology


def find_path(topology: Topology, start: int, goal: int, below: int | None = None) -> list[int]:
    """A path of slots along the data from `start` to `goal`, or an empty list.

    `below` bounds the search to ranks up to that one, which is exact where ranks are consistent.
    """
    rank, children = topology.rank, topology.children
    came: dict[int, int] = {start: -1}
    stack = [start]
    while stack:
        slot = stack.pop()
        if slot == goal:
            path = [slot]
            while came[path[-1]] >= 0:
                path.append(came[path[-1]])
            return path[::-1]
        for child in children[slot]:
            if child not in came and (below is None or rank[child] <= below):
                came[child] = slot
                stack.append(child)
    return []


def cycle_through(topology: Topology, parent: int, child: int) -> list[int]:
    """The cycle that the edge `parent` → `child` would close, or an empty list.

    The list starts and ends with `parent`.
    """
    if parent == child:
        return [parent, parent]
    if topology.rank[parent] < topology.rank[child]:
        return []
    path = find_path(topology, child, parent, below=topology.rank[parent])
    return [parent, *path] if path else []


def admit(topology: Topology, parent: int, child: int) -> None:
    """Make ``rank[parent] < rank[child]``; the edge must not close a cycle."""
    rank = topology.rank
    low, high = rank[child], rank[parent]
    if high < low:
        return
    after = topology.descendants([child], lambda slot: rank[slot] <= high)
    before = topology.ancestors([parent], lambda slot: rank[slot] >= low)
    # What must come before keeps its order and takes the lower of the pooled ranks.
    moved = topology.sort(before) + topology.sort(after)
    for slot, new in zip(moved, sorted(rank[slot] for slot in moved), strict=True):
        rank[slot] = new


def place_between(topology: Topology, slot: int, parent: int, child: int) -> None:
    """Give the new node `slot` a rank between those of `parent` and `child`, where one is free.

    Where none is free its rank stays, and ``admit`` reorders when the edges are made.
    """
    low, high = topology.rank[parent], topology.rank[child]
    if high - low > 1:
        topology.rank[slot] = (low + high) // 2


def any_cycle(topology: Topology) -> list[int]:
    """Some cycle among all nodes as a path, or an empty list (Kahn, 1962)."""
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
    # Walking up inside what is left must come back to a node already seen.
    slot = next(iter(missing))
    walk: dict[int, None] = {}
    while slot not in walk:
        walk[slot] = None
        slot = next(parent for parent in topology.parents[slot] if parent in missing)
    steps = list(walk)
    return [slot, *reversed(steps[steps.index(slot) :])]
