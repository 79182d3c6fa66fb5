"""What plans call: operands in NumPy's fast shapes, kernels of several calls one by one, long plans laid out."""

from __future__ import annotations

import gc
import signal
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import reactgrad as rg
from reactgrad.backend.numpy import _in_turn
from reactgrad.backend.numpy._in_turn import InTurn, Unrolled, unrolled
from reactgrad.backend.numpy._stretched import stretched
from reactgrad_scheduler import hot
from reactgrad_scheduler.plan import Plan
from tests.interrupts import interrupted, interrupted_after

# Of a model whose plan is long, where `long_plans` are that long.
LENGTH = 40


@pytest.fixture
def long_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_in_turn, "LONG", LENGTH)


# --- operands ------------------------------------------------------------------------------------


@given(
    shapes=npst.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, min_side=1, max_side=4),
    kinds=st.tuples(*[st.sampled_from(["plain", "repeated", "strided", "turned"])] * 2),
    ufunc=st.sampled_from([np.add, np.multiply, np.power, np.less, np.copysign]),
    dtype=st.sampled_from(["f4", "f8", "i8"]),
    data=st.data(),
)
def test_the_bits_are_those_of_the_operands_as_they_are(
    shapes: Any, kinds: Any, ufunc: np.ufunc, dtype: str, data: st.DataObject
) -> None:
    operands = [
        made(shape, kind, dtype, data.draw(st.integers(1, 99)))
        for shape, kind in zip(shapes.input_shapes, kinds, strict=True)
    ]
    expected = ufunc(*operands)
    out = np.empty_like(expected)
    inputs = stretched(operands, out)
    assert all(np.shares_memory(a, b) for a, b in zip(operands, inputs, strict=True))
    ufunc(*inputs, out)
    assert out.tobytes() == expected.tobytes()


def made(shape: tuple[int, ...], kind: str, dtype: str, seed: int) -> Any:
    numbers = np.random.default_rng(seed).integers(1, 9, shape).astype(dtype)
    if kind == "repeated":
        return np.broadcast_to(numbers[(slice(0, 1),) * numbers.ndim], shape)
    if kind == "strided":
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        wide[..., ::2] = numbers
        return wide[..., ::2]
    return np.asfortranarray(numbers) if kind == "turned" else numbers


@pytest.mark.parametrize(
    ("shape", "out", "becomes"),
    [
        ((1,), (4,), ()),
        ((1, 1), (4,), ()),
        ((1,), (1, 1), ()),
        ((4,), (1, 4), (1, 4)),
        ((4, 1), (4, 1), (4, 1)),
        ((4,), (3, 4), (4,)),
        ((3, 1), (3, 4), (3, 1)),
        ((0,), (0,), (0,)),
    ],
)
def test_operands_that_numpy_would_stretch_slowly(shape: Any, out: Any, becomes: Any) -> None:
    (found,) = stretched([np.ones(shape)], np.empty(out))
    assert found.shape == becomes


def test_what_an_array_repeats_is_a_number() -> None:
    (found,) = stretched([np.broadcast_to(np.float64(3.0), (2, 5))], np.empty((2, 5)))
    assert found.shape == ()
    assert found == 3.0


def operand_shapes(var: rg.Var) -> list[tuple[int, ...]]:
    return [one.shape for one in var._graph._host.bind(var._slot).args[:-1]]  # type: ignore[union-attr]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda x, n: x * n, [(4,), ()]),
        (lambda x, n: 2.0 - x, [(), (4,)]),
        (lambda x, n: x + x, [(4,), (4,)]),
        (lambda x, n: rg.reshape(x, (1, 4)) + x, [(1, 4), (1, 4)]),
        (lambda x, n: n * 2.0, [(1,), (1,)]),
    ],
)
def test_steps_are_bound_to_such_operands(make: Callable[..., rg.Var], shapes: Any) -> None:
    g = rg.Graph()
    y = make(g.input(np.arange(4.0)), g.input(3.0))
    y.value
    assert operand_shapes(y) == shapes


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 1, 4), (4, 1, 1), (2, 1, 3), (1, 7, 1), (3, 4, 5), (1, 4, 9), (33, 65, 17)],
)
def test_products_of_matrices_have_the_bits_of_matmul(
    shape: Any, special: bool, turned: bool, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    m, k, n = shape
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    if special:
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], dtype)
        a, b = rng.choice(odd, a.shape), rng.choice(odd, b.shape)
    a = a.T.copy().T if turned else a
    g = rg.Graph()
    x, y = g.input(a.T if turned else a), g.input(b)
    x = x.T if turned else x
    with np.errstate(invalid="ignore"):
        expected = np.matmul(a, b), np.matmul(a[:, ::2], b[::2])
    assert bits((x @ y).value) == bits(expected[0])
    assert bits((x[:, ::2] @ y[::2]).value) == bits(expected[1])


