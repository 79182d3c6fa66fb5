"""A neuron as nodes: its genes, what it takes in, and its activation; or its value alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.neat._activations import activation
from reactgrad.neat._aggregations import aggregate
from reactgrad.neat._phenotype import Neuron
from reactgrad.neat._weigh import weigh


def taken_in(neuron: Neuron, genes: Any, sources: Sequence[Any]) -> rg.Var:
    """Return the node of what a neuron takes in: the one operand of its activation."""
    if neuron.aggregation == "sum":
        return weigh(genes, *sources)
    return aggregate(neuron.aggregation, genes, sources)


def activated(neuron: Neuron, potential: rg.Var) -> rg.Var:
    """Return the node of a neuron's value."""
    return activation(potential, function=neuron.activation)


def take_in(neuron: Neuron, sources: Sequence[Any], out: Any) -> None:
    """Write what a neuron takes in, without a node, from the values of its sources."""
    genes = np.array(neuron.genes)
    with np.errstate(all="ignore"):
        if neuron.aggregation == "sum":
            weigh.kernel(genes, *sources, out=out)
        else:
            out[...] = aggregate(neuron.aggregation, genes, sources)


def activate(neuron: Neuron, potential: Any, out: Any) -> None:
    """Write the value of a neuron, without a node, from what it takes in."""
    with np.errstate(all="ignore"):
        activation.kernel(potential, out, neuron.activation)
