"""The story is exact, counts right, and is the same each time."""

import io
import json
import sys
from dataclasses import replace
from datetime import date

import pytest

from reactgrad import demo
from reactgrad.demo import _progress
from reactgrad.demo._prices import Stock
from reactgrad.demo._story import GREEKS_LIMIT, Greek


def _stock(symbol: str, spot: float, volatility: float) -> Stock:
    return Stock(symbol, spot, volatility, 9, "monthly", date(2010, 3, 1))


def _without_times(document: str) -> object:
    """Drop what a clock decides."""
    timed = {"seconds", "ratio"}

    def strip(value: object) -> object:
        if isinstance(value, dict):
            kept = [k for k in value if not (k.endswith("_ms") or k in timed)]
            return {k: strip(value[k]) for k in kept}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip(json.loads(document))


def test_every_difference_from_a_fresh_graph_is_zero(story: demo.Story) -> None:
    assert [step.difference for step in story.steps] == [0.0] * 5
    assert story.largest_difference == 0.0
    assert story.holds


def test_every_greek_is_its_closed_form(story: demo.Story) -> None:
    assert len(story.greeks) == 5 + 5 + 1 + 1
    assert len(story.expiry_vegas) == 5 * story.expiries
    for greek in story.greeks + story.expiry_vegas:
        assert greek.live != 0.0
        assert abs(greek.live - greek.closed_form) <= GREEKS_LIMIT * abs(greek.closed_form)


def test_each_change_runs_its_share_of_the_graph(story: demo.Story) -> None:
    quote, volatility, quantity, rate, same = (step.nodes_run for step in story.steps)
    slices = len(story.stocks) * story.expiries
    assert {step.nodes for step in story.steps} == {story.nodes}
    assert story.options >= 10_000
    assert story.value_nodes >= 2_000
    assert 0 < quantity < volatility < 2 * story.nodes / slices < quote
    assert quote < 1.5 * story.nodes / len(story.stocks) < rate < story.nodes
    assert same == 0


def test_the_changes_are_those_announced(story: demo.Story) -> None:
    assert [step.title for step in story.steps] == [
        "quote MSFT 28.8 -> 29.42398",
        "volatility AMZN 13m 0.592 -> 0.621",
        "quantity IBM 7m, one call +10",
        "rate 0.03 -> 0.0301",
        'quote AAPL again, cutoff="equal"',
    ]


@pytest.mark.slow
def test_the_same_seed_tells_the_same_story(story: demo.Story) -> None:
    stocks = demo.embedded_stocks()
    again = demo.tell(stocks, demo.EMBEDDED, 0)
    other = demo.tell(stocks, demo.EMBEDDED, 1)
    assert _without_times(demo.as_json(story)) == _without_times(demo.as_json(again))
    assert story.value != other.value
    assert [s.nodes_run for s in story.steps] == [s.nodes_run for s in other.steps]


# The ends of what a file of prices may hold.
@pytest.mark.slow
@pytest.mark.parametrize(
    "stocks",
    [
        [_stock("A", 100, 0.3)],
        [_stock("A", 100, 1e-4)],
        [_stock("A", 100, 120.0)],
        [_stock("A", 1e-9, 0.3), _stock("B", 1e12, 0.3)],
        [_stock("A" * 200, 1e-4, 120.0), _stock("B", 1e6, 1e-4), _stock("É", 1.0, 1.0)],
        [_stock(f"S{i}", 10.0 + i, 0.2) for i in range(40)],
    ],
    ids=["one", "still", "wild", "cheap and dear", "mixed", "many"],
)
def test_other_peoples_prices(stocks: list[Stock]) -> None:
    story = demo.tell(stocks, "x" * 300, 7)
    assert story.holds
    assert story.options >= 10_000
    assert story.steps[-1].nodes_run == 0
    text = demo.as_text(story)
    assert max(map(len, text.splitlines())) <= 100
    assert len(json.loads(demo.as_json(story))["stocks"]) == len(stocks)


@pytest.mark.slow
def test_many_stocks_are_counted_not_listed() -> None:
    story = demo.tell([_stock(f"S{i}", 10.0 + i, 0.2) for i in range(10)], "x", 0)
    text = demo.as_text(story)
    assert "... and 2 more stocks (--json lists all)" in text
    assert "... and 4 more Greeks (--json lists all)" in text


def test_a_failed_check_shows(story: demo.Story) -> None:
    wrong = replace(story, greeks=(Greek("rho", 1.0, 2.0), *story.greeks[1:]))
    assert not wrong.holds
    assert "FAILED  largest relative difference of 132 Greeks: 5.0e-01" in demo.as_text(wrong)
    steps = (replace(story.steps[0], difference=float("nan")), *story.steps[1:])
    lost = replace(story, steps=steps)
    assert not lost.holds
    assert "FAILED  largest difference from a fresh graph: nan" in demo.as_text(lost)
    assert json.loads(demo.as_json(lost))["changes"][0]["difference"] is None
    assert json.loads(demo.as_json(lost))["checks"]["largest_difference"] is None


@pytest.mark.parametrize(
    ("live", "closed_form", "difference"),
    [
        (0.0, 0.0, 0.0),
        (1.1, 1.0, 0.1),
        (-1e-150, -2e-150, 0.5),
        (1e-300, 0.0, 1e-100),
        (1, 0, 1e200),
    ],
)
def test_relative_difference(live: float, closed_form: float, difference: float) -> None:
    assert Greek("delta", live, closed_form).difference == pytest.approx(
        difference, rel=1e-12, abs=0
    )


@pytest.mark.slow
def test_longs_and_shorts_that_cancel_are_compared_by_their_terms() -> None:
    """Of 40 equal stocks, nearly without volatility, the delta of one is 1e-6 of its terms."""
    stocks = [Stock(f"S{i}", 100.0, 1e-4, 24, "monthly", date(2001, 12, 1)) for i in range(40)]
    story = demo.tell(stocks, "equal stocks")
    own = [
        abs(greek.live - greek.closed_form) / abs(greek.closed_form)
        for greek in story.greeks
        if greek.closed_form
    ]
    assert max(own) > 1e-10
    assert story.largest_greek_difference < 1e-11
    assert story.holds
    assert Greek("rho", 1.0, 1.0 + 1e-9, 100.0).difference == pytest.approx(1e-11, rel=1e-6)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_where_there_is_no_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    with demo.Progress(3) as progress:
        for doing in ("one", "two", "three"):
            progress.step(doing)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "reactgrad demo: step 1 of 3, one\n"


def test_progress_is_told_again_to_those_who_wait_on(monkeypatch, capsys) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    monkeypatch.setattr(_progress, "AGAIN", -1.0)
    with demo.Progress(2) as progress:
        progress.step("one")
        progress.step("two")
    lines = ["reactgrad demo: step 1 of 2, one", "reactgrad demo: step 2 of 2, two"]
    assert capsys.readouterr().err.splitlines() == lines


def test_progress_is_silent_for_those_who_need_not_wait(monkeypatch, capsys) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", 3600.0)
    with demo.Progress(1) as progress:
        progress.step("one")
    assert capsys.readouterr() == ("", "")


def test_progress_is_a_bar_on_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    with demo.Progress(2) as progress:
        progress.step("building")
        progress.step("comparing")
        shown = terminal.getvalue().split("\r")
    assert any(line.startswith("building:   0%|") and "| 0/2 [" in line for line in shown)
    assert any(line.startswith("comparing:  50%|") and "| 1/2 [" in line for line in shown)
    assert terminal.getvalue().split("\r")[-1] == ""  # the bar leaves with the wait
