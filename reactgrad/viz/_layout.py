"""The layout of a picture by Graphviz, as numbers from which the page draws."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from reactgrad.viz._dot import WORDS, scopes
from reactgrad.viz._draw import laid_out
from reactgrad.viz._picture import Box, Picture
from reactgrad.viz._text import key_of_scope, shown

WIDTH, HEIGHT = 156, 60  # of each box, in points; its text is cut to fit
MOST_OF_LABEL = 80  # letters
INCH = 72.0
# For more lines than this Graphviz would take too long to draw curves.
MOST_CURVES = 400
# A box with more children, such as a constant that is used everywhere, is placed by the first of
# them, and the lines to the others are straight: Graphviz takes minutes for lines that cross
# hundreds of ranks.
MOST_CHILDREN = 32
NODESEP, RANKSEP = 0.2, 0.4  # inches between boxes of one rank, and between ranks
WEIGHTED = 0.9  # between ranks whose lines have weights, for these to stand beside each other
PAGE = 1.5  # about the ratio of width to height of the page


def arranged(picture: Picture) -> dict[str, Any]:
    """Return a picture with places, for JSON: in points from the top left corner.

    Returns
    -------
    dict
        ``boxes`` with ``key``, ``label``, ``node`` (its key; None: a folded scope), ``open`` (the key of
        the scope), ``members``,
        ``mark``
        and ``x``, ``y`` of the middle; ``lines`` with ``from``, ``to`` (positions in ``boxes``),
        ``path``
        (of an SVG path), ``detached``, ``read`` and ``mark``, and ``label`` where
        it has a weight; ``frames`` of scopes with ``label``,
        ``x``,
        ``y``, ``width``, ``height``; ``more``: the numbers of neighbours of a box that are left
        out;
        ``width``, ``height`` of all; ``across``: true if parents are left of their children, not
        above;
        ``total``: the number of nodes that there were to show.

    Raises
    ------
    VizError
        If there are more boxes than Graphviz lays out in reasonable time.
    MissingExtraError
        If the package pygraphviz is not installed.
    """
    index = {box.key: position for position, box in enumerate(picture.boxes)}
    across = _fits_across(picture, index)
    placed = _places(picture, index, across)
    left, bottom, right, top = map(float, placed["bb"].split(","))
    boxes = [_described(box) for box in picture.boxes]
    frames: list[dict[str, Any]] = []
    for found in placed.get("objects", ()):
        if "pos" in found:
            x, y = map(float, found["pos"].split(","))
            boxes[int(found["name"])] |= {"x": x - left, "y": top - y}
        elif found["name"].startswith("cluster") and "bb" in found:
            x, y, far, high = map(float, found["bb"].split(","))
            frames.append(
                {
                    "label": found.get("label", ""),
                    "x": x - left,
                    "y": top - high,
                    "width": far - x,
                    "height": high - y,
                }
            )
    numbers = {found["_gvid"]: found["name"] for found in placed.get("objects", ())}
    paths = {
        (int(numbers[edge["tail"]]), int(numbers[edge["head"]])): _path(edge["pos"], left, top)
        for edge in placed.get("edges", ())
    }
    lines: list[dict[str, Any]] = []
    for line in picture.lines:
        ends = index[line.parent], index[line.child]
        lines.append(
            {
                "from": ends[0],
                "to": ends[1],
                "path": paths.get(ends) or _straight(boxes[ends[0]], boxes[ends[1]]),
                "detached": line.detached,
                "read": line.read,
                "mark": line.mark,
                **({"label": line.label} if line.label else {}),
            }
        )
    return {
        "boxes": boxes,
        "lines": lines,
        "frames": frames,
        "more": {
            "parents": {str(index[key]): n for key, n in picture.more_parents.items()},
            "children": {str(index[key]): n for key, n in picture.more_children.items()},
        },
        "width": right - left,
        "height": top - bottom,
        "across": across,
        "total": picture.total,
        "looks": WORDS,
    }


def _fits_across(picture: Picture, index: dict[str, int]) -> bool:
    """Return whether a page shows the picture larger with its ranks side by side: boxes are wider
    than high.
    """
    rank = [0] * len(index)
    for line in sorted(picture.lines, key=lambda line: index[line.parent]):
        parent, child = index[line.parent], index[line.child]
        if parent < child:  # folded scopes may form a cycle
            rank[child] = max(rank[child], rank[parent] + 1)
    deep, broad = max(rank, default=0) + 1, max(Counter(rank).values(), default=0)
    gap, step = INCH * NODESEP, INCH * RANKSEP
    down = max(broad * (WIDTH + gap) / PAGE, deep * (HEIGHT + step))
    across = max(deep * (WIDTH + step) / PAGE, broad * (HEIGHT + gap))
    return across < 0.8 * down  # downwards unless it is clearly worse: readers expect that


def _places(picture: Picture, index: dict[str, int], across: bool) -> dict[str, Any]:
    """Return Graphviz's layout of the boxes and of those lines that take part in it."""
    if not picture.boxes:
        return {"bb": "0,0,0,0"}
    children = Counter(line.parent for line in picture.lines)
    parents = Counter(line.child for line in picture.lines)
    placed: set[str] = set()
    lines: list[str] = []
    for line in picture.lines:
        wide = children[line.parent] > MOST_CHILDREN or parents[line.child] > MOST_CHILDREN
        # Only the first line of such a box takes part in the layout.
        hub = line.parent if children[line.parent] > MOST_CHILDREN else line.child
        if not wide or hub not in placed:
            lines.append(f"  {index[line.parent]} -> {index[line.child]}")
            placed.add(hub)
    curves = len(lines) <= MOST_CURVES
    apart = WEIGHTED if any(line.label for line in picture.lines) else RANKSEP
    text = "\n".join(
        [
            "digraph {",
            f"  graph [rankdir={'LR' if across else 'TB'}, nodesep={NODESEP}, ranksep={apart}, fontsize=11]",
            f"  graph [nslimit=2, nslimit1=2, splines={'true' if curves else 'line'}]",
            f'  node [shape=box, fixedsize=true, label="", width={WIDTH / INCH:.3f}, height={HEIGHT / INCH:.3f}]',
            *scopes(picture.boxes, lambda box: f"    {index[box.key]}"),
            *lines,
            "}",
        ]
    )
    return json.loads(laid_out(text, "json0", len(picture.boxes)))


