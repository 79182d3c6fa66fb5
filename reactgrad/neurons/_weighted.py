"""The sum that a neuron takes in, as one op: ``genes[0] + genes[1] x1 + genes[2] x2 + ...``."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ShapeError, extend
from reactgrad.scheduler import safe_repr


def _shape(genes: extend.Spec, *sources: extend.Spec) -> extend.Spec:
    if genes.shape != (len(sources) + 1,):
        raise ShapeError(
            f"a neuron with {len(sources)} sources has {len(sources) + 1} genes (a bias and a weight for "
            f"each), not {safe_repr(genes)}. Change both in one edit: neuron.connect(source, weight)."
        )
    found = extend.broadcast(*sources) if sources else extend.spec((), genes.dtype)
    return extend.spec(found.shape, genes.dtype)


@extend.primitive("neuron_weighted", _shape)
def weighted(genes: Any, *sources: Any, out: Any) -> None:
    """Compute the bias and the weighted sum of the sources."""
    bias, *weights = genes.tolist()
    out[...] = bias
    for source, weight in zip(sources, weights, strict=True):
        out += source * weight


def _shape_of_slopes(g: extend.Spec, *sources: extend.Spec) -> extend.Spec:
    return extend.spec((len(sources) + 1,), g.dtype)


@extend.primitive("neuron_slopes", _shape_of_slopes)
def slopes(g: Any, *sources: Any, out: Any) -> None:
    """Compute the gradient for the genes, from that of the sum."""
    out[0] = g.sum()
    out[1:] = [(g * source).sum() for source in sources]


def _fitting(source: Any, part: Any) -> Any:
    """Return a gradient in the shape of its source, which may have been repeated."""
    if part.shape == source.shape:
        return part
    added = part.ndim - source.ndim
    axes = (
        *range(added),
        *[added + i for i, length in enumerate(source.shape) if length == 1],
    )
    return part.sum(axis=axes).reshape(source.shape)


def _only(number: Any, place: int, length: int) -> Any:
    """Return zeros with a number at one place."""
    return number * (np.arange(length) == place)


def _wide(part: Any, ans: Any) -> Any:
    return part if part.shape == ans.shape else np.broadcast_to(part, ans.shape)


extend.draw_as_neuron(weighted, first=1)
extend.defvjp(
    weighted,
    lambda g, ans, genes, *sources: slopes(g, *sources),
    lambda i, g, ans, genes, *sources: _fitting(sources[i], g * genes[i + 1]),
)
extend.defjvp(
    weighted,
    lambda t, ans, genes, *sources: _wide(weighted(t, *sources), ans),
    lambda i, t, ans, genes, *sources: _wide(t * genes[i + 1], ans),
)
extend.defvjp(
    slopes,
    lambda h, ans, g, *sources: _wide(weighted(h, *sources), g),
    lambda i, h, ans, g, *sources: _fitting(sources[i], g * h[i + 1]),
)
extend.defjvp(
    slopes,
    lambda t, ans, g, *sources: slopes(t, *sources),
    lambda i, t, ans, g, *sources: _only((g * t).sum(), i + 1, len(sources) + 1),
)
