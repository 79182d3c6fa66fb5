"""Train or eval mode: a value of the graph, so that what reads it runs again when it changes."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import weak_spec
from reactgrad.nodes._leaf import MODE


def mode_of(graph: Any) -> Any:
    """The leaf that holds whether `graph` is in train mode, made when first asked for.

    Not by ``Graph.input``: also a node that is being computed may ask for it.
    """
    host = graph._host
    with graph._lock:
        if host.mode is None:
            slot = graph._scheduler.add((), leaf=True, valued=True)
            host.add_node(slot, MODE, (), weak_spec(bool), True, None)
            host.keep_mode(slot)
        return graph._handle(host.mode)
