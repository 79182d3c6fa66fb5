"""Broadcasting shows the memory of its operand: no value is repeated in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

MANY = 2**45  # as float64 more than any machine can address: an allocation would raise

OPERANDS: dict[str, Callable[[rg.Graph], Any]] = {
    "a number": lambda g: g.input(3.0),
    "an integer": lambda g: g.input(3),
    "a param": lambda g: g.param(3.0),
    "a constant": lambda g: g.const(3.0),
    "an array": lambda g: g.input(np.array([3.0])),
    "a computed value": lambda g: g.input(1.5) * 2.0,
    "a detached number": lambda g: g.param(3.0).detach(),
}
GRAPHS: dict[str, dict[str, Any]] = {
    "plain": {},
    "jit": {"jit": True},
    "limited": {"max_bytes": 1000},
}


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_broadcast_value_takes_no_memory(operand: str, graph: str) -> None:
    g = rg.Graph(**GRAPHS[graph])
    y = np.broadcast_to(OPERANDS[operand](g), (MANY,))
    total = y[5:10].sum()
    assert total.value == 15.0
    assert y.value.shape == (MANY,)
    assert y.value.strides == (0,)
    assert y.value[7] == 3.0
    assert not y.value.flags.writeable


def test_written_numbers_are_broadcast_as_views() -> None:
    with rg.Graph():
        for number in (True, 2, 2.5, 1j):
            y = rg.broadcast_to(number, (MANY,))
            assert y.dtype == np.asarray(number).dtype
            assert y.value[3] == number
            assert rg.broadcast_to([1.0, 2.0], (10**6, 2)).value.strides == (0, 8)


@pytest.mark.parametrize("first", [3.0, np.array(3.0)])
def test_kept_values_and_forks_do_not_follow(first: Any) -> None:
    g = rg.Graph()
    x = g.input(first)
    y = np.broadcast_to(x, (MANY,))
    kept = y.value
    with g.whatif({x: 7.0}) as w:
        assert w[y].value[1] == 7.0
        assert kept[1] == 3.0
    h = g.fork()
    x.set(4.0)
    assert y.value[1] == 4.0
    assert kept[1] == 3.0
    assert h[y].value[1] == 3.0
    h[x].set(5.0)
    assert h[y].value[1] == 5.0
    assert y.value[1] == 4.0
    assert kept[1] == 3.0
    run = g.forward(y)
    assert not run.ran
    assert y.value[1] == 4.0


def test_the_type_of_a_number_may_change() -> None:
    g = rg.Graph()
    x = g.input(3)
    y = np.broadcast_to(x, (MANY,))
    total = y[:2].sum()
    assert total.value == 6
    assert y.dtype.kind == "i"
    x.set(2.5)
    assert total.value == 5.0
    assert y.dtype == np.float64
    x.set(2)
    assert total.value == 4


def test_steps_do_not_write_into_the_operand() -> None:
    g = rg.Graph()
    x = g.input(3.0)
    wide = rg.broadcast_to(x, (200_000,))
    y = rg.sqrt((wide * 2.0 + 1.0) * wide)
    for value in (3.0, 5.0, 3.0):
        x.set(value)
        g.forward(y, wide)
        assert np.array_equal(y.value, np.sqrt((np.full(200_000, value) * 2.0 + 1.0) * value))
        assert np.array_equal(wide.value, np.full(200_000, value))


@pytest.mark.parametrize("value", [3.0, np.array([3.0])])
def test_derivatives_sum_over_what_was_repeated(value: Any) -> None:
    g = rg.Graph()
    x = g.param(value)
    y = rg.broadcast_to(x, (4, 5))
    (first,) = rg.grad((y**3).sum(), [x])
    assert first.value == 20 * 27.0
    assert rg.grad(first.sum(), x).value == 20 * 18.0
    assert np.array_equal(rg.jvp(y**3, x, np.ones(x.shape)).value, np.full((4, 5), 27.0))
    assert rg.hvp((y**3).sum(), x, np.ones(x.shape)).value == 20 * 18.0
    (y**2).sum().backward()
    assert x.grad == 20 * 6.0


def test_the_gradient_of_a_sum_is_one_number() -> None:
    g = rg.Graph()
    x = g.param(np.ones((1000, 100)))
    for y in (x.sum(), x.mean(), x.sum(axis=0).sum()):
        assert rg.grad(y, x).value.strides == (0, 0)


def test_a_file_holds_the_number_only(tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    g = rg.Graph()
    y = rg.broadcast_to(g.input(3.0), (10**6,))
    y.name = "y"
    assert y.value[5] == 3.0
    g.save(tmp_path / "graph")
    h = rg.load(tmp_path / "graph")
    assert h["y"].value[5] == 3.0
    assert (tmp_path / "graph").stat().st_size < 100_000


def test_reuse_finds_the_broadcast_of_a_number() -> None:
    g = rg.Graph()
    x = g.param(3.0)
    counts = []
    for _ in range(3):
        with g.reuse():
            rg.broadcast_to(x, (10,)).sum().backward()
        counts.append(len(g))
    assert counts[1] == counts[2]
    assert x.grad == 30.0


def test_small_limits_hold_broadcast_values() -> None:
    g = rg.Graph(max_bytes=0)
    x = g.input(3.0)
    y = rg.broadcast_to(x * 2.0, (MANY,))[3:6] + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.BudgetWarning)
        assert np.array_equal(y.value, [7.0] * 3)
        x.set(1.0)
        assert np.array_equal(y.value, [3.0] * 3)
