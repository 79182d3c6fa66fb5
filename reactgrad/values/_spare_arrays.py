"""Spare arrays: memory of dropped large values, kept for the next values of their shape.

The system gives large arrays as pages, which it clears one by one at the first touch and takes back
when the array is freed. A run that drops values, or a loop whose every step does, would pay for that
again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from reactgrad.backend import Spec, device_of
from reactgrad.values._footprint import FEWEST_BYTES, Footprint

# The bytes of spare arrays that are kept between runs at most.
MOST_BYTES = 1 << 25

Key = tuple[str, Any, Any]


class Spares:
    """Arrays without a value that no caller sees, and the scratch of bound runs (see ``memory``).

    Between ``begin`` and ``end``, while transient values come and go, all dropped arrays are kept. If
    none of the wanted shape is there, as many bytes of others are freed, so that values and spares
    together never take more than values took at once.

    Attributes
    ----------
    bytes
        The size of all spare arrays together, scratch included.
    """

    __slots__ = ("_arrays", "_footprint", "_met", "_now", "_passing", "_scratch", "bytes")

    def __init__(self, footprint: Footprint) -> None:
        self._footprint = footprint
        self._arrays: dict[Key, list[Any]] = {}
        self._met: set[Key] = set()  # shapes of arrays that were dropped
        self._now: set[Key] = set()  # those dropped since `begin`
        self._passing = False
        self._scratch: dict[Spec, list[Any]] = {}
        self.bytes = 0

    def begin(self) -> None:
        """Keep all dropped arrays from now on."""
        self._passing = True

    def end(self) -> None:
        """Free arrays down to what is kept between runs: limited, and of shapes dropped before."""
        self._passing = False
        for key in [key for key, some in self._arrays.items() for _ in some]:
            if self.bytes > MOST_BYTES or key not in self._met:
                self._drop(key)
        self._met |= self._now
        self._now.clear()

    def keep(self, dropped: Sequence[tuple[Spec, Any]]) -> None:
        """Keep dropped arrays with the specs of their values, as far as there is room.

        Between runs, only shapes that were dropped before are kept: the second drop of a shape shows
        that it comes from a loop; memory dropped once is wanted elsewhere.
        """
        seen = self._now if self._passing else self._met
        new: list[Key] = []
        for found, array in dropped:
            key, size = (found.device, found.storage, found.dtype), found.nbytes
            room = self._passing or (key in self._met and size <= MOST_BYTES - self.bytes)
            if room and size >= FEWEST_BYTES:
                self._arrays.setdefault(key, []).append(array)
                self.bytes += size
            new.append(key)
        seen.update(new)

    def take(self, found: Spec) -> Any:
        """Return a spare array for values of this spec, ``None`` if there is none."""
        key = found.device, found.storage, found.dtype
        if key in self._arrays:
            array = self._arrays[key][-1]
            self._drop(key)
            return array
        if self._passing and found.nbytes >= FEWEST_BYTES:
            goal = self.bytes - found.nbytes
            while self._arrays and self.bytes > goal:
                other = next(iter(self._arrays))
                self._drop(other)
        return None

    def _drop(self, key: Key) -> None:
        self._arrays[key].pop()
        self.bytes -= prod(key[1]) * key[2].itemsize
        if not self._arrays[key]:
            del self._arrays[key]

    def clear(self) -> None:
        """Give all arrays back to the system."""
        self._arrays.clear()
        self.close_scratch()
        self.bytes = 0

    # --- scratch ---------------------------------------------------------------------------------

    def scratch(self, found: Spec, number: int) -> Any:
        """Return the scratch array with this number for values of this spec; make it if needed.

        All bound runs share these arrays: only one of them runs at a time.
        """
        arrays = self._scratch.setdefault(found, [])
        while len(arrays) <= number:
            array = self.take(found) if self._arrays else None
            if array is None:
                array = device_of(found.device).empty(found.storage, found.dtype)
                self._footprint.add(array)
            arrays.append(array)
            self.bytes += found.nbytes
        return arrays[number]

    @property
    def scratches(self) -> dict[Spec, list[Any]]:
        """All scratch arrays. The object is another one after ``close_scratch``, which runs compare."""
        return self._scratch

    @property
    def scratch_bytes(self) -> int:
        """The size of all scratch arrays together."""
        return sum(found.nbytes * len(arrays) for found, arrays in self._scratch.items())

    def close_scratch(self) -> None:
        """Leave the scratch arrays to their present users; runs that bind again get new ones."""
        self.bytes -= self.scratch_bytes
        self._scratch = {}
