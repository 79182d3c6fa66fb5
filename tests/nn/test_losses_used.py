"""A criterion's node follows the next call while nobody builds on it; afterwards each has its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


TOGETHER: dict[str, Any] = {
    "their sum": lambda one, other: one + other,
    "a weighted sum": lambda one, other: 0.3 * one + 0.7 * other,
    "a stack": lambda one, other: rg.stack([one, other]),
    "a function of Python": lambda one, other: rg.lift(lambda p, q: p + q)(one, other),
    "with one detached": lambda one, other: one.detach() * 0.3 + other,
}


@pytest.mark.parametrize("together", TOGETHER)
@pytest.mark.parametrize("is_read", [False, True])
def test_two_costs_that_are_one_node_are_not_added_up(together: str, is_read: bool) -> None:
    """Both calls give the same node, which has the second target: twice that cost was the sum, without a word."""
    with rg.Graph() as g:
        y = g.input([[2.0, 0.0], [0.0, 1.0]])
    criterion = rg.nn.CrossEntropyLoss()
    one = criterion(y, np.array([0, 1]))
    if is_read:
        one.item()
    other = criterion(y, np.array([1, 1]))
    assert one is other
    with pytest.raises(
        rg.GraphError, match="Make a criterion for each target, first = rg.nn.Cross"
    ):
        TOGETHER[together](one, other)
    first, second = rg.nn.CrossEntropyLoss(), rg.nn.CrossEntropyLoss()
    total = 0.3 * first(y, np.array([0, 1])) + 0.7 * second(y, np.array([1, 1]))
    assert total.item() == pytest.approx(0.9200948492805977, rel=1e-12)  # of PyTorch


def test_a_loop_may_use_a_cost_twice_while_it_holds_the_former_one() -> None:
    with rg.Graph() as g:
        y = g.input([[2.0, 0.0], [0.0, 1.0]])
    criterion = rg.nn.CrossEntropyLoss()
    lengths: list[int] = []
    for k in range(12):
        labels = np.array([k % 2, 1])
        loss = criterion(y, labels)
        total = loss + 0.1 * loss**2
        cost = rg.cross_entropy(y, labels).mean().item()
        assert total.item() == pytest.approx(cost + 0.1 * cost**2, rel=1e-12)
        del total
        lengths.append(len(g))
    assert len(set(lengths[4:])) == 1
