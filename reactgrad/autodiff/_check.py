"""Derivative rules compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, GradientError
from reactgrad.autodiff._grad import grad
from reactgrad.autodiff._transforms import jvp
from reactgrad.nodes._handle import Handle, current_graph
from reactgrad.ops import multiply, real
from reactgrad.ops import sum as total


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    *,
    modes: Sequence[str] = ("forward", "reverse"),
    rtol: float = 1e-6,
    atol: float = 1e-6,
    step: float = 1e-5,
) -> None:
    """Compare derivatives with central differences along random directions, to the given order.

    Parameters
    ----------
    f : callable
        From Vars to a Var of floats or complex numbers, of any shape.
    args : sequence of array_like
        Values of the arguments, float64 or complex128; away from kinks by more than `step`.
    order : int
        1 checks first derivatives, 2 also derivatives of these, and so on.
    modes : sequence of {"forward", "reverse"}
        How to differentiate; at each order in each of the modes what each of them gave before.
    rtol, atol : float
        Allowed relative and absolute difference.
    step : float
        Half the distance of the two points of a difference.

    Raises
    ------
    DTypeError
        If `f` returns no Var.
    GradientError
        If a derivative differs; says at which order, in which modes, and by how much.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.testing.check_grads(lambda x: rg.sin(x) * x, [[0.5, 1.0]])
    """
    unknown = [mode for mode in modes if mode not in SLOPES]
    if unknown or isinstance(modes, str):
        raise GradientError(
            f"check_grads(modes={modes!r}): modes are 'forward' and 'reverse', in a sequence."
        )
    graph = type(current_graph())()
    leaves = [
        graph.input(np.asarray(a, np.complex128))
        if np.iscomplexobj(a)
        else graph.param(np.asarray(a, np.float64))
        for a in args
    ]
    output = f(*leaves)
    if not isinstance(output, Handle):
        name = getattr(f, "__name__", type(f).__name__)
        raise DTypeError(
            f"check_grads({name}): the function returned {type(output).__name__}; it must return one "
            "Var that depends on its arguments. Check several one by one, or join them with "
            "rg.stack or rg.concatenate."
        )
    _Check(graph, leaves, order, modes, rtol, atol, step).follow(output, ())


@dataclass
class _Check:
    """The settings of a check, which stay the same for derivatives of derivatives."""

    graph: Any
    leaves: Sequence[Any]
    order: int
    modes: Sequence[str]
    rtol: float
    atol: float
    step: float

    def follow(self, output: Any, path: tuple[str, ...]) -> None:
        """Check the derivatives of `output`, which was reached by the modes of `path`, and their
        derivatives.
        """
        if len(path) == self.order:
            return
        rng = np.random.default_rng(len(path))
        number = real(total(multiply(output, _random(rng, output))))
        directions = [_random(rng, leaf) for leaf in self.leaves]
        expected = _difference(self.graph, number, self.leaves, directions, self.step)
        for mode in self.modes:
            slope = SLOPES[mode](number, self.leaves, directions)
            taken = (*path, mode)
            found = float(slope.value)
            if not abs(found - expected) <= self.atol + self.rtol * max(abs(found), abs(expected)):
                raise GradientError(
                    f"order {len(taken)} ({' over '.join(reversed(taken))} mode): the derivative "
                    f"along a random direction is {found!r}, the central difference {expected!r} "
                    f"(difference {abs(found - expected):.3g}). The rule of an op in this function "
                    "is wrong, or an argument lies at a kink."
                )
            self.follow(slope, taken)


def _random(rng: np.random.Generator, like: Any) -> Any:
    """Return random numbers in the shape of a node, complex where the node is."""
    found = rng.standard_normal(like.shape)
    return found + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else found


def _reverse(output: Any, leaves: Sequence[Any], directions: Sequence[Any]) -> Any:
    """Return the derivative along the directions, computed from the gradient."""
    slope = output._graph.const(0.0)
    gradients = grad(output, leaves, allow_unused=True)
    for gradient, direction in zip(gradients, directions, strict=True):
        if gradient is not None:
            if gradient.shape != direction.shape:
                raise GradientError(
                    f"a gradient has shape {gradient.shape}, its argument {direction.shape}."
                )
            slope = slope + real(total(gradient * direction))
    return slope


def _forward(output: Any, leaves: Sequence[Any], directions: Sequence[Any]) -> Any:
    return jvp(output, leaves, directions, allow_unused=True)


SLOPES: Final = {"forward": _forward, "reverse": _reverse}


def _difference(
    graph: Any, output: Any, leaves: Sequence[Any], directions: Sequence[Any], step: float
) -> float:
    """Return the slope of `output` along `directions` by central differences with Richardson
    extrapolation.
    """
    start = [leaf.numpy() for leaf in leaves]

    def at(t: float) -> float:
        graph.set({x: a + t * d for x, a, d in zip(leaves, start, directions, strict=True)})
        return float(output.value)

    try:
        slopes = [(at(h) - at(-h)) / (2 * h) for h in (step * 10, step * 5)]
    finally:
        graph.set(dict(zip(leaves, start, strict=True)))
    # The errors are proportional to h squared: this combination cancels them.
    return (4 * slopes[1] - slopes[0]) / 3