def bits(array: Any) -> bytes:
    found = np.array(array)
    found[np.isnan(found)] = np.nan  # any NaN is a NaN
    return found.tobytes()


def test_zero_times_infinity_is_not_zero() -> None:
    g = rg.Graph()
    product = g.input([[0.0]]) @ g.input([[np.inf, 1.0]])
    np.testing.assert_array_equal(product.value, [[np.nan, 0.0]])


# --- kernels of several calls --------------------------------------------------------------------


def test_unrolled_steps_are_their_calls_in_their_places() -> None:
    log: list[str] = []
    a, b, c, d = (partial(log.append, name) for name in "abcd")
    steps: list[Any] = [a, InTurn(b, c), d]
    calls, slots = unrolled([10, 11, 12], steps)
    for call in calls:
        call()
    assert log == ["a", "b", "c", "d"]
    assert slots == [10, 11, 11, 12]
    assert type(calls) is Unrolled
    steps[1] = InTurn(d, d)
    assert calls.follow([1])
    assert list(calls) == [a, d, d, d]
    steps[2] = InTurn(a, b)
    assert not calls.follow([2]), "it has another number of calls"


def test_nothing_to_unroll_stays_as_it_is() -> None:
    steps: list[Any] = [print, print]
    slots = [3, 4]
    assert unrolled(slots, steps) == (steps, slots)
    assert unrolled(slots, steps)[0] is steps


@pytest.fixture
def halves() -> Any:
    """An op whose kernel is three calls, and a place for what the middle one does besides."""
    middle: list[Callable[[], object]] = []

    @rg.extend.primitive("halves", lambda x: x, elementwise=True)
    def halves(x: Any, out: Any) -> None:
        raise AssertionError("the binder takes its place")

    def bind(inputs: Any, out: Any, attrs: Any) -> Any:
        between = np.empty_like(out)

        def act() -> None:
            for one in middle:
                one()

        return rg.extend.InTurn(
            partial(np.multiply, inputs[0], 0.25, between),
            act,
            partial(np.add, between, between, out),
        )

    rg.extend.register_binder("halves", "cpu", bind)
    halves.middle = middle  # type: ignore[attr-defined]
    return halves


@pytest.mark.usefixtures("long_plans")
@pytest.mark.parametrize("length", [3, 2 * LENGTH], ids=["short", "long"])
@pytest.mark.parametrize("runs", [1, 3, hot.OFTEN + 2])
@pytest.mark.trusting
def test_a_run_that_is_cancelled_inside_of_a_node_ends_with_that_node(
    halves: Any, length: int, runs: int
) -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    y = halves(x)
    z = y
    for _ in range(length):
        z = z + 1.0
    for i in range(runs):
        x.set(np.full(3, float(i)))
        np.testing.assert_array_equal(z.value, i / 2 + length)
    x.set(np.full(3, 8.0))
    halves.middle.append(g.cancel)
    with pytest.raises(rg.Cancelled):
        z.value
    halves.middle.clear()
    assert not y.is_stale
    assert z.is_stale
    np.testing.assert_array_equal(y.value, 4.0)
    assert list(g.last_run.ran) == [y]
    np.testing.assert_array_equal(z.value, 4.0 + length)
    g.check_invariants()


