"""Bounds that figures should keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A bound on ours, on ours / peer, or on peer / ours.

    Parameters
    ----------
    limit
        The bound.
    kind
        ``"at most"``: ours / peer stays below `limit`. ``"faster"``: peer / ours reaches it.
        ``"within"``: ours alone stays below `limit`, in the unit of the figure. ``"exactly"``: ours
        is the peer's.
    """

    limit: float
    kind: str

    def met(self, ours: float, peer: float | None) -> bool:
        """Return whether the medians `ours` and `peer` (or the paired ratio and 1) reach the goal.

        Examples
        --------
        >>> faster(6.0).met(1.0, 7.0), at_most(1.1).met(1.2, 1.0), within(2.0).met(1.0, None)
        (True, False, True)
        """
        if self.kind == "within" or peer is None:
            return ours <= self.limit
        if self.kind == "exactly":
            return ours == peer
        if self.kind == "at most":
            return ours <= self.limit * peer
        return peer >= self.limit * ours


def at_most(limit: float) -> Goal:
    """Return the goal of at most `limit` times the peer's figure."""
    return Goal(limit, "at most")


def faster(limit: float) -> Goal:
    """Return the goal of being at least `limit` times faster (or fewer) than the peer."""
    return Goal(limit, "faster")


def within(limit: float) -> Goal:
    """Return the goal of at most `limit`, whatever the peers need."""
    return Goal(limit, "within")


def exactly() -> Goal:
    """Return the goal of the same number as the peer's, for counts."""
    return Goal(1.0, "exactly")
