"""How long nodes are expected to take, which only decides in what order and where they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactgrad_scheduler.reads import Reads

# Seconds from which on it pays to call in another thread for a step.
LONG = 1e-4

# Seconds that code of the user is taken to take before it has run.
UNKNOWN_SECONDS = 1e-3


def expected(scheduler: Reads, slots: Sequence[int]) -> dict[int, float]:
    """How many seconds each of these nodes is expected to take; none: they must not run together."""
    seconds = scheduler.seconds
    costs = scheduler.host.costs(slots)
    if costs is None:
        return {}
    return {
        slot: seconds.get(slot, UNKNOWN_SECONDS if cost is None else cost)
        for slot, cost in zip(slots, costs, strict=True)
    }


def longest_ways(
    scheduler: Reads, slots: Sequence[int], costs: dict[int, float]
) -> dict[int, float]:
    """Seconds from the beginning of each node to the end of the longest way that begins with it.

    `slots` are in topological order.
    """
    tails = dict.fromkeys(slots, 0.0)
    for slot in reversed(slots):
        tail = tails[slot] = tails[slot] + costs[slot]
        for operand in scheduler.operands(slot):
            if operand in tails and tails[operand] < tail:
                tails[operand] = tail
    return tails
