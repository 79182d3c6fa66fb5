"""The line of a bar: percent, count, time gone, time left, rate; one line, as wide as the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from reactgrad.tracking._bar import Bar


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def __init__(self, encoding: str = "utf-8", terminal: bool = True) -> None:
        super().__init__()
        self._name, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._name

    def isatty(self) -> bool:
        return self._terminal

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.getvalue().split("\r")[1:]]


def made(**options: Any) -> tuple[Bar, Terminal, Clock]:
    screen, clock = options.pop("file", None) or Terminal(), Clock()
    return Bar(file=screen, clock=clock, ncols=options.pop("ncols", 60), **options), screen, clock


def test_the_time_left_is_that_of_the_rate_so_far() -> None:
    bar, screen, clock = made(total=10, desc="train")
    clock.now = 30.0
    bar.update()
    assert "1/10 [00:30<04:30, 30.00s/it]" in bar.line
    clock.now = 3900.0
    bar.update(4)
    assert "5/10 [1:05:00<1:05:00, 780.00s/it]" in bar.line
    assert screen.lines()[0].startswith("train:   0%|")
    assert "0/10 [00:00<?, ?it/s]" in screen.lines()[0]


def test_steps_from_before_do_not_count_for_the_rate() -> None:
    bar, _, clock = made(total=10, initial=8)
    clock.now = 4.0
    bar.update()
    assert "9/10 [00:04<00:04, 4.00s/it]" in bar.line


def test_it_is_drawn_some_ten_times_a_second_and_at_the_end() -> None:
    bar, screen, clock = made(total=1000)
    for _ in range(1000):
        clock.now += 0.001
        bar.update()
    bar.close()
    assert 8 <= len(screen.lines()) <= 13
    assert "1000/1000" in screen.lines()[-1]
    assert screen.getvalue().endswith("\n")


@pytest.mark.parametrize("width", [30, 40, 79, 200])
def test_it_is_never_wider_than_the_terminal(width: int) -> None:
    bar, screen, clock = made(
        total=10, desc="a long description " * 3, ncols=width, text=lambda: "x" * 50
    )
    clock.now = 1.0
    bar.update()
    bar.close()
    assert max(map(len, screen.getvalue().replace("\n", "").split("\r"))) <= width


def test_a_shorter_line_leaves_nothing_of_the_longer_one() -> None:
    shown = iter(["loss=1234567", "", ""])
    bar, screen, clock = made(text=lambda: next(shown))
    clock.now = 1.0
    bar.update()
    first, second = screen.getvalue().split("\r")[1:]
    assert len(second) >= len(first)


def test_where_there_are_no_blocks_it_is_ascii() -> None:
    bar, screen, clock = made(total=2, file=Terminal("ascii"))
    clock.now = 1.0
    bar.update()
    assert "###" in screen.lines()[-1]
    assert screen.getvalue().isascii()


@pytest.mark.parametrize(
    ("disable", "terminal", "drawn"),
    [
        (None, True, True),
        (None, False, False),
        (True, True, False),
        (False, False, True),
    ],
)
def test_where_it_is_drawn(disable: bool | None, terminal: bool, drawn: bool) -> None:
    bar, screen, _ = made(total=2, disable=disable, file=Terminal(terminal=terminal))
    bar.update()
    bar.close()
    assert bool(screen.getvalue()) is drawn


def test_who_need_not_wait_sees_nothing() -> None:
    bar, screen, clock = made(total=2, delay=1.0)
    bar.update()
    clock.now = 0.5
    bar.update()
    bar.close()
    assert screen.getvalue() == ""


def test_it_makes_room_for_a_text_of_others() -> None:
    bar, screen, clock = made(total=2)
    bar.hide()
    assert screen.getvalue().endswith(" \r")
    clock.now = 1.0
    bar.update()
    assert screen.lines()[-1].startswith(" 50%|")


def test_in_a_notebook_it_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = type("OutStream", (Terminal,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr("sys.stderr", kernel())
    monkeypatch.setattr("sys.stdout", shown := Terminal())
    Bar(total=2).close()
    assert "0/2" in shown.getvalue()


def test_it_can_leave() -> None:
    bar, screen, _ = made(total=2, leave=False)
    bar.update()
    bar.close()
    assert screen.getvalue().endswith(" \r")


def test_a_terminal_that_goes_does_not_end_the_loop() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    bar, _, _ = made(total=2, file=Gone())
    bar.update(2)
    bar.close()
