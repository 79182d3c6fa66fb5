"""A leaky ReLU whose slopes are drawn while training (Xu and others, 2015)."""

from __future__ import annotations

from typing import Any

from reactgrad.ops import greater_equal, where
from reactgrad.random._draw import Draw
from reactgrad.random._dropout import _floats, _while_training


def rrelu(
    input: Any, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: Any = False
) -> Any:
    """Return `input` with negative elements times a slope, drawn for each; their mean where not training.

    Parameters
    ----------
    input : Var or array_like
        Floats of any shape.
    lower, upper : float
        The least and the largest slope.
    training : bool or Var, optional
        Where it is false all slopes are the mean of the two. ``None`` for the mode of the graph.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.rrelu([1.0, -1.0], 0.25, 0.75)
    >>> y.value
    array([ 1. , -0.5])
    """
    x = _floats("rrelu", input, 0.0, training)
    negative_slope = (lower + upper) / 2.0
    still = where(greater_equal(x, 0.0), x, x * negative_slope)
    if training is False or lower == upper:
        return still
    draw = Draw("rrelu", None, None, x.dtype, graph=x._graph)
    draw.follow([x.detach()], x.shape)  # also another length
    slope = draw.standard("random") * (upper - lower) + lower
    found = where(greater_equal(x, 0.0), x, x * slope)
    return draw.of(_while_training(found, still, training))
