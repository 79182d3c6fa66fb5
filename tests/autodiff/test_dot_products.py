"""The gradient of a number that multiplies an array is one dot product."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend.machine._find import find_machine
from reactgrad.backend.machine._instructions import instructions
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
    [((2,), ()), ((2,), (1,)), ((7, 3), ()), ((7, 3), (1, 1)), (None, ())],
)
def test_it_is_the_dot_product_of_the_factors(shape: Any, dtype: str, number: Any) -> None:
    dw, slope, x = gradient(shape or (MOST_DOTTED[np.dtype(dtype).char],), dtype, number)
    assert dw._graph._host.ops[dw._slot].name == "vdot"
    assert dw.shape == number
    assert dw.dtype == dtype
    assert "multiply" not in {one.name.split("_")[0] for one in dw.parents}
    tolerance = 1e-5 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(dw.value.sum(), np.vdot(slope, x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(1,), None])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_of_one_element_or_very_many_it_is_a_sum(shape: Any, dtype: str) -> None:
    dw, slope, x = gradient(shape or (MOST_DOTTED[np.dtype(dtype).char] + 1,), dtype)
    assert dw._graph._host.ops[dw._slot].name == "sum_to"
    np.testing.assert_allclose(dw.value, np.vdot(slope, x), rtol=1e-10 if dtype == "f8" else 1e-4)


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


# A gradient that a rule only passes on is no product of that rule's, whatever it was made of.


def with_bias() -> tuple[Any, ...]:
    g = rg.Graph()
    x, c = g.input([1.0, 2.0, 3.0]), g.input([4.0, 5.0, 6.0])
    return g, x, c, g.param(2.0), g.param(1.0)


def test_a_hook_on_what_is_passed_on_is_followed() -> None:
    _, x, c, w, b = with_bias()
    h = x * w + b
    y = (h * c * c).sum()
    y.backward()
    assert (b.grad, w.grad) == (77.0, 174.0)
    b.zero_grad()
    w.zero_grad()
    h.register_hook(lambda t: t * 10.0)
    y.backward()
    assert (b.grad, w.grad) == (770.0, 1740.0)


def test_an_edit_above_what_is_passed_on_is_followed() -> None:
    g, x, c, w, b = with_bias()
    h = x * w + b
    q = h * c * c + g.input([0.0, 0.0, 0.0])
    db, dw = rg.grad(q.sum(), [b, w])
    assert (db.value, dw.value) == (77.0, 174.0)
    q.replace_parent(1, h * 3.0)
    assert (db.value, dw.value) == (86.0, 192.0)


def test_the_bias_of_a_linear_op_follows_a_hook() -> None:
    g = rg.Graph()
    x, w, b = g.input(np.ones((2, 3))), g.param(np.ones((3, 2))), g.param([1.0])
    h = rg.linear(x, w, b)
    y = (h * g.input([[1.0, 2.0], [3.0, 4.0]]) * 1.4).sum()
    y.backward()
    assert b.grad[0] == pytest.approx(14.0)
    b.zero_grad()
    h.register_hook(lambda t: t * 10.0)
    y.backward()
    assert b.grad[0] == pytest.approx(140.0)


def test_a_rule_that_gives_a_node_of_the_model_follows_its_edits() -> None:
    g = rg.Graph()
    a, b = g.input([1.0, 2.0, 3.0]), g.input([4.0, 5.0, 6.0])
    product = a * b

    @rg.extend.primitive("test_by_a_product", rg.extend.broadcast, elementwise=True)
    def by_a_product(x: Any, w: Any, out: Any) -> None:
        np.multiply(x, w, out)

    rg.extend.defvjp(by_a_product, lambda g, ans, x, w: g * w, lambda g, ans, x, w: product)
    w = g.param(2.0)
    dw = rg.grad(by_a_product(a, w).sum(), w)
    assert dw.value == 32.0
    product.replace_parent(0, g.input([1.0, 1.0, 1.0]))
    assert dw.value == 15.0


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), edits=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_gradients_of_numbers_after_edits_are_those_of_a_graph_built_that_way(
    seed: int, edits: int
) -> None:
    rng = np.random.default_rng(seed)
    g = rg.Graph()
    x = g.input(rng.normal(size=4))
    params = [g.param(float(one)) for one in rng.normal(size=5)]
    nodes: list[rg.Var] = [x, x * params[0]]
    ops = [lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - b, lambda a, b: rg.tanh(a) * b]
    for i in range(8):
        a = nodes[rng.integers(len(nodes))]
        b = params[rng.integers(5)] if i % 2 else nodes[rng.integers(len(nodes))]
        nodes.append(ops[rng.integers(4)](a, b))
    y = sum(nodes[-3:], nodes[-4]).sum()
    gradients = rg.grad(y, params, allow_unused=True)
    before = [None if one is None else one.value for one in gradients]
    for _ in range(edits):
        place = int(rng.integers(2, len(nodes)))
        child = nodes[place]
        child.replace_parent(int(rng.integers(len(child.parents))), nodes[rng.integers(place)])
    held = [None if one is None else one.value for one in gradients]
    for param, one in zip(params, held, strict=True):
        at, step = float(param.value), 1e-6
        sides = []
        for moved in (at + step, at - step):
            param.set(moved)
            sides.append(float(y.value))
        param.set(at)
        if one is None:  # it was not asked for: nothing led there when it was
            continue
        slope = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(one, slope, rtol=1e-5, atol=1e-5)
    if not edits:
        assert held == before


@pytest.mark.skipif(find_machine() is None, reason="needs the driver or numba")
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


@pytest.mark.skipif(find_machine() is None, reason="needs the driver or numba")
@pytest.mark.parametrize(
    "operands",
    [
        (np.ones((2, 2), "i8"), np.ones((2, 2), "i8"), np.ones((2, 2), "i8")),
        (np.ones(2, "i8"), np.ones(2, "i8"), np.ones((), "i8")),
        (np.ones(2), np.ones(2, "f4"), np.ones(())),
        (np.ones((2, 2)), np.ones(2), np.ones(2)),
    ],
)
def test_other_products_are_no_instructions(operands: Any) -> None:
    assert instructions(partial(np.dot, *operands)) is None


@pytest.mark.skipif(find_machine() is None, reason="needs the driver or numba")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_graph_with_jit_gives_what_one_without_gives(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reactgrad.backend.machine import _registers

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
