"""Memory of the slots of Vars that are read together again and again."""

from __future__ import annotations

from functools import cache
from typing import Any

# So few Vars are checked one by one, which is as fast.
FEW = 16

# The number of slots that are remembered at most, over all tuples.
MAX_ASKED = 1 << 16


@cache
def _only(kind: type) -> frozenset[type]:
    """Return the set of this class of handles alone, the same for all graphs."""
    return frozenset((kind,))


class Asked:
    """The slots of tuples of Vars, found by the hash of the tuple.

    The Vars are not kept alive. A Var hashes by identity, so while all remembered Vars live, another
    tuple has the same hash only by a chance of 2**-60.

    Invariant: all remembered Vars live, except those that ``tidy`` has still to process.

    Attributes
    ----------
    members : set of int
        All remembered slots.
    """

    __slots__ = ("_only", "_size", "_slots", "members")

    def __init__(self, kind: type) -> None:
        self._only = _only(kind)
        self._slots: dict[int, tuple[int, ...]] = {}
        self._size = 0
        self.members: set[int] = set()

    def find(self, variables: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Return the slots of these Vars, each once; ``None`` if they are not remembered."""
        if not self._only.issuperset(map(type, variables)):
            return None  # an object of another type may hash like a Var
        return self._slots.get(hash(variables))

    def remember(self, variables: tuple[Any, ...], slots: tuple[int, ...]) -> None:
        """Remember the slots of these Vars, which must belong to the graph."""
        if not self._only.issuperset(map(type, variables)):
            return  # a name may move to another node; the death of other handles is not seen here
        if self._size > MAX_ASKED:
            self.clear()
        self._size += len(slots)
        self.members.update(slots)
        self._slots[hash(variables)] = slots

    def clear(self) -> None:
        """Forget all slots."""
        self._slots.clear()
        self.members.clear()
        self._size = 0
