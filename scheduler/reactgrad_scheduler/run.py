"""The record of one execution of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Run:
    """What one read did, as slots in the order in which it happened.

    ``cut_off`` is part of ``ran``; ``skipped`` were planned but found clean; ``rebuilt`` had
    their released value computed again at an unchanged version; ``failed`` raised ``errors``
    (or had raised before, with the same parents), position by position.
    ``errors`` hold no frames; ``raised`` is the first one as it was raised, until it is passed on.
    ``serials`` tells the nodes of this run from later ones in the same slots.
    """

    ran: list[int] = field(default_factory=list[int])
    cut_off: list[int] = field(default_factory=list[int])
    skipped: list[int] = field(default_factory=list[int])
    rebuilt: list[int] = field(default_factory=list[int])
    failed: list[int] = field(default_factory=list[int])
    errors: list[Exception] = field(default_factory=list[Exception])
    raised: Exception | None = None
    serials: dict[int, int] = field(default_factory=dict[int, int])
    seconds: float = 0.0

    def seal(self, serial: Sequence[int]) -> None:
        """Remember which nodes these slots are."""
        for slots in (self.ran, self.skipped, self.rebuilt, self.failed):
            for slot in slots:
                self.serials[slot] = serial[slot]
