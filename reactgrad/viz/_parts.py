"""Folded scopes, as few boxes as can be without lines between two of them in both directions.

Where what follows from a scope leads back into it, one box would have lines out and in, and the
picture would show a cycle that the graph does not have. So the scope is drawn as two boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reactgrad.explain._snapshot import EdgeSnapshot

Scope = tuple[str, ...]
Place = tuple[int, Scope]  # a node, in one of the scopes where it is drawn


def parted(
    homes: Mapping[int, list[Scope]],
    edges: Iterable[EdgeSnapshot] | None,
    depths: Mapping[Scope, int | None],
) -> dict[Place, tuple[Scope, int]]:
    """Return the scope that each node is folded into, and the number of the part of it, from 1.

    Parameters
    ----------
    homes
        The scopes where each node is drawn, parents first.
    edges
        The edges between nodes; ``None``: each scope is one part, whatever follows from it.
    depths
        Scopes at this depth are folded; ``None``: none of these.
    """
    parents: dict[int, list[int]] = {}
    for edge in edges or ():
        parents.setdefault(edge.child, []).append(edge.parent)
    quotient = _Quotient()
    for key, scopes in homes.items():
        for scope in scopes:
            depth = depths[scope]
            folded = None if depth is None or len(scope) < depth else scope[:depth]
            quotient.add((key, scope), folded, _places(parents.get(key, ()), scope, homes))
    return quotient.found


def _places(
    parents: Iterable[int], scope: Scope, homes: Mapping[int, list[Scope]]
) -> Iterable[Place]:
    """Return where the parents of a node are drawn, as seen from the scope of the node."""
    for parent in parents:
        drawn = homes.get(parent, [])
        if drawn:
            yield parent, drawn[0] if len(drawn) == 1 or scope not in drawn else scope


class _Quotient:
    """The boxes, and which of them leads to which: never a cycle."""

    def __init__(self) -> None:
        self.found: dict[Place, tuple[Scope, int]] = {}
        self._box: dict[Place, int] = {}
        self._next: list[set[int]] = []
        self._parts: dict[Scope, list[int]] = {}

    def add(self, place: Place, scope: Scope | None, parents: Iterable[Place]) -> None:
        """Put a node into the first part of its scope that leads to none of its parents.

        The first: what is repeated then meets what it repeats. In the latest one it would come after that, and
        each repetition would need parts of its own.
        """
        before = {self._box[one] for one in parents if one in self._box}
        parts = [] if scope is None else self._parts.setdefault(scope, [])
        box = next((one for one in parts if self._fits(one, before)), None)
        if box is None:
            box = len(self._next)
            self._next.append(set())
            parts.append(box)
        for one in before:
            if one != box:
                self._next[one].add(box)
        self._box[place] = box
        if scope is not None:
            self.found[place] = scope, parts.index(box) + 1

    def _fits(self, box: int, before: set[int]) -> bool:
        """Return whether new lines to a box close no cycle."""
        fresh = {one for one in before if one != box and box not in self._next[one]}
        if not fresh:
            return True
        seen, stack = {box}, [box]
        while stack:
            for other in self._next[stack.pop()]:
                if other in fresh:
                    return False
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return True
