"""Nodes of a network by the keys of its genome."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.neat._phenotype import Phenotype


def node_name(key: int) -> str:
    """Return the name of the node of a neuron or an input."""
    return f"neuron {key}" if key >= 0 else f"input {key}"


def genes_name(key: int) -> str:
    """Return the name of the node of a neuron's genes."""
    return f"genes of {key}"


def find(graph: rg.Graph, phenotype: Phenotype, key: Any, what: str, name: Any) -> rg.Var:
    """Return the node with the name ``name(key)``.

    Raises
    ------
    UnknownNameError
        If there is none.
    DTypeError
        If `key` is no key of a genome.
    """
    try:
        return graph[name(key)]
    except TypeError:
        raise rg.DTypeError(
            f"{what.format(repr(key))}: neurons and inputs are found by their keys in the genome, which "
            f"are integers: {what.format(phenotype.outputs[0] if phenotype.outputs else 0)}. By names, "
            "nodes are found in net.graph."
        ) from None
    except rg.UnknownNameError:
        there = ", ".join(map(str, [*phenotype.inputs, *phenotype.neurons]))
        raise rg.UnknownNameError(
            f"{what.format(key)}: the network has no such node. It has the inputs and neurons {there:.200}: "
            "the outputs of the genome, and what enabled connections lead from to them."
        ) from None
