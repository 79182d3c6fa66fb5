"""Vars that are read together again and again: which nodes they are is found out once."""

from __future__ import annotations

from functools import cache
from typing import Any

# So few are looked at one by one, which is as fast.
FEW = 16

# Most that are remembered, all in all.
MAX_ASKED = 1 << 16


@cache
def _only(kind: type) -> frozenset[type]:
    """Return the set of this class of handles alone, the same for all graphs."""
    return frozenset((kind,))


class Asked:
    """The slots of Vars of one graph, by what the Vars hash to together.

    Vars are not kept: as long as all of them live nothing else hashes so, up to a chance of 2**-60.

    Invariant: the Vars of all that is remembered live, but for those that ``tidy`` is still to look after.

    Attributes
    ----------
    members : set of int
        All slots that are remembered.
    """

    __slots__ = ("_only", "_size", "_slots", "members")

    def __init__(self, kind: type) -> None:
        self._only = _only(kind)
        self._slots: dict[int, tuple[int, ...]] = {}
        self._size = 0
        self.members: set[int] = set()

    def find(self, variables: tuple[Any, ...]) -> tuple[int, ...] | None:
        """The slots of these, each once, if they were remembered."""
        if not self._only.issuperset(map(type, variables)):
            return None  # something else may hash like a Var
        return self._slots.get(hash(variables))

    def remember(self, variables: tuple[Any, ...], slots: tuple[int, ...]) -> None:
        """Expect these, which belong to the graph, to be asked for again."""
        if not self._only.issuperset(map(type, variables)):
            return  # names may move, and nobody hears of the end of other handles
        if self._size > MAX_ASKED:
            self.clear()
        self._size += len(slots)
        self.members.update(slots)
        self._slots[hash(variables)] = slots

    def clear(self) -> None:
        """Forget all."""
        self._slots.clear()
        self.members.clear()
        self._size = 0
