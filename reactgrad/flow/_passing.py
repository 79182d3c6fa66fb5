"""Values that one read needs and its caller does not: they go as soon as the run has read them.

``backward(retain_graph=False)`` lets go of all intermediate values. Where they do so in the course of the
run, and not at its end, each lies in memory that those before it have left, and the most that is needed
at once is what is alive at once.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from reactgrad.values._footprint import FEWEST_BYTES
from reactgrad.values._transient import Transient


class Passing(Transient):
    """Nodes whose values go when all of a run has read them, whoever holds their Vars (rule D6)."""

    recomputed = lasting = True

    def let_go(self, host: Any, slot: int) -> bool:
        if not host.recomputable(slot):
            return False
        host.reclaim([slot])
        return True

    def bring_back(self, host: Any, slot: int) -> None:
        """The scheduler knows that it was released, and has it computed before it is read."""


_PASSING = Passing()


def passing(graph: Any, slots: Collection[int]) -> AbstractContextManager[None]:
    """Let the large values of these nodes go in the course of what runs in the block.

    Only where values are large on average: runs that look after them take longer for each node. Not where
    several threads compute, nor in a transaction, which may have to give values back.
    """
    host, scheduler = graph._host, graph._scheduler
    if not slots or scheduler.executor is not None or scheduler.notes:
        return nullcontext()
    specs, transient, leaf = host.specs, host.transient, scheduler.leaf
    # Of results of functions their size shows too late.
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
