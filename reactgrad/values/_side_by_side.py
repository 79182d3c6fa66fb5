"""Leaves whose values lie side by side in one array, so that one call of NumPy reads or writes all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import is_
from typing import Any

import numpy as np

from reactgrad.values._leaf_writes import LeafWrites


class SideBySide:
    """Leaves of one dtype, in the memory of the host, that lie in one array in this order.

    It is a group of ``store.together``, from which a store removes it as soon as one of its leaves lies
    elsewhere: after another set, a fork, or a read whose result a caller holds. So one look-up tells
    whether all of them still lie here.

    Invariant: while a store has it, its leaves lie in `array`, leaf ``i`` in the elements from
    ``bounds[i]`` to ``bounds[i + 1]``.

    Attributes
    ----------
    slots : tuple of int
        The leaves.
    members : frozenset of int
        The same.
    leaves : Leaves
        The same, in the form that the scheduler takes.
    bounds : list of int
        The places at which the leaves begin, and the end of the last.
    array : numpy.ndarray
        The memory, with one axis.
    """

    __slots__ = ("_shapes", "array", "bounds", "buffers", "leaves", "members", "slots")

    def __init__(self, store: LeafWrites, slots: Sequence[int]) -> None:
        self.slots = tuple(slots)
        self.members = frozenset(slots)
        self.leaves = store.scheduler.leaves(slots)
        self._shapes = [store.specs[slot].storage for slot in slots]  # type: ignore[union-attr]
        self.bounds = [0, *accumulate(math.prod(shape) for shape in self._shapes)]
        dtype = store.specs[slots[0]].dtype  # type: ignore[union-attr]
        array = np.empty(self.bounds[-1], dtype)
        for view, slot in zip(self.views(array), slots, strict=True):
            view[...] = store.data[slot]
        self.array = array
        self.buffers: list[Any] = []
        self.move(store, array)

    def views(self, array: Any) -> list[Any]:
        """Return parts of an array like `array` in the shapes of the leaves' buffers."""
        return [
            array[start:end].reshape(shape)
            for (start, end), shape in zip(pairwise(self.bounds), self._shapes, strict=True)
        ]

    def lies_in(self, store: LeafWrites) -> bool:
        """Return whether all leaves still lie here."""
        return store.together.get(id(self)) is self

    def move(self, store: LeafWrites, array: Any) -> None:
        """Make `array`, which holds the values of all leaves, their memory; callers keep the former one."""
        buffers = self.views(array)
        for slot, buffer in zip(self.slots, buffers, strict=True):
            store.replace_memory(slot, buffer)
        self.array, self.buffers = array, buffers
        store.footprint.add(array)
        store.join(id(self), self)

    def takes(self, store: LeafWrites, handles: Iterable[object], values: Any) -> bool:
        """Return ``False``: leaves are set by ``Graph.set`` in groups of their own."""
        return False

    def write(self, store: LeafWrites, values: Iterable[Any]) -> None:
        """Copy values into the memory, one for each leaf."""
        for buffer, value in zip(self.buffers, values, strict=True):
            buffer[...] = value

    def check(self, store: LeafWrites) -> bool:
        """Return whether the invariant holds."""
        return all(map(is_, self.buffers, [store.data[slot] for slot in self.slots]))
