"""Several runs that one read needed, reported as one.

Where gradients depend on shapes that only values show, these values have to be computed before the
gradients are known in full. That takes a run ahead of the read's own.
"""

from __future__ import annotations

from reactgrad.core._core import Core
from reactgrad.scheduler import Run


class OneRead:
    """A ``with`` block that joins its runs, except runs inside of nodes, into one record.

    A `first` run made before it may be included.
    """

    def __init__(self, graph: Core, first: Run | None = None) -> None:
        self._graph = graph
        self.ready = False  # True once gradients have followed, so that the next run can be made
        self._runs: list[Run] = []
        self._news: dict[int, None] = {}  # leaves set before these runs
        if first is not None:
            self.note(first)

    def __enter__(self) -> OneRead:
        programs = self._graph._programs
        self._outer, programs.read = programs.read, self
        return self

    def __exit__(self, *error: object) -> None:
        outer = self._graph._programs.read = self._outer
        if outer is not None:
            outer._runs += self._runs
            outer._news |= self._news

    def note(self, run: Run) -> None:
        """Add a run that has ended."""
        self._runs.append(run)
        scheduler = self._graph._scheduler
        self._news |= dict.fromkeys((*scheduler.earlier, *scheduler.news))

    def joined(self) -> Run:
        """Return all runs as one record, and make it the graph's last run."""
        scheduler = self._graph._scheduler
        if not self._runs:  # no run came to its end
            return scheduler.last_run
        *ahead, run = self._runs
        if any(one.ran or one.rebuilt or one.failed for one in ahead):
            whole = Run()
            for one in self._runs:
                for slot in one.ran:
                    whole.failed.pop(slot, None)
                whole.absorb((one,))
            done = {*whole.ran, *whole.failed}
            whole.skipped = [slot for slot in whole.skipped if slot not in done]
            whole.retry = run.retry
            whole.seconds = sum(one.seconds for one in self._runs)
            whole.seal(scheduler.topology.serial)
            scheduler.last_run, scheduler.news = whole, tuple(self._news)
            return whole
        return run
