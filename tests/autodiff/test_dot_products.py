"""The gradient of a number that multiplies an array is one dot product."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend._instructions import instructions
from reactgrad.backend._registers import find_machine
from reactgrad.ops._reduce import MOST_DOTTED


def gradient(shape: tuple[int, ...], dtype: str = "f8", number: tuple[int, ...] = ()) -> Any:
    """Of a number by what it multiplies, and the two factors."""
    rng = np.random.default_rng(0)
    g = rg.Graph()
    x, w = g.input(rng.normal(size=shape).astype(dtype)), g.param(np.full(number, 0.5, dtype))
    y = rg.tanh(x * w)
    dw = rg.grad(y.sum(), w)
    return dw, 1.0 - np.tanh(x.value * w.value) ** 2, x.value


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "number"),
    [((2,), ()), ((2,), (1,)), ((7, 3), ()), ((7, 3), (1, 1)), ((MOST_DOTTED,), ())],
)
def test_it_is_the_dot_product_of_the_factors(shape: Any, dtype: str, number: Any) -> None:
    dw, slope, x = gradient(shape, dtype, number)
    assert dw._graph._host.ops[dw._slot].name == "vdot"
    assert dw.shape == number
    assert dw.dtype == dtype
    assert "multiply" not in {one.name.split("_")[0] for one in dw.parents}
    tolerance = 1e-5 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(dw.value.sum(), np.vdot(slope, x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(1,), (MOST_DOTTED + 1,)])
def test_of_one_element_or_very_many_it_is_a_sum(shape: Any) -> None:
    dw, slope, x = gradient(shape)
    assert dw._graph._host.ops[dw._slot].name == "sum_to"
    np.testing.assert_allclose(dw.value, np.vdot(slope, x), rtol=1e-10)


def test_where_the_factors_do_not_have_one_shape_it_is_a_sum() -> None:
    g = rg.Graph()
    x, w = g.input([[1.0, 2.0, 3.0]]), g.param(2.0)
    y = (x * w) + g.input(np.ones((4, 1)))
    dw = rg.grad(y.sum(), w)
    assert dw.value == 24.0
    rows = g.param(np.ones((4, 1)))
    assert rg.grad((x * rows).sum(), rows).value.tolist() == [[6.0]] * 4


def test_derivatives_of_any_order_and_in_both_modes() -> None:
    g = rg.Graph()
    x, w, v = g.input(np.linspace(0.1, 1.0, 6)), g.param(0.7), g.param(0.3)

    def model(x: rg.Var, w: rg.Var, v: rg.Var) -> rg.Var:
        return (rg.tanh(rg.sin(x * w) * v) * x).sum()

    rg.testing.check_grads(model, (x.value, 0.7, 0.3), order=3)
    y = model(x, w, v)
    dw, dv = rg.grad(y, [w, v])
    ddw = rg.grad(dw, v)
    assert float(ddw.value) == pytest.approx(float(rg.grad(dv, w).value), rel=1e-12)
    x.set(np.linspace(-1.0, 1.0, 6))
    other = rg.Graph()
    leaves = other.input(x.value), other.param(0.7), other.param(0.3)
    first = rg.grad(model(*leaves), leaves[1])
    assert ddw.value == rg.grad(first, leaves[2]).value
    np.testing.assert_allclose(
        rg.jacobian(rg.stack([dw, dv]), x).value,
        [rg.grad(dw, x).value, rg.grad(dv, x).value],
        rtol=1e-12,
    )


def test_seeds_of_a_jacobian_are_done_in_one_pass() -> None:
    def nodes(rows: int) -> int:
        g = rg.Graph()
        x, w = g.input(np.ones((rows, 5))), g.param(0.5)
        y = rg.tanh(x * w).sum(axis=1)
        np.testing.assert_allclose(
            rg.jacobian(y, w).value, np.full(rows, 5.0 / np.cosh(0.5) ** 2), rtol=1e-12
        )
        return len(g)

    assert nodes(3) == nodes(9)


def test_what_is_detached_stays_so() -> None:
    g = rg.Graph()
    x, w = g.input([1.0, 2.0, 3.0]), g.param(0.5)
    dw = rg.grad((x.detach() * w * x).sum(), w)
    assert dw.value == 14.0
    np.testing.assert_array_equal(rg.grad(dw, x).value, [1.0, 2.0, 3.0])


@pytest.mark.skipif(find_machine() is None, reason="needs numba")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [2, 7, 32, 33, 1000])
@pytest.mark.parametrize("step", [1, 3])
def test_the_register_machine_computes_the_same_bits(size: int, step: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    x, y = (rng.normal(size=size * step).astype(dtype)[::step] for _ in "xy")
    out = np.full((), 7.0, dtype)
    code = instructions(partial(np.dot, x, y, out))
    machine = find_machine()
    assert code is not None
    assert machine is not None
    numbers = np.frombuffer(code, np.int64).copy()
    machine.play(numbers.ctypes.data, numbers.ctypes.data + numbers.nbytes)
    assert out.tobytes() == np.dot(x, y).tobytes()


@pytest.mark.skipif(find_machine() is None, reason="needs numba")
@pytest.mark.parametrize(
    "operands",
    [
        (np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))),
        (np.ones(2, "i8"), np.ones(2, "i8"), np.ones((), "i8")),
        (np.ones(2), np.ones(2, "f4"), np.ones(())),
        (np.ones((2, 2)), np.ones(2), np.ones(2)),
    ],
)
def test_other_products_are_no_instructions(operands: Any) -> None:
    assert instructions(partial(np.dot, *operands)) is None


@pytest.mark.skipif(find_machine() is None, reason="needs numba")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_graph_with_jit_gives_what_one_without_gives(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reactgrad.backend import _registers

    for name in ("FEWEST", "SHARED", "PART"):
        monkeypatch.setattr(_registers, name, 1)
    found = []
    for jit in (0, threads):
        g = rg.Graph(jit=jit)
        x, w, v = g.input(np.ones(33)), g.param(0.7), g.param(0.3)
        y = rg.tanh(rg.sin(x * w) * v + w)
        gradients = rg.grad((y * y).sum(), [w, v, x])
        runs = []
        for seed in range(5):
            x.set(np.random.default_rng(seed).normal(size=33))
            g.forward(*gradients)
            runs.append([one.value.tobytes() for one in gradients])
        found.append(runs)
    assert found[0] == found[1]
