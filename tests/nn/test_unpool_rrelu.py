"""The largest elements put back to their places; leaky slopes that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SHAPES = {1: (2, 3, 9), 2: (2, 3, 6, 8), 3: (2, 2, 4, 4, 6)}


@pytest.mark.parametrize("axes", SHAPES)
@pytest.mark.parametrize(
    "options", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}]
)
def test_elements_come_back_to_their_places(g: rg.Graph, axes: int, options: Any) -> None:
    rows = np.random.default_rng(axes).normal(size=SHAPES[axes]) + 10.0
    with g:
        x = g.input(rows)
        pool = getattr(rg.nn, f"MaxPool{axes}d")(**options, return_indices=True)
        unpool = getattr(rg.nn, f"MaxUnpool{axes}d")(**options)
        y = unpool(*pool(x), output_size=rows.shape)
        found = y.value
        assert found.shape == rows.shape
        assert set(np.unique(pool(x)[0].value)) | {0.0} == set(np.unique(found))
        assert np.array_equal(found[found != 0], rows[found != 0])
        slope = rg.grad(
            y.sum(), x
        ).value  # each element once, in however many windows it is the largest
        assert np.array_equal(slope, found != 0)


def test_numbers_of_pytorch(g: rg.Graph) -> None:
    rows = np.array([[[1.0, 5.0, 2.0, 3.0, 4.0]]])
    with g:
        values, places = rg.nn.MaxPool1d(2, return_indices=True)(rows)
        short = rg.nn.MaxUnpool1d(2)(values, places)
        whole = rg.nn.functional.max_unpool1d(values, places, 2, output_size=(1, 1, 5))
    assert short.tolist() == [[[0.0, 5.0, 0.0, 3.0]]]
    assert whole.tolist() == [[[0.0, 5.0, 0.0, 3.0, 0.0]]]


def test_an_open_number_of_samples(g: rg.Graph) -> None:
    x = g.input(shape=(None, 1, 4))
    with g:
        y = rg.nn.MaxUnpool1d(2)(*rg.nn.MaxPool1d(2, return_indices=True)(x))
    for samples in (1, 3):
        x.set(np.tile([1.0, 2.0, 4.0, 3.0], (samples, 1, 1)))
        assert y.tolist() == [[[0.0, 2.0, 4.0, 0.0]]] * samples


def test_misuse_of_unpool_is_told(g: rg.Graph) -> None:
    with g:
        values, places = rg.nn.MaxPool1d(2, return_indices=True)(np.ones((1, 1, 4)))
        with pytest.raises(rg.ShapeError, match=r"give \(2,\) of lengths near \(4,\)"):
            rg.nn.MaxUnpool1d(2)(values, places, output_size=(9,))
        with pytest.raises(rg.DTypeError, match=r"They are integers, of max_pool1d"):
            rg.nn.MaxUnpool1d(2)(values, values)
        with pytest.raises(rg.ShapeError, match="both have 4 axes"):
            rg.nn.MaxUnpool2d(2)(values[0, 0], places[0, 0])


def test_slopes_are_drawn_in_train_mode(g: rg.Graph) -> None:
    x = np.concatenate([-np.ones(200), np.ones(5)])
    with g:
        layer = rg.nn.RReLU(0.25, 0.75)
        first, second = layer(x), layer(x)
        slopes = -first.value[:200]
        assert not np.array_equal(first.value, second.value)
        assert slopes.min() >= 0.25
        assert slopes.max() < 0.75
        assert abs(slopes.mean() - 0.5) < 0.05
        assert np.array_equal(first.value[200:], np.ones(5))
        drawn = first.value
        layer.eval()
        assert np.array_equal(first.value[:200], np.full(200, -0.5))
        layer.train()
        assert np.array_equal(first.value, drawn)
        leaf = g.input(x)
        held = layer(leaf)
        assert np.array_equal(rg.grad(held.sum(), leaf).value[:200], -held.value[:200])
        assert rg.nn.functional.rrelu([-1.0]).value == pytest.approx(-11 / 48)
        with pytest.raises(rg.DTypeError, match="the first slope is at most the second"):
            rg.nn.RReLU(0.5, 0.25)