@pytest.mark.usefixtures("long_plans")
@pytest.mark.parametrize("runs", [1, 3, hot.OFTEN + 2])
def test_a_node_that_raises_between_its_calls_has_failed(halves: Any, runs: int) -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    before, y = x * 3.0, halves(x)
    others = [before + float(i) for i in range(2 * LENGTH)]
    z = g.keep(rg.stack([y, *others]))
    for i in range(runs):
        x.set(np.full(3, float(i)))
        z.value

    def fail() -> None:
        raise ValueError("no")

    x.set(np.full(3, 8.0))
    halves.middle.append(fail)
    with pytest.raises(ValueError, match="no") as caught:
        z.value
    assert "halves" in caught.value.__notes__[0]
    halves.middle.clear()
    assert list(g.last_run.failed) == [y]
    assert z.is_stale
    np.testing.assert_array_equal(before.value, 24.0)
    x.set(np.full(3, 6.0))
    np.testing.assert_array_equal(y.value, 3.0)
    g.check_invariants()


@pytest.mark.usefixtures("long_plans")
@pytest.mark.parametrize("how", ["kernel", "finalizer", "signal"])
@pytest.mark.parametrize("length", [0, 2 * LENGTH], ids=["short", "long"])
@pytest.mark.parametrize("runs", [1, 3, hot.OFTEN + 4])
def test_who_reads_between_the_calls_of_a_node_leaves_it_whole(
    halves: Any, length: int, runs: int, how: str
) -> None:
    """Such a read suspends the plan: the calls that were left of the node were forgotten."""
    g = rg.Graph()
    x = g.input(np.ones(3))
    y, other = halves(x), g.keep(x * 2.0)
    z = y
    for _ in range(length):
        z = z + 1.0
    seen: list[Any] = []

    def read() -> None:
        seen.append(other.value.copy())

    def act() -> None:
        if how == "kernel":
            read()
        elif how == "finalizer":
            Ending(read)  # nobody has it, so it goes at once
        else:
            signal.raise_signal(signal.SIGUSR1)

    for i in range(runs):
        x.set(np.full(3, float(i)))
        np.testing.assert_array_equal(z.value, i / 2 + length)
    before = signal.signal(signal.SIGUSR1, lambda *_: read())
    halves.middle.append(act)
    try:
        for i in (8.0, 16.0):
            x.set(np.full(3, i))
            np.testing.assert_array_equal(z.value, i / 2 + length)
            np.testing.assert_array_equal(y.value, i / 2)
            np.testing.assert_array_equal(seen, [[2.0 * i] * 3])
            seen.clear()
            g.check_invariants()
    finally:
        halves.middle.clear()
        signal.signal(signal.SIGUSR1, before)


