"""Losses, embedding and attention obey the laws of all ops, and are what their formulas say."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    apart = x - x.max(axis, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis, keepdims=True))


def huber(x: np.ndarray, y: np.ndarray, delta: float) -> np.ndarray:
    apart = np.abs(x - y)
    return np.where(apart < delta, 0.5 * apart**2, delta * (apart - 0.5 * delta))


def chance(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return rng.uniform(0.1, 0.9, shape)


LABELS = np.array([0, 2, 4])
SOME = np.array([0, -100, 4])
WEIGHT = np.array([0.5, 1.0, 2.0, 0.25, 1.5])
ROWS = np.array([[0, 6, 6], [2, 0, 1]])


def weighted_nll(x: np.ndarray) -> np.ndarray:
    kept = [0, 2]
    costs = [-WEIGHT[SOME[i]] * log_softmax(x)[i, SOME[i]] for i in kept]
    return np.sum(costs) / np.sum([WEIGHT[SOME[i]] for i in kept])


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = q @ np.swapaxes(k, -1, -2) / float(np.sqrt(q.shape[-1]))
    return np.exp(log_softmax(scores)) @ v


def alignments(x: np.ndarray) -> np.ndarray:
    """The costs of CTC: of all ways through the steps, those count that give the labels."""
    ways = [*product(range(x.shape[2]), repeat=len(x))]
    costs = []
    for sample, label in zip(np.moveaxis(log_softmax(x), 1, 0), WORDS, strict=True):
        fit = [way for way in ways if [k for k, _ in groupby(way) if k] == label]
        costs.append(-np.log(sum(np.exp(sample[np.arange(len(x)), way].sum()) for way in fit)))
    return np.array(costs)


WORDS = [[1, 2], [1]]
TWO = [(3, 5), (3, 5)]
FEW = {"dtypes": "df", "tolerance": {"f": 3e-5}}

CASES = [
    Case("mse", rg.mse_loss, lambda x, y: np.mean((x - y) ** 2), TWO, **FEW),
    Case(
        "mse of each",
        lambda x, y: rg.mse_loss(x, y, reduction="none"),
        lambda x, y: (x - y) ** 2,
        TWO,
        empty=[(0, 5), (0, 5)],
        **FEW,
    ),
    Case(
        "weighted mse",
        lambda x, y: rg.mse_loss(x, y, weight=WEIGHT.astype(x.dtype)),
        lambda x, y: np.average(
            (x - y) ** 2, weights=np.broadcast_to(WEIGHT.astype(x.dtype), x.shape)
        ),
        TWO,
        dtypes="d",
        late="the call reads the dtype",
    ),
    Case("l1", rg.l1_loss, lambda x, y: np.mean(np.abs(x - y)), TWO, **FEW),
    Case(
        "huber",
        lambda x, y: rg.huber_loss(x, y, delta=0.7, reduction="sum"),
        lambda x, y: huber(x, y, 0.7).sum(),
        TWO,
        dtypes="d",
        order=1,
    ),
    Case(
        "smooth l1",
        lambda x, y: rg.smooth_l1_loss(x, y, beta=0.7),
        lambda x, y: np.mean(huber(x, y, 0.7) / 0.7),
        TWO,
        dtypes="d",
        order=1,
    ),
    Case(
        "binary cross entropy",
        rg.binary_cross_entropy,
        lambda p, t: np.mean(-t * np.log(p) - (1 - t) * np.log1p(-p)),
        TWO,
        draw=chance,
        **FEW,
    ),
    Case(
        "with logits",
        lambda x, t: rg.binary_cross_entropy_with_logits(x, t, pos_weight=2.0),
        lambda x, t: np.mean(2.0 * t * np.log1p(np.exp(-x)) + (1 - t) * np.log1p(np.exp(x))),
        TWO,
        dtypes="d",
    ),
    Case(
        "kl",
        lambda x, t: rg.kl_div(x, t, reduction="batchmean"),
        lambda x, t: np.sum(t * (np.log(t) - x)) / 3,
        TWO,
        draw=chance,
        dtypes="d",
    ),
    Case(
        "nll of some",
        lambda x: rg.nll_loss(rg.log_softmax(x), SOME, WEIGHT),
        weighted_nll,
        [(3, 5)],
        dtypes="d",
        unknown=False,
    ),
    Case(
        "smoothed cross entropy",
        lambda x: rg.cross_entropy(x, LABELS, label_smoothing=0.2, reduction="sum"),
        lambda x: (
            -(0.8 * log_softmax(x)[np.arange(3), LABELS] + 0.2 * log_softmax(x).mean(1)).sum()
        ),
        [(3, 5)],
        dtypes="d",
        unknown=False,
    ),
    Case(
        "cosine similarity",
        rg.cosine_similarity,
        lambda x, y: (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1),
        TWO,
        **FEW,
    ),
    Case(
        "causal attention",
        lambda q, k, v: rg.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: (
            (one := np.tril(np.exp(q @ k.swapaxes(-1, -2) / 2.0))) / one.sum(-1, keepdims=True) @ v
        ),
        [(2, 3, 4)] * 3,
        dtypes="df",
        unknown=False,
    ),
    Case(
        "cosine similarity along an axis that broadcasts",
        lambda x, y: rg.cosine_similarity(x, y, axis=-2),
        lambda x, y: (
            (x * y).sum(-2)
            / (
                np.linalg.norm(np.broadcast_to(x, (2, 2, 3)), axis=-2)
                * np.linalg.norm(np.broadcast_to(y, (2, 2, 3)), axis=-2)
            )
        ),
        [(1, 2, 3), (2, 1, 3)],
        dtypes="d",
        unknown=False,
    ),
    Case(
        "gaussian with one target a row",
        lambda x, t: rg.gaussian_nll_loss(x, t, np.full(3, 2.0)),
        lambda x, t: 0.5 * (np.log(2.0) + (x - t) ** 2 / 2.0).mean(),
        [(3, 5), (3, 1)],
        dtypes="d",
        unknown=False,
    ),
    Case(
        "normalize",
        rg.normalize,
        lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        [(3, 5)],
        **FEW,
    ),
    Case(
        "triplet",
        lambda a, p, n: rg.triplet_margin_loss(a, p, n, margin=3.0, reduction="sum"),
        lambda a, p, n: np.maximum(
            np.linalg.norm(a - p + 1e-6, axis=1) - np.linalg.norm(a - n + 1e-6, axis=1) + 3.0, 0
        ).sum(),
        [(3, 5)] * 3,
        dtypes="d",
    ),
    Case(
        "embedding",
        lambda t: rg.embedding(ROWS, t),
        lambda t: t[ROWS],
        [(7, 3)],
        dtypes="dfe",
        unknown=False,
    ),
    Case(
        "ctc",
        lambda x: rg.nn.functional.ctc_loss(
            rg.log_softmax(x, -1), [[1, 2], [1, 0]], [4, 4], [2, 1], reduction="none"
        ),
        alignments,
        [(4, 2, 3)],
        dtypes="d",
        order=1,
        late="the call reads the number of axes",
        fixed="the labels, and how long they are, are of these samples",
    ),
    Case(
        "attention",
        rg.scaled_dot_product_attention,
        attention,
        [(2, 4, 3), (2, 5, 3), (2, 5, 2)],
        **FEW,
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


def test_a_target_that_is_neither_1_nor_minus_1_counts_both_costs_of_hinge_embedding() -> None:
    loss = rg.hinge_embedding_loss(
        rg.Graph().input([0.25, 2.0, -1.0]), [0.5, 1.0, -1.0], reduction="none"
    )
    assert loss.tolist() == [1.0, 2.0, 2.0]


def test_kinks_are_pytorchs() -> None:
    g = rg.Graph()
    x, p = g.param([1.0, 2.0]), g.param([0.0, 1.0])
    assert rg.grad(rg.l1_loss(x, [1.0, 2.0], reduction="sum"), x).tolist() == [0.0, 0.0]
    cost = rg.binary_cross_entropy(p, [1.0, 0.0], reduction="none")
    assert cost.tolist() == [100.0, 100.0]
    assert rg.grad(cost.sum(), p).tolist() == [-1e12, 1e12]
    sure = rg.binary_cross_entropy(p, [0.0, 1.0], reduction="none")
    assert sure.tolist() == [0.0, 0.0]
    assert rg.grad(sure.sum(), p).tolist() == [0.0, 0.0]
    far = rg.binary_cross_entropy_with_logits(g.input([1e4, -1e4]), [1.0, 1.0], reduction="none")
    assert far.tolist() == [0.0, 1e4]
    none = rg.kl_div(g.input([-1.0]), [0.0], reduction="sum")
    assert none.value == 0.0


def test_a_row_of_padding_passes_no_gradient() -> None:
    g = rg.Graph()
    table = g.param(np.arange(6.0).reshape(3, 2))
    y = rg.embedding([0, 2, 2], table, padding_idx=-1)
    assert y.tolist() == [[0.0, 1.0], [4.0, 5.0], [4.0, 5.0]]
    assert rg.grad(y.sum(), table).tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    z = rg.embedding([2, 2], table)
    assert rg.grad(z.sum(), table).tolist() == [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]


def test_masks_of_attention() -> None:
    g = rg.Graph()
    rng = np.random.default_rng(0)
    q, k, v = (g.input(rng.standard_normal((4, 3))) for _ in range(3))
    mask = np.tri(4, dtype=bool)
    causal = rg.scaled_dot_product_attention(q, k, v, is_causal=True).value
    np.testing.assert_allclose(causal[0], v.value[0])
    np.testing.assert_array_equal(rg.scaled_dot_product_attention(q, k, v, mask).value, causal)
    added = rg.scaled_dot_product_attention(q, k, v, np.where(mask, 0.0, -np.inf))
    np.testing.assert_allclose(added.value, causal)
    x = g.input(shape=(None, 3), dtype="float64")
    y = rg.scaled_dot_product_attention(x, x, x, is_causal=True)
    for n in (4, 2):
        x.set(q.value[:n])
        np.testing.assert_allclose(
            y.value,
            rg.scaled_dot_product_attention(*[g.input(q.value[:n])] * 3, is_causal=True).value,
        )
    with pytest.raises(rg.DTypeError, match="give a mask or is_causal"):
        rg.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


def test_heads_are_shared() -> None:
    g = rg.Graph()
    rng = np.random.default_rng(0)
    q, k, v = (g.input(rng.standard_normal((h, 5, 3))) for h in (4, 2, 2))
    found = rg.scaled_dot_product_attention(q, k, v, enable_gqa=True).value
    wide = [np.repeat(one.value, 2, 0) for one in (k, v)]
    np.testing.assert_allclose(found, attention(q.value, *wide))
    with pytest.raises(rg.ShapeError, match="no multiple"):
        rg.scaled_dot_product_attention(q, g.input(np.zeros((3, 5, 3))), v, enable_gqa=True)


def test_one_hot() -> None:
    g = rg.Graph()
    assert rg.one_hot(g.input(np.array([0, 2])), 3).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: rg.mse_loss(x, [1.0]), "they have one shape"),
        (lambda x: rg.mse_loss(x, [1.0, 2.0], reduction="avg"), "'mean', 'sum' or 'none'"),
        (lambda x: rg.huber_loss(x, x, delta=0.0), "greater than 0"),
        (lambda x: rg.nll_loss(x, [0.5]), "numbered by integers"),
        (lambda x: rg.cross_entropy(x, [0.5, 0.5], ignore_index=1), "probabilities of 0"),
        (lambda x: rg.cross_entropy(x, np.array(0), label_smoothing=2.0), "from 0 to 1"),
        (lambda x: rg.embedding(x, [[1.0]]), "numbers come first"),
        (lambda x: rg.embedding([0], x), "two axes"),
        (lambda x: rg.one_hot(x, 2), "numbered by integers"),
        (lambda x: rg.scaled_dot_product_attention(x, x, x), "last axes are places"),
    ],
)
def test_what_does_not_fit_says_so(call: Any, says: str) -> None:
    g = rg.Graph()
    with pytest.raises(rg.ReactgradError, match=says):
        call(g.input([1.0, 2.0]))
