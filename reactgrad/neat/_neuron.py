"""A neuron as nodes: its genes, what it takes in, and its activation; or as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import extend
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


def _shape(*sources: extend.Spec, genes: Any, function: Any) -> extend.Spec:
    return extend.broadcast(*sources) if sources else extend.spec((), np.dtype(np.float64))


@extend.primitive("neat_neuron", _shape)
def whole(*sources: Any, out: Any, genes: tuple[float, ...], function: Any) -> None:
    """A neuron that adds up, whose genes stay as they are."""
    potential = np.empty(out.shape)
    weigh.kernel(np.array(genes), *sources, out=potential)
    activation.kernel(potential, out, function)


def _composed(sources: Sequence[Any], genes: Any, function: Any) -> tuple[list[Any], Any]:
    """The same of two nodes, and from which ones: other ways to the sources are not meant."""
    at = [source * 1.0 for source in sources]
    return at, activation(weigh(np.array(genes), *at), function=function)


def _backward(i: int, g: Any, ans: Any, *sources: Any, genes: Any, function: Any) -> Any:
    at, value = _composed(sources, genes, function)
    return rg.grad(value, at[i], gradient=g, allow_unused=True)


def _forward(i: int, t: Any, ans: Any, *sources: Any, genes: Any, function: Any) -> Any:
    at, value = _composed(sources, genes, function)
    return rg.jvp(value, at[i], t)


extend.defvjp(whole, _backward)
extend.defjvp(whole, _forward)
