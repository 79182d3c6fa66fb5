"""The record of one execution of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

from reactgrad_scheduler.overlay import Column


class Sealed:
    """Which nodes were in which slots."""

    __slots__ = ("_serials", "_slots", "_stamps")

    def __init__(self, slots: Sequence[int], stamps: Sequence[int]) -> None:
        self._slots = slots
        self._stamps = stamps
        self._serials: dict[int, int] | None = None

    @property
    def serials(self) -> dict[int, int]:
        """The serial of the node by slot; made when somebody asks, a dict takes much memory."""
        if self._serials is None:
            self._serials = dict(zip(self._slots, self._stamps))
        return self._serials


_NOTHING = Sealed((), ())


class Run:
    """What one read did, as slots in the order in which it happened.

    ``cut_off`` is part of ``ran``; ``skipped`` were planned but found clean; ``rebuilt`` had
    their released value computed again at an unchanged version; ``failed`` raised these errors,
    kept without frames (or had raised them before, with the same parents).
    ``raised`` are errors as they were raised, by number, until they are passed on, inside of a node
    until it has ended.
    ``sealed`` tells the nodes of all of these from later ones in the same slots.
    """

    __slots__ = (
        "cut_off",
        "failed",
        "raised",
        "ran",
        "rebuilt",
        "retry",
        "sealed",
        "seconds",
        "skipped",
    )

    def __init__(
        self,
        ran: list[int] | None = None,
        cut_off: list[int] | None = None,
        skipped: list[int] | None = None,
    ) -> None:
        self.ran = [] if ran is None else ran
        self.cut_off = [] if cut_off is None else cut_off
        self.skipped = [] if skipped is None else skipped
        self.rebuilt: list[int] = []
        self.failed: dict[int, Exception] = {}
        self.raised: dict[int, Exception] = {}
        self.sealed = _NOTHING
        self.seconds = 0.0
        self.retry = False  # whether nodes that had raised were to run again

    @property
    def serials(self) -> dict[int, int]:
        """By slot what tells the nodes of this run from later ones."""
        return self.sealed.serials

    @property
    def errors(self) -> list[Exception]:
        """What ``failed`` raised, position by position."""
        return list(self.failed.values())

    def absorb(self, inner: Iterable[Run]) -> None:
        """Add what was run by reads inside of a node."""
        for run in inner:
            self.ran += run.ran
            self.cut_off += run.cut_off
            self.skipped += run.skipped
            self.rebuilt += run.rebuilt
            self.failed.update(run.failed)
            run.raised.clear()

    def seal(self, serial: Column[int]) -> None:
        """Remember which nodes these slots are."""
        more = self.skipped or self.rebuilt or self.failed
        slots = [*self.ran, *self.skipped, *self.rebuilt, *self.failed] if more else self.ran
        self.sealed = Sealed(slots, [*map(serial.__getitem__, slots)])


class Totals:
    """What many runs did together, counted in nodes; ``resolved`` runs found no cached plan.

    A plan that replays to its end is not added when it does: the journal counts it.
    """

    __slots__ = ("cut_off", "failed", "ran", "rebuilt", "resolved", "runs")

    def __init__(self) -> None:
        self.runs = self.resolved = 0
        self.ran = self.cut_off = self.rebuilt = self.failed = 0

    def add(self, run: Run, times: int = 1) -> None:
        """Count a run, or take it back."""
        self.runs += times
        self.ran += times * len(run.ran)
        self.cut_off += times * len(run.cut_off)
        self.rebuilt += times * len(run.rebuilt)
        self.failed += times * len(run.failed)

    def with_replays(self, runs: int, ran: int) -> Totals:
        """These and so many replays, of so many nodes in all."""
        both = copy(self)
        both.runs += runs
        both.ran += ran
        return both
