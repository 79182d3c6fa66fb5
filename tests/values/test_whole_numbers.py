"""A whole number that leaves its dtype says so; arrays wrap around in silence, as NumPy's."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

MOST, LEAST = 2**63 - 1, -(2**63)
LEAVES: list[tuple[Any, int]] = [
    (lambda g: g.input(2**62) * 4, 2**64),
    (lambda g: g.input(MOST) + 1, MOST + 1),
    (lambda g: g.input(LEAST) - g.input(1), LEAST - 1),
    (lambda g: -g.input(LEAST), -LEAST),
    (lambda g: abs(g.input(LEAST)), -LEAST),
    (lambda g: g.input(2**32) ** 2, 2**64),
    (lambda g: g.input(3) ** 41, 3**41),
    (lambda g: 2 ** g.input(63), 2**63),
    (lambda g: g.input(LEAST) // -1, -LEAST),
    (lambda g: g.input(2**61) << 3, 2**64),
    (lambda g: g.input([2**62, 2**62]).sum(), 2**63),
    (lambda g: rg.prod(g.input([2**40, 2**30])), 2**70),
    (lambda g: g.input([2**62, 1]) @ g.input([3, 1]), 3 * 2**62 + 1),
    (lambda g: g.input(np.int8(100)) + 100, 200),
    (lambda g: g.input(np.uint64(5)) - 6, -1),
    (lambda g: g.input(4) * 10**6 * 10**6 * 10**6 * 10, 4 * 10**19),
]
STAYS: list[tuple[Any, int]] = [
    (lambda g: g.input(2**61) * 3, 3 * 2**61),
    (lambda g: g.input(LEAST) + MOST, -1),
    (lambda g: g.input(-2) ** 63, LEAST),
    (lambda g: g.input(7) // 0, 0),
    (lambda g: g.input(LEAST) // 2, LEAST // 2),
    (lambda g: g.input([2**62, 2**62, -(2**62)]).sum(), 2**62),
    (lambda g: rg.prod(g.input([2**40, 0, 2**40])), 0),
    (lambda g: rg.prod(g.input(np.zeros(0, int))), 1),
    (lambda g: rg.prod(g.input([-1] * 99)), -1),
    (lambda g: g.input([2**62, 2**62]) @ g.input([3, -3]), 0),
    (lambda g: g.input(-5) % 3, 1),
    (lambda g: g.input(np.uint8(200)) + 55, 255),
]


@pytest.mark.parametrize(("build", "meant"), LEAVES)
def test_a_number_that_leaves_its_dtype_says_so_and_is_that_of_numpy(
    build: Callable[[rg.Graph], rg.Var], meant: int
) -> None:
    y = build(rg.Graph())
    with pytest.warns(rg.WrapWarning, match="wraps around"):
        value = y.value
    bits = 8 * value.dtype.itemsize
    assert (int(value) - meant) % 2**bits == 0
    assert int(value) != meant


@pytest.mark.parametrize(("build", "meant"), STAYS)
def test_a_number_that_stays_in_its_dtype_says_nothing(
    build: Callable[[rg.Graph], rg.Var], meant: int
) -> None:
    assert build(rg.Graph()).value == meant  # a warning would be an error


def test_arrays_wrap_around_as_those_of_numpy_do() -> None:
    g = rg.Graph()
    x = g.input([2**62, 1])
    assert (x * 4).tolist() == (np.array([2**62, 1]) * 4).tolist() == [0, 4]
    assert rg.cumsum(g.input([MOST, 1])).tolist() == [MOST, LEAST]
    assert g.input([[MOST], [1]]).sum(axis=0).tolist() == [LEAST]


def test_functions_and_floats_compute_with_all_digits_or_the_nearest_float() -> None:
    g = rg.Graph()
    x = g.input(2**62)
    assert rg.lift(operator.mul)(x, 4).value == 2**64
    assert (x * 4.0).value == float(2**64)
    x.set(10**30)
    assert rg.lift(operator.mul)(x, 10).value == 10**31


def test_the_warning_names_the_node_and_its_line_and_what_to_write() -> None:
    total = rg.Graph().input(2**62) * 4
    with pytest.warns(rg.WrapWarning) as told:
        assert total.value == 0
    (one,) = told
    assert one.filename == __file__
    assert str(one.message) == (
        "op 'multiply' of node 'total' has left int64 and wraps around, as NumPy's numbers do: its value is not that "
        "of the whole numbers. Make an input one of floats, as g.input(4.0), or compute with Python's integers in a "
        f"function of rg.lift. Built at {__file__}:{one.lineno}: total = rg.Graph().input(2**62) * 4"
    )
    assert isinstance(one.message, RuntimeWarning)


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
@pytest.mark.parametrize(
    "options", [{}, {"jit": True}, {"executor": rg.Threads(2)}, {"max_bytes": 0}]
)
def test_every_way_to_compute_says_so(options: dict[str, Any]) -> None:
    g = rg.Graph(**options)
    x, scale = g.input(1, name="x"), g.param(1.0)
    y = rg.square(x + x) * 2
    z = y * scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.BudgetWarning)
        for turn in range(40):
            x.set(turn)
            assert z.value == 8.0 * turn * turn
        x.set(2**40)
        with pytest.warns(rg.WrapWarning):
            assert z.value == 0.0
        with pytest.warns(rg.WrapWarning), g.whatif({x: 2**41}) as fork:
            assert fork[z].value == 0.0
        with g.transaction():
            x.set(2**42)
            with pytest.warns(rg.WrapWarning):
                assert rg.grad(z, scale).value == 0.0
    loaded = rg.from_bytes(g.to_bytes())
    loaded["x"].set(2**43)
    with pytest.warns(rg.WrapWarning):
        loaded.forward(*loaded.nodes)


def test_what_a_function_returns_says_so_too() -> None:
    g = rg.Graph()
    x = g.input(2)
    y = rg.lift(np.int64)(x) * 4
    assert y.value == 8
    x.set(2**62)
    with pytest.warns(rg.WrapWarning):
        assert y.value == 0


def test_a_warning_made_an_error_is_the_error_of_the_node() -> None:
    g = rg.Graph()
    x = g.input(2**62)
    y, other = x * 4, x * 1
    with pytest.raises(rg.WrapWarning):
        g.forward(y, other)
    assert other.value == 2**62
    x.set(1)
    assert y.value == 4
