"""The story as text for people and as JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from ._story import GREEKS_LIMIT, Greek, Step, Story, shortened

WIDTH = 100
_MOST_STOCKS = 8  # more are counted, not listed; JSON has all


def as_text(story: Story) -> str:
    """Return the report, at most 100 columns wide; ASCII but for symbols and the file's name."""
    sections = (
        _headline(story),
        _changes(story),
        _checks(story),
        _prices(story),
        _book(story),
        _live_greeks(story),
    )
    return "\n\n".join("\n".join(lines) for lines in sections)


def _headline(story: Story) -> list[str]:
    """Return the story in few lines: the change that touches least, of those that touch something."""
    n = len(story.stocks)
    some = [step for step in story.steps if step.nodes_run]
    step = min(some or story.steps, key=lambda step: step.nodes_run)
    told = (
        f"{step.nodes_run:,} of {step.nodes:,} nodes ran, {step.incremental_ms:.2g} ms instead of"
    )
    same = f"but differ by {step.difference!r} from"
    if step.difference == 0.0:
        same = "and equal to the bit to"
    book = f"A book of {story.options:,} options on {n:,} {_counted('stock', n)}."
    return [
        f"{book} One number changes: what must be computed again?",
        "",
        f"  {shortened(step.title, 90)}",
        f"  {told} {step.full_ms:.2g}: the value and every Greek are up to date,",
        f"  {same} those of a graph that was built anew.",
    ]


def _prices(story: Story) -> list[str]:
    """Return the lines about the stocks."""
    stocks = story.stocks[:_MOST_STOCKS]
    source = story.source if len(story.source) <= 92 else "..." + story.source[-89:]
    rows = [
        (
            shortened(stock.symbol, 20),
            stock.last.isoformat(),
            f"{stock.spot:.6g}",
            f"{100 * stock.volatility:.4g} %",
            f"{stock.closes:,} {stock.frequency}",
        )
        for stock in stocks
    ]
    return [
        f"prices: {source}",
        *as_table(("stock", "last close", "spot", "volatility", "closes"), rows),
        *_left_off(len(story.stocks) - len(stocks), "stock"),
    ]


def _book(story: Story) -> list[str]:
    """Return the lines about the book and its graph."""
    n = len(story.stocks)
    size = f"{n:,} {_counted('stock', n)} x {story.expiries} months x {story.strikes} strikes x 2"
    gradients = story.nodes - story.value_nodes
    nodes = f"{story.nodes:,} nodes ({story.value_nodes:,} value, {gradients:,} gradients)"
    times = f"built in {story.build_ms:.0f} ms, first read in {story.read_ms:.0f} ms"
    return [
        f"book:   {size} = {story.options:,} European calls and puts, seed {story.seed}",
        f"graph:  {nodes}, {times}",
    ]


def _changes(story: Story) -> list[str]:
    """Return the table of changes, with its legend."""
    header = ("change", "ran", "of nodes", "first ms", "then ms", "full ms", "ratio", "difference")
    note = """\
first, then: set one leaf and read the value and every Greek; the first time, and the median of
more times (new and old value in turn). full: the same in a second, equally warm graph with every
leaf set to another value. difference: the largest, over the value and every Greek, from a fresh
graph built from the same inputs."""
    rows = [_step_cells(step) for step in story.steps]
    return ["All changes:", *as_table(header, rows), "", *note.splitlines()]


def _live_greeks(story: Story) -> list[str]:
    """Return the table of Greeks."""
    n = len(story.stocks)
    deltas, vegas, others = story.greeks[:n], story.greeks[n : 2 * n], story.greeks[2 * n :]
    greeks = [*deltas[:_MOST_STOCKS], *vegas[:_MOST_STOCKS], *others]
    header = ("live Greek", "reactgrad", "closed form", "relative difference")
    return [
        *as_table(header, [_greek_cells(greek) for greek in greeks]),
        *_left_off(len(story.greeks) - len(greeks), "Greek"),
    ]


