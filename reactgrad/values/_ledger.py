"""The memory that the values of nodes keep alive, each piece counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reactgrad.backend import owner
from reactgrad.scheduler import Column


def memory_of(value: Any) -> Any:
    """Return the array in whose memory a value lies, the value itself or its base; else ``None``."""
    if not isinstance(value, np.ndarray | np.generic) and owner(value) is None:
        return None
    holder = value
    while True:
        base = getattr(holder, "base", None)
        if isinstance(base, memoryview):  # large values are handed out by way of one
            base = base.obj
        if not isinstance(base, type(value)):
            return holder
        holder = base  # NumPy's views of views may name another view as their base


def size_of(memory: Any) -> int:
    """Return the bytes of an array. The array API standard has no ``nbytes``, so it may be computed."""
    size = getattr(memory, "nbytes", None)
    if size is None:
        size = memory.size * np.dtype(str(memory.dtype).rpartition(".")[2]).itemsize
    return size


@dataclass(eq=False, slots=True)
class _Piece:
    """A piece of memory, with the number of values that lie in it."""

    at: int  # its id
    bytes: int
    values: int = 0


class Ledger:
    """The memory of the values of some slots.

    Attributes
    ----------
    bytes, peak : int
        The size of all pieces together now, and the largest size so far.
    """

    __slots__ = ("_by_id", "_by_slot", "bytes", "peak")

    def __init__(self) -> None:
        self._by_slot: dict[int, _Piece] = {}
        self._by_id: dict[int, _Piece] = {}
        self.bytes = self.peak = 0

    def __contains__(self, slot: int) -> bool:
        """Return whether the value of a slot takes memory."""
        return slot in self._by_slot

    def update(self, slots: Iterable[int], values: Column[Any]) -> None:
        """Count the values of these slots again, which have changed."""
        slots = list(slots)
        # Old entries are removed before new ones are made: new memory may have the id of an old piece.
        for slot in slots:
            piece = self._by_slot.pop(slot, None)
            if piece is not None:
                piece.values -= 1
                if not piece.values:
                    self.bytes -= piece.bytes
                    if self._by_id.get(piece.at) is piece:
                        del self._by_id[piece.at]
        for slot in slots:
            memory = memory_of(values[slot])
            if memory is not None:
                size = size_of(memory)
                piece = self._by_id.get(id(memory))
                # With another size it is a freed piece, whose slots are still to be updated.
                if piece is None or piece.bytes != size:
                    piece = self._by_id[id(memory)] = _Piece(id(memory), size)
                    self.bytes += size
                self._by_slot[slot] = piece
                piece.values += 1
        self.peak = max(self.peak, self.bytes)

    def bytes_of(self, slot: int) -> int:
        """Return the size of the memory in which the value of a slot lies, 0 if it takes none."""
        return self._by_slot[slot].bytes if slot in self._by_slot else 0
