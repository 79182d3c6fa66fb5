"""Graphs from files, and from graphs of networkx."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from reactgrad.graph._graph import Graph

if TYPE_CHECKING:
    import networkx as nx


def load(path: str | os.PathLike[str], *, trust: str | Iterable[str] = ()) -> Graph:
    """Read a graph that ``Graph.save`` wrote.

    Values, versions and staleness are as they were: reading a clean node runs nothing, and reading a
    stale one runs what it would have run before. The graph keeps its named nodes alive; hold the Vars
    of others that you need (``graph.nodes``). Python functions are found by name. Only those are
    allowed that this program itself has given to ``rg.lift`` (or as a cutoff) before, or that you
    trust. Nothing else in the file is code.

    Parameters
    ----------
    path : str or path-like
        The file.
    trust : str or sequence of str
        Modules, or packages with all their modules, whose functions the file may name; they are
        imported if needed, and run what they run when they are imported. The file chooses the
        arguments, of functions that this program has lifted as well: trust only files, or functions
        that do no harm with any arguments.

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

    return load(path, trust, Graph)


def from_bytes(data: bytes | bytearray | memoryview, *, trust: str | Iterable[str] = ()) -> Graph:
    """Return the graph that ``Graph.to_bytes`` has written.

    Parameters
    ----------
    data : bytes
    trust : str or sequence of str
        As for ``load``. ``"cloudpickle"`` allows functions that are code: then whoever wrote the bytes
        chooses what runs here.

    Returns
    -------
    Graph
        Named nodes live as long as the graph; hold the Vars of others, as after ``load``.

    Raises
    ------
    LoadError
        If the bytes are damaged, contradict themselves, or name a function that is not there or not
        allowed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> rg.from_bytes(g.to_bytes())["x"].value
    1.0
    """
    from reactgrad.io._bytes import from_bytes as read

    return read(data, trust, Graph)


def from_networkx(network: nx.DiGraph, ops: Mapping[str, Any] | None = None) -> Graph:
    """Return a graph made from a networkx graph.

    Parameters
    ----------
    network : networkx.DiGraph or MultiDiGraph
        From ``to_networkx``, or with at least ``op`` for each node: ``"input"``, ``"param"`` or
        ``"const"`` with a ``value``; or an op's name, with ``attrs`` if it has some. Edges need a
        ``position`` if a node has several operands. A node that is a string gives its name.
    ops : mapping from str to callable, optional
        Functions, or ops from ``rg.extend``, for names of ops that are not reactgrad's.

    Returns
    -------
    Graph
        Named nodes live as long as the graph; hold the Vars of others, as after ``rg.load``.

    Raises
    ------
    CycleError
        With the cycle in ``.path``.
    GraphError
        If an op is unknown, or operands have no clear order.
    LoadError
        If attributes contradict each other.
    ShapeError, DTypeError
        If operands do not fit an op.

    Examples
    --------
    >>> import math
    >>> import networkx as nx
    >>> import reactgrad as rg
    >>> n = nx.DiGraph()
    >>> n.add_node("x", op="input", value=2.0)
    >>> n.add_node("y", op="exp")
    >>> n.add_node("z", op="f")
    >>> n.add_edges_from([("x", "y"), ("y", "z")])
    >>> g = rg.from_networkx(n, {"f": math.floor})
    >>> g["z"].value
    7
    >>> rg.from_networkx(rg.to_networkx(g))["z"].value_version
    1
    """
    from reactgrad.io._networkx import read_network

    return read_network(network, ops, Graph)
