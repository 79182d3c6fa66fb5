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


@pytest.mark.parametrize(("layer", "gates"), [(rg.rnn, 1), (rg.lstm, 4), (rg.gru, 3)])
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
