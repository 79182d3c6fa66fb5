"""The explorer as a widget: anywidget carries messages between the page and a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from reactgrad.core._arguments import var_of
from reactgrad.core._core import Core
from reactgrad.core._handles import slots_in_order
from reactgrad.nodes._handle import Handle
from reactgrad.viz._draw import need_graphviz
from reactgrad.viz._page import program, style
from reactgrad.viz._picture import Options
from reactgrad.viz._session import Session
from reactgrad.viz._still_page import still_page


def explore(
    graph: Core,
    targets: Sequence[Handle | str],
    bounds: Mapping[Any, tuple[float, float]],
    options: Options,
) -> Any:
    """Return a widget that shows a graph, or a page that stands still; see ``Graph.explore``."""
    need_graphviz(min(options.limit, len(slots_in_order(graph))))
    try:
        import anywidget  # noqa: F401
    except ImportError:
        return still_page(graph, targets, options)
    kind = _widget()
    return kind(
        graph,
        targets=[var_of(graph, one) for one in targets],
        bounds={var_of(graph, one): ends for one, ends in bounds.items()},
        **options._asdict(),
    )


@cache
def _widget() -> Any:
    """Return the class of widgets.

    It is made when it is first needed, since only the explorer needs anywidget.
    """
    import anywidget

    class Explorer(anywidget.AnyWidget):
        """The result of ``Graph.explore``."""

        _esm = program()
        _css = style()

        def __init__(self, graph: Core, **options: Any) -> None:
            super().__init__()
            self._session = Session(graph, self.send, **options)
            self.on_msg(lambda _, message, __: self._session.receive(message))

        def close(self) -> None:
            """Stop following the graph, and close the page."""
            self._session.close()
            super().close()

    return Explorer