def _described(box: Box) -> dict[str, Any]:
    """Return a box without its place."""
    scope = key_of_scope(box.path)
    return {
        "key": box.key
        if box.node is not None
        else scope + (f"({box.part})" if box.part > 1 else ""),
        "open": None if box.node is not None else scope,
        "label": shown(box.label, MOST_OF_LABEL),
        "node": None if box.node is None else box.node.key,
        "members": box.members,
        "mark": box.mark,
        "x": 0.0,
        "y": 0.0,
    }


def _path(pos: str, left: float, top: float) -> str:
    """Return a spline of Graphviz, ``"e,x,y x,y x,y ..."``, as the path of an SVG that ends in the
    arrow's tip.
    """
    tip: list[str] = []
    points: list[str] = []
    for part in pos.split():
        kind, _, place = part.partition(",") if part[0] in "es" else ("", "", part)
        x, y = map(float, place.split(","))
        point = f"{x - left:.1f} {top - y:.1f}"
        if kind == "e":
            tip.append(point)
        elif not kind:
            points.append(point)
    first, *curve = points
    ends = "".join(f" L{point}" for point in tip)
    return f"M{first} C{' '.join(curve)}{ends}"


def _straight(parent: dict[str, Any], child: dict[str, Any]) -> str:
    """Return a line from the middle of one box to the edge of another."""
    x, y = parent["x"] - child["x"], parent["y"] - child["y"]
    reach = max(2 * abs(x) / WIDTH, 2 * abs(y) / HEIGHT, 1.0)
    return (
        f"M{parent['x'] - x / reach:.1f} {parent['y'] - y / reach:.1f} "
        f"L{child['x'] + x / reach:.1f} {child['y'] + y / reach:.1f}"
    )
