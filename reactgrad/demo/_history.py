"""The course of an evolution: what each generation was like, as text and as a picture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

BARS: Final = "▁▂▃▄▅▆▇█"
WIDE, HIGH, LEFT, GAP = 430, 150, 46, 46
COLORS: Final = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#e15759",
    "#76b7b2",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#bab0ac",
)


@dataclass
class History:
    """The generations of one population.

    Attributes
    ----------
    seed : int
    best, mean : list of float
        Fitness in each generation.
    species : list of dict
        The number of genomes of each species, by its key.
    ran, neurons : list of int
        Neurons that were computed, and neurons in all.
    network : object
        The best network at the end.
    """

    seed: int
    best: list[float] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    species: list[dict[int, int]] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    neurons: list[int] = field(default_factory=list)
    network: Any = None

    def sentence(self) -> str:
        """Return what the latest generation was like, in a few words."""
        share = 100.0 * self.ran[-1] / self.neurons[-1]
        return (
            f"seed {self.seed}, generation {len(self.best)}: best {self.best[-1]:.2f}, "
            f"{len(self.species[-1])} species, {share:.0f} % of neurons computed"
        )


def history_as_text(history: History) -> list[str]:
    """Return three lines: fitness, species, and what was computed, over the generations."""
    counts = [len(one) for one in history.species]
    shares = [100.0 * a / b for a, b in zip(history.ran, history.neurons, strict=True)]
    return [
        f"how it went with seed {history.seed}, generation by generation:",
        f"best fitness      {_bars(history.best)}  {history.best[0]:.2f} to {history.best[-1]:.2f}",
        f"species           {_bars(counts)}  {counts[0]} to {counts[-1]}, at most {max(counts)}",
        f"neurons computed  {_bars(shares)}  {shares[0]:.0f} % to {shares[-1]:.0f} %",
    ]


def _bars(values: Sequence[float], most: int = 48) -> str:
    """Return bars for at most so many values, the mean of several where there are more."""
    width = min(most, len(values))
    ends = [i * len(values) // width for i in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(ends)]
    low, high = min(means), max(means)
    steps = [(one - low) / (high - low) if high > low else 0.5 for one in means]
    return "".join(BARS[round(one * (len(BARS) - 1))] for one in steps)


def history_as_svg(history: History, title: str) -> str:
    """Return a picture: fitness, species and work over time, and the best network below."""
    shares = [100.0 * a / b for a, b in zip(history.ran, history.neurons, strict=True)]
    panels = [
        _panel(
            "fitness: best, and mean (thin)",
            _curves([history.best, history.mean]),
            [*history.best, *history.mean],
        ),
        _panel("species: each color one", _areas(history.species), [0.0, _total(history.species)]),
        _panel("neurons computed, % of all", _curves([shares]), [0.0, 100.0]),
    ]
    inner, width, height = _nested(history.network)
    across = 3 * (LEFT + WIDE)
    scale = min(1.6, (across - 40) / max(width, 1))
    top = HIGH + 2 * GAP + 18
    body = [
        f'<g transform="translate({LEFT + i * (WIDE + LEFT)},{GAP + 18})">{panel}</g>'
        for i, panel in enumerate(panels)
    ]
    caption = (
        f'<text x="{LEFT}" y="{top + 14}" font-size="12">best network: {escape(repr(history.network))}, weights '
        "on the connections</text>"
    )
    size = across + LEFT, int(top + 30 + height * scale)
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} '
                f'{size[1]}" font-family="Helvetica, Arial, sans-serif" font-size="10">'
            ),
            f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="26" font-size="15">{escape(title)}</text>',
            *body,
            caption,
            f'<g transform="translate({LEFT - 20},{top + 24}) scale({scale:.3f})">{inner}</g>',
            "</svg>",
        ]
    )


def _total(species: Sequence[dict[int, int]]) -> float:
    return float(max(sum(one.values()) for one in species))


def _panel(name: str, marks: str, values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    axes = f'<path d="M0,0 V{HIGH} H{WIDE}" fill="none" stroke="#888888"/>'
    labels = (
        f'<text x="-4" y="8" text-anchor="end">{high:.3g}</text>'
        f'<text x="-4" y="{HIGH}" text-anchor="end">{low:.3g}</text>'
        f'<text x="{WIDE}" y="{HIGH + 14}" text-anchor="end">generation</text>'
    )
    return f'<text y="-8" font-size="12">{escape(name)}</text>{marks}{axes}{labels}'


def _places(count: int) -> list[float]:
    return [WIDE * i / max(count - 1, 1) for i in range(count)]


def _curves(curves: Sequence[Sequence[float]]) -> str:
    """Return lines on one scale; a single one is a percentage, from 0 to 100."""
    is_share = len(curves) == 1
    low, high = (0.0, 100.0) if is_share else (min(map(min, curves)), max(map(max, curves)))
    found: list[str] = []
    for i, curve in enumerate(curves):
        points = [
            f"{x:.1f},{HIGH - HIGH * min(max((y - low) / (high - low or 1.0), 0.0), 1.0):.1f}"
            for x, y in zip(_places(len(curve)), curve, strict=True)
        ]
        width = 2.0 if i == 0 else 0.8
        found.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLORS[i]}" stroke-width="{width}"/>'
        )
    return "".join(found)


def _areas(species: Sequence[dict[int, int]]) -> str:
    """Return the sizes of species on top of each other."""
    most = _total(species)
    places = _places(len(species))
    base = [0.0] * len(species)
    found: list[str] = []
    for key in dict.fromkeys(key for one in species for key in one):
        top = [a + one.get(key, 0) for a, one in zip(base, species, strict=True)]
        upper = [f"{x:.1f},{HIGH - HIGH * y / most:.1f}" for x, y in zip(places, top, strict=True)]
        lower = [f"{x:.1f},{HIGH - HIGH * y / most:.1f}" for x, y in zip(places, base, strict=True)]
        color = COLORS[key % len(COLORS)]
        found.append(
            f'<polygon points="{" ".join([*upper, *reversed(lower)])}" fill="{color}" stroke="#ffffff" '
            f'stroke-width="0.4"><title>species {key}</title></polygon>'
        )
        base = top
    return "".join(found)


def _nested(network: Any) -> tuple[str, int, int]:
    """Return the drawing of a network to stand in another one, and its size."""
    svg = network.draw(ran=network.phenotype.neurons).svg
    head = svg[: svg.index(">")]
    width, height = (int(head.split(f'{word}="')[1].split('"')[0]) for word in ("width", "height"))
    return svg, width, height
