"""Graphs in files: one safetensors file whose metadata hold a JSON manifest. No pickle.

- ``_save``    from a snapshot of a graph to a file, all or nothing
- ``_load``    from a file, trusted in nothing, to a graph
- ``_json``    attributes, values and functions as JSON, and back
- ``_networkx``  the same snapshot as a networkx graph, and back
- ``_format``  what both sides agree on: names, dtypes, the checksum

Nothing of it is loaded before the first graph is saved or loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactgrad.graph._graph import Graph


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """See ``Graph.save``."""
    from reactgrad.io._save import save

    save(graph, path)


def load(path: str | os.PathLike[str], *, trust: str | Iterable[str] = ()) -> Graph:
    """Read a graph that ``Graph.save`` wrote.

    Values, versions and what is stale are as they were: reading a clean node runs nothing,
    reading a stale one what it would have run. The graph keeps its named nodes alive; take and
    hold the Vars of others (``graph.nodes``) that you need. Python functions are found by name,
    and only those that this program itself has given to ``rg.lift`` (or as a cutoff) by then, or
    that you allow. Nothing else in the file is code.

    Parameters
    ----------
    path : str or path-like
        The file.
    trust : str or sequence of str
        Modules, or packages with all their modules, whose functions the file may name; they are
        imported if need be. Trust only what does no harm with any arguments.

    Returns
    -------
    Graph

    Raises
    ------
    LoadError
        If the file is damaged, contradicts itself, was written by a newer version, or names a
        function that is not there or not allowed.
    OSError
        If the file cannot be read.
    MissingExtraError
        If the package safetensors is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> total = x.sum()
    >>> total.name = "total"
    >>> total.value
    np.float64(3.0)
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     g.save(os.path.join(folder, "graph.safetensors"))
    ...     h = rg.load(os.path.join(folder, "graph.safetensors"))
    >>> h["total"].is_stale  # doctest: +SKIP
    False
    """
    from reactgrad.io._load import load

    return load(path, trust)
