"""Which memory the values of nodes keep alive, each piece counted once."""

from __future__ import annotations

from collections.abc import Iterable
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


class Ledger:
    """The memory of the values of some slots.

    Attributes
    ----------
    bytes, peak : int
        In all of it together now, and at most so far.
    """

    __slots__ = ("_holder", "_holders", "bytes", "peak")

    def __init__(self) -> None:
        self._holder: dict[int, int] = {}  # by slot: which piece of memory, by its id
        self._holders: dict[int, list[int]] = {}  # by id: bytes, and values that lie there
        self.bytes = self.peak = 0

    def __contains__(self, slot: int) -> bool:
        """Whether the value of a slot takes memory."""
        return slot in self._holder

    def update(self, slots: Iterable[int], values: Column[Any]) -> None:
        """The values of these slots have changed."""
        slots = list(slots)
        # All old entries go before any new one comes: memory may be used again under its former id.
        for slot in slots:
            former = self._holder.pop(slot, None)
            if former is not None:
                piece = self._holders[former]
                piece[1] -= 1
                if not piece[1]:
                    self.bytes -= piece[0]
                    del self._holders[former]
        for slot in slots:
            memory = memory_of(values[slot])
            if memory is not None:
                self._holder[slot] = id(memory)
                piece = self._holders.setdefault(id(memory), [size_of(memory), 0])
                self.bytes += 0 if piece[1] else piece[0]
                piece[1] += 1
        self.peak = max(self.peak, self.bytes)

    def bytes_of(self, slot: int) -> int:
        """The size of the memory in which the value of a slot lies."""
        return self._holders[self._holder[slot]][0] if slot in self._holder else 0
