"""The progress of a demo on stderr: a bar on a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from reactgrad.tracking._bar import Bar

PATIENCE = 1.0  # seconds until the first output
AGAIN = 10.0  # seconds between two lines, where there is no bar


class Progress:
    """Counts steps on stderr, once they have taken over a second.

    Parameters
    ----------
    steps : int
        The number of times that `step` will be called.

    Examples
    --------
    >>> with Progress(2) as progress:
    ...     progress.step("first")
    ...     progress.step("second")
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = -1
        self._started = time.perf_counter()
        self._due = PATIENCE  # time of the next output
        self._bar: Bar | None = None

    def step(self, doing: str) -> None:
        """Report that the next step begins."""
        self._done += 1
        self.tell(doing)

    def tell(self, doing: str) -> None:
        """Report how the present step goes on."""
        if self._bar is not None:
            self._bar.n = self._done
            self._bar.desc = doing
            self._bar.draw()
            return
        waited = time.perf_counter() - self._started
        if waited > self._due:
            self._due = waited + AGAIN
            self._bar = _bar(self._steps, self._done, doing)
            if self._bar is None:
                place = f"step {self._done + 1} of {self._steps}"
                print(f"reactgrad demo: {place}, {doing}", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar(steps: int, done: int, doing: str) -> Bar | None:
    """Return a bar where there is a terminal, else None."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    return Bar(steps, doing, initial=done, leave=False, mininterval=0.0)
