"""The record of one execution of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reactgrad_scheduler.overlay import Column


@dataclass(eq=False, slots=True)
class Run:
    """What one read did, as slots in the order in which it happened.

    ``cut_off`` is part of ``ran``; ``skipped`` were planned but found clean; ``rebuilt`` had
    their released value computed again at an unchanged version; ``failed`` raised these errors,
    kept without frames (or had raised them before, with the same parents).
    ``raised`` are errors as they were raised, by number, until they are passed on, inside of a node
    until it has ended.
    ``sealed`` are the slots of all of these and the serials of the nodes that were in them then.
    """

    # By `list`: one is made at many a read, and to call `list[int]` costs several times as much.
    ran: list[int] = field(default_factory=list)
    cut_off: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    rebuilt: list[int] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)
    raised: dict[int, Exception] = field(default_factory=dict)
    sealed: tuple[Sequence[int], Sequence[int]] = ((), ())
    seconds: float = 0.0
    retry: bool = False  # whether nodes that had raised were to run again
    _serials: dict[int, int] | None = None

    @property
    def serials(self) -> dict[int, int]:
        """By slot what tells the nodes of this run from later ones; made when somebody asks."""
        if self._serials is None:
            self._serials = dict(zip(*self.sealed))
        return self._serials

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
        self.sealed, self._serials = (slots, [*map(serial.__getitem__, slots)]), None


@dataclass(slots=True)
class Totals:
    """What many runs did together, counted in nodes; ``resolved`` runs found no cached plan.

    A plan that replays to its end is not added when it does: the journal counts it.
    """

    runs: int = 0
    resolved: int = 0
    ran: int = 0
    cut_off: int = 0
    rebuilt: int = 0
    failed: int = 0

    def add(self, run: Run, times: int = 1) -> None:
        """Count a run, or take it back."""
        self.runs += times
        self.ran += times * len(run.ran)
        self.cut_off += times * len(run.cut_off)
        self.rebuilt += times * len(run.rebuilt)
        self.failed += times * len(run.failed)

    def with_replays(self, runs: int, ran: int) -> Totals:
        """These and so many replays, of so many nodes in all."""
        return replace(self, runs=self.runs + runs, ran=self.ran + ran)
