"""The explorer's page where widgets cannot be: in a frame of its own, with the graph as it was."""

from __future__ import annotations

import os
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

    Any notebook that shows HTML shows it: Colab, VS Code, marimo, Databricks, a page of nbviewer.

    Attributes
    ----------
    html : str
        The page, as ``Graph.export_html`` writes it.
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_whole(path, self.html)

    def close(self) -> None:
        """Do nothing: a page that stands still has no end."""

    def _repr_html_(self) -> str:
        # Without `allow-same-origin` the page reaches nothing of the notebook around it.
        return (
            f'<iframe sandbox="allow-scripts" title="reactgrad explorer" srcdoc="{escape(self.html)}" '
            f'style="width:100%;height:{HEIGHT}px;border:1px solid #ccc;border-radius:6px"></iframe>'
            f'<p style="margin:4px 0;opacity:0.75">{escape(NOTE)}</p>'
        )

    def __repr__(self) -> str:
        return f"<Explorer that stands still: {NOTE}>"


def still_page(graph: Core, targets: Sequence[Handle | str], options: Options) -> StillPage:
    """Return the page of a graph as it is now, with its last run."""
    recorded = replayed(graph, None, targets, "", **options._asdict())
    return StillPage(page(recorded, recorded["graph"]["title"]))
