"""The walk to all that some nodes lead to, over any kind of edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def reached(start: Iterable[int], others: Callable[[int], Iterable[int]]) -> dict[int, None]:
    """Return these nodes and all that lie behind them, each before those found from it.

    `others` gives the nodes at the other ends of the edges of one.
    """
    found = dict.fromkeys(start)
    stack = list(found)
    while stack:
        for other in others(stack.pop()):
            if other not in found:
                found[other] = None
                stack.append(other)
    return found
