"""A genome as a function of many points at once: the CPPN of HyperNEAT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad import ShapeError
from reactgrad.neat._network import Network
from reactgrad.neat._program import FEED_FORWARD, are_compiled, phenotype_of, play_shared, read

Array = np.ndarray[Any, Any]


def query_of(genome: Any, config: Any) -> Callable[[Array], Array]:
    """Return a function from an array of shape (points, inputs) to the outputs of a genome there."""
    program = read(FEED_FORWARD, genome, config)
    if not are_compiled([program]) or program.owns or not program.inputs:
        return Network(phenotype_of(program), config).activate

    def query(points: Array) -> Array:
        out = np.empty((len(points), program.outputs))
        play_shared((program,), np.ascontiguousarray(points.T), out)
        return out

    return query


def pairs_with(points: Array, inputs: int, bias: float = 1.0) -> Array:
    """Return the inputs of a CPPN for pairs of points: their coordinates, and a bias if it has room for one.

    Raises
    ------
    ShapeError
        If the CPPN has another number of inputs.
    """
    wide = points.shape[1]
    if inputs == wide:
        return points
    if inputs == wide + 1:
        return np.concatenate([points, np.full((len(points), 1), bias)], axis=1)
    raise ShapeError(
        f"the CPPN has {inputs} inputs, and two points of {wide // 2} coordinates have {wide}. Set num_inputs "
        f"= {wide} in its config, or {wide + 1} for a bias of 1 behind them."
    )
