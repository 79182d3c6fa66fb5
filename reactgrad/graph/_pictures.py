"""The verbs of a graph that draw it. Each imports its work when it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reactgrad.core._core import Core
from reactgrad.graph._var import Var

if TYPE_CHECKING:
    from reactgrad.explain._record import Recording
    from reactgrad.explain._snapshot import Snapshot
    from reactgrad.viz._drawing import Drawing


class Pictures(Core[Var]):
    """The part of ``Graph`` that draws pictures."""

    def to_dot(
        self,
        of: Any = None,
        *,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> str:
        """Return the graph, or a part of it, as text in the DOT language of Graphviz. Runs nothing.

        The shape and colour of a node show whether it is clean, stale, running, has run, was cut off,
        has failed, or is unset. Its label has its version, dtype and shape, its marks, and the time it
        takes if ``record`` has measured it. A dashed edge that ends in a bar is detached. A dotted edge
        was found when a function read a node. Names with slashes, ``"layer1/w"``, are in scopes; see
        ``scope``.

        Parameters
        ----------
        of : Var, str, Plan or Run, optional
            The part to show, with its direct operands: a node or its name, with all that depends on it,
            or, if nothing does, with all that it is computed from; the nodes of a plan; the nodes that a run
            reached. By default everything.
        since : Graph or Snapshot, optional
            A snapshot from before, or the graph that this one was forked from, to compare with. Nodes and
            edges that were added, removed or changed since are marked.
        layer : str
            ``"values"``, ``"gradients"`` (with the values they are computed from) or ``"all"``.
        fold : int, optional
            Draw scopes at this depth as one box each.
        limit : int
            The largest number of nodes to show. If there are more, the picture shows those that are not
            clean with their neighbours, and counts the rest.

        Raises
        ------
        VizError
            If the arguments ask for no picture that can be drawn.

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
        from reactgrad.viz._ask import asked, checked
        from reactgrad.viz._dot import dot_text

        shown, title = asked(self, of, checked(since, layer, fold, limit))
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
        """Write a picture of the graph, or of a part of it, to a file; see ``to_dot``.

        A picture that would be too wide to look at has its scopes folded, and then fewer nodes.

        Parameters
        ----------
        path : str or path-like
            Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        of, since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        VizError
            If the ending is another one, or more than 3,000 nodes would have to be laid out.
        MissingExtraError
            If the package pygraphviz is not installed; not for ``.dot``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0))
        >>> g.draw("graph.svg")  # doctest: +SKIP
        """
        from reactgrad.viz._ask import asked, checked, drawn
        from reactgrad.viz._dot import dot_text
        from reactgrad.viz._draw import MOST_WIDE, draw, is_picture

        options = checked(since, layer, fold, limit)
        if is_picture(path):
            shown, text, _ = drawn(self, of, options, MOST_WIDE)
        else:
            shown, title = asked(self, of, options)
            text = dot_text(shown, title)
        draw(path, text, len(shown.boxes))

    def picture(
        self,
        of: Any = None,
        *,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 60,
    ) -> Drawing:
        """Return a picture of the graph, or of a part of it, that shows itself in a notebook. Runs nothing.

        Boxes show names, values, versions and states. It is at most 1,000 pixels wide: where it would be
        wider, its scopes are folded, and then fewer nodes are shown, and it says how many are not.

        Parameters
        ----------
        of, since, layer, fold, limit
            As in ``to_dot``.

        Returns
        -------
        Drawing
            With ``save(path)``, for ``.svg``, ``.png``, ``.pdf`` and ``.dot``, and the attributes ``svg``
            and ``text``. Without the package pygraphviz a notebook shows a table instead.

        Raises
        ------
        VizError
            If the arguments ask for no picture that can be drawn.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> g.picture(x)
        <Picture of 2 nodes: what depends on x: 1 nodes>
        >>> g.picture().save("graph.png")  # doctest: +SKIP
        """
        from reactgrad.viz._ask import checked
        from reactgrad.viz._drawing import drawing

        return drawing(self, of, checked(since, layer, fold, limit))

    def explore(
        self,
        *targets: Var | str,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        since: Core[Any] | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> Any:
        """Show the graph in a notebook: change inputs, and see which nodes are stale, which ran, and why.

        Changes made elsewhere show, too. Computations run in a thread of their own, and the page can
        cancel them. While no page is open nothing is watched.

        Parameters
        ----------
        *targets : Var or str
            Nodes that a change on the page brings up to date; by default every node that nothing else
            is computed from.
        bounds : dict of Var or str to (float, float), optional
            The range of the slider of an input; by default from 0 to twice its value.
        since, layer, fold, limit
            As in ``to_dot``. On the page, other layers and folded scopes can be opened, and hidden
            nodes can be found.

        Returns
        -------
        anywidget.AnyWidget
            Displays itself; ``close()`` ends it. In marimo: ``mo.ui.anywidget(g.explore())``. Without the
            package anywidget it is a page that shows the graph as it is now, and whose inputs do not move.

        Raises
        ------
        MissingExtraError
            If pygraphviz is not installed.
        VizError
            If the arguments ask for no picture, or it would have more than 3,000 boxes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> g.explore(y, bounds={"x": (-3.0, 3.0)})  # doctest: +SKIP
        """
        from reactgrad.viz._ask import checked
        from reactgrad.viz._explore import explore

        return explore(self, targets, bounds or {}, checked(since, layer, fold, limit))

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
        """Write one HTML file with the page of ``explore``, which shows recorded runs.

        The file opens from disk in any browser, and loads nothing from elsewhere.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced; it appears whole or not at all.
        log : Recording, optional
            The recording of ``with g.record(snapshots=True) as log``; by default only the present state
            and the last run.
        targets
            Nodes to read in the preview of a change; by default those that nothing else is computed from.
        title : str
            A heading of the page.
        since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        MissingExtraError
            If pygraphviz is not installed.
        VizError
            If ``log`` has no snapshots or is of another graph, or the arguments ask for no picture.
        OSError
            If the file cannot be written.

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
        from reactgrad.viz._ask import checked
        from reactgrad.viz._export import export_html

        export_html(self, path, log, targets, title, checked(since, layer, fold, limit))

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from reactgrad.viz._html import html

        return html(self)
