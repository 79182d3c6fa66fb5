"""Values that one read needs and its caller does not: dropped as soon as the run has read them.

``backward(retain_graph=False)`` drops all intermediate values. If they are dropped in the course of the
run, not at its end, later values lie in the memory of earlier ones, and the peak is only what must live
at the same time.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from reactgrad.values._footprint import FEWEST_BYTES
from reactgrad.values._transient import Transient


class Passing(Transient):
    """Nodes whose values are dropped when all of a run has read them, even if held (rule D6)."""

    recomputed = lasting = True

    def let_go(self, host: Any, slot: int) -> bool:
        if not host.recomputable(slot):
            return False
        host.reclaim([slot])
        return True

    def bring_back(self, host: Any, slot: int) -> None:
        """Do nothing: the scheduler knows the release, and computes the value before it is read."""


_PASSING = Passing()


def passing(graph: Any, slots: Collection[int]) -> AbstractContextManager[None]:
    """Return a block in whose runs the large values of these nodes are dropped once they were read.

    It does nothing if values are small on average, since such runs take longer for each node; nor if
    several threads compute, nor in a transaction, which may have to put values back.
    """
    host, scheduler = graph._host, graph._scheduler
    if not slots or scheduler.executor is not None or scheduler.notes:
        return nullcontext()
    specs, transient, leaf = host.specs, host.transient, scheduler.leaf
    # The size of a function's result is known too late, so such nodes are left out.
    sizes = {
        slot: found.nbytes
        for slot in slots
        if not leaf[slot] and (found := specs[slot]) is not None
    }
    if sum(sizes.values()) < FEWEST_BYTES * len(sizes):
        return nullcontext()
    chosen = [
        slot for slot, size in sizes.items() if size >= FEWEST_BYTES and slot not in transient
    ]
    return host.letting_pass(chosen, _PASSING) if chosen else nullcontext()
