"""Checksums of values at their versions, which show values that were changed behind their version."""

from __future__ import annotations

import zlib
from typing import Any
from weakref import WeakKeyDictionary

from reactgrad.backend import owner
from reactgrad.core._core import Core
from reactgrad.core._rows import Rows
from reactgrad.explain._ranges import array_of


class Checksums:
    """Checksums of the values of one graph, by the serials of their nodes, with the versions.

    Versions are settled only when a run has ended; until then the checksums of what it has computed
    are in ``_fresh``.
    """

    __slots__ = ("_fresh", "_host", "_known")

    def __init__(self, host: Rows) -> None:
        self._host = host
        self._known: dict[int, tuple[int, int]] = {}
        self._fresh: dict[int, int] = {}

    def computed(self, slot: int) -> None:
        """Record the value that a run has just given a node."""
        found = self._sum(slot)
        if found is not None:
            self._fresh[slot] = found

    def is_fresh(self, slot: int) -> bool:
        """Return whether the run under way has given the node its value."""
        return slot in self._fresh

    def comes_back_as(self, slot: int, value: Any) -> None:
        """Record the value that hooks will return in place of the one that the run has computed and
        released.
        """
        device = owner(value)
        assert device is not None
        self._fresh[slot] = zlib.crc32(device.to_numpy(value).tobytes())

    def ended(self) -> None:
        """Move what the run has computed to the table by version, since versions are settled now."""
        scheduler = self._host.scheduler
        for slot, found in self._fresh.items():
            number = scheduler.topology.number(slot)
            if number:
                self._known[number] = (scheduler.version(slot), found)
        self._fresh.clear()

    def changed(self, slot: int) -> bool:
        """Return whether the value of a clean node differs from what it was at its version.

        A value at a new version is recorded.
        """
        found = self._sum(slot)
        if found is None:
            return False
        if slot in self._fresh:
            return self._fresh[slot] != found
        scheduler = self._host.scheduler
        version, number = scheduler.version(slot), scheduler.topology.number(slot)
        known = self._known.get(number)
        if known is None or known[0] != version:
            self._known[number] = (version, found)
            return False
        return known[1] != found

    def _sum(self, slot: int) -> int | None:
        array = array_of(self._host, slot)
        return None if array is None else zlib.crc32(array.tobytes())


class GraphChecksums:
    """The checksums of each graph, which keep no graph alive."""

    __slots__ = ("_by_graph",)

    def __init__(self) -> None:
        self._by_graph: WeakKeyDictionary[Core, Checksums] = WeakKeyDictionary()

    def of(self, graph: Core) -> Checksums:
        """Return the checksums of this graph."""
        found = self._by_graph.get(graph)
        if found is None:
            found = self._by_graph[graph] = Checksums(graph._host)
        return found
