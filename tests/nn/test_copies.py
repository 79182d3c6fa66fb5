"""Copies with params of their own, and twins in a fork."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

ROWS = np.ones((3, 2))


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2, rng=0), nn.BatchNorm1d(2), nn.Linear(2, 1, rng=1))


def test_a_deep_copy_has_params_of_its_own_and_keeps_ties() -> None:
    with rg.Graph():
        one = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1))
        one[1].weight = one[0].weight
        one[1].bias.freeze()
        other = copy.deepcopy(one)
    assert np.array_equal(other(ROWS).value, one(ROWS).value)
    assert other[0].weight is other[1].weight
    assert other[1].bias.frozen
    assert not {*map(id, one.parameters())} & {*map(id, other.parameters())}
    one[0].weight.set(np.zeros((2, 2)))
    assert not np.array_equal(other(ROWS).value, one(ROWS).value)


def test_a_twin_calls_in_the_fork_and_shares_values_until_one_side_changes() -> None:
    with rg.Graph() as g:
        one = net()
    before = one.eval()(ROWS).value
    h = g.fork()
    other = one.twin(h)
    y = other(ROWS)
    assert y.graph is h
    assert np.array_equal(y.value, before)
    assert other[0].weight is h[one[0].weight]
    other.train()(np.arange(6.0).reshape(3, 2))
    assert other[1].num_batches_tracked.value == 1
    assert one[1].num_batches_tracked.value == 0
    other[2].bias.set([9.0])
    assert np.array_equal(one(ROWS).value, before)


def test_modules_are_neither_copied_flat_nor_pickled() -> None:
    import pickle

    with rg.Graph():
        one = net()
    with pytest.raises(rg.DTypeError, match="copy.deepcopy"):
        copy.copy(one)
    with pytest.raises(rg.DTypeError, match=r"Save net\.state_dict\(\)"):
        pickle.dumps(one)
