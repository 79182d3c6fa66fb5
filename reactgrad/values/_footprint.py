"""The memory that large arrays of a graph take, now and at its peak.

Each array is counted once, when the graph gets it, and again when it is freed, whatever held it last:
a value, a caller, or the spare arrays. Steps that run do no work for this.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np


class _Piece(weakref.ref[Any]):
    """A weak reference to an array that remembers the size of the array."""

    __slots__ = ("size",)

    size: int


class Footprint:
    """The large arrays of the host that a graph has made or adopted, as long as they live.

    Attributes
    ----------
    bytes, peak : int
        Their size together when the last one was added, and the largest size so far.
    """

    __slots__ = ("_gone", "_on_death", "_pieces", "bytes", "peak")

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        # Arrays may be freed in any thread and at any moment, so the callback only appends, which is
        # atomic. The next `add` does the work.
        self._gone: deque[_Piece] = deque()
        self._on_death = self._gone.append
        self.bytes = self.peak = 0

    def add(self, array: Any) -> None:
        """Count an array, if it is large."""
        if type(array) is not np.ndarray or array.nbytes < FEWEST_BYTES:
            return
        gone = self._gone
        while gone:  # subtract what was freed since the last call, so that the peak is right
            piece = gone.popleft()
            self.bytes -= piece.size
            del self._pieces[id(piece)]
        piece = _Piece(array, self._on_death)
        piece.size = array.nbytes
        self._pieces[id(piece)] = piece
        self.bytes += piece.size
        self.reached(self.bytes)

    def reached(self, count: int) -> None:
        """Raise the peak to this number of bytes, counted elsewhere, if it is higher."""
        self.peak = max(self.peak, count)


# Smaller arrays come from memory that the process keeps anyway; to track them costs more than they take.
FEWEST_BYTES = 1 << 16
