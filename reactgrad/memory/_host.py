"""The host of a graph's scheduler: its rows, and the choice of runs that drop transient values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from reactgrad.core._handles import living
from reactgrad.core._rows import Rows
from reactgrad.scheduler import Course

_NOTHING_AROUND = nullcontext()


class Host(Rows):
    """The rows of a graph with all questions that its scheduler asks."""

    def living(self, slots: Sequence[int]) -> Callable[[], tuple[Any, ...]]:
        """Return a function that returns the Vars of those nodes that still exist when it is called."""
        topology, ref = self.scheduler.topology, self._graph
        serials = {slot: topology.serial[slot] for slot in slots}
        before = topology.next_serial

        def live() -> tuple[Any, ...]:
            graph = ref()
            return () if graph is None else tuple(living(graph, slots, serials, before))

        return live

    def around(
        self, slots: Sequence[int], targets: Sequence[int]
    ) -> AbstractContextManager[Course | None]:
        """Return the context of a run: one that drops transient values, if the run meets any."""
        if not self.transient and not self.away:
            return _NOTHING_AROUND
        from reactgrad.memory._transient_run import meets_transient, sparing

        # With a budget any run may release, and compute again, a node that reads a packed value.
        if (self.policy is not None and self.away) or meets_transient(self, slots, targets):
            return sparing(self, slots, targets)
        return _NOTHING_AROUND

    def costs(self, slots: Sequence[int]) -> list[float | None] | None:
        """Return what the base class returns, but ``None`` if values may be dropped between two nodes.

        ``None`` makes the nodes run one after the other, since dropping needs an order.
        """
        return None if self.transient or self.policy is not None else super().costs(slots)
