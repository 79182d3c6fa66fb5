"""Gradients at kinks and at the ends of the number line (rule D11: as PyTorch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

INF, NAN = np.inf, np.nan


def gradients(f: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    g = rg.Graph()
    leaves = [g.param(np.asarray(a, float)) for a in args]
    found = rg.grad(f(*leaves).sum(), leaves, allow_unused=True)
    return [np.zeros(x.shape) if d is None else d.value for x, d in zip(leaves, found, strict=True)]


# name: function, operands, gradients
FACTS: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "relu": (rg.relu, [[-1.0, 0.0, -0.0, 2.0]], [[0, 0, 0, 1]]),
    "abs": (abs, [[-1.0, 0.0, -0.0, 2.0]], [[-1, 0, 0, 1]]),
    "clip at bounds": (lambda x: x.clip(-1, 1), [[-2.0, -1.0, 0.0, 1.0, 2.0]], [[0, 1, 1, 1, 0]]),
    "clip low only": (lambda x: x.clip(min=1), [[0.0, 1.0, 2.0]], [[0, 1, 1]]),
    "clip high only": (lambda x: x.clip(max=1), [[0.0, 1.0, 2.0]], [[1, 1, 0]]),
    "clip nodes": (
        rg.clip,
        [[-2.0, 5.0, 0.0], [-1.0] * 3, [1.0] * 3],
        [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    ),
    "clip nodes at bounds": (
        rg.clip,
        [[-1.0, 1.0], [-1.0] * 2, [1.0] * 2],
        [[1, 1], [0, 0], [0, 0]],
    ),
    "clip crossed bounds": (
        rg.clip,
        [[0.0, 1.5, 5.0], [2.0] * 3, [1.0] * 3],
        [[0, 0, 0], [0, 0, 0], [1, 1, 1]],
    ),
    "clip NaN": (lambda x: x.clip(-1, 1), [[NAN]], [[0]]),
    "relu NaN": (rg.relu, [[NAN]], [[1]]),
    "abs NaN": (abs, [[NAN]], [[0]]),
    "maximum NaN": (rg.maximum, [[NAN, 1.0, NAN], [1.0, NAN, NAN]], [[1, 1, 1], [1, 1, 1]]),
    "minimum NaN": (rg.minimum, [[NAN, 1.0, NAN], [1.0, NAN, NAN]], [[1, 1, 1], [1, 1, 1]]),
    "max NaN": (lambda x: x.max(), [[NAN, 1.0]], [[NAN, NAN]]),
    "min NaN": (lambda x: x.min(), [[NAN, 1.0]], [[NAN, NAN]]),
    "arctan2 origin": (rg.arctan2, [[0.0, 0.0, -0.0], [0.0, -0.0, 0.0]], [[0, 0, 0], [0, 0, 0]]),
    "arctan2 NaN": (rg.arctan2, [[NAN, 1.0], [1.0, NAN]], [[NAN, NAN], [NAN, NAN]]),
    "hypot origin": (rg.hypot, [[0.0], [0.0]], [[NAN], [NAN]]),
    "arccos": (rg.arccos, [[1.0, -1.0]], [[-INF, -INF]]),
    "log2": (rg.log2, [[0.0]], [[INF]]),
    "log10": (rg.log10, [[0.0]], [[INF]]),
    "remainder": (
        rg.remainder,
        [[7.0, 6.0, 1.0], [4.0, 3.0, 0.0]],
        [[1, 1, 1], [-1, -2, -INF]],
    ),
    "logaddexp tie": (rg.logaddexp, [[0.0], [0.0]], [[0.5], [0.5]]),
    "logaddexp inf": (
        rg.logaddexp,
        [[INF, -INF, INF], [INF, -INF, 0.0]],
        [[NAN, NAN, 1], [NAN, NAN, 0]],
    ),
    # The value is NumPy's, NaN; PyTorch's is 0.
    "sign NaN": (lambda x: rg.sign(x) * x, [[NAN]], [[NAN]]),
    "maximum": (rg.maximum, [[1.0, 2.0, 3.0], [2.0] * 3], [[0, 0.5, 1], [1, 0.5, 0]]),
    "minimum": (rg.minimum, [[1.0, 2.0, 3.0], [2.0] * 3], [[1, 0.5, 0], [0, 0.5, 1]]),
    "maximum of itself": (lambda x: rg.maximum(x, x), [[1.0]], [[1]]),
    "maximum infinite tie": (rg.maximum, [[INF], [INF]], [[0.5], [0.5]]),
    "max ties": (lambda x: x.max(), [[1.0, 3.0, 3.0, 3.0]], [[0, 1 / 3, 1 / 3, 1 / 3]]),
    "max ties by row": (
        lambda x: x.max(axis=1),
        [[[1.0, 1.0], [0.0, 1.0]]],
        [[[0.5, 0.5], [0, 1]]],
    ),
    "min ties": (lambda x: x.min(), [[1.0, 3.0, 1.0]], [[0.5, 0, 0.5]]),
    "max infinite": (lambda x: x.max(), [[INF, 1.0, INF]], [[0.5, 0, 0.5]]),
    "x ** 0": (lambda x: x**0, [[-1.0, 0.0, 2.0, NAN, INF]], [[0, 0, 0, 0, 0]]),
    "x ** 0 array": (lambda x: x ** np.zeros(3), [[-1.0, 0.0, 2.0]], [[0, 0, 0]]),
    "x ** 0 node": (rg.power, [[0.0, 2.0], [0.0, 0.0]], [[0, 0], [0, np.log(2.0)]]),
    "x ** 1": (lambda x: x**1, [[0.0, -3.0]], [[1, 1]]),
    "x ** 1 node": (lambda x: x ** np.ones(2), [[0.0, -3.0]], [[1, 1]]),
    "x ** 2": (lambda x: x**2, [[0.0, -3.0]], [[0, -6]]),
    "x ** 3": (lambda x: x**3, [[0.0, -1.0]], [[0, 3]]),
    "x ** 0.5": (lambda x: x**0.5, [[0.0, 4.0]], [[INF, 0.25]]),
    "x ** 1.5": (lambda x: x**1.5, [[0.0, 4.0]], [[0, 3]]),
    "x ** -1": (lambda x: x**-1, [[0.0, 2.0]], [[-INF, -0.25]]),
    "0 ** x": (lambda x: 0.0**x, [[0.0, 1.0, 2.0]], [[0, 0, 0]]),
    "0 ** -1": (lambda x: 0.0**x, [[-1.0]], [[-INF]]),
    "zeros ** x": (rg.power, [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]], [[0, 1, 0], [0, 0, 0]]),
    "negative ** integers": (
        lambda x: rg.power(x, np.array([2.0, 3.0])),
        [[-2.0, -2.0]],
        [[-4, 12]],
    ),
    "sqrt": (rg.sqrt, [[0.0, 4.0]], [[INF, 0.25]]),
    "log": (rg.log, [[0.0, 2.0]], [[INF, 0.5]]),
    "log1p": (rg.log1p, [[-1.0, 1.0]], [[INF, 0.5]]),
    "arcsin": (rg.arcsin, [[1.0, -1.0]], [[INF, INF]]),
    "reciprocal": (rg.reciprocal, [[0.0]], [[-INF]]),
    "divide by 0": (rg.divide, [[1.0, -1.0], [0.0, 0.0]], [[INF, INF], [-INF, INF]]),
    "sign": (lambda x: rg.sign(x) * x, [[0.0, -2.0]], [[0, -1]]),
    "floor": (lambda x: rg.floor(x) * x, [[1.0, 2.5]], [[1, 2]]),
    "where not chosen": (lambda x: rg.where(x > 0, x, 0.0), [[NAN, 1.0, INF]], [[0, 1, 1]]),
    "where both": (
        lambda x: rg.where(np.array([True, False]), x, x * 3),
        [[1.0, 1.0]],
        [[1, 3]],
    ),
    "tanh far out": (rg.tanh, [[-1000.0, 1000.0]], [[0, 0]]),
    "sigmoid far out": (rg.sigmoid, [[-1000.0, 1000.0]], [[0, 0]]),
    "exp far out": (rg.exp, [[-1000.0, 1000.0]], [[0, INF]]),
    "erf far out": (rg.erf, [[-30.0, 30.0]], [[0, 0]]),
    "norm_cdf far out": (rg.norm_cdf, [[-50.0, 50.0]], [[0, 0]]),
    "logaddexp far apart": (rg.logaddexp, [[0.0, -1000.0], [-1000.0, 0.0]], [[1, 0], [0, 1]]),
    "logaddexp -inf": (rg.logaddexp, [[0.0], [-INF]], [[1], [0]]),
    "sum of nothing": (lambda x: x.sum(), [np.zeros((0, 3))], [np.zeros((0, 3))]),
    "mean of nothing": (lambda x: x.mean(), [np.zeros((0, 3))], [np.zeros((0, 3))]),
}


@pytest.mark.parametrize("name", FACTS)
def test_gradient_at_a_kink(name: str) -> None:
    f, args, expected = FACTS[name]
    for got, wanted in zip(gradients(f, *args), expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted, float), rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("name", FACTS)
def test_tangent_at_a_kink(name: str) -> None:
    """Of elementwise functions: what the gradients are, summed over the operands."""
    f, args, expected = FACTS[name]
    if np.size(args[0]) == 0 or any(np.shape(a) != np.shape(args[0]) for a in args):
        return
    g = rg.Graph()
    leaves = [g.param(np.asarray(a, float)) for a in args]
    y = f(*leaves)
    if y.shape != leaves[0].shape:
        return
    for x, wanted in zip(leaves, expected, strict=True):
        try:
            found = rg.jvp(y, x, np.ones(x.shape)).value
        except rg.GradientError:  # not one of its operands
            found = np.zeros(x.shape)
        np.testing.assert_allclose(found, np.asarray(wanted, float), rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("name", FACTS)
def test_gradient_at_a_kink_on_a_python_result(name: str) -> None:
    """The same rules where shapes are known only when the value is there."""
    f, args, expected = FACTS[name]
    identity = rg.lift(lambda v: v, vjp=lambda g, ans, v: (g,))
    found = gradients(lambda *xs: f(*[identity(x) for x in xs]), *args)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted, float), rtol=1e-14, err_msg=name)


# The same functions in PyTorch, operands as above.
TORCH: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "relu": lambda t: t.relu,
    "abs": lambda t: t.abs,
    "clip at bounds": lambda t: lambda x: x.clip(-1, 1),
    "clip low only": lambda t: lambda x: x.clip(min=1),
    "clip high only": lambda t: lambda x: x.clip(max=1),
    "clip nodes": lambda t: t.clip,
    "clip nodes at bounds": lambda t: t.clip,
    "clip crossed bounds": lambda t: t.clip,
    "clip NaN": lambda t: lambda x: x.clip(-1, 1),
    "relu NaN": lambda t: t.relu,
    "abs NaN": lambda t: t.abs,
    "maximum NaN": lambda t: t.maximum,
    "minimum NaN": lambda t: t.minimum,
    "max NaN": lambda t: t.amax,
    "min NaN": lambda t: t.amin,
    "arctan2 origin": lambda t: t.arctan2,
    "arctan2 NaN": lambda t: t.arctan2,
    "hypot origin": lambda t: t.hypot,
    "arccos": lambda t: t.arccos,
    "log2": lambda t: t.log2,
    "log10": lambda t: t.log10,
    "remainder": lambda t: t.remainder,
    "logaddexp tie": lambda t: t.logaddexp,
    "logaddexp inf": lambda t: t.logaddexp,
    "maximum": lambda t: t.maximum,
    "minimum": lambda t: t.minimum,
    "maximum infinite tie": lambda t: t.maximum,
    "max ties": lambda t: t.amax,
    "max ties by row": lambda t: lambda x: t.amax(x, 1),
    "min ties": lambda t: t.amin,
    "x ** 0": lambda t: lambda x: x**0,
    "x ** 0 node": lambda t: t.pow,
    "x ** 1": lambda t: lambda x: x**1,
    "x ** 2": lambda t: lambda x: x**2,
    "x ** 0.5": lambda t: lambda x: x**0.5,
    "x ** 1.5": lambda t: lambda x: x**1.5,
    "x ** -1": lambda t: lambda x: x**-1,
    "0 ** x": lambda t: lambda x: 0.0**x,
    "0 ** -1": lambda t: lambda x: 0.0**x,
    "zeros ** x": lambda t: t.pow,
    "sqrt": lambda t: t.sqrt,
    "log": lambda t: t.log,
    "log1p": lambda t: t.log1p,
    "arcsin": lambda t: t.arcsin,
    "reciprocal": lambda t: t.reciprocal,
    "divide by 0": lambda t: t.divide,
    "tanh far out": lambda t: t.tanh,
    "sigmoid far out": lambda t: t.sigmoid,
    "logaddexp far apart": lambda t: t.logaddexp,
    "logaddexp -inf": lambda t: t.logaddexp,
}


@pytest.mark.parametrize("name", TORCH)
def test_fact_is_what_pytorch_says(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    _, args, expected = FACTS[name]
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in args]
    TORCH[name](torch)(*leaves).sum().backward()
    for leaf, wanted in zip(leaves, expected, strict=True):
        got = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, np.asarray(wanted, float), rtol=1e-14, err_msg=name)


def test_no_nan_from_infinite_second_derivatives_that_are_not_asked_for() -> None:
    assert gradients(lambda x: rg.sqrt(x) * 0.0 + x, [4.0])[0] == 1.0


@pytest.mark.parametrize("x", [-30.0, -10.0, 8.0, 26.0])
def test_tail_of_the_normal_distribution_keeps_its_digits(x: float) -> None:
    """d norm_cdf = density, d2 = -x density: relative accuracy also where the value vanishes."""
    g = rg.Graph()
    p = g.param(x)
    first = rg.grad(rg.norm_cdf(p), p)
    second = rg.grad(first, p)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(first.value, density, rtol=1e-12)
    np.testing.assert_allclose(second.value, -x * density, rtol=1e-12)