def _checks(story: Story) -> list[str]:
    """Return the lines about the checks."""
    fresh, closed = story.largest_difference, story.largest_greek_difference
    count = f"{len(story.greeks) + len(story.expiry_vegas):,} Greeks"
    found = f"{closed:.1e} (limit {GREEKS_LIMIT:.0e})"
    value = f"{story.value:,.2f}" if abs(story.value) < 1e15 else f"{story.value:.6g}"
    return [
        f"{_verdict(fresh == 0.0)}  largest difference from a fresh graph: {fresh!r} (must be 0.0)",
        f"{_verdict(closed <= GREEKS_LIMIT)}  largest relative difference of {count}: {found}",
        f"book value {value}; all of this took {story.seconds:.1f} s",
    ]


def as_json(story: Story) -> str:
    """Return the report as one JSON document in ASCII; a number that is not finite becomes null."""
    return json.dumps(
        {
            "source": story.source,
            "seed": story.seed,
            "stocks": [
                {
                    "symbol": stock.symbol,
                    "last_close": stock.last.isoformat(),
                    "spot": stock.spot,
                    "volatility": stock.volatility,
                    "closes": stock.closes,
                    "frequency": stock.frequency,
                }
                for stock in story.stocks
            ],
            "book": {
                "options": story.options,
                "expiries": story.expiries,
                "strikes": story.strikes,
                "value": _finite(story.value),
            },
            "graph": {
                "nodes": story.nodes,
                "value_nodes": story.value_nodes,
                "build_ms": story.build_ms,
                "first_read_ms": story.read_ms,
            },
            "changes": [
                {
                    "change": step.title,
                    "nodes_run": step.nodes_run,
                    "nodes": step.nodes,
                    "first_ms": step.first_ms,
                    "incremental_ms": step.incremental_ms,
                    "full_ms": step.full_ms,
                    "ratio": step.ratio,
                    "fresh_build_ms": step.build_ms,
                    "difference": _finite(step.difference),
                }
                for step in story.steps
            ],
            "greeks": [_greek_entry(greek) for greek in story.greeks],
            "expiry_vegas": [_greek_entry(greek) for greek in story.expiry_vegas],
            "checks": {
                "largest_difference": _finite(story.largest_difference),
                "largest_greek_difference": _finite(story.largest_greek_difference),
                "greek_limit": GREEKS_LIMIT,
                "holds": story.holds,
            },
            "seconds": story.seconds,
        },
        indent=2,
        allow_nan=False,
    )


def _step_cells(step: Step) -> tuple[str, ...]:
    """Return the row of one change."""
    return (
        step.title,
        f"{step.nodes_run:,}",
        f"{step.nodes:,}",
        f"{step.first_ms:.3f}",
        f"{step.incremental_ms:.3f}",
        f"{step.full_ms:.3f}",
        f"{step.ratio:.3g}x" if step.ratio < 1000 else f"{step.ratio:,.0f}x",
        f"{step.difference!r}",
    )


def _greek_cells(greek: Greek) -> tuple[str, ...]:
    return (
        shortened(greek.name, 24),
        f"{greek.live:.12g}",
        f"{greek.closed_form:.12g}",
        f"{greek.difference:.1e}",
    )


def _greek_entry(greek: Greek) -> dict[str, str | float | None]:
    return {
        "name": greek.name,
        "live": _finite(greek.live),
        "closed_form": _finite(greek.closed_form),
        "relative_difference": _finite(greek.difference),
    }


def _left_off(count: int, noun: str) -> list[str]:
    return [f"... and {count:,} {_counted(f'more {noun}', count)} (--json lists all)"] * (count > 0)


def _counted(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"


def _verdict(holds: bool) -> str:
    return "ok    " if holds else "FAILED"


def as_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows under a header: the first column to the left, the others to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1))
    lines = [
        "  ".join(
            shortened(cell, width).ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (header, *rows)
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
