"""The record of one execution of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

from reactgrad_scheduler.overlay import Column
from reactgrad_scheduler.ranges import Ranges


class Sealed:
    """The serials of the nodes that were in some slots."""

    __slots__ = ("_serials", "_slots", "_stamps")

    def __init__(self, slots: Sequence[int], stamps: Sequence[int]) -> None:
        self._slots = slots
        self._stamps = stamps
        self._serials: dict[int, int] | None = None

    @property
    def serials(self) -> dict[int, int]:
        """The serial of the node by slot; made on demand, since the dict takes much memory."""
        if self._serials is None:
            self._serials = dict(zip(self._slots, self._stamps))
        return self._serials


_NOTHING = Sealed((), ())

# The rows of a run that has computed all nodes as a whole.
NO_ROWS: dict[int, Ranges] = {}


class Run:
    """The record of one read, as slots in the order in which things happened.

    ``cut_off`` is a part of ``ran``. ``skipped`` nodes were planned but found clean. ``rebuilt`` nodes
    had their released values computed again, at unchanged versions. ``failed`` has the errors of nodes,
    kept without frames; the nodes raised them now, or before with the same parents. ``raised`` has
    errors as they were raised, by number, until they are passed on; inside of a node, until it has
    ended. ``rows`` has the rows of nodes that were computed in part (see ``dirty``). ``sealed`` tells
    the nodes of all these slots from later ones in the same slots.
    """

    __slots__ = (
        "cut_off",
        "failed",
        "raised",
        "ran",
        "rebuilt",
        "retry",
        "rows",
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
        self.rows = NO_ROWS
        self.sealed = _NOTHING
        self.seconds = 0.0
        self.retry = False  # True if nodes that had raised were to run again

    @property
    def serials(self) -> dict[int, int]:
        """The serial by slot, which tells the nodes of this run from later ones."""
        return self.sealed.serials

    @property
    def errors(self) -> list[Exception]:
        """The errors of ``failed``, in order."""
        return list(self.failed.values())

    def absorb(self, inner: Iterable[Run]) -> None:
        """Add the runs of reads inside of a node."""
        for run in inner:
            self.ran += run.ran
            self.cut_off += run.cut_off
            self.skipped += run.skipped
            self.rebuilt += run.rebuilt
            self.failed.update(run.failed)
            run.raised.clear()

    def seal(self, serial: Column[int]) -> None:
        """Record the serials of the nodes in these slots."""
        more = self.skipped or self.rebuilt or self.failed
        slots = [*self.ran, *self.skipped, *self.rebuilt, *self.failed] if more else self.ran
        self.sealed = Sealed(slots, [*map(serial.__getitem__, slots)])


class Totals:
    """Sums over many runs, counted in nodes; ``resolved`` counts runs without a cached plan.

    A plan that replays to its end is not added then: the journal counts it.
    """

    __slots__ = ("cut_off", "failed", "ran", "rebuilt", "resolved", "runs")

    def __init__(self) -> None:
        self.runs = self.resolved = 0
        self.ran = self.cut_off = self.rebuilt = self.failed = 0

    def add(self, run: Run, times: int = 1) -> None:
        """Add a run, or take it back with ``times`` of -1."""
        self.runs += times
        self.ran += times * len(run.ran)
        self.cut_off += times * len(run.cut_off)
        self.rebuilt += times * len(run.rebuilt)
        self.failed += times * len(run.failed)

    def with_replays(self, runs: int, ran: int) -> Totals:
        """Return these totals plus a number of replays, with the number of their nodes in all."""
        both = copy(self)
        both.runs += runs
        both.ran += ran
        return both
