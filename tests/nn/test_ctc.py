"""Connectionist temporal classification, by numbers that PyTorch gave, and by counting alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nn import functional as F

SCORES = np.sin(np.arange(24.0)).reshape(4, 2, 3)
LABELS: tuple[Any, ...] = (np.array([[1, 2], [1, 1]]), np.array([4, 3]), np.array([2, 1]))
COSTS = [1.3780015248256345, 1.0665119467490025]
# Of the mean, by scores.
SLOPES = [
    [
        [-0.002508784230398532, -0.10445545353953338, 0.10696423776993191],
        [-0.011164886965587777, -0.08446856395073246, 0.09563345091632025],
    ],
    [
        [0.0039787853142917535, -0.04634704025839909, 0.04236825494410734],
        [0.0497001942744616, -0.1245246947848422, 0.0748245005103806],
    ],
    [
        [0.008601689625869319, 0.03566950498096392, -0.044271194606833236],
        [0.008639548740195329, -0.0713564909805694, 0.06271694224037408],
    ],
    [[-0.0035502473188325674, 0.07040141550920705, -0.06685116819037448], [0.0, 0.0, 0.0]],
]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("none", COSTS), ("sum", sum(COSTS)), ("mean", 0.87775635458091)],
)
def test_costs_and_slopes_are_pytorchs(g: rg.Graph, reduction: str, expected: Any) -> None:
    with g:
        x = g.input(SCORES)
        y = rg.nn.CTCLoss(reduction=reduction)(rg.log_softmax(x, -1), *LABELS)
        np.testing.assert_allclose(y.value, expected, rtol=1e-12)
        if reduction == "mean":
            np.testing.assert_allclose(rg.grad(y, x).value, SLOPES, atol=1e-12)


def test_it_is_the_sum_over_all_alignments(g: rg.Graph) -> None:
    p = np.exp(SCORES[:, 0]) / np.exp(SCORES[:, 0]).sum(-1, keepdims=True)
    total = 0.0
    for way in itertools.product(range(3), repeat=4):
        if [k for k, _ in itertools.groupby(way) if k] == [1, 2]:
            total += np.prod(p[np.arange(4), way])
    with g:
        y = F.ctc_loss(np.log(p), [1, 2], [4], [2], reduction="none")
    assert y.value == pytest.approx(-np.log(total), rel=1e-12)


def test_labels_one_after_the_other_and_both_modes_of_differentiation(g: rg.Graph) -> None:
    def cost(v: Any) -> Any:
        flat = np.array([1, 2, 1])
        return F.ctc_loss(rg.log_softmax(v, -1), flat, [4, 3], [2, 1], reduction="sum")

    along = np.cos(np.arange(24.0)).reshape(4, 2, 3)
    with g:
        value, tangent = rg.jvp(cost, (SCORES,), (along,))
        slope = np.asarray(rg.grad(cost)(SCORES))
    assert float(value) == pytest.approx(sum(COSTS), rel=1e-12)
    assert float(tangent) == pytest.approx(float((slope * along).sum()), rel=1e-9)
    h = 1e-6
    with g:
        apart = (float(cost(SCORES + h * along).value) - float(cost(SCORES - h * along).value)) / (
            2 * h
        )
    assert float(tangent) == pytest.approx(apart, rel=1e-6)


def test_a_label_that_is_too_long(g: rg.Graph) -> None:
    """[1, 1] needs a blank in between, so three steps."""
    with g:
        x = g.input(SCORES[:, :1])
        given = (rg.log_softmax(x, -1), [[1, 1]], [2], [2])
        hopeless = F.ctc_loss(*given, reduction="sum")
        left_out = F.ctc_loss(*given, reduction="sum", zero_infinity=True)
        assert np.isinf(hopeless.value)
        assert left_out.value == 0.0
        assert np.isnan(rg.grad(hopeless, x).value[:2]).all()
        assert not rg.grad(left_out, x).value.any()


def test_misuse_is_told(g: rg.Graph) -> None:
    with g:
        x = g.input(SCORES)
        with pytest.raises(
            rg.IndexingError, match="3 is among the targets, and there are 3 classes"
        ):
            _ = F.ctc_loss(x, [[3], [1]], [4, 4], [1, 1]).value
        with pytest.raises(rg.IndexingError, match="the lengths are at most 4 steps"):
            _ = F.ctc_loss(x, [[1], [1]], [5, 4], [1, 1]).value
        with pytest.raises(
            rg.DTypeError, match="the targets are of float64, and they are integers"
        ):
            F.ctc_loss(x, np.ones((2, 1)) * g.input(1.0), [4, 4], [1, 1])
        second = rg.grad(F.ctc_loss(rg.log_softmax(x, -1), *LABELS), x).sum()
        with pytest.raises(rg.GradientError, match="no derivative rule"):
            _ = rg.grad(second, x).value


def test_a_training_step_builds_once(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Linear(3, 3, rng=0)
        loss, opt, sizes = rg.nn.CTCLoss(), rg.optim.SGD(net.parameters(), lr=0.5), []
        costs = []
        for _ in range(8):
            cost = loss(rg.log_softmax(net(SCORES), -1), *LABELS)
            opt.zero_grad()
            cost.backward()
            costs.append(cost.item())
            opt.step()
            sizes.append(len(g))
    assert costs[-1] < costs[0]
    assert len(set(sizes[4:])) == 1
