"""A still picture of a graph: shows itself in a notebook, and goes into files."""

from __future__ import annotations

import os
from html import escape
from typing import Any

from reactgrad._errors import MissingExtraError
from reactgrad.core._core import Core
from reactgrad.viz._ask import asked, drawn
from reactgrad.viz._dot import dot_text
from reactgrad.viz._draw import PAGE, draw, svg
from reactgrad.viz._html import table_of
from reactgrad.viz._picture import Options, Picture
from reactgrad.viz._svg import inline
from reactgrad.viz._text import shown


class Drawing:
    """The result of ``Graph.picture``: the graph as it was then.

    Attributes
    ----------
    svg : str
        The picture as SVG.
    text : str
        The picture in the DOT language of Graphviz.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> y = rg.tanh(g.input(1.0, name="x"))
    >>> g.picture()
    <Picture of 2 nodes>
    """

    def __init__(self, picture: Picture, text: str, title: str) -> None:
        self._picture, self.text, self._title = picture, text, title
        self._svg: str | None = None

    @property
    def svg(self) -> str:
        if self._svg is None:
            self._svg = inline(svg(self.text, len(self._picture.boxes)))
        return self._svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : str or path-like
            Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.

        Raises
        ------
        VizError
            If the ending is another one.
        MissingExtraError
            If the package pygraphviz is not installed; not for ``.dot``.
        """
        draw(path, self.text, len(self._picture.boxes))

    def __repr__(self) -> str:
        boxes, total = self._picture.boxes, self._picture.total
        folded = sum(box.node is None for box in boxes)
        seen = total - self._picture.hidden
        told = f"{total:,} nodes" if seen == total else f"{seen:,} of {total:,} nodes"
        what = f"{told}, {folded:,} scopes folded" if folded else told
        return f"<Picture of {what}{f': {shown(self._title, 80)}' if self._title else ''}>"

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg
        except MissingExtraError:  # there is a table instead
            return None

    def _repr_html_(self) -> str | None:
        try:
            _ = self.svg
        except MissingExtraError as missing:
            nodes = [box.node for box in self._picture.boxes if box.node is not None]
            return table_of(nodes, self._picture.total) + f"<div>{escape(str(missing))}</div>"
        return None


def drawing(graph: Core, of: Any, options: Options) -> Drawing:
    """Return a picture of a graph or of a part of it, at most as wide as a page."""
    try:
        found, text, title = drawn(graph, of, options, PAGE)
    except MissingExtraError:
        found, title = asked(graph, of, options, values=True)
        text = dot_text(found, title)
    # What is still wider, since names are long, say, is drawn smaller.
    inches = f'size="{PAGE / 72:.2f},1000"'
    return Drawing(found, text.replace("graph [", f"graph [{inches}, ", 1), title)
