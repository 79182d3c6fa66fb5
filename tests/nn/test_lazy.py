"""Layers that take the number of features from their first input."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

IMAGES = np.random.default_rng(0).normal(size=(4, 3, 8, 8))


def lazy() -> nn.Sequential:
    return nn.Sequential(
        nn.LazyConv2d(5, 3, rng=0),
        nn.LazyBatchNorm2d(),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(2, rng=1),
    )


def plain() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, rng=0),
        nn.BatchNorm2d(5),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(180, 2, rng=1),
    )


def test_a_lazy_model_is_the_plain_one_after_a_call(g: rg.Graph) -> None:
    with g:
        ours, theirs = lazy(), plain()
        for _ in range(3):
            assert np.array_equal(ours(IMAGES).value, theirs(IMAGES).value)
        one, other = ours.state_dict(), theirs.state_dict()
        assert list(one) == list(other)
        assert all(np.array_equal(one[path], other[path]) for path in one)


def test_it_is_trained_after_a_call_and_builds_once(g: rg.Graph) -> None:
    with g:
        net, sizes = lazy(), []
        net(IMAGES)
        opt = rg.optim.SGD(net.parameters(), lr=0.1)
        before = net[4].weight.value
        for _ in range(5):
            opt.zero_grad()
            (net(IMAGES) ** 2).sum().backward()
            opt.step()
            sizes.append(len(g))
    assert not np.array_equal(net[4].weight.value, before)
    assert len(set(sizes[2:])) == 1
    assert "LazyLinear(in_features=180" in repr(net)


def test_params_that_are_not_there_yet_are_told(g: rg.Graph) -> None:
    with g:
        net = lazy()
        assert "LazyConv2d(made at the first call)" in repr(net)
        for ask in (lambda: list(net.parameters()), lambda: net.to("float32"), net.freeze):
            with pytest.raises(
                rg.GraphError, match=r"made at its first call, at 0, 1, 4\. Call it"
            ):
                ask()
        with pytest.raises(rg.GraphError, match="at itself"):
            rg.optim.SGD(nn.LazyLinear(2).parameters())
        with pytest.raises(rg.DTypeError, match="LazyLinear has no argument 'bais'"):
            nn.LazyLinear(2, bais=False)
        with pytest.raises(rg.ShapeError, match="the number of features is open"):
            nn.LazyLinear(2)(g.input(shape=(2, None)))
