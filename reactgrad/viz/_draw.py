"""Pictures as files and as SVG text, laid out by Graphviz, which comes with pygraphviz."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from reactgrad._errors import MissingExtraError, VizError
from reactgrad.viz._svg import themed

FORMATS = ("svg", "png", "pdf", "dot")
MOST_WIDE = 6000.0  # points of a picture in a file; a wider one is made of fewer boxes
PAGE = 750.0  # points, 1,000 pixels: what a page of a notebook is wide
MOST_BOXES = 3000  # Graphviz takes minutes for more, and no one could read it


def draw(path: str | os.PathLike[str], text: str, boxes: int) -> None:
    """Write DOT text as a picture of the kind that the file's name ends in.

    Parameters
    ----------
    path
        Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
    text
        In the DOT language.
    boxes
        The number of boxes in it.
    """
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise VizError(f"draw({os.fspath(path)!r}): the name of a picture ends in {endings}.")
    if suffix == "dot":
        data = text.encode()
    elif suffix == "svg":
        data = svg(text, boxes).encode()
    else:
        data = laid_out(text, suffix, boxes)
    Path(path).write_bytes(data)


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Return whether Graphviz draws a file of this name."""
    return Path(path).suffix.lower() in (".svg", ".png", ".pdf")


def svg(text: str, boxes: int) -> str:
    """Return DOT text as a file of SVG that fits light and dark pages."""
    return themed(laid_out(text, "svg", boxes).decode())


def size(text: str, boxes: int) -> tuple[float, float]:
    """Return the width and the height of a picture in points, as Graphviz lays it out."""
    # "graph scale width height", in inches
    _, _, wide, high, _ = laid_out(text, "plain", boxes).split(maxsplit=4)
    return 72.0 * float(wide), 72.0 * float(high)


def laid_out(text: str, suffix: str, boxes: int) -> bytes:
    """Return DOT text in another format, as Graphviz draws it."""
    return need_graphviz(boxes).AGraph(string=text).draw(format=suffix, prog="dot")


def need_graphviz(boxes: int) -> Any:
    """Return the package pygraphviz, for a picture with this number of boxes.

    Raises
    ------
    VizError
        If there are too many boxes.
    MissingExtraError
        If the package is not installed.
    """
    if boxes > MOST_BOXES:
        raise VizError(
            f"a picture of {boxes:,} nodes takes Graphviz minutes, and nobody can read it. Draw a "
            "part, g.draw(path, var) or g.draw(path, g.plan(y)); or let it choose what matters, "
            "limit=500; or fold scopes, fold=1."
        )
    try:
        import pygraphviz
    except ImportError:
        raise MissingExtraError(
            "pictures need pygraphviz, which brings Graphviz along: pip install 'reactgrad[viz]'. "
            "g.to_dot() works without it."
        ) from None
    return pygraphviz
