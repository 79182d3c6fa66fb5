"""The 18 activation functions of neat-python: one row each, the function and its slope.

A function is neat-python's formula, with its clamps and its answers to NaN (``np.fmin`` and
``np.fmax`` ignore NaN as its ``min`` and ``max`` do), on whole arrays. Where neat-python raises
``OverflowError``, for a square or a cube, ours is infinite. A slope is written for arrays and for
Vars alike, so that one formula serves as the kernel and for higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad import extend

SELU: Final = 1.0507009873554804934193349852946
SELU_ALPHA: Final = SELU * 1.6732632423543772848170429916717


def _clamp(z: Any, limit: float) -> Any:
    return np.fmax(-limit, np.fmin(limit, z))


def _inside(z: Any, limit: float, slope: Any) -> Any:
    """Return `slope` where a clamp at `limit` lets `z` pass, else 0."""
    return np.where(np.abs(z) <= limit, slope, 0.0)


def _negative(z: Any) -> Any:
    return np.minimum(z, 0.0)  # so that exp does not overflow where its result is not used


def _sigmoid_slope(z: Any) -> Any:
    tail = np.exp(-np.abs(5.0 * z))
    return _inside(5.0 * z, 60.0, 5.0 * tail / np.square(1.0 + tail))


def _tanh_slope(z: Any) -> Any:
    return _inside(2.5 * z, 60.0, 2.5 / np.square(np.cosh(2.5 * z)))


# fmt: off
# name: (function of an array, slope of an array or a Var)
ACTIVATIONS: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "sigmoid":  (lambda z: 1.0 / (1.0 + np.exp(-_clamp(5.0 * z, 60.0))),              _sigmoid_slope),
    "tanh":     (lambda z: np.tanh(_clamp(2.5 * z, 60.0)),                            _tanh_slope),
    "sin":      (lambda z: np.sin(_clamp(5.0 * z, 60.0)),                             lambda z: _inside(5.0 * z, 60.0, 5.0 * np.cos(5.0 * z))),
    "gauss":    (lambda z: np.exp(-5.0 * np.square(_clamp(z, 3.4))),                  lambda z: _inside(z, 3.4, -10.0 * z * np.exp(-5.0 * np.square(z)))),
    "relu":     (lambda z: np.where(z > 0.0, z, 0.0),                                 lambda z: np.where(z > 0.0, 1.0, 0.0)),
    "elu":      (lambda z: np.where(z > 0.0, z, np.exp(_negative(z)) - 1.0),          lambda z: np.where(z > 0.0, 1.0, np.exp(_negative(z)))),
    "lelu":     (lambda z: np.where(z > 0.0, z, 0.005 * z),                           lambda z: np.where(z > 0.0, 1.0, 0.005)),
    "selu":     (lambda z: np.where(z > 0.0, SELU * z, SELU_ALPHA * (np.exp(_negative(z)) - 1.0)), lambda z: np.where(z > 0.0, SELU, SELU_ALPHA * np.exp(_negative(z)))),
    "softplus": (lambda z: 0.2 * np.log(1.0 + np.exp(_clamp(5.0 * z, 60.0))),         lambda z: _inside(5.0 * z, 60.0, 1.0 / (1.0 + np.exp(-5.0 * z)))),
    "identity": (lambda z: z,                                                         lambda z: 1.0),
    "clamped":  (lambda z: _clamp(z, 1.0),                                            lambda z: _inside(z, 1.0, 1.0)),
    "inv":      (lambda z: np.where(z == 0.0, 0.0, 1.0 / z),                          lambda z: np.where(z == 0.0, 0.0, -1.0 / np.square(z))),
    "log":      (lambda z: np.log(np.fmax(1e-7, z)),                                  lambda z: np.where(z >= 1e-7, 1.0 / z, 0.0)),
    "exp":      (lambda z: np.exp(_clamp(z, 60.0)),                                   lambda z: _inside(z, 60.0, np.exp(z))),
    "abs":      (np.abs,                                                              lambda z: np.sign(z)),
    "hat":      (lambda z: np.fmax(0.0, 1.0 - np.abs(z)),                             lambda z: np.where(np.abs(z) < 1.0, -np.sign(z), 0.0)),
    "square":   (np.square,                                                           lambda z: 2.0 * z),
    "cube":     (lambda z: z * z * z,                                                 lambda z: 3.0 * np.square(z)),
}
# fmt: on


@extend.primitive("neat_activation", lambda z, function: z, elementwise=True)
def activation(z: Any, out: Any, function: Any) -> None:
    """Apply an activation function, by neat-python's name or as a function of a float."""
    if isinstance(function, str):
        np.copyto(out, ACTIVATIONS[function][0](z))
    else:
        out.flat = [function(one) for one in z.ravel().tolist()]


@extend.primitive("neat_activation_slope", extend.broadcast, elementwise=True)
def activation_slope(g: Any, z: Any, out: Any, function: str) -> None:
    """Multiply `g` by the slope of an activation function at `z`."""
    np.multiply(g, ACTIVATIONS[function][1](z), out)


def _first(g: Any, ans: Any, z: Any, function: Any) -> Any:
    """Return the gradient or tangent of an activation; raise if its slope is not known."""
    if not isinstance(function, str):
        name = getattr(function, "__name__", repr(function))
        raise rg.GradientError(
            f"the activation function {name!r} is your own, and its slope is not known. Gradients pass "
            f"the functions of neat-python: {', '.join(ACTIVATIONS)}."
        )
    return activation_slope(g, z, function=function)


def _second(h: Any, ans: Any, g: Any, z: Any, function: str) -> Any:
    """Return the derivative of a slope by `z`, times `g` and `h`."""
    at = z * 1.0  # a new node: no other path from z to g may count
    slope = ACTIVATIONS[function][1](at)
    if not isinstance(slope, rg.Var):
        return None
    curve = rg.grad(slope.sum(), at, allow_unused=True)
    return None if curve is None else h * g * curve  # summed to the shape of z; g may be wider


extend.draw_as_neuron(activation)
extend.defvjp(activation, _first)
extend.defjvp(activation, _first)
extend.defvjp(
    activation_slope,
    lambda h, ans, g, z, function: activation_slope(h, z, function=function),
    _second,
)
extend.defjvp(
    activation_slope,
    lambda t, ans, g, z, function: activation_slope(t, z, function=function),
    _second,
)
