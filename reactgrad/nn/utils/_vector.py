"""Params as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ShapeError


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Return the elements of params, one after the other, as one node.

    Raises
    ------
    ShapeError
        If there are none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Linear(3, 2)
    >>> rg.nn.utils.parameters_to_vector(net.parameters()).shape
    (8,)
    """
    params = list(parameters)
    if not params:
        raise ShapeError("parameters_to_vector of no params: write net.parameters().")
    return ops.concatenate([one.reshape((-1,)) for one in params])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Set params from the elements of a vector: all of them, or none.

    Parameters
    ----------
    vec : Var or array_like
        As many elements as the params have.
    parameters : iterable of Var

    Raises
    ------
    ShapeError
        If there are more elements or fewer; nothing is set then.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Linear(3, 2)
    >>> rg.nn.utils.vector_to_parameters(np.arange(8.0), net.parameters())
    >>> net.bias.value
    array([6., 7.])
    """
    params = list(parameters)
    values = np.asarray(getattr(vec, "value", vec))
    counts = [math.prod(one.shape) for one in params]
    if values.shape != (sum(counts),):
        raise ShapeError(
            f"vector_to_parameters of shape {values.shape}: the params have {sum(counts)} elements, in one axis."
        )
    parts = np.split(values, np.cumsum(counts)[:-1])
    sets: dict[Any, dict[Any, Any]] = {}
    for one, part in zip(params, parts, strict=True):
        sets.setdefault(one.graph, {})[one] = part.reshape(one.shape)
    for graph, found in sets.items():
        graph.set(found)
