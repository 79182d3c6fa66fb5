"""A criterion's node follows the next call while nobody builds on it; afterwards each has its own."""

from __future__ import annotations

import numpy as np

import reactgrad as rg


def test_a_sum_of_one_criterion_for_two_targets_has_both() -> None:
    with rg.Graph() as g:
        net = rg.nn.Linear(3, 4, rng=0)
    rows = np.random.default_rng(0).normal(size=(5, 3))
    first, second = np.array([0, 1, 2, 3, 0]), np.ones(5, int)
    criterion, out = rg.nn.CrossEntropyLoss(), net(rows)
    lengths: set[int] = set()
    for k in range(8):
        loss = 0.3 * criterion(out, first) + 0.7 * criterion(out, second)
        both = [rg.cross_entropy(out, one).mean().item() for one in (first, second)]
        np.testing.assert_allclose(loss.item(), 0.3 * both[0] + 0.7 * both[1], rtol=1e-12)
        loss.backward()
        lengths |= {len(g)} if k > 3 else set()
    assert len(lengths) == 1


def test_an_empty_bag_is_zero() -> None:
    bag = rg.nn.EmbeddingBag(5, 2, mode="max", rng=0)
    found = bag(np.array([1, 2, 3]), np.array([0, 2, 2]))
    assert found.value[1].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(found.value[0], bag.weight.value[1:3].max(axis=0))
    found.sum().backward()
    assert np.isfinite(bag.weight.grad).all()
