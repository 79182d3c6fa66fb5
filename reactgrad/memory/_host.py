"""The host of a graph's scheduler: its rows, and which values pass in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from reactgrad.core._handles import living
from reactgrad.core._rows import Rows
from reactgrad.memory._transient_run import meets_transient, sparing
from reactgrad.scheduler import Course

_NOTHING_AROUND = nullcontext()


class Host(Rows):
    """The rows of a graph, as its scheduler asks them."""

    def living(self, slots: Sequence[int]) -> Callable[[], tuple[Any, ...]]:
        """A call that gives the Vars of those of these nodes that are there by then."""
        serial, ref = self.scheduler.topology.serial, self._graph
        serials = {slot: serial[slot] for slot in slots}

        def live() -> tuple[Any, ...]:
            graph = ref()
            return () if graph is None else tuple(living(graph, slots, serials))

        return live

    def around(
        self, slots: Sequence[int], targets: Sequence[int]
    ) -> AbstractContextManager[Course | None]:
        """What a run of these nodes is inside of: where it meets transient values, these go."""
        if (
            self.policy is not None and self.away
        ):  # any run may release, and compute again, what reads it
            return sparing(self, slots, targets)
        if not self.transient or not meets_transient(self, slots, targets):
            return _NOTHING_AROUND
        return sparing(self, slots, targets)

    def costs(self, slots: Sequence[int]) -> list[float | None] | None:
        """As in the base class; ``None`` where values may be let go between any two nodes."""
        # A policy lets values go between any two nodes, so they run one after the other.
        return None if self.transient or self.policy is not None else super().costs(slots)