class Ending:
    """Calls a function when it goes."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def __del__(self) -> None:
        self.act()


# --- long plans ----------------------------------------------------------------------------------


def long_model(g: rg.Graph, x: rg.Var | None = None) -> tuple[rg.Var, rg.Var]:
    x = g.input(np.linspace(0.0, 1.0, 5)) if x is None else x
    y = x
    for i in range(LENGTH):
        y = rg.sigmoid(y + x) if i % 3 else y * 1.5
    return x, y


def plans_of(g: rg.Graph) -> list[Plan]:
    return [one.plan for one in g._scheduler.plans._transitions.values()]


def count_laid_out(g: rg.Graph) -> int:
    return sum([plan.laid_out is not None for plan in plans_of(g)])


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
def test_a_long_plan_is_laid_out_when_it_runs_often_and_gives_the_same() -> None:
    g = rg.Graph(jit=False)
    x, y = long_model(g)
    for i in range(hot.OFTEN + 5):
        new = np.linspace(0.0, i + 1.0, 5)
        x.set(new)
        other, z = long_model(rg.Graph(jit=False))
        other.set(new)
        assert y.value.tobytes() == z.value.tobytes()
        laid_out = [plan for plan in plans_of(g) if plan.laid_out is not None]
        assert bool(laid_out) == (i > hot.OFTEN), i  # the first two reads find no plan
    (plan,) = laid_out
    assert plan.fused is not None
    assert plan.laid_out is not None
    assert len(plan.laid_out) == len(plan.fused) == len(plan.call_slots)


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
def test_what_moves_is_followed_by_a_plan_that_is_laid_out() -> None:
    g = rg.Graph(jit=False)
    x, y = long_model(g)
    held = []
    for i in range(4 * hot.OFTEN):
        new = np.linspace(0.0, i + 1.0, 5)
        x.set(new, copy=i % hot.OFTEN != 3)  # adopted: its storage moves
        held.append(y.value)
        other, z = long_model(rg.Graph(jit=False))
        other.set(new)
        assert held[-1].tobytes() == z.value.tobytes()
    assert len({one.tobytes() for one in held}) == len(held)


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
def test_short_plans_and_plans_that_call_functions_are_not_laid_out() -> None:
    g = rg.Graph(jit=False)
    x, y = long_model(g)
    short = rg.sigmoid(x)
    mixed = rg.lift(lambda v: v.copy())(y)
    for i in range(2 * hot.OFTEN):
        x.set(np.full(5, float(i)))
        short.value
        mixed.value
    assert g._scheduler.hot is None
    assert not any(plan.laid_out for plan in plans_of(g))


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
def test_only_few_plans_are_laid_out_at_a_time() -> None:
    g = rg.Graph(jit=False)
    models = [long_model(g) for _ in range(2 * hot.MOST)]
    for i in range(hot.OFTEN + 2):
        for x, y in models:
            x.set(np.full(5, float(i)))
            y.value
    laid_out = [plan for plan in plans_of(g) if plan.laid_out is not None]
    assert len(laid_out) == hot.MOST
    for i in range(hot.OFTEN + 2):  # nor do they take turns
        for x, y in models[: hot.MOST]:
            x.set(np.full(5, float(-i)))
            y.value
    assert [plan for plan in plans_of(g) if plan.laid_out is not None] == laid_out


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
@pytest.mark.parametrize("gone", ["dropped", "released"])
def test_no_plan_that_was_laid_out_keeps_values_alive_after_an_edit(gone: str) -> None:
    g = rg.Graph(jit=False)
    x, y = long_model(g, g.param(np.linspace(0.0, 1.0, 5)))
    loss = (y * y).sum()
    other = g.keep(g.input(1.0) + 1.0)
    for i in range(2 * hot.OFTEN):
        x.set(np.full(5, float(i)))
        loss.value
    assert count_laid_out(g) == 1
    slot = y._slot
    memory = weakref.ref(g._host.data[slot])
    other.replace_parent(0, g.input(3.0))  # after which no plan of before is found
    other.value
    if gone == "dropped":
        del y, loss
        x.value
        assert len(g) == 4, "the inputs, a number, and `other`"
    else:
        loss.backward(retain_graph=False)
    gc.collect()
    assert memory() is None


@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
def test_a_plan_that_is_laid_out_keeps_nothing_alive() -> None:
    g = rg.Graph(jit=False)
    x, y = long_model(g)
    for i in range(2 * hot.OFTEN):
        x.set(np.full(5, float(i)))
        y.value
    (plan,) = [plan for plan in plans_of(g) if plan.laid_out]
    nodes = len(g)
    del y
    x.set(np.zeros(5))
    x.value
    assert len(g) == 1 < nodes
    assert plan.laid_out is None


@pytest.mark.slow
@pytest.mark.trusting
@pytest.mark.usefixtures("long_plans")
@pytest.mark.parametrize("how", [interrupted, interrupted_after])
def test_an_interrupt_in_a_plan_that_is_laid_out_loses_nothing(how: Any) -> None:
    at, more = 0, True
    while more:
        at += 1
        g = rg.Graph(jit=False)
        x, y = long_model(g)
        for i in range(hot.OFTEN + 3):
            x.set(np.full(5, float(i)))
            y.value
        assert count_laid_out(g) == 1
        x.set(np.full(5, -3.0))
        more = how(lambda y=y: y.value, at)
        other, z = long_model(rg.Graph(jit=False))
        other.set(np.full(5, -3.0))
        assert y.value.tobytes() == z.value.tobytes(), at
        g.check_invariants()
    assert at > 10
