"""A drawing of a network, neurons and connections with their weights, as SVG; needs no other package."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from html import escape
from typing import Any

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._phenotype import Phenotype

# Between columns, between neurons, and around all.
ACROSS, DOWN, MARGIN = 150, 58, 46
# The size of a neuron.
WIDTH, HEIGHT = 62, 30
MORE, LESS, NEW, GONE = "#2563b0", "#c2410c", "#1a7f37", "#9aa0a6"


class Drawing(OwnAttributes):
    """A picture of a network, shown by notebooks.

    Attributes
    ----------
    svg : str
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __repr__(self) -> str:
        return f"<Drawing: {len(self.svg):,} letters of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file that ends with ``.svg``.

        Raises
        ------
        VizError
            If it ends with something else.
        """
        text = os.fspath(path)
        if not text.endswith(".svg"):
            raise rg.VizError(
                f"save({text!r:.80}): a drawing of a network is written as SVG, which browsers show. Write a "
                "name that ends with .svg; net.graph.draw writes other forms."
            )
        with open(text, "w", encoding="utf-8") as file:
            file.write(self.svg)


def drawing(
    phenotype: Phenotype,
    *,
    ran: Collection[int] | None = None,
    before: Phenotype | None = None,
    names: Mapping[int, str] | None = None,
    weights: bool = True,
    title: str = "",
) -> Drawing:
    """Return the drawing of a network; see ``Network.draw``."""
    columns = _columns(phenotype)
    at, size = _places(columns)
    former = None if before is None else before.neurons
    lines = [*_lines(phenotype, at, former, weights), *_gone(phenotype, at, former)]
    boxes = [
        _box(key, phenotype, at[key], ran, former, names or {})
        for column in columns
        for key in column
    ]
    width, height = size
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    told = f"<title>{escape(title)}</title>" if title else ""
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return Drawing("\n".join([head, told, background, *lines, *boxes, "</svg>"]))


def _columns(phenotype: Phenotype) -> list[list[int]]:
    """Return the keys in columns from inputs to outputs, in an order with few crossings."""
    neurons = phenotype.neurons
    used = {source for one in neurons.values() for source in one.sources}
    depth = dict.fromkeys(phenotype.inputs, 0)
    # Nodes that are read and never computed, and outputs that nothing leads to.
    depth |= dict.fromkeys(sorted({*used, *phenotype.outputs} - neurons.keys() - depth.keys()), 0)

    def deep(start: int) -> None:
        path, pending = {start: None}, [iter(neurons[start].sources)]
        while pending:
            for source in pending[-1]:
                if source in neurons and source not in depth and source not in path:
                    path[source] = None
                    pending.append(iter(neurons[source].sources))
                    break
            else:
                pending.pop()
                key, _ = path.popitem()
                found = [depth[one] for one in neurons[key].sources if one in depth]
                depth[key] = 1 + max(found, default=0)

    for key in neurons:
        if key not in depth:
            deep(key)
    # Outputs stand at the right, unless something is computed from them.
    outputs = {key for key in phenotype.outputs if key in neurons and key not in used}
    last = max([depth[key] for key in depth.keys() - outputs], default=0)
    depth |= dict.fromkeys([key for key in phenotype.outputs if key in outputs], last + 1)
    columns: list[list[int]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for key, column in depth.items():
        columns[column].append(key)
    columns = [column for column in columns if column]
    place = {key: i / max(len(column) - 1, 1) for column in columns for i, key in enumerate(column)}
    for column in columns[1:-1]:  # a neuron stands beside the middle of its sources
        middle = {
            key: sum(place.get(one, 0.5) for one in neurons[key].sources)
            / max(len(neurons[key].sources), 1)
            for key in column
            if key in neurons
        }
        column.sort(key=lambda key: middle.get(key, 0.5))
        place |= {key: i / max(len(column) - 1, 1) for i, key in enumerate(column)}
    return columns


def _places(columns: list[list[int]]) -> tuple[dict[int, tuple[float, float]], tuple[int, int]]:
    most = max(map(len, columns), default=1)
    height = 2 * MARGIN + DOWN * (most - 1) + HEIGHT
    at: dict[int, tuple[float, float]] = {}
    for i, column in enumerate(columns):
        top = (height - DOWN * (len(column) - 1)) / 2.0
        for k, key in enumerate(column):
            # Every second column a little lower, so that lines do not run through neurons.
            shift = DOWN * 0.22 if i % 2 and len(column) > 1 else 0.0
            at[key] = MARGIN + WIDTH / 2.0 + ACROSS * i, top + DOWN * k + shift
    return at, (2 * MARGIN + WIDTH + ACROSS * max(len(columns) - 1, 0), height + int(DOWN * 0.22))


def _curve(source: tuple[float, float], target: tuple[float, float]) -> tuple[str, float, float]:
    """Return the path between two neurons, and the place of its label."""
    (x, y), (u, v) = source, target
    if source == target:  # to itself
        top = y - HEIGHT / 2.0
        return f"M{x - 12:.1f},{top:.1f} c-14,-30 38,-30 24,0", x, top - 26.0
    if u > x:
        x, u = x + WIDTH / 2.0, u - WIDTH / 2.0
        bend = (u - x) * 0.4
        path = f"M{x:.1f},{y:.1f} C{x + bend:.1f},{y:.1f} {u - bend:.1f},{v:.1f} {u:.1f},{v:.1f}"
        # Lines to one neuron meet; so the label is nearer to the source, where the curve is at this t.
        t, rest = 0.4, 0.6
        across = x * rest**3 + 3.0 * (x + bend) * rest**2 * t
        across += 3.0 * (u - bend) * rest * t * t + u * t**3
        return path, across, y + (v - y) * t * t * (3.0 - 2.0 * t)
    low = max(y, v) + HEIGHT + 12.0
    path = f"M{x:.1f},{y + HEIGHT / 2:.1f} C{x:.1f},{low:.1f} {u:.1f},{low:.1f} {u:.1f},{v + HEIGHT / 2:.1f}"
    return path, (x + u) / 2.0, low - 8.0


def _lines(
    phenotype: Phenotype,
    at: Mapping[int, tuple[float, float]],
    former: Mapping[int, Any] | None,
    weights: bool,
) -> list[str]:
    found: list[str] = []
    labels: list[str] = []
    sizes = [abs(w) for one in phenotype.neurons.values() for w in one.genes[2:]]
    most = max(sizes, default=1.0) or 1.0
    for key, one in phenotype.neurons.items():
        for source, weight in zip(one.sources, one.genes[2:], strict=True):
            if source not in at:
                continue
            is_new = former is not None and (key not in former or source not in former[key].sources)
            color = NEW if is_new else MORE if weight >= 0.0 else LESS
            thick = 0.8 + 2.6 * abs(weight) / most + (1.0 if is_new else 0.0)
            path, x, y = _curve(at[source], at[key])
            dash = "" if weight >= 0.0 else ' stroke-dasharray="7 3"'
            found.append(
                f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{thick:.2f}" '
                f'stroke-opacity="0.75"{dash}><title>{source} to {key}: {weight:.6g}</title></path>'
            )
            if weights:
                text = f'x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" font-size="10"'
                # Twice: first a white edge, on which the number can be read.
                labels += [
                    f'<text {text} fill="#ffffff" stroke="#ffffff" stroke-width="3">{weight:.2f}</text>',
                    f'<text {text} fill="{color}">{weight:.2f}</text>',
                ]
    return [*found, *labels]


def _gone(
    phenotype: Phenotype, at: Mapping[int, tuple[float, float]], former: Mapping[int, Any] | None
) -> list[str]:
    """Return lines for the connections that there were before."""
    found: list[str] = []
    for key, one in (former or {}).items():
        own = phenotype.neurons.get(key)
        for source in one.sources:
            if key in at and source in at and (own is None or source not in own.sources):
                path, _, _ = _curve(at[source], at[key])
                found.append(
                    f'<path d="{path}" fill="none" stroke="{GONE}" stroke-width="1.4" '
                    f'stroke-dasharray="2 4"><title>{source} to {key}: removed</title></path>'
                )
    return found


def _box(
    key: int,
    phenotype: Phenotype,
    place: tuple[float, float],
    ran: Collection[int] | None,
    former: Mapping[int, Any] | None,
    names: Mapping[int, str],
) -> str:
    x, y = place
    own = phenotype.neurons.get(key)
    name = escape(names.get(key, str(key)))
    if own is None:
        look, told, small = 'fill="#ffffff" rx="3"', f"input {key}", ""
    else:
        is_hot = ran is None or key in ran
        fill = "#eef2f7" if ran is None else "#a9dfb2" if is_hot else "#eeeeee"
        look = f'fill="{fill}" rx="{HEIGHT / 2 if is_hot else 3}"'
        function = getattr(own.activation, "__name__", own.activation)
        told = f"neuron {key}: {function}, bias {own.genes[0]:.6g}, response {own.genes[1]:.6g}"
        small = (
            f'<text x="{x:.1f}" y="{y + 11:.1f}" text-anchor="middle" font-size="8" fill="#555555">'
            f"{escape(str(function))}</text>"
        )
    thick = 3 if former is not None and own is not None and key not in former else 1
    if key in phenotype.outputs:
        thick = max(thick, 2)
    lift = 4.0 if own is None else 0.5
    return (
        f'<g><title>{escape(told)}</title><rect x="{x - WIDTH / 2:.1f}" y="{y - HEIGHT / 2:.1f}" '
        f'width="{WIDTH}" height="{HEIGHT}" stroke="#333333" stroke-width="{thick}" {look}/>'
        f'<text x="{x:.1f}" y="{y + lift:.1f}" text-anchor="middle">{name}</text>{small}</g>'
    )
