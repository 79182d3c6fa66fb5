"""The figures of the benchmarks as pictures: every bar is a row of ``bench/FIGURES.md``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from . import pages

ROW = re.compile(r"^\| (B\d+) \|(.*)\|$", re.MULTILINE)
NUMBERS = re.compile(r"([\d.,]+)× ?(faster|slower|fewer)? ?\(([\d.,]+)–([\d.,]+)\)")
TITLES = {
    "B1": "B1 · a random graph, beside NumPy by hand",
    "B2": "B2 · a random graph, beside PyTorch",
    "B3": "B3 · training steps",
    "B4": "B4 · a grid of functions, beside signals libraries",
    "B5": "B5 · benchmarks of signals libraries",
    "B6": "B6 · one change in graphs of three sizes",
    "B7": "B7 · a million options: all of them change",
    "B8": "B8 · a book of options: one quote moves",
    "B9": "B9 · the gradient after a small change",
    "B10": "B10 · edits",
    "B11": "B11 · networks of neat-python",
    "B12": "B12 · a generation of NEAT",
    "B13": "B13 · building",
    "B14": "B14 · large arrays",
    "B16": "B16 · checkpoints",
    "B17": "B17 · values that are let go",
}
HEIGHT, CASE, LABEL, PLOT, SIDE = 22, 345, 480, 260, 100

HEAD = """# Benchmarks as pictures

Each bar is a row of the [tables](benchmark_tables.md): the time of the peer by ours, on a scale of powers of ten. To
the right of the line reactgrad is faster, to its left it is slower. The dark stroke goes from the lowest to the highest
of three runs, and the small triangle stands at the goal. Colours say the same: **green is faster, orange is slower**.

The machine had two cores, and was shared. Where the figures come from, and what bounds them, is in
[benchmarks](benchmarks.md).

"""


@dataclass(frozen=True)
class Bar:
    """One row: how many times faster than its peer, the spread, the goal."""

    case: str
    beside: str
    speed: float
    low: float
    high: float
    goal: float | None


def bars(text: str) -> dict[str, list[Bar]]:
    """Return the rows of a table that have a ratio, by workload."""
    found: dict[str, list[Bar]] = {}
    for number, rest in ROW.findall(text):
        case, _, _, beside, ratio, goal, *_ = (cell.strip() for cell in rest.split("|"))
        match = NUMBERS.fullmatch(ratio)
        if match is None or goal == "the same":  # counts that both sides must share
            continue
        middle, low, high = (float(match[i].replace(",", "")) for i in (1, 3, 4))
        if match[2] not in ("faster", "fewer"):  # our time by the peer's
            middle, low, high = 1 / middle, 1 / high, 1 / low
        bar = Bar(case.partition(": ")[2] or case, beside, middle, low, high, _goal(goal))
        found.setdefault(number, []).append(bar)
    return found


def _goal(text: str) -> float | None:
    match = re.fullmatch(r"([≤≥]) ([\d.,]+)×", text)
    if match is None:
        return None
    value = float(match[2].replace(",", ""))
    return value if match[1] == "≥" else 1 / value


def drawn(title: str, rows: list[Bar]) -> str:
    """Return a picture of rows as SVG, in the colours of the page that it stands in."""
    low = min(0.5, *(min(bar.low, bar.goal or bar.low) for bar in rows))
    high = max(2.0, *(max(bar.high, bar.goal or bar.high) for bar in rows))
    first, last = math.log10(low) - 0.05, math.log10(high) + 0.05

    def at(value: float) -> float:
        return LABEL + PLOT * (math.log10(value) - first) / (last - first)

    height = HEIGHT * len(rows) + 34
    lines = [
        f'<svg class="figure" viewBox="0 0 {LABEL + PLOT + SIDE} {height}" role="img" aria-label="{escape(title)}">'
    ]
    ticks = [10.0**power for power in range(math.ceil(first), math.floor(last) + 1)]
    if len(ticks) < 3:  # less than two decades
        near = [digit * tick for tick in [ticks[0] / 10, *ticks] for digit in (2, 5)]
        ticks += [tick for tick in near if first < math.log10(tick) < last]
    for tick in ticks:
        x = at(tick)
        lines += [
            f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="{height - 24}"/>',
            f'<text class="tick" x="{x:.1f}" y="{height - 8}">{_number(tick)}×</text>',
        ]
    for place, bar in enumerate(rows):
        y = 10 + HEIGHT * place
        lines += _bar(bar, y, at)
    return "\n".join([*lines, "</svg>"])


def _bar(bar: Bar, y: int, place: Callable[[float], float]) -> list[str]:
    one, end = place(1.0), place(bar.speed)
    low, high = place(bar.low), place(bar.high)
    kind = "faster" if bar.speed >= 1 else "slower"
    label = f"{bar.case}  ·  {bar.beside}"
    case = bar.case if len(bar.case) <= 58 else f"{bar.case[:34]}…{bar.case[-22:]}"
    said = f"{_number(bar.speed)}×" if bar.speed >= 1 else f"{_number(1 / bar.speed)}× slower"
    lines = [
        f"<g><title>{escape(label)}: {said}</title>",
        f'<text class="case" x="{CASE}" y="{y + 12}">{escape(case)}</text>',
        f'<text class="beside" x="{CASE + 8}" y="{y + 12}">{escape(bar.beside)}</text>',
        f'<rect class="{kind}" x="{min(one, end):.1f}" y="{y + 2}" width="{max(abs(end - one), 1):.1f}" height="12"/>',
        f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{y + 8}" y2="{y + 8}"/>',
        f'<text class="said" x="{LABEL + PLOT + 8}" y="{y + 12}">{said}</text>',
    ]
    if bar.goal is not None:
        x = place(bar.goal)
        lines.append(
            f'<path class="goal" d="M{x:.1f} {y + 2} l-4 -5 h8 z"><title>goal</title></path>'
        )
    return [*lines, "</g>"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write() -> None:
    """Write the page of pictures."""
    text = (pages.ROOT / "bench" / "FIGURES.md").read_text(encoding="utf-8")
    parts = [HEAD]
    for number, rows in bars(text).items():
        title = TITLES.get(number, number)
        parts.append(f"## {title}\n\n```{{raw}} html\n{drawn(title, rows)}\n```\n\n")
    pages.write(pages.MADE / "benchmark_figures.md", "".join(parts))
