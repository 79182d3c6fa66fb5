"""Recurrent layers are their formulas step by step, in values and in derivatives of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

T, B, N, H = 3, 2, 2, 2


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def rnn(x: Any, h: Any, wi: Any, wh: Any, bi: Any, bh: Any, act: Any = np.tanh) -> Any:
    states = []
    for one in x:
        h = act(one @ wi.T + bi + h @ wh.T + bh)
        states.append(h)
    return np.stack(states), h


def lstm(x: Any, h: Any, c: Any, wi: Any, wh: Any, bi: Any, bh: Any) -> Any:
    states = []
    for one in x:
        i, f, g, o = np.split(one @ wi.T + bi + h @ wh.T + bh, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states), h, c


def gru(x: Any, h: Any, wi: Any, wh: Any, bi: Any, bh: Any) -> Any:
    states = []
    for one in x:
        (ri, zi, ni), (rh, zh, nh) = (
            np.split(one @ wi.T + bi, 3, -1),
            np.split(h @ wh.T + bh, 3, -1),
        )
        r, z = sigmoid(ri + rh), sigmoid(zi + zh)
        h = (1.0 - z) * np.tanh(ni + r * nh) + z * h
        states.append(h)
    return np.stack(states), h


def of_lstm(x: Any, h: Any, c: Any, *weights: Any) -> Any:
    output, (last, cell) = rg.lstm(x, (h, c), *weights)
    return output, last, cell


def shapes(gates: int, states: int) -> list[tuple[int, ...]]:
    return [(T, B, N), *[(B, H)] * states, (gates * H, N), (gates * H, H), *[(gates * H,)] * 2]


def few(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return 0.7 * rng.standard_normal(shape)


LAYERS = [(rg.rnn, 1), (rg.lstm, 4), (rg.gru, 3)]
WORDS = {"draw": few, "dtypes": "df", "unknown": False, "tolerance": {"f": 2e-6, "d": 1e-12}}
CASES = [
    Case("rnn", rg.rnn, rnn, shapes(1, 1), **WORDS),
    Case("lstm", of_lstm, lstm, shapes(4, 2), **WORDS),
    Case("gru", rg.gru, gru, shapes(3, 1), **WORDS),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


def weights(gates: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [few(rng, s) for s in shapes(gates, 0)[1:]]


def test_relu_and_directions_and_layouts() -> None:
    x = np.random.default_rng(0).standard_normal((T, B, N))
    w = weights(1)
    zeros = np.zeros((B, H))
    g = rg.Graph()
    with g:
        y, _ = rg.rnn(x, None, *w, nonlinearity="relu")
        back, last = rg.rnn(x, None, *w, reverse=True)
        first, _ = rg.rnn(x.swapaxes(0, 1), None, *w, batch_first=True)
        alone, end = rg.rnn(x[:, 0], None, *w)
        plain, _ = rg.rnn(x, None, *w[:2])
    relu = rnn(x, zeros, *w, act=lambda a: np.maximum(a, 0.0))[0]
    np.testing.assert_allclose(y.value, relu)
    wanted = rnn(x[::-1], zeros, *w)
    np.testing.assert_allclose(back.value, wanted[0][::-1])
    np.testing.assert_allclose(last.value, wanted[1])
    np.testing.assert_allclose(first.value, rnn(x, zeros, *w)[0].swapaxes(0, 1))
    np.testing.assert_allclose(alone.value, rnn(x, zeros, *w)[0][:, 0])
    np.testing.assert_allclose(end.value, alone.value[-1])
    np.testing.assert_allclose(plain.value, rnn(x, zeros, *w[:2], 0.0, 0.0)[0])


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_lengths_that_are_not_known(layer: Any, gates: int) -> None:
    g = rg.Graph()
    w = [g.param(one) for one in weights(gates)]
    x = g.input(shape=(None, None, N), dtype="float64")
    total = layer(x, None, *w)[0].sum()
    slopes = rg.grad(total, [x, *w])
    rng = np.random.default_rng(0)
    for t, b in ((3, 2), (5, 1), (2, 4)):
        given = rng.standard_normal((t, b, N))
        x.set(given)
        fresh = rg.Graph()
        known = [fresh.param(one.value) for one in (x, *w)]
        wanted = rg.grad(layer(known[0], None, *known[1:])[0].sum(), known)
        for one, other in zip(slopes, wanted, strict=True):
            np.testing.assert_allclose(one.value, other.value, rtol=1e-10, atol=1e-12)


def test_an_operand_that_depends_on_another() -> None:
    """Each derivative is by one operand alone, also where the cell follows from the state."""
    w = weights(4)
    x = np.random.default_rng(0).standard_normal((T, B, N))

    def call(h: Any) -> Any:
        output, (last, cell) = rg.lstm(x, (h, h * h), *w)
        return output.sum(axis=0) + last * cell

    rg.testing.check_grads(call, [np.full((B, H), 0.3)])


def test_what_does_not_fit_says_so() -> None:
    g = rg.Graph()
    w = weights(1)
    x = g.input(np.zeros((T, B, N)))
    with pytest.raises(rg.ShapeError, match="for 2 features"):
        rg.gru(x, None, *w)
    with pytest.raises(rg.ShapeError, match="steps, batch"):
        rg.rnn(g.input([1.0]), None, *w)
    with pytest.raises(rg.ShapeError, match="at least one step"):
        rg.rnn(g.input(np.zeros((0, B, N))), None, *w)
    with pytest.raises(rg.ShapeError, match="a first state has shape"):
        rg.rnn(x, np.zeros((B + 1, H)), *w)
    with pytest.raises(rg.DTypeError, match="'tanh' or 'relu'"):
        rg.rnn(x, None, *w, nonlinearity="sin")


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_zeros_follow_the_batch_and_read_no_number(layer: Any, gates: int) -> None:
    rng = np.random.default_rng(0)
    g = rg.Graph()
    x = g.param(rng.standard_normal((T, B, N)))
    w = [g.param(one) for one in weights(gates)]
    total = layer(x, None, *w)[0].sum()
    slopes = rg.grad(total, [x, *w])
    for steps, batch in ((T, B), (5, 3), (2, 1), (4, 0)):
        x.set(rng.standard_normal((steps, batch, N)))
        fresh = rg.Graph()
        known = [fresh.param(one.value) for one in (x, *w)]
        wanted = layer(known[0], None, *known[1:])[0].sum()
        assert total.item() == wanted.item()
        for one, other in zip(slopes, rg.grad(wanted, known), strict=True):
            np.testing.assert_array_equal(one.value, other.value)
    last = np.zeros((2, 2, N))
    last[1:, 0] = np.nan  # in the second step of the first sequence
    x.set(last)
    found = layer(x, None, *w)[0].value
    assert np.isnan(found[1, 0]).all()
    assert np.isfinite(found[0]).all()
    assert np.isfinite(found[:, 1]).all()
    first = layer(g.input(np.full((1, 1, N), np.inf)), None, np.ones((gates * H, N)), w[1])[0]
    assert np.isfinite(first.value).all()  # saturated: an infinity times 0 would be NaN


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_a_given_state_of_another_batch_is_refused_when_the_input_is_set(
    layer: Any, gates: int
) -> None:
    g = rg.Graph()
    x, h = g.input(np.zeros((T, B, N))), g.input(np.zeros((B, H)))
    y, _ = layer(x, (h, None) if layer is rg.lstm else h, *weights(gates))
    with pytest.raises(rg.ShapeError, match=r"first state has shape \(2, 2\), not \(3, 2\)"):
        x.set(np.zeros((T, 3, N)))
        _ = y.value


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_all_derivatives_follow_other_lengths(layer: Any, gates: int) -> None:
    """Also those that are built step by step, and also another hidden size."""
    rng = np.random.default_rng(0)

    def derivatives(x: Any, w: Any) -> list[Any]:
        y = layer(x, None, *w)[0]
        slopes = rg.grad((y * y).sum(), [x, *w])
        bends = rg.grad(sum((one * one).sum() for one in slopes), [x, *w])
        return [*slopes, *bends, rg.jvp(y, x, rg.ones_like(x))]

    g = rg.Graph()
    x, w = g.param(few(rng, (T, B, N))), [g.param(one) for one in weights(gates)[:2]]
    found = derivatives(x, w)
    for t, b, hidden in ((T, 3, H), (5, B, H), (2, B, H), (4, B, 3)):
        rows = gates * hidden
        sizes = dict(zip((x, *w), ((t, b, N), (rows, N), (rows, hidden)), strict=True))
        g.set({leaf: few(rng, shape) for leaf, shape in sizes.items()})
        fresh = rg.Graph()
        x2, *w2 = (fresh.param(one.value) for one in (x, *w))
        for one, other in zip(found, derivatives(x2, w2), strict=True):
            np.testing.assert_array_equal(one.value, other.value)


# Operand of the gate; sigmoid, its slope, and the slope's slope, by mpmath with 40 digits.
GATES = [
    ("d", -39.5, 7.004352026168645e-18, 7.004352026168645e-18, 7.004352026168645e-18),
    ("d", 39.5, 1.0, 7.004352026168645e-18, -7.004352026168645e-18),
    ("f", -16.5, 6.825602910446184e-08, 6.825602444557736e-08, 6.825601978669351e-08),
    ("f", 16.5, 0.9999999317439709, 6.825602444557736e-08, -6.825601978669351e-08),
    ("e", -7.5, 0.000552778636923600, 0.000552473072702177, 0.000551862282467486),
    ("d", -800.0, 0.0, 0.0, 0.0),
    ("d", 800.0, 1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("dtype", "a", "gate", "slope", "bend"), GATES)
def test_tails_of_gates(dtype: str, a: float, gate: float, slope: float, bend: float) -> None:
    """Values and slopes keep their digits where one minus the gate has none."""
    rtol = {"d": 1e-14, "f": 5e-7, "e": 6e-4}[dtype]
    g = rg.Graph()
    x, h = g.param(np.full((1, 1, 1), a, dtype)), g.const(np.zeros((1, 1), dtype))
    one, none = g.const(np.ones((1, 1), dtype)), np.zeros((4, 1), dtype)
    # The forget gate times a cell of 1, the other gates at 0; the update gate times a state of 1.
    w = np.array([[0], [1], [0], [0]], dtype)
    _, (_, c) = rg.lstm(x, (h, one), w, none)
    _, u = rg.gru(x, one, w[:3], none[:3])
    for value in (c, u):
        first = rg.grad(value.sum(), x)
        second = rg.grad(first.sum(), x)
        tangent = rg.jvp(value, x, rg.ones_like(x))
        found = [one.item() for one in (value, first, second, tangent)]
        np.testing.assert_allclose(found, [gate, slope, bend, slope], rtol=rtol)


def test_tails_of_tanh() -> None:
    slope = 4 * np.exp(-50.0)  # 1 / cosh(25)**2
    for layer, row, gates in ((rg.rnn, 0, 1), (rg.lstm, 2, 4), (rg.gru, 2, 3)):
        g = rg.Graph()
        x, w = g.param(np.full((1, 1, 1), 25.0)), np.zeros((gates, 1))
        w[row] = 1.0
        ends: Any = layer(x, None, w, np.zeros((gates, 1)))[1]
        end = ends[1] if layer is rg.lstm else ends
        first = rg.grad(end.sum(), x)
        part = 1.0 if layer is rg.rnn else 0.5
        np.testing.assert_allclose(first.item(), part * slope, rtol=1e-14)
        np.testing.assert_allclose(rg.grad(first, x).item(), -2 * part * slope, rtol=1e-14)


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_half_floats_are_computed_in_float32_and_rounded_once(layer: Any, gates: int) -> None:
    rng = np.random.default_rng(0)
    half = [one.astype("e") for one in (rng.standard_normal((9, B, N)), *weights(gates))]

    def of(arrays: Any) -> list[np.ndarray]:
        g = rg.Graph()
        leaves = [g.param(one) for one in arrays]
        y, end = layer(leaves[0], None, *leaves[1:])
        ends = end if isinstance(end, tuple) else (end,)
        return [one.value for one in (y, *ends, *rg.grad(y, leaves, rg.ones_like(y)))]

    for one, other in zip(of(half), of([one.astype("f") for one in half]), strict=True):
        assert one.dtype == np.float16
        np.testing.assert_array_equal(one, other.astype("e"))


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_integers_are_taken_as_float64(layer: Any, gates: int) -> None:
    whole = [np.round(3 * one).astype("i1") for one in weights(gates)]
    x = np.arange(T * B * N, dtype="i1").reshape(T, B, N)
    with rg.Graph():
        found = layer(x, None, *whole)[0]
        wanted = layer(x.astype("d"), None, *[one.astype("d") for one in whole])[0]
        mixed = layer(x, None, *[one.astype("f") for one in whole])[0]
    assert found.dtype == np.float64
    assert mixed.dtype == np.float32
    np.testing.assert_array_equal(found.value, wanted.value)
    np.testing.assert_allclose(mixed.value, wanted.value, rtol=1e-5, atol=1e-6)
    with pytest.raises(rg.DTypeError, match="real numbers"), rg.Graph():
        layer(x * 1j, None, *whole)


@pytest.mark.parametrize(("layer", "gates"), LAYERS)
def test_biases_and_weights_of_other_shapes_say_so(layer: Any, gates: int) -> None:
    x = np.zeros((T, B, N))
    wi, wh, bi, bh = weights(gates)
    with rg.Graph():
        with pytest.raises(rg.ShapeError, match=r"b_ih has shape .*\* hidden,\)"):
            layer(x, None, wi, wh, np.zeros(gates * H + 1), bh)
        with pytest.raises(rg.ShapeError, match=r"b_hh has shape"):
            layer(x, None, wi, wh, bi, np.zeros(1))
        with pytest.raises(rg.ShapeError, match=r"\* hidden, hidden\)"):
            layer(x, None, wi, wh[:, 0])
        with pytest.raises(rg.ShapeError, match=r"\* hidden, features\)"):
            layer(x, None, wi[:, 0], wh)


def test_a_state_without_a_cell_says_so() -> None:
    h = rg.Graph().input(np.zeros((2, H)))
    for state in (h, np.zeros((2, B, H)), (h,)):
        with pytest.raises(rg.ShapeError, match=r"\(state, cell\)"):
            rg.lstm(np.zeros((T, B, N)), state, *weights(4))
