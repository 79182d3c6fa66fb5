"""A bar of progress with the time that is left, as text: the few lines of tqdm that loops need.

We chose our own lines over tqdm and rich as core dependencies: a bar that an extra has to bring is missing where
one waits for the first time, and its form (percent, count, time gone, time left, rate) is a line of text. The form and
the names of the options are tqdm's. Revisit when bars have to stand below each other.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

from reactgrad._errors import DTypeError

NARROWEST = 4  # of the bar itself


class Bar:
    """Counts steps, and draws a line about them again and again.

    Parameters
    ----------
    total : int, optional
        The number of steps; without it only they and their rate are shown.
    desc : str
        Stands before the bar.
    initial : int
        Steps that were done before; the rate does not count them.
    text : callable
        Returns what stands behind the rate; called when the line is drawn.
    disable : bool or None
        True draws nothing; ``None`` nothing where the file is no terminal.
    delay : float
        Seconds until the first line.
    file : text stream, optional
        By default ``sys.stderr``; in a notebook ``sys.stdout``, which is not shown as an error.
    leave : bool
        False removes the line at the end.
    mininterval : float
        Seconds between two lines.
    ncols : int, optional
        The width; by default that of the terminal.
    clock : callable
        Seconds that pass.

    Examples
    --------
    >>> import io
    >>> times = iter([0.0, 0.0, 2.0, 2.0])
    >>> bar = Bar(4, "train", file=io.StringIO(), ncols=60, clock=lambda: next(times))
    >>> bar.update()
    >>> print(bar.line)
    train:  25%|█████              | 1/4 [00:02<00:06, 2.00s/it]
    """

    def __init__(
        self,
        total: int | None = None,
        desc: str = "",
        *,
        initial: int = 0,
        text: Callable[[], str] = str,
        disable: bool | None = False,
        delay: float = 0.0,
        file: Any = None,
        leave: bool = True,
        mininterval: float = 0.1,
        ncols: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.total, self.desc = total, desc
        self.n = self._initial = initial
        self.line = ""
        self._text, self._leave, self._ncols, self._clock = text, leave, ncols, clock
        self._file = _screen() if file is None else file
        if self._file is None:  # a program without a console
            disable = True
        elif disable is None:
            disable = not self._file.isatty()
        self._disabled = disable
        self._began = clock()
        self._interval = mininterval
        self._due = self._began + delay
        if not disable and not delay:
            self.draw()

    def update(self, n: int = 1) -> None:
        """Count steps that are done."""
        self.n += n
        if not self._disabled and self._clock() >= self._due:
            self.draw()

    def draw(self) -> None:
        """Draw the line anew."""
        if self._disabled:
            return
        now = self._clock()
        self._due = now + self._interval
        former = len(self.line)
        self.line = self._told(now - self._began)
        self._write("\r" + self.line + " " * (former - len(self.line)))

    def hide(self) -> None:
        """Remove the line, until it is drawn again: for a text of others."""
        if not self._disabled and self.line:
            self._write("\r" + " " * len(self.line) + "\r")
            self.line = ""

    def close(self) -> None:
        """Draw the last line, or remove it, and no more."""
        if not self._disabled:
            if not self.line and self._clock() < self._due:  # nobody had to wait
                pass
            elif self._leave:
                self.draw()
                self._write("\n")
            else:
                self._write("\r" + " " * len(self.line) + "\r")
        self._disabled = True

    def _told(self, gone: float) -> str:
        done = self.n - self._initial
        rate = done / gone if gone > 0 else 0.0
        text = self._text()
        behind = f", {text}" if text else ""
        head = f"{self.desc}: " if self.desc else ""
        speed = f"{_speed(rate)}{behind}"
        if self.total is None:
            return self._fitted(f"{head}{self.n}it [{in_time(gone)}, {speed}]")
        left = in_time((self.total - self.n) / rate) if rate else "?"
        part = min(max(self.n / self.total, 0.0), 1.0) if self.total else 1.0
        head += f"{100 * part:3.0f}%|"
        tail = f"| {self.n}/{self.total} [{in_time(gone)}<{left}, {speed}]"
        room = self._columns() - len(head) - len(tail)
        return self._fitted(f"{head}{self._drawn(part, room)}{tail}")

    def _drawn(self, part: float, room: int) -> str:
        full = self._has("\u2588")
        room = max(room, NARROWEST)
        done = round(part * room)
        return ("\u2588" if full else "#") * done + " " * (room - done)

    def _fitted(self, line: str) -> str:
        """Cut a line that is longer than the terminal is wide: it would not be drawn over."""
        columns = self._columns()
        return line if len(line) <= columns else line[:columns]

    def _columns(self) -> int:
        return self._ncols or max(shutil.get_terminal_size().columns - 1, 20)

    def _has(self, letter: str) -> bool:
        try:
            letter.encode(getattr(self._file, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):  # who looked has gone; the loop goes on
            self._disabled = True


def bar(options: dict[str, Any]) -> Bar:
    """Return a bar with these options of a user.

    Raises
    ------
    DTypeError
        If there is no such option.
    """
    unknown = options.keys() - OPTIONS
    if unknown:
        raise DTypeError(
            f"progress(options={{{min(unknown)!r}: ...}}): a bar has no such option. There are "
            f"{', '.join(sorted(OPTIONS))}."
        )
    return Bar(**options)


OPTIONS = frozenset(
    (
        "delay",
        "desc",
        "disable",
        "file",
        "initial",
        "leave",
        "mininterval",
        "ncols",
        "text",
        "total",
    )
)


def _screen() -> Any:
    notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return sys.stdout if notebook else sys.stderr


def in_time(seconds: float) -> str:
    """Return seconds as a clock shows them.

    Examples
    --------
    >>> in_time(75.4), in_time(3700.0)
    ('01:15', '1:01:40')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


def _speed(rate: float) -> str:
    if rate == 0.0:
        return "?it/s"
    return f"{rate:.2f}it/s" if rate >= 1.0 else f"{1.0 / rate:.2f}s/it"
