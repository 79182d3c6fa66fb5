"""Instructions by rows and of products: the bits of the NumPy calls in whose place they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend.machine import _nested
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._instructions import instructions
from reactgrad.backend.machine._registers import Program
from reactgrad.backend.numpy._in_turn import Joined

pytestmark = pytest.mark.skipif(find_driver() is None, reason="needs the driver")

NUMBERS = [0.0, -0.0, 1.5, -2.25, 3e-40, 1e30, -1e30, np.inf, -np.inf, np.nan]


def same_bits(one: Any, other: Any) -> bool:
    """Return whether two arrays have the same bits; any NaN is a NaN."""
    one, other = np.array(one), np.array(other)
    if one.dtype.kind == "f":
        one[np.isnan(one)] = other[np.isnan(other)] = np.nan
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def played(step: Any, out: Any) -> bool:
    """Return whether the driver computes what the step does; it must have instructions."""
    code = instructions(step)
    assert code is not None, step
    out.fill(7)
    numbers = np.frombuffer(code, np.int64).copy()
    find_driver().play(numbers.ctypes.data, numbers.ctypes.data + numbers.nbytes)
    found = out.copy()
    out.fill(7)
    with np.errstate(all="ignore"):
        step()
    return same_bits(found, out)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of ordinary and special numbers; a matrix may be Fortran contiguous."""
    array = rng.standard_normal(shape).astype(dtype)
    if rng.random() < 0.3 and array.size:
        with np.errstate(over="ignore"):
            array.flat[rng.integers(array.size)] = rng.choice(NUMBERS)
    return array if rng.random() < 0.6 or array.ndim > 2 else np.asfortranarray(array)


SHAPES = [
    ((4, 8), (8,)),
    ((4, 1), (4, 8)),
    ((4, 1), (1, 8)),
    ((2, 3, 5), (5,)),
    ((2, 3, 5), (2, 1, 1)),
    ((1, 7), (7,)),
    ((6, 1), (6, 1)),
    ((3, 2), (3, 2)),
]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "less"])
def test_operands_that_are_repeated_over_rows_or_columns(
    name: str, shapes: tuple[Any, Any], dtype: str
) -> None:
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    for _ in range(10):
        a, b = drawn(rng, shapes[0], dtype), drawn(rng, shapes[1], dtype)
        out = np.empty(np.broadcast_shapes(*shapes), "?" if name == "less" else dtype)
        assert played(partial(ufunc, a, b, out=out), out)
        if name == "less":  # the result as numbers
            out = np.empty(out.shape, dtype)
            assert played(partial(ufunc, a, b, out=out), out)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *[((n, k), axis) for n in (1, 3, 40) for k in (1, 2, 9, 130) for axis in (0, 1)],
        ((2, 3, 4), 2),
        ((2, 3, 4), 0),
        ((2, 3, 4), (1, 2)),
        ((2, 3, 4), (0, 1)),
        ((2, 3, 4), None),
        ((1, 3, 1), (0, 2)),
    ],
)
def test_reductions(ufunc: Any, shape: tuple[int, ...], axis: Any, dtype: str) -> None:
    rng = np.random.default_rng(2)
    for keep in (False, True):
        x = np.ascontiguousarray(drawn(rng, shape, dtype))
        out = np.empty(np.sum(x, axis, keepdims=keep).shape, dtype)
        first = () if ufunc is np.add else (-np.inf,)
        assert played(partial(ufunc.reduce, x, axis, None, out, keep, *first), out)
        assert played(partial(ufunc.reduce, x, axis, None, out, keep, -1.0), out)


def test_what_numpy_does_in_another_order_has_no_instructions() -> None:
    x = np.ones((2, 3, 4))
    assert instructions(partial(np.add.reduce, x, 1, None, np.empty((2, 4)), False)) is None
    assert instructions(partial(np.add.reduce, x.T, 0, None, np.empty((3, 2)), False)) is None
    assert instructions(partial(np.maximum.reduce, x, 2, None, np.empty((2, 3)), False)) is None
    wide = np.empty((2, 3), "f8")
    assert instructions(partial(np.add.reduce, x.astype("f4"), 2, None, wide, False)) is None


def test_functions_that_vary_with_the_division_into_calls_are_left_alone() -> None:
    x, out = np.ones((4, 8)).T, np.empty((8, 4))
    assert instructions(partial(np.exp, x, out)) is None
    assert instructions(partial(np.negative, x, out)) is not None


