"""The displays of graphs, Vars, runs, plans, explanations and figures in notebooks; never more than
a screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from html import escape
from itertools import product
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError
from reactgrad.core._core import Core
from reactgrad.explain._snapshot import NodeSnapshot, present, snapshot, snapshot_of
from reactgrad.explain._stats import Stats
from reactgrad.explain._why import Why
from reactgrad.nodes._handle import Handle
from reactgrad.reading._run import Plan, Run
from reactgrad.scheduler import safe_repr
from reactgrad.viz._ask import asked, drawn
from reactgrad.viz._dot import MOST_LETTERS, WORDS
from reactgrad.viz._draw import svg
from reactgrad.viz._glance import glance
from reactgrad.viz._picture import Options, look
from reactgrad.viz._svg import inline
from reactgrad.viz._text import shown, shown_lines
from reactgrad.viz._thumbnail import thumbnail

MOST_BOXES = 60  # in a picture within a notebook
MOST_WIDE, MOST_HIGH = 1200.0, 720.0  # points of such a picture, if that is to be had
LEAST = 0.625  # the part of its size to which it is made smaller, to be in sight as a whole
SCREEN = 600  # pixels; a picture that is higher still is scrolled, and shows its lower end first
MOST_ROWS = 12
MOST_SLICES = 3
MOST_LINES = 24

# The page shows through, and words have its colour, whether it is light or dark.
_CARD = (
    "border:1px solid rgba(128,128,128,.45);border-radius:6px;padding:8px 10px;box-sizing:border-box;"
    "max-height:720px;overflow:auto;font:13px/1.45 system-ui,sans-serif;width:fit-content;max-width:100%"
)
# A column that is laid out from its end shows its end first.
_PICTURE = f"max-height:{SCREEN}px;overflow:auto;display:flex;flex-direction:column-reverse;align-items:flex-start"
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"


@singledispatch
def html(thing: Any) -> str:
    """Return the display of one of reactgrad's objects as self-contained HTML."""
    raise TypeError(f"there is no display of {type(thing).__name__}")


@html.register
def _(thing: Core) -> str:
    nodes = snapshot(thing).nodes
    counts = Counter(node.state for node in nodes)
    title = ", ".join([f"{count:,} {state}" for state, count in counts.items()])
    return _card(f"Graph of {len(nodes):,} nodes" + (f": {title}" if title else ""), _seen(thing))


@html.register
def _(thing: Run) -> str:
    title = repr(thing)[1:-1]
    return _card(title, _seen(thing._graph, thing)) if _reached(thing) else _card(title)


@html.register
def _(thing: Plan) -> str:
    missing = f"; without a value: {thing.unset!r}" if thing.unset else ""
    if not thing.nodes:
        return _card("Plan: nothing to run" + missing)
    title = repr(thing)[1:-1].partition(": [")[0]
    return _card(title + missing, _seen(thing.nodes[0]._graph, thing))


@html.register
def _(thing: Why) -> str:
    first, *rest = str(thing).splitlines()
    return _card(first, _text(shown_lines("\n".join(rest), 300)) if rest else "")


@html.register
def _(thing: Stats) -> str:
    rows = [line.split(maxsplit=1) for line in str(thing).splitlines()]
    return _card("Figures of the graph", _table(rows))


@html.register
def _(thing: Handle) -> str:
    var: Any = thing
    if not isinstance(thing._graph, Core):  # a removed node
        return _card(repr(thing)[1:-1])
    node = snapshot_of(thing._graph, thing)
    marks = [word for word in ("frozen", "pinned", "kept", "cutoff") if getattr(node, word)]
    rows = {
        "state": ", ".join([WORDS[look(node)], *marks]),
        "version": str(node.version),
        "value": shown(node.shape, 80),
        **({"error": shown(node.error, 300)} if node.error else {}),
        "computed by": shown(node.op, 80) if node.kind in ("op", "function") else "",
        "from": shown(", ".join(parent.label for parent in var.parents[:MOST_ROWS]), 300),
        "built at": shown(node.line, 300),
    }
    table = _table([(word, text) for word, text in rows.items() if text])
    value = present(thing._graph, thing)
    seen = glance(value)
    drawn = "" if seen is None else thumbnail(seen)
    text = "" if value is None else _text(abbreviated(value))
    return _card(shown(node.name, 80), table, drawn, text)


