"""Where no gradient arrives none is passed on, whatever the local derivative: both modes, both orders."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.machine._find import find_machine

Function = Callable[[Any], Any]

# A function with an infinite or undefined derivative, or value, at the points.
POLES: dict[str, tuple[Function, list[float]]] = {
    "sqrt": (rg.sqrt, [0.0, -1.0]),
    "log": (rg.log, [0.0, -1.0]),
    "log2": (rg.log2, [0.0]),
    "log10": (rg.log10, [0.0]),
    "log1p": (rg.log1p, [-1.0, -2.0]),
    "reciprocal": (rg.reciprocal, [0.0]),
    "1 / x": (lambda x: 1.0 / x, [0.0]),
    "x / x": (lambda x: x / x, [0.0]),
    "x ** 0.3": (lambda x: x**0.3, [0.0, -1.0]),
    "x ** -0.5": (lambda x: x**-0.5, [0.0]),
    "x ** -2": (lambda x: x**-2, [0.0]),
    "x ** x": (lambda x: x**x, [-1.5]),
    "exp": (rg.exp, [1000.0]),
    "exp2": (rg.exp2, [2000.0]),
    "expm1": (rg.expm1, [1000.0]),
    "sinh": (rg.sinh, [1000.0]),
    "cosh": (rg.cosh, [1000.0]),
    "arcsin": (rg.arcsin, [1.0, 2.0]),
    "arccos": (rg.arccos, [-1.0]),
    "sin": (rg.sin, [np.inf]),
    "cos": (rg.cos, [-np.inf]),
    "tan": (rg.tan, [np.inf]),
    "norm": (lambda x: rg.hypot(x, x), [0.0]),
}
CASES = [(name, at) for name, (_, points) in POLES.items() for at in points]


def derivatives(f: Function, at: float) -> dict[str, Any]:
    x = rg.Graph().param([at, at])
    y, one = f(x), np.ones(2)
    first = {"vjp": rg.grad(y.sum(), x), "jvp": rg.jvp(y, x, one)}
    second = {
        f"{outer} of {inner}": rg.grad(slope.sum(), x, allow_unused=True)
        if outer == "vjp"
        else rg.jvp(slope, x, one, allow_unused=True)
        for (inner, slope), outer in product(first.items(), ("vjp", "jvp"))
    }
    found = {**first, **second}
    return {name: np.zeros(2) if v is None else v.value for name, v in found.items()}


@pytest.mark.parametrize(("name", "at"), CASES)
def test_what_where_does_not_choose_has_no_gradient(name: str, at: float) -> None:
    f = POLES[name][0]
    for mode, found in derivatives(lambda x: rg.where(x == 0.123, f(x), 0.0), at).items():
        assert found.tolist() == [0.0, 0.0], mode


@pytest.mark.parametrize(
    "name", ["sqrt", "log", "1 / x", "x ** 0.3", "x ** -2", "reciprocal", "log2"]
)
@pytest.mark.parametrize(
    "flat", [rg.relu, lambda x: rg.maximum(x, 0.0), lambda x: rg.clip(x, 0.0, 1.0)]
)
def test_behind_a_flat_piece_there_is_none(name: str, flat: Function) -> None:
    f = POLES[name][0]
    for mode, found in derivatives(lambda x: f(flat(x)), -10.0).items():
        assert found.tolist() == [0.0, 0.0], mode


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.sqrt(x**2),
        lambda x: rg.sqrt(rg.absolute(x)),
        lambda x: rg.sqrt((x**2).sum()),
        lambda x: rg.log(rg.max(rg.stack([x, x * 0.0 + 1.0]), axis=0)),
    ],
)
def test_both_modes_agree_where_a_flat_point_meets_a_pole(f: Function) -> None:
    found = derivatives(f, 0.0)
    assert found["vjp"].tolist() == [0.0, 0.0]
    assert np.all(found["jvp"] == 0.0)


def test_poles_stay_where_a_gradient_arrives() -> None:
    assert derivatives(rg.sqrt, 0.0)["vjp"].tolist() == [np.inf, np.inf]
    assert np.isnan(derivatives(rg.sqrt, -1.0)["jvp"]).all()
    assert derivatives(lambda x: 1.0 / x, 0.0)["vjp"].tolist() == [-np.inf, -np.inf]


def test_all_derivatives_of_an_angle_are_0_at_the_origin() -> None:
    p = rg.Graph().param([0.0, 0.0])
    angle = rg.arctan2(p[0], p[1])
    assert rg.grad(angle, p).value.tolist() == [0.0, 0.0]
    assert rg.hessian(angle, p).value.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("size", [1, 2, 600, 9000, 100_000])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_kernels_find_each_place(size: int, dtype: str, jit: bool) -> None:
    if jit and find_machine() is None:
        pytest.skip("needs numba")
    g = rg.Graph(jit=jit)
    with np.errstate(all="ignore"):
        values = np.resize([0.0, 1.0, -2.0, np.inf, np.nan], size).astype(dtype)
    x, seed = g.param(values), np.resize([0.0, 0.0, 2.0], size).astype(dtype)
    found = rg.grad(rg.log(x), x, gradient=seed).value
    with np.errstate(all="ignore"):
        expected = np.where(seed == 0.0, 0.0, seed / values)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(rg.jvp(rg.log(x), x, seed).value, expected)
    assert rg.grad(rg.exp(x), x, gradient=seed).value[seed == 0.0].tolist() == [0.0] * int(
        (seed == 0).sum()
    )
