"""The verbs of a graph that draw it; each imports its work when it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reactgrad.core._core import Core
from reactgrad.graph._var import Var

if TYPE_CHECKING:
    from reactgrad.explain._record import Recording
    from reactgrad.explain._snapshot import Snapshot


class Pictures(Core[Var]):
    """Pictures of a graph."""

    def to_dot(
        self,
        of: Any = None,
        *,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> str:
        """The graph, or a part of it, as text in the DOT language of Graphviz; runs nothing.

        A node's shape and colour say whether it is clean, stale, running, has run, was cut off, has
        failed, or is unset; its label has its version, dtype and shape, its marks, and the time it
        takes if ``record`` has measured it. A dashed edge that ends in a bar is detached; a dotted
        one a function found by reading. Names that hold slashes, ``"layer1/w"``, are in scopes; see
        ``scope``.

        Parameters
        ----------
        of : Var, str, Plan or Run, optional
            What to show with its direct operands: a node, or its name, and all that depends on it;
            what a plan holds; what a run reached. By default everything.
        since : Graph or Snapshot, optional
            What to compare with: a snapshot of before, or the graph that this one was forked from.
            Nodes and edges that were added, removed or changed since are marked.
        layer : str
            ``"values"``, ``"gradients"`` (with the values they are computed from) or ``"all"``.
        fold : int, optional
            Scopes at this depth are one box each.
        limit : int
            The most nodes that are shown. Beyond, the picture shows those that are not clean and
            what is around them, and counts what it leaves out.

        Raises
        ------
        VizError
            If there is no such picture.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> print(g.to_dot(x))  # doctest: +ELLIPSIS
        digraph {
        ...
          "1" -> "2"
        }
        """
        from reactgrad.viz import asked, dot_text

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        return dot_text(shown, title)

    def draw(
        self,
        path: str | os.PathLike[str],
        of: Any = None,
        *,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> None:
        """Write a picture of the graph, or of a part of it; see ``to_dot`` for what it shows.

        Parameters
        ----------
        path : str or path-like
            Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        of, since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        VizError
            If the ending is another one, or more than 3,000 nodes would be laid out.
        MissingExtraError
            If the package pygraphviz is not installed; not for ``.dot``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0))
        >>> g.draw("graph.svg")  # doctest: +SKIP
        """
        from reactgrad.viz import asked, dot_text, draw

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        draw(path, dot_text(shown, title), len(shown.boxes))

    def explore(
        self,
        *targets: Var | str,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> Any:
        """Show the graph in a notebook: change inputs, and see what is stale, what ran, and why.

        What changes elsewhere shows, too. Computing happens in a thread of its own, and may be
        cancelled on the page. While no page is open nothing is watched.

        Parameters
        ----------
        *targets : Var or str
            What a change on the page brings up to date; by default every node that nothing else is
            computed from.
        bounds : dict of Var or str to (float, float), optional
            Where the sliders of inputs begin and end; by default from 0 to twice the value.
        since, layer, fold, limit
            As in ``to_dot``. The page may show the other layers, open folded scopes, and go to what
            is hidden.

        Returns
        -------
        anywidget.AnyWidget
            Displays itself; ``close()`` ends it.

        Raises
        ------
        MissingExtraError
            If anywidget or pygraphviz is not installed.
        VizError
            If there is no such picture, or it would have more than 3,000 boxes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> g.explore(y, bounds={"x": (-3.0, 3.0)})  # doctest: +SKIP
        """
        from reactgrad.viz import explore

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        return explore(self, targets, bounds=bounds or {}, **options)

    def export_html(
        self,
        path: str | os.PathLike[str],
        log: Recording | None = None,
        *,
        targets: Sequence[Var | str] = (),
        title: str = "",
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> None:
        """Write one HTML file with the page of ``explore`` over recorded runs.

        It opens from disk in any browser, and loads nothing from anywhere.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced; it appears whole or not at all.
        log : Recording, optional
            What ``with g.record(snapshots=True) as log`` has seen; by default only the present state
            and the last run.
        targets
            What is read, for the preview of a change; by default what nothing else is computed from.
        title : str
            Stands above the page.
        since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        MissingExtraError
            If pygraphviz is not installed.
        VizError
            If `log` has no snapshots or is of another graph, or there is no such picture.
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> with g.record(snapshots=True) as log:
        ...     for value in (1.0, 2.0):
        ...         x.set(value)
        ...         _ = y.value
        >>> g.export_html("tanh.html", log)  # doctest: +SKIP
        """
        from reactgrad.viz import export_html

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        export_html(self, path, log, targets=targets, title=title, **options)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from reactgrad.viz import html

        return html(self)
