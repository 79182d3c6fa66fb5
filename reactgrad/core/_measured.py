"""Times of nodes, summed while profiling or recording is on."""

from __future__ import annotations


class Measured:
    """Number and sum of the times that nodes took while they were recorded, for ``Plan.cost``."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[int, tuple[int, int, float]] = {}  # by slot: serial, calls, seconds

    def add(self, slot: int, serial: int, seconds: float) -> None:
        """Add the time of one more call of a node."""
        known = self._times.get(slot)
        if known is not None and known[0] == serial:
            self._times[slot] = (serial, known[1] + 1, known[2] + seconds)
        else:  # the entry, if any, is of a former node with this slot
            self._times[slot] = (serial, 1, seconds)

    def mean(self, slot: int, serial: int) -> float | None:
        """Return the mean seconds of a node, ``None`` if it was never recorded."""
        known = self._times.get(slot)
        return None if known is None or known[0] != serial else known[2] / known[1]
