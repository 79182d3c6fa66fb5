"""Dropout: what is dropped, when it is drawn anew, and what the mode of the graph reruns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

N = 20_000


def test_a_part_is_dropped_and_the_rest_scaled() -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones(N))
    y = rg.dropout(x, 0.25)
    assert set(np.unique(y.value)) == {0.0, 1.0 / 0.75}
    assert y.value.mean() == pytest.approx(1.0, abs=0.02)


def test_the_mode_reruns_what_depends_on_it_and_nothing_else() -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones(8))
    h = x * 2.0
    y = rg.dropout(h) + 1.0
    trained = y.value
    g.eval()
    run = g.forward(y)
    assert h not in run.ran
    assert y.tolist() == [3.0] * 8
    g.train()
    np.testing.assert_array_equal(y.value, trained)


def test_touch_and_reseed_draw_anew_and_nothing_else_does() -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones(64))
    y = rg.dropout(x)
    first = y.value
    x.set(2.0 * np.ones(64))
    np.testing.assert_array_equal(y.value, 2.0 * first)
    y.touch()
    assert (y.value != 2.0 * first).any()
    g.reseed(1)
    np.testing.assert_array_equal(y.value, 2.0 * first)


def test_gradients_pass_where_elements_are_kept() -> None:
    g = rg.Graph(rng=1)
    x = g.param(np.linspace(1.0, 2.0, 16))
    y = rg.dropout(x, 0.5, training=True)
    slope = rg.grad(y.sum(), x).value
    np.testing.assert_array_equal(slope, np.where(y.value == 0.0, 0.0, 2.0))
    rg.testing.check_grads(lambda x: rg.dropout(x * x, 0.3), [np.linspace(1.0, 2.0, 6)])


@pytest.mark.parametrize("training", [True, False, None])
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends(p: float, training: bool | None) -> None:
    g = rg.Graph()
    y = rg.dropout(g.input([1.0, 2.0]), p, training)
    assert y.tolist() == ([0.0, 0.0] if p == 1.0 and training is not False else [1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "space"), [(rg.dropout1d, 1), (rg.dropout2d, 2), (rg.dropout3d, 3)]
)
def test_whole_channels(call: Any, space: int) -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones((20, 30, *(2,) * space)))
    value = call(x, 0.5).value.reshape(20, 30, -1)
    assert (value == value[..., :1]).all()
    assert 0.4 < (value == 0.0).mean() < 0.6
    with pytest.raises(rg.ShapeError, match="channels"):
        call(g.input([1.0]))


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    g = rg.Graph(rng=1)
    y = rg.alpha_dropout(g.input(np.random.default_rng(0).standard_normal(N)), 0.2)
    assert y.value.mean() == pytest.approx(0.0, abs=0.03)
    assert y.value.var() == pytest.approx(1.0, abs=0.03)
    assert g.eval()
    assert y.value.std() == pytest.approx(1.0, abs=0.03)


def test_unknown_lengths_and_float32() -> None:
    g = rg.Graph(rng=1)
    x = g.input(shape=(None, 3), dtype="float32")
    y = rg.dropout(x)
    for n in (4, 2):
        x.set(np.ones((n, 3), np.float32))
        assert y.value.shape == (n, 3)
        assert y.value.dtype == np.float32


def test_bad_input() -> None:
    g = rg.Graph()
    with pytest.raises(rg.DTypeError, match="from 0 to 1"):
        rg.dropout(g.input([1.0]), 1.5)
    with pytest.raises(rg.DTypeError, match="floats"):
        rg.dropout(g.input(np.array([1, 2])))


@pytest.mark.parametrize("drop", [rg.dropout, rg.alpha_dropout])
def test_all_dropped_is_zero_also_of_infinities_and_only_while_training(drop: Any) -> None:
    g = rg.Graph(rng=1)
    x = g.param([1.0, -np.inf, np.nan])
    y = drop(x, 1.0)
    assert y.tolist() == [0.0, 0.0, 0.0]
    assert rg.grad(y.sum(), x).tolist() == [0.0, 0.0, 0.0]
    g.eval()
    np.testing.assert_array_equal(y.value, x.value)
    assert rg.grad(y.sum(), x).tolist() == [1.0, 1.0, 1.0]
    on = g.input(True)
    z = drop(x, 1.0, on)
    assert z.tolist() == [0.0, 0.0, 0.0]
    on.set(False)
    np.testing.assert_array_equal(z.value, x.value)
