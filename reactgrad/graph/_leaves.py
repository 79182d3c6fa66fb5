"""Leaves of the current graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactgrad.nodes._handle import current_graph

if TYPE_CHECKING:
    from reactgrad.graph._var import Var


def input(*args: Any, **kwargs: Any) -> Var:
    """A leaf of the current graph whose value may be set; see ``Graph.input``.

    The current graph is that of the innermost ``with graph:``, else a default graph.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     x = rg.input(1.0)
    >>> x.graph is g
    True
    """
    return current_graph().input(*args, **kwargs)


def param(*args: Any, **kwargs: Any) -> Var:
    """A trainable leaf of the current graph; see ``Graph.param``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w = rg.param([1.0, 2.0])
    >>> w.requires_grad
    True
    """
    return current_graph().param(*args, **kwargs)


def const(*args: Any, **kwargs: Any) -> Var:
    """A leaf of the current graph whose value never changes; see ``Graph.const``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     c = rg.const(2.0)
    >>> c.value
    2.0
    """
    return current_graph().const(*args, **kwargs)
