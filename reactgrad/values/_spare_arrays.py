"""Large arrays whose values were let go: the next ones of their shape lie there.

The system gives large arrays as pages that it clears at the first touch, one by one, and takes them back
when they are dropped. A run that lets go of values, and a loop whose every step does, would pay for that
again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.backend import Spec, device_of_kind
from reactgrad.values._footprint import FEWEST_BYTES, Footprint

# What is kept between runs at most.
MOST_BYTES = 1 << 25

Key = tuple[Any, Any]


class Spares:
    """Arrays that hold no value, and that nobody sees; with the scratch of bound runs, see ``_script``.

    While values pass (``begin`` to ``end``) all that are let go are kept, and one that is asked for in vain
    takes the place of others: held and kept together are never more than was held at once.

    Attributes
    ----------
    bytes
        In all of them.
    """

    __slots__ = ("_arrays", "_footprint", "_met", "_now", "_passing", "_scratch", "bytes")

    def __init__(self, footprint: Footprint) -> None:
        self._footprint = footprint
        self._arrays: dict[Key, list[Any]] = {}
        self._met: set[Key] = set()  # shapes that were let go
        self._now: set[Key] = set()  # those that were since values pass
        self._passing = False
        self._scratch: dict[Spec, list[Any]] = {}
        self.bytes = 0

    def begin(self) -> None:
        """Values pass from now on."""
        self._passing = True

    def end(self) -> None:
        """No longer: keep as much as between runs, of shapes that were let go before."""
        self._passing = False
        arrays = [(key, one) for key, some in self._arrays.items() for one in some]
        for key, array in arrays:
            if self.bytes > MOST_BYTES or key not in self._met:
                self._drop(key, array.nbytes)
        self._met |= self._now
        self._now.clear()

    def keep(self, arrays: Sequence[Any]) -> None:
        """Keep arrays of the host, as far as there is room.

        Between runs only of shapes that were let go before: what is let go once is wanted elsewhere, what
        is let go again is a loop.
        """
        for array in arrays:
            key, size = (array.shape, array.dtype), array.nbytes
            room = self._passing or (key in self._met and size <= MOST_BYTES - self.bytes)
            if room and size >= FEWEST_BYTES:
                self._arrays.setdefault(key, []).append(array)
                self.bytes += size
        (self._now if self._passing else self._met).update([(a.shape, a.dtype) for a in arrays])

    def take(self, found: Spec) -> Any:
        """An array for values of this spec; ``None`` if there is none."""
        key = found.storage, found.dtype
        if key in self._arrays and found.kind == "cpu":
            array = self._arrays[key][-1]
            self._drop(key, array.nbytes)
            return array
        if self._passing and found.nbytes >= FEWEST_BYTES:
            goal = self.bytes - found.nbytes
            while self._arrays and self.bytes > goal:
                other = next(iter(self._arrays))
                self._drop(other, self._arrays[other][-1].nbytes)
        return None

    def _drop(self, key: Key, size: int) -> None:
        self._arrays[key].pop()
        self.bytes -= size
        if not self._arrays[key]:
            del self._arrays[key]

    def clear(self) -> None:
        """Give all back to the system."""
        self._arrays.clear()
        self.close_scratch()
        self.bytes = 0

    # --- scratch ---------------------------------------------------------------------------------

    def scratch(self, found: Spec, number: int) -> Any:
        """The array of this number, for values of this spec, of those that bound runs compute in.

        They are the same for all runs, of which there is one at a time.
        """
        arrays = self._scratch.setdefault(found, [])
        while len(arrays) <= number:
            array = self.take(found) if self._arrays else None
            if array is None:
                array = device_of_kind(found.kind).empty(found.storage, found.dtype)
                self._footprint.add(array)
            arrays.append(array)
            self.bytes += found.nbytes
        return arrays[number]

    @property
    def scratches(self) -> dict[Spec, list[Any]]:
        """All arrays that bound runs compute in; another object when these have become others."""
        return self._scratch

    @property
    def scratch_bytes(self) -> int:
        """Memory of all of them."""
        return sum(found.nbytes * len(arrays) for found, arrays in self._scratch.items())

    def close_scratch(self) -> None:
        """Leave these arrays to who has them; runs that are bound again get others."""
        self.bytes -= self.scratch_bytes
        self._scratch = {}
