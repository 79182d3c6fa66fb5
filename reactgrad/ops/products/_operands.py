"""The operands of a function that builds several nodes, as nodes of one graph."""

from __future__ import annotations

from typing import Any

from reactgrad.nodes._handle import Handle, graph_of, stacked


def variables(*operands: Any) -> list[Any]:
    """Return the operands as Vars of the graph of the first Var among them, else of the current graph."""
    if all(isinstance(one, Handle) for one in operands):
        return list(operands)
    graph = graph_of(operands)
    return [one if isinstance(one, Handle) else graph.const(one) for one in map(stacked, operands)]
