"""Expected times of nodes. They decide only in which order and in which thread nodes run."""

from __future__ import annotations

from collections.abc import Sequence

from reactgrad_scheduler.reads import Reads

# From this many seconds on it pays to call another thread in for a step.
LONG = 1e-4

# The expected seconds of user code that has not run yet.
UNKNOWN_SECONDS = 1e-3


def expected(scheduler: Reads, slots: Sequence[int]) -> dict[int, float]:
    """Return the expected seconds of each of these nodes; ``{}`` if they must not run together."""
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
    """Return, for each node, the seconds of the longest way from its beginning to the end of the run.

    ``slots`` must be in topological order.
    """
    tails = dict.fromkeys(slots, 0.0)
    for slot in reversed(slots):
        tail = tails[slot] = tails[slot] + costs[slot]
        for operand in scheduler.operands(slot):
            if operand in tails and tails[operand] < tail:
                tails[operand] = tail
    return tails
