"""Derivative rules against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import GradientError
from reactgrad.autodiff._grad import grad
from reactgrad.ops import current_graph, multiply
from reactgrad.ops import sum as total


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-6,
    step: float = 1e-5,
) -> None:
    """Compare gradients with central differences along random directions, to the given order.

    Parameters
    ----------
    f : callable
        From Vars to a Var of floats, of any shape.
    args : sequence of array_like
        Values of the arguments, float64; away from kinks by more than `step`.
    order : int
        1 checks gradients, 2 also gradients of gradients, and so on.
    rtol, atol : float
        Allowed relative and absolute difference.
    step : float
        Half the distance of the two points of a difference.

    Raises
    ------
    GradientError
        If a gradient differs; says at which order, and by how much.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.testing.check_grads(lambda x: rg.sin(x) * x, [[0.5, 1.0]])
    """
    graph = type(current_graph())()
    rng = np.random.default_rng(0)
    leaves = [graph.param(np.asarray(a, np.float64)) for a in args]
    output = f(*leaves)
    for level in range(1, order + 1):
        output = total(multiply(output, rng.standard_normal(output.shape)))
        gradients = grad(output, leaves, allow_unused=True)
        directions = [rng.standard_normal(np.shape(a)) for a in args]
        slope: Any = 0.0
        for one, direction in zip(gradients, directions, strict=True):
            if one is not None:
                if one.shape != direction.shape:
                    raise GradientError(
                        f"order {level}: a gradient has shape {one.shape}, its argument "
                        f"{direction.shape}."
                    )
                slope = slope + total(one * direction)
        found = float(slope.value) if hasattr(slope, "value") else slope
        expected = _difference(graph, output, leaves, directions, step)
        if not abs(found - expected) <= atol + rtol * max(abs(found), abs(expected)):
            raise GradientError(
                f"order {level}: the gradient along a random direction is {found!r}, the central "
                f"difference {expected!r} (difference {abs(found - expected):.3g}). The rule of an "
                "op in this function is wrong, or an argument lies at a kink."
            )
        output = slope
        if not hasattr(slope, "value"):
            return


def _difference(
    graph: Any, output: Any, leaves: Sequence[Any], directions: Sequence[Any], step: float
) -> float:
    """The slope of `output` along `directions`: central differences, extrapolated (Richardson)."""
    start = [leaf.numpy() for leaf in leaves]

    def at(t: float) -> float:
        graph.set({x: a + t * d for x, a, d in zip(leaves, start, directions, strict=True)})
        return float(output.value)

    try:
        slopes = [(at(h) - at(-h)) / (2 * h) for h in (step * 10, step * 5)]
    finally:
        graph.set(dict(zip(leaves, start, strict=True)))
    return (4 * slopes[1] - slopes[0]) / 3
