"""How much memory the large arrays of a graph take, and took at most.

Each is counted once, when the graph gets it, and again when it is gone, whoever held it last: values, those
that callers still look at, and spare ones. Steps cost nothing.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np


class _Piece(weakref.ref[Any]):
    """An array, and its size when it is gone."""

    __slots__ = ("size",)

    size: int


class Footprint:
    """Large arrays of the host that a graph has made or adopted, as long as they are there.

    Attributes
    ----------
    bytes, peak : int
        Of all of them when the last one came, and at most so far.
    """

    __slots__ = ("_gone", "_on_death", "_pieces", "bytes", "peak")

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        # Arrays may go in any thread, and at any moment: looked after when the next one comes.
        self._gone: deque[_Piece] = deque()
        self._on_death = self._gone.append
        self.bytes = self.peak = 0

    def add(self, array: Any) -> None:
        """Count an array, if it is large."""
        if type(array) is not np.ndarray or array.nbytes < FEWEST_BYTES:
            return
        gone = self._gone
        while gone:
            piece = gone.popleft()
            self.bytes -= piece.size
            del self._pieces[id(piece)]
        piece = _Piece(array, self._on_death)
        piece.size = array.nbytes
        self._pieces[id(piece)] = piece
        self.bytes += piece.size
        self.reached(self.bytes)

    def reached(self, count: int) -> None:
        """So many bytes are taken together now, as somebody found who counted."""
        self.peak = max(self.peak, count)


# Smaller values come from memory that the process keeps anyway, and cost more to look after than they take.
FEWEST_BYTES = 1 << 16
