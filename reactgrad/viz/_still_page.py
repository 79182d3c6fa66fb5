"""The explorer's page where widgets cannot be: in a frame of its own, with the graph as it was."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape

from reactgrad._files import write_whole
from reactgrad.core._core import Core
from reactgrad.nodes._handle import Handle
from reactgrad.viz._export import page, replayed
from reactgrad.viz._picture import Options

HEIGHT = 640
NOTE = (
    "This page shows the graph as it is now. To move inputs here, install anywidget: "
    "pip install 'reactgrad[jupyter]'; or run reactgrad explore model.py."
)


class StillPage:
    """The result of ``Graph.explore`` where the package anywidget is not installed.

    Any notebook that shows HTML shows it: Colab, VS Code, marimo, Databricks, a page of nbviewer. Where
    frames are removed from HTML (GitHub, notebooks that nobody has called trusted, Colab at times), a
    picture of the same view stays.

    Attributes
    ----------
    html : str
        The page, as ``Graph.export_html`` writes it.
    """

    def __init__(self, html: str, picture: str) -> None:
        self.html, self._picture = html, picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_whole(path, self.html)

    def close(self) -> None:
        """Do nothing: a page that stands still has no end."""

    def _repr_html_(self) -> str:
        # The frame lies over the picture. As an image the picture passes where SVG does not.
        picture = b64encode(self._picture.encode()).decode("ascii")
        cell = "grid-area:1/1;min-width:0"
        # Without `allow-same-origin` the page reaches nothing of the notebook around it.
        return (
            '<div style="display:grid">'
            f'<img alt="{escape(f"a picture of the graph; {NOTE}")}" src="data:image/svg+xml;base64,{picture}" '
            f'style="{cell};max-width:100%;max-height:{HEIGHT}px">'
            f'<iframe sandbox="allow-scripts" title="reactgrad explorer" srcdoc="{escape(self.html)}" '
            f'style="{cell};z-index:1;width:100%;height:{HEIGHT}px;box-sizing:border-box;'
            'border:1px solid rgba(128,128,128,.45);border-radius:6px"></iframe></div>'
            f'<p style="margin:4px 0;opacity:0.75">{escape(NOTE)}</p>'
        )

    def __repr__(self) -> str:
        return f"<Explorer that stands still: {NOTE}>"


def still_page(graph: Core, targets: Sequence[Handle | str], options: Options) -> StillPage:
    """Return the page of a graph as it is now, with its last run."""
    recorded = replayed(graph, None, targets, "", **options._asdict())
    return StillPage(page(recorded, recorded["graph"]["title"]), recorded["picture"])
