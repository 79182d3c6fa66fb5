"""Leaves that are set together again and again, with the checks of each leaf done once.

The first ``g.set`` of many leaves checks them one by one. From the second on it is enough to see that
the keys are the same handles, and the values are checked all together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter, is_
from typing import Any, Protocol

import numpy as np

# So few leaves are checked one by one, which is as fast.
FEW = 16

# The number of groups that are remembered for one graph.
MAX_GROUPS = 16

_shape_of: Callable[[Any], Any] = attrgetter("shape")
_dtype_of: Callable[[Any], Any] = attrgetter("dtype")
_FLOATS = frozenset((float, np.float64))
_ARRAY = frozenset((np.ndarray,))


class Values(Protocol):
    """The storage, as groups of leaves know it."""

    data: Any
    specs: Any
    cutoffs: Any
    together: Any
    scheduler: Any

    def lent_out(self, slots: Collection[int], /) -> bool:
        """Return whether callers or forks may see the memory of these values."""
        ...

    def moved(self, slot: int, /) -> None:
        """Note that the value lies in other memory now."""
        ...


class Together:
    """Leaves that one ``g.set`` has set by plain copies into their buffers.

    Invariant: while a store has it, the handles live, and the leaves lie in these buffers.

    Attributes
    ----------
    leaves : Leaves
        The leaves in the form that the scheduler takes.
    members : frozenset
        Their slots.
    buffers : list of numpy.ndarray
        Their buffers.
    """

    __slots__ = (
        "_dtypes",
        "_keys",
        "_numbers",
        "_shapes",
        "_side_by_side",
        "buffers",
        "leaves",
        "members",
    )

    def __init__(self, store: Values, handles: Iterable[object], slots: Sequence[int]) -> None:
        specs: list[Any] = [store.specs[slot] for slot in slots]
        # By identity, without references: the store drops the group when a handle dies.
        self._keys = list(map(id, handles))
        self.leaves = store.scheduler.leaves(slots)
        self.members = frozenset(slots)
        self.buffers = [store.data[slot] for slot in slots]
        self._side_by_side: np.ndarray[Any, np.dtype[np.float64]] | None = None
        self._shapes = [found.shape for found in specs]
        self._dtypes = [found.dtype for found in specs]
        # Floats can be copied into these as they are, without an array for each.
        double = np.dtype(np.float64)
        self._numbers = all(not one.shape and one.dtype is double for one in specs)

    def takes(self, store: Values, handles: Iterable[object], values: Collection[Any]) -> bool:
        """Return whether it is enough to copy these values into the buffers of these handles."""
        if list(map(id, handles)) != self._keys:
            return False
        kinds = set(map(type, values))
        if self._numbers and kinds <= _FLOATS:
            same = True
        else:
            same = (
                kinds == _ARRAY
                and list(map(_shape_of, values)) == self._shapes
                and list(map(_dtype_of, values)) == self._dtypes
            )
        return same and self.members.isdisjoint(store.cutoffs) and not store.lent_out(self.members)

    def write(self, store: Values, values: Iterable[Any]) -> None:
        """Copy values for which ``takes`` is true into the buffers."""
        if not self._numbers:
            for buffer, value in zip(self.buffers, values, strict=True):
                buffer[...] = value
            return
        if self._side_by_side is None:
            self._lay_side_by_side(store)
        if self._side_by_side is not None:
            self._side_by_side[:] = np.fromiter(values, np.float64, len(self.buffers))
            return
        for buffer, value in zip(self.buffers, values, strict=True):
            buffer[0] = value

    def _lay_side_by_side(self, store: Values) -> None:
        """Move the numbers into one array, so that one copy writes all; not if some lie in one already."""
        if any(buffer.base is not None for buffer in self.buffers):
            return
        block = np.concatenate(self.buffers)  # holds the values: an interrupt below loses none
        buffers = [block[i : i + 1] for i in range(len(block))]
        for slot, buffer in zip(self.leaves.slots, buffers, strict=True):
            store.moved(slot)  # removes this group from the store; it is entered again below
            store.data[slot] = buffer
        self.buffers, self._side_by_side = buffers, block
        store.together[self._keys[0]] = self

    def check(self, store: Values) -> bool:
        """Return whether the invariant holds."""
        return all(map(is_, self.buffers, [store.data[slot] for slot in self.leaves.slots]))
