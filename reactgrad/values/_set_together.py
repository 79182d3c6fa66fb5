"""Leaves that are set together again and again: what was found out about each of them is kept.

The first ``g.set`` of many leaves looks at them one by one. From the second on it is enough that the
keys are the same handles, and what is given is compared as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter, is_
from typing import Any, Protocol

import numpy as np

from reactgrad.scheduler import Leaves

# So few leaves are looked at one by one, which is as fast.
FEW = 16

# Groups of leaves of one graph that are remembered.
MAX_GROUPS = 16

_shape_of: Callable[[Any], Any] = attrgetter("shape")
_dtype_of: Callable[[Any], Any] = attrgetter("dtype")
_FLOATS = frozenset((float, np.float64))
_ARRAY = frozenset((np.ndarray,))


class Values(Protocol):
    """The values of a graph, as groups of leaves know them."""

    data: Any
    specs: Any
    cutoffs: Any
    together: Any

    def lent_out(self, slots: Collection[int], /) -> bool:
        """Return whether callers or forks may see the memory of these values."""
        ...

    def moved(self, slot: int, /) -> None:
        """The value lies elsewhere now."""
        ...


class Together:
    """Leaves that were set by one ``g.set``, each a plain copy into the buffer of the leaf.

    Invariant: as long as a store has it, the handles live, and the leaves lie in these buffers.

    Attributes
    ----------
    leaves : Leaves
        As the scheduler hears of them.
    members : frozenset
        Their slots.
    buffers : list of numpy.ndarray
        Theirs.
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
        self._keys = list(map(id, handles))
        self.leaves = Leaves(dict.fromkeys(slots))
        self.members = frozenset(slots)
        self.buffers = [store.data[slot] for slot in slots]
        self._side_by_side: np.ndarray[Any, np.dtype[np.float64]] | None = None
        self._shapes = [found.shape for found in specs]
        self._dtypes = [found.dtype for found in specs]
        # Only these need no array around them.
        double = np.dtype(np.float64)
        self._numbers = all(not one.shape and one.dtype is double for one in specs)

    def takes(self, store: Values, handles: Iterable[object], values: Collection[Any]) -> bool:
        """Whether `values` for `handles` only have to be copied into the buffers, as before."""
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
        """Copy values that it takes."""
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
        """Move numbers into one array, unless some lie in such a one with others already."""
        if any(buffer.base is not None for buffer in self.buffers):
            return
        block = np.concatenate(self.buffers)  # with their values: this may be interrupted
        buffers = [block[i : i + 1] for i in range(len(block))]
        for slot, buffer in zip(self.leaves.slots, buffers, strict=True):
            store.moved(slot)  # which forgets the group for now
            store.data[slot] = buffer
        self.buffers, self._side_by_side = buffers, block
        store.together[self._keys[0]] = self

    def check(self, store: Values) -> bool:
        """Whether the invariant holds."""
        return all(map(is_, self.buffers, [store.data[slot] for slot in self.leaves.slots]))
