"""Functions under PyTorch's names: which are ours as they are, and which differ."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

F = nn.functional
ROWS = np.random.default_rng(0).normal(size=(4, 3))


def test_functions_that_agree_are_ours() -> None:
    x = rg.Graph().input(ROWS)
    assert np.array_equal(F.gelu(x).value, rg.gelu(x).value)
    assert F.mse_loss(x, ROWS + 1.0).value == rg.mse_loss(x, ROWS + 1.0).value


def test_functions_that_differ_are_as_in_torch() -> None:
    g = rg.Graph()
    x = g.input(ROWS)
    weight = np.random.default_rng(1).normal(size=(2, 3))
    assert np.allclose(F.linear(x, weight).value, ROWS @ weight.T)
    assert np.allclose(F.softmax(x, dim=0).sum(0).value, 1.0)
    assert np.allclose(F.softmax(x).sum(1).value, 1.0)
    assert np.allclose(rg.exp(F.log_softmax(x, 1)).sum(1).value, 1.0)
    labels = np.array([0, 1, 2, 1])
    assert F.cross_entropy(x, labels).value == rg.cross_entropy(x, labels).mean().value
    assert F.cross_entropy(x, labels).value == nn.CrossEntropyLoss()(x, labels).value
    assert np.allclose(F.layer_norm(x, (3,)).value, rg.layer_norm(x).value)


def test_pad_counts_from_the_last_axis() -> None:
    x = rg.Graph().input(ROWS)
    assert np.array_equal(F.pad(x, (1, 2)).value, np.pad(ROWS, [(0, 0), (1, 2)]))
    padded = np.pad(ROWS, [(3, 0), (1, 2)], "edge")
    assert np.array_equal(F.pad(x, (1, 2, 3, 0), mode="replicate").value, padded)
    with pytest.raises(rg.ShapeError, match="two lengths for each padded axis"):
        F.pad(x, (1, 2, 3))