# Print options for arrays. Objects in them get a text that never raises.
_ARRAYS: Any = {
    "threshold": 100,
    "edgeitems": 3,
    "precision": 6,
    "formatter": {"object": safe_repr},
}


def abbreviated(value: Any, wide: int = 96) -> str:
    """Return a value as text, abbreviated by NumPy, in lines of about so many letters.

    Of more than two axes some slices are shown, each with its label. Of an array whose ``str`` raises
    its type is shown.
    """
    try:
        return _abbreviated(value, wide)
    except Exception:
        return safe_repr(value)


def _abbreviated(value: Any, wide: int) -> str:
    if isinstance(value, np.ndarray) and not value.shape:
        value = value[()]
    if not isinstance(value, np.ndarray):
        return shown(str(value) if isinstance(value, np.generic) else safe_repr(value), 2000)
    with np.printoptions(**_ARRAYS, linewidth=wide):
        if value.ndim <= 2:
            return _first_lines(str(value))
        places = product(*map(range, value.shape[:-2]))
        total = int(np.prod(value.shape[:-2]))
        parts: list[str] = []
        for place, _ in zip(places, range(MOST_SLICES), strict=False):
            parts += [f"[{', '.join(map(str, place))}, :, :]", str(value[place])]
        if total > MOST_SLICES:
            parts.append(f"... {total - MOST_SLICES:,} more slices")
        return _first_lines("\n".join(parts))


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = len(lines) - MOST_LINES
    text = "\n".join([*lines[:MOST_LINES], f"... {more} more lines"]) if more > 0 else text
    return shown_lines(text, 2000)


def _reached(run: Run) -> bool:
    return any((run.ran, run.skipped, run.rebuilt, run.failed))


def _seen(graph: Core, of: Any = None) -> str:
    """Return a picture; without the package that draws it, a table."""
    options = Options(None, "values", None, MOST_BOXES)
    try:
        found, text, _ = drawn(graph, of, options, MOST_WIDE, MOST_HIGH)
        picture = inline(svg(text, len(found.boxes)), SCREEN, LEAST)
    except MissingExtraError as missing:
        found, _ = asked(graph, of, options)
        nodes = [box.node for box in found.boxes if box.node is not None]
        return (
            table_of(nodes, found.total) + f"<div style='opacity:.75'>{escape(str(missing))}</div>"
        )
    return f"<div style='{_PICTURE}'>{picture}</div>"


def table_of(nodes: Sequence[NodeSnapshot], total: int) -> str:
    """Return a table of nodes."""
    rows = [
        (
            shown(node.name, MOST_LETTERS),
            shown(node.op, MOST_LETTERS),
            WORDS[look(node)],
            f"v{node.version}",
            shown(node.shape, MOST_LETTERS),
        )
        for node in nodes[:MOST_ROWS]
    ]
    more = f"<div>... {total - len(rows):,} more</div>" if total > len(rows) else ""
    return _table(rows) + more


def _table(rows: Sequence[Sequence[str]] | Mapping[str, str]) -> str:
    return f"<table style='border-collapse:collapse;margin:2px 0;font:inherit'>{''.join(_rows(rows))}</table>"


def _rows(rows: Any) -> Iterator[str]:
    for row in rows:
        cells = "".join(f"<td style='{_CELL}'>{escape(str(cell))}</td>" for cell in row)
        yield f"<tr style='background:none'>{cells}</tr>"


def _text(text: str) -> str:
    return f"<pre style='margin:4px 0;color:inherit;background:none'>{escape(text)}</pre>"


def _card(title: str, *parts: str) -> str:
    return (
        f"<div style='{_CARD}'><div><b>{escape(shown(title, 300))}</b></div>{''.join(parts)}</div>"
    )
