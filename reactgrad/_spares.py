"""Large arrays whose values were let go: the next ones of their shape lie there.

The system gives large arrays as pages that it clears at the first touch, one by one, and takes them back
when they are dropped. A loop whose every step lets go of values would pay for that at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.backend import Spec

# Smaller arrays come from memory that the process keeps anyway.
FEWEST_BYTES = 1 << 16
# What is kept of them at most, as scratch is between runs; see ``_script``.
MOST_BYTES = 1 << 25


class Spares:
    """Arrays of the host that hold no value, and that nobody sees.

    Attributes
    ----------
    bytes
        In all of them.
    """

    __slots__ = ("_arrays", "_met", "bytes")

    def __init__(self) -> None:
        self._arrays: dict[tuple[Any, Any], list[Any]] = {}
        self._met: set[tuple[Any, Any]] = set()
        self.bytes = 0

    def keep(self, arrays: Sequence[Any]) -> None:
        """Keep arrays, as far as there is room.

        Only of shapes that were let go before: what is let go once is wanted elsewhere, what is let go
        again is a loop.
        """
        for array in arrays:
            key, size = (array.shape, array.dtype), array.nbytes
            if key in self._met and FEWEST_BYTES <= size <= MOST_BYTES - self.bytes:
                self._arrays.setdefault(key, []).append(array)
                self.bytes += size
        self._met.update([(array.shape, array.dtype) for array in arrays])

    def take(self, found: Spec) -> Any:
        """An array for values of this spec; ``None`` if there is none."""
        arrays = self._arrays.get((found.storage, found.dtype))
        if not arrays:
            return None
        array = arrays.pop()
        self.bytes -= array.nbytes
        return array

    def clear(self) -> None:
        """Give all back to the system."""
        self._arrays.clear()
        self.bytes = 0
