"""The sum that a neuron takes in, as one op: ``bias + response * (w1 x1 + w2 x2 + ...)``.

The numbers of a neuron are one array, its *genes*: bias, response, and the weight of each
connection. The sum is taken from left to right, as Python's ``sum`` takes it, so that it has
neat-python's bits. The op is linear in each operand, so its derivatives are itself and two ops like
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ShapeError, extend
from reactgrad.neat._samples import total_for


def _shape(genes: extend.Spec, *sources: extend.Spec) -> extend.Spec:
    """Return the spec of the weighted sum; raise if there is not one gene for each connection."""
    if genes.shape != (len(sources) + 2,):
        raise ShapeError(
            f"a neuron with {len(sources)} connections has {len(sources) + 2} genes (bias, response, "
            f"weights), not {genes!r}."
        )
    found = extend.broadcast(*sources) if sources else extend.spec((), genes.dtype)
    return extend.spec(found.shape, genes.dtype)


@extend.primitive("neat_weigh", _shape)
def weigh(genes: Any, *sources: Any, out: Any) -> None:
    """Compute bias + response * the weighted sum of the sources."""
    bias, response, *weights = genes.tolist()
    total: Any = sources[0] * weights[0] if sources else 0.0
    for source, weight in zip(sources[1:], weights[1:]):
        total = total + source * weight
    np.add(bias, response * total, out)


def _shape_of_genes(g: extend.Spec, genes: extend.Spec, *sources: extend.Spec) -> extend.Spec:
    return genes


@extend.primitive("neat_weigh_genes", _shape_of_genes)
def weigh_genes(g: Any, genes: Any, *sources: Any, out: Any) -> None:
    """Compute the gradient for the genes, from that of what the neuron takes in."""
    _, response, *weights = genes.tolist()
    by_source = [(g * source).sum() for source in sources]
    out[0] = g.sum()
    out[1] = sum(weight * one for weight, one in zip(weights, by_source))
    out[2:] = [response * one for one in by_source]


@extend.primitive("neat_weigh_source", lambda g, genes, i: g)
def weigh_source(g: Any, genes: Any, out: Any, i: int) -> None:
    """Compute the gradient for source `i`, from that of what the neuron takes in."""
    np.multiply(g, genes[1] * genes[i + 2], out)


def _along(genes: Any, direction: Any) -> Any:
    """Return genes whose weighted sum is the change of that of `genes` by a step in this direction."""
    weights = direction[1] * genes[2:] + genes[1] * direction[2:]
    return np.concatenate([direction[:1], np.ones(1), weights])


def _from(part: Any, ans: Any) -> Any:
    return part if part.shape == ans.shape else np.broadcast_to(part, ans.shape)


def _by_genes(direction: Any, ans: Any, g: Any, genes: Any, *sources: Any) -> Any:
    """Return the second derivative by the genes, which is symmetric, along a direction."""
    alone = np.array([0.0, 1.0, *[0.0] * len(sources)])
    by_source = weigh_genes(g, alone, *sources)[2:]
    total = (direction[2:] * by_source).sum()
    return np.concatenate([np.zeros(1), total[None], direction[1] * by_source])


def _by_source(a: Any, b: Any, genes: Any, i: int) -> Any:
    """Return the derivative of ``response * weight`` by the genes, times the product of a and b."""
    total, at = (a * b).sum(), np.arange(genes.shape[0])
    return np.where(at == 1, total * genes[i + 2], np.where(at == i + 2, total * genes[1], 0.0))


extend.draw_as_neuron(weigh, first=2)
extend.defvjp(
    weigh,
    lambda g, ans, genes, *sources: weigh_genes(g, genes, *sources),
    lambda i, g, ans, genes, *sources: total_for(sources[i], weigh_source(g, genes, i=i)),
)
extend.defjvp(
    weigh,
    lambda t, ans, genes, *sources: _from(weigh(_along(genes, t), *sources), ans),
    lambda i, t, ans, genes, *sources: _from(weigh_source(t, genes, i=i), ans),
)
extend.defvjp(
    weigh_genes,
    lambda h, ans, g, genes, *sources: _from(weigh(_along(genes, h), *sources), g),
    _by_genes,
    lambda i, h, ans, g, genes, *sources: total_for(
        sources[i], weigh_source(g, _along(genes, h), i=i)
    ),
)
extend.defjvp(
    weigh_genes,
    lambda t, ans, g, genes, *sources: weigh_genes(t, genes, *sources),
    _by_genes,
    lambda i, t, ans, g, genes, *sources: _by_source(g, t, genes, i),
)
extend.defvjp(
    weigh_source,
    lambda h, ans, g, genes, i: weigh_source(h, genes, i=i),
    lambda h, ans, g, genes, i: _by_source(h, g, genes, i),
)
extend.defjvp(
    weigh_source,
    lambda t, ans, g, genes, i: weigh_source(t, genes, i=i),
    lambda t, ans, g, genes, i: weigh_source(g, _along(genes, t), i=i),
)
