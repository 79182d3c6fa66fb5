"""Train or eval mode: a leaf of the graph, so that nodes that read it run again when it changes."""

from __future__ import annotations

from typing import Any, TypeVar

from reactgrad.backend import weak_spec
from reactgrad.nodes._op import MODE

G = TypeVar("G")  # a graph


def mode_of(graph: Any) -> Any:
    """Return the leaf that is true in train mode; make it when it is first asked for.

    ``Graph.input`` is not used, since a node that is being computed may ask for it too.
    """
    host = graph._host
    with graph._lock:
        if host.mode is None:
            slot = graph._scheduler.add((), leaf=True, valued=True)
            host.add_node(slot, MODE, (), weak_spec(bool), True, None)
            host.keep_mode(slot)
        return graph._handle(host.mode)


def train(graph: G, /, mode: bool = True) -> G:
    """Switch to train mode. If that is a change, nodes that read the mode become stale.

    The mode stays until the next switch. To evaluate for a while only, evaluate a fork.

    Parameters
    ----------
    mode : bool
        ``False`` for eval mode.

    Returns
    -------
    Graph
        The graph itself.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> noisy = rg.lift(lambda x, training: x + 0.5 if training else x)(x, g.mode)
    >>> with g.whatif() as w:
    ...     w.eval()[noisy].value
    1.0
    >>> noisy.value
    1.5
    """
    switch = mode_of(graph)
    if switch.value is not mode:
        switch.set(mode)
    return graph


def evaluate(graph: G, /) -> G:
    """Switch to eval mode; see ``train``."""
    face: Any = graph  # by its name: a subclass may have another one
    return face.train(False)