@given(
    st.tuples(*[st.sampled_from([1, 2, 3, 7, 8, 16, 33, 64])] * 3),
    st.sampled_from("fd"),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_products(
    sizes: tuple[int, int, int], dtype: str, flip: bool, turn: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    m, n, p = sizes
    x = rng.standard_normal((n, m) if flip else (m, n)).astype(dtype)
    y = rng.standard_normal((p, n) if turn else (n, p)).astype(dtype)
    x, y = x.T if flip else x, y.T if turn else y
    out = np.empty((m, p), dtype)
    assert played(partial(np.dot, x, y, out), out)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_matrix_times_its_own_transpose(dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal((24, 17)).astype(dtype)
    out = np.empty((24, 24), dtype)
    assert played(partial(np.dot, x, x.T, out), out)


def test_large_products_are_left_alone() -> None:
    side = round(_nested.MOST_PRODUCTS ** (1 / 3)) + 1
    x = np.ones((side, side))
    assert instructions(partial(np.dot, x, x, np.empty_like(x))) is None


def test_products_of_rows_that_are_apart_are_left_alone() -> None:
    x = np.ones((8, 8))
    assert instructions(partial(np.dot, x[::2], x, np.empty((4, 8)))) is None


@pytest.mark.trusting
@pytest.mark.fused
@pytest.mark.whole
@pytest.mark.parametrize("batch", [1, 5])
def test_a_training_step_is_one_call(batch: int) -> None:
    """Dense layers, softmax and their gradients, of a few elements: one program a plan."""

    def step(jit: bool) -> tuple[Any, rg.Graph]:
        rng = np.random.default_rng(0)
        g = rg.Graph(jit=jit)
        x = g.input(np.zeros((batch, 4), "f4"))
        labels = g.input(np.zeros((batch, 3), "f4"))
        params = [g.param(rng.standard_normal(s).astype("f4")) for s in ((4, 8), 8, (8, 3), 3)]
        w1, b1, w2, b2 = params
        logits = rg.linear(rg.relu(rg.linear(x, w1, b1)), w2, b2)
        loss = (rg.log_softmax(logits) * labels).sum() * (-1.0 / batch)
        new = [w - 0.1 * dw for w, dw in zip(params, rg.grad(loss, params), strict=True)]
        found = []
        for _ in range(40):
            batch_ = rng.standard_normal((batch, 4)).astype("f4")
            g.set({x: batch_, labels: np.eye(3, dtype="f4")[rng.integers(0, 3, batch)]})
            g.forward(loss, *new)
            after = [one.value for one in new]
            found.append([loss.value, *after])
            g.set(dict(zip(params, after, strict=True)))
        return found, g

    (with_driver, g), (without, _) = step(True), step(False)
    for one, other in zip(with_driver, without, strict=True):
        assert all(map(same_bits, one, other))
    plans = [one.plan.fused for one in g._scheduler.plans._transitions.values() if one.plan.fused]
    assert max(map(len, plans)) == 1
    assert {type(call) for calls in plans for call in calls} == {Program}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined_values(axis: int, dtype: str) -> None:
    """Along the first axis the copies are instructions; parts along others have gaps."""
    rng = np.random.default_rng(0)
    same = [drawn(rng, (3, 3), dtype) for _ in range(3)]
    values = [same[0], np.empty((0, 3) if axis == 0 else (3, 0), dtype), *same[1:]]
    right = np.concatenate(values, axis)
    out = np.empty_like(right)
    step = Joined(np.concatenate, values, out, axis)
    for part, value in step.copies():
        np.copyto(part, value)
    assert same_bits(out, right)
    if axis == 0 and all(one.flags.c_contiguous for one in values):
        assert played(step, out)


@pytest.mark.trusting
@pytest.mark.fused
@pytest.mark.whole
def test_many_gradients_read_as_one_array_are_one_call() -> None:
    """Values and gradients of a what-if, whose addresses have moved, are those of a fresh graph."""

    def model(number: float) -> tuple[rg.Graph, rg.Var, rg.Var]:
        g = rg.Graph()
        x = g.input(number)
        weights = [g.param(float(k + 1)) for k in range(40)]
        y = x
        for w in weights:
            y = rg.tanh(y * w)
        return g, x, rg.stack(rg.grad(y, weights))

    g, x, block = model(0.0)
    for k in range(40):
        x.set(k / 40)
        block.value
    (plan,) = g._scheduler.plans.bound(1)
    assert [type(call) for call in plan.fused] == [Program]
    for k in range(4):
        with g.whatif({x: 0.3 + k}) as w:
            np.testing.assert_array_equal(w[block].value, model(0.3 + k)[2].value)


def test_addresses_in_a_code_are_found_with_and_without_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y, z = (np.ones((4, 8)) for _ in range(3))
    steps = [partial(np.add, x, y, out=z), partial(np.tanh, z, out=z), partial(np.add, z, x, out=y)]
    code = b"".join([instructions(step) or b"" for step in steps])
    numbers = np.frombuffer(code, np.int64)
    places = _nested.places_of_addresses(numbers)
    at = {one.ctypes.data for one in (x, y, z)}
    assert [*places] == [i for i, number in enumerate(numbers.tolist()) if number in at]
    monkeypatch.setattr(_nested, "find_driver", lambda: None)
    assert [*_nested.places_of_addresses(numbers)] == [*places]
