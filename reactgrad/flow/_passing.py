"""Values that one read needs and its caller does not: they go as soon as the run has read them.

``backward(retain_graph=False)`` lets go of all intermediate values. Where they do so in the course of the
run, and not at its end, each lies in memory that those before it have left, and the most that is needed
at once is what is alive at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from reactgrad.flow._transient import Transient

# Smaller values come from memory that the process keeps anyway, and cost more to look after than they take.
FEWEST_BYTES = 1 << 16


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


def passing(graph: Any, slots: Iterable[int]) -> AbstractContextManager[None]:
    """Let the large values of these nodes go in the course of what runs in the block.

    Not where several threads compute, nor in a transaction, which may have to give values back.
    """
    host, scheduler = graph._host, graph._scheduler
    if scheduler.executor is not None or scheduler.notes:
        return nullcontext()
    specs, transient = host.specs, host.transient
    chosen: list[int] = []
    for slot in slots:
        found = specs[slot]  # of results of functions it shows too late
        large = found is not None and found.nbytes >= FEWEST_BYTES
        if large and slot not in transient and not scheduler.leaf[slot]:
            chosen.append(slot)
    return host.letting_pass(chosen, _PASSING) if chosen else nullcontext()
