"""A neuron as nodes: its genes, what it takes in, and its activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import reactgrad as rg
from reactgrad.neat._activations import activation
from reactgrad.neat._aggregations import aggregate
from reactgrad.neat._phenotype import Neuron
from reactgrad.neat._weigh import weigh


def taken_in(neuron: Neuron, genes: Any, sources: Sequence[Any]) -> rg.Var:
    """What a neuron takes in: the one operand of its activation."""
    if neuron.aggregation == "sum":
        return weigh(genes, *sources)
    return aggregate(neuron.aggregation, genes, sources)


def activated(neuron: Neuron, potential: rg.Var) -> rg.Var:
    """The value of a neuron."""
    return activation(potential, function=neuron.activation)
