"""Which memory the values of nodes keep alive, each piece counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reactgrad.backend import owner
from reactgrad.scheduler import Column


def memory_of(value: Any) -> Any:
    """The array in whose memory `value` lies: itself, or what it is a view of; else ``None``."""
    if not isinstance(value, np.ndarray | np.generic) and owner(value) is None:
        return None
    holder = value
    while True:
        base = getattr(holder, "base", None)
        if isinstance(base, memoryview):  # what callers of large values get
            base = base.obj
        if not isinstance(base, type(value)):
            return holder
        holder = base


def size_of(memory: Any) -> int:
    """Bytes of an array, of which the array API standard says only how many elements it has."""
    size = getattr(memory, "nbytes", None)
    if size is None:
        size = memory.size * np.dtype(str(memory.dtype).rpartition(".")[2]).itemsize
    return size


@dataclass(eq=False, slots=True)
class _Piece:
    """A piece of memory, and how many values lie there."""

    at: int  # its id
    bytes: int
    values: int = 0


class Ledger:
    """The memory of the values of some slots.

    Attributes
    ----------
    bytes, peak : int
        In all of it together now, and at most so far.
    """

    __slots__ = ("_by_id", "_by_slot", "bytes", "peak")

    def __init__(self) -> None:
        self._by_slot: dict[int, _Piece] = {}
        self._by_id: dict[int, _Piece] = {}
        self.bytes = self.peak = 0

    def __contains__(self, slot: int) -> bool:
        """Whether the value of a slot takes memory."""
        return slot in self._by_slot

    def update(self, slots: Iterable[int], values: Column[Any]) -> None:
        """The values of these slots have changed."""
        slots = list(slots)
        # All old entries go before any new one comes: memory may be used again under its former id.
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
                # One of another size is gone, and those that lay there are yet to be told.
                if piece is None or piece.bytes != size:
                    piece = self._by_id[id(memory)] = _Piece(id(memory), size)
                    self.bytes += size
                self._by_slot[slot] = piece
                piece.values += 1
        self.peak = max(self.peak, self.bytes)

    def bytes_of(self, slot: int) -> int:
        """The size of the memory in which the value of a slot lies."""
        return self._by_slot[slot].bytes if slot in self._by_slot else 0
