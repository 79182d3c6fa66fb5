"""A file has one mode: choices that hang on the mode of the graph are made when it is written."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import reactgrad as rg

# The positions of the operands for a condition that is true, and for one that is false.
_BRANCHES: Final = {
    "where": (1, 2),
    "switch": (1, 1),
}  # of a switch the present branch alone is shown


def network_in_mode(graph: rg.Graph) -> Any:
    """Return a graph as networkx has it, with the present branch in place of each choice by train or eval mode.

    What drops elements in train mode passes them on in eval mode, and so needs no draw.
    """
    import networkx as nx

    network = rg.to_networkx(graph)
    modes = [label for label, row in network.nodes(data=True) if row["op"] == "mode"]
    if not modes:
        return network
    hang = set(modes).union(*[nx.descendants(network, label) for label in modes])
    choices = [
        label
        for label, row in network.nodes(data=True)
        if row["op"] in _BRANCHES and _operands(network, label)[0] in hang
    ]
    # A choice that has not been made since the mode changed still shows the other branch.
    stale = [graph[label] for label in choices if graph[label].is_stale]
    if stale:
        try:
            graph.forward(*stale)
        except rg.UnsetError:  # nothing can be chosen: the writer refuses the node
            return network
        network = rg.to_networkx(graph)
    for label in choices:
        operands = _operands(network, label)
        condition = np.asarray(graph[operands[0]].value)
        if condition.ndim:
            continue
        _become(network, label, operands[_BRANCHES[network.nodes[label]["op"]][not condition]])
    for label, row in list(network.nodes(data=True)):
        if row["op"] == "draw":
            passed = _operands(network, label)[0]
            if network.nodes[passed]["op"] == "alias":
                _become(network, label, passed)
    return network


def _operands(network: Any, label: str) -> list[str]:
    edges = sorted(network.in_edges(label, data="position"), key=lambda edge: edge[2])
    return [parent for parent, _, _ in edges]


def _become(network: Any, label: str, other: str) -> None:
    """Make a node pass on the value of another one, if that has its shape and dtype."""
    row = network.nodes[label]
    if row["spec"] != network.nodes[other]["spec"]:
        return
    network.remove_edges_from(list(network.in_edges(label, keys=True)))
    network.add_edge(other, label, position=0)
    row.update(op="alias", attrs=())
