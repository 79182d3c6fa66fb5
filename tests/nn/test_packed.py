"""Sequences of several lengths: recurrent layers beside numbers of PyTorch 2.13 that were written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn
from tests.nn.numbers_of_torch import weights

R = nn.utils.rnn
LENGTHS = np.array([3, 5, 1, 4])
BOTH = {"num_layers": 2, "bidirectional": True, "batch_first": True}
PLAIN = {"bidirectional": True, "bias": False}

# A layer, whether first states are given, the sum of all results times `weights`, and that of its gradients.
NUMBERS: list[tuple[str, dict[str, Any], bool, float, float]] = [
    ("RNN", {}, False, 1.0602475271201504, -0.9062680251204944),
    ("RNN", {}, True, -0.26292199706786157, 1.6444593457803407),
    ("RNN", BOTH, True, 0.7188406483271301, 4.7150479793201185),
    ("RNN", PLAIN, False, -5.5811915669799745, -13.956069345501184),
    ("GRU", {}, False, -1.4592564728623754, -0.27802823687305256),
    ("GRU", BOTH, False, -2.709982850493727, 0.7881151673288362),
    ("GRU", PLAIN, True, 1.431546651922958, -3.458229258317323),
    ("LSTM", {}, True, 0.7724124451152528, -0.7733083870935875),
    ("LSTM", BOTH, False, -2.923106622968704, 0.708993814356605),
    ("LSTM", BOTH, True, 2.4388914772343524, -2.026476484617056),
    ("LSTM", PLAIN, True, 2.42719131821286, -6.213204294111354),
    (
        "LSTM",
        {"num_layers": 2, "bidirectional": True, "proj_size": 2},
        True,
        1.015753399873801,
        0.30243054353836596,
    ),
]


@pytest.mark.parametrize(("kind", "options", "stated", "value", "slope"), NUMBERS)
def test_a_layer_has_the_numbers_of_torch(
    g: rg.Graph, kind: str, options: dict[str, Any], stated: bool, value: float, slope: float
) -> None:
    with g:
        layer = getattr(nn, kind)(3, 4, rng=0, **options)
    for i, param in enumerate(layer.parameters()):
        param.set(weights(param.shape, i))
    first = options.get("batch_first", False)
    rows = weights((5, 4, 3), 7)
    x = g.input(rows.swapaxes(0, 1) if first else rows)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states: Any = weights((count, 4, options.get("proj_size", 0) or 4), 9)
    if kind == "LSTM":
        states = (states, weights((count, 4, 4), 10))
    packed = R.pack_padded_sequence(x, g.input(LENGTHS), batch_first=first)
    output, left = layer(packed, states if stated else None)
    padded, _ = R.pad_packed_sequence(output, batch_first=first, padding_value=-1.0)
    cost = (padded * weights(padded.shape, 3)).sum()
    for i, one in enumerate(left if kind == "LSTM" else (left,)):
        cost = cost + (one * weights(one.shape, 4 + i)).sum()
    assert cost.item() == pytest.approx(value, rel=1e-9)
    slopes = rg.grad(cost, x).value
    assert (slopes * weights(x.shape, 5)).sum() == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_each_sequence_is_as_if_it_were_alone_whatever_is_behind_its_end(
    g: rg.Graph, kind: str
) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 4, 3))
    for i, n in enumerate(LENGTHS):
        rows[n:, i] = np.nan
    with g:
        layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, rng=0)
        x, lengths = g.input(rows), g.input(LENGTHS)
        output, left = layer(R.pack_padded_sequence(x, lengths))
    padded, _ = R.pad_packed_sequence(output)
    for i, n in enumerate(LENGTHS):
        alone, ends = layer(rows[:n, i])
        np.testing.assert_allclose(padded.value[:n, i], alone.value, rtol=1e-12, atol=1e-14)
        assert not padded.value[n:, i].any()
        pairs = zip(left, ends, strict=True) if kind == "LSTM" else [(left, ends)]
        for one, other in pairs:
            np.testing.assert_allclose(one.value[:, i], other.value, rtol=1e-12, atol=1e-14)
    slopes = rg.grad(padded.sum(), x).value
    inside = np.arange(5)[:, None] < LENGTHS
    assert np.isfinite(slopes).all()
    assert np.array_equal(slopes.any(-1), inside)


def test_other_lengths_are_fed_to_the_same_nodes(g: rg.Graph) -> None:
    with g:
        layer = nn.LSTM(3, 4, rng=0)
    sizes: list[int] = []
    for k in range(6):
        lengths = np.array([5, *np.random.default_rng(k).integers(1, 6, 3)])
        h = layer(R.pack_padded_sequence(weights((5, 4, 3), k), lengths))[1][0]
        assert h.shape == (1, 4, 4)
        assert np.isfinite(h.value).all()
        del h
        sizes.append(len(g))
    assert len(set(sizes)) == 1
    kept = [layer(R.pack_padded_sequence(weights((5, 4, 3), k), LENGTHS))[1][0] for k in range(2)]
    assert kept[0] is not kept[1]  # two results that are held


def test_padding_and_back() -> None:
    rows = [np.arange(3.0), np.arange(1.0), np.arange(2.0)]
    padded = R.pad_sequence(rows, padding_value=9.0)
    assert padded.tolist() == [[0.0, 0.0, 0.0], [1.0, 9.0, 1.0], [2.0, 9.0, 9.0]]
    left = R.pad_sequence(rows, batch_first=True, padding_side="left")
    assert left.tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert [one.tolist() for one in R.unpad_sequence(padded, [3, 1, 2])] == [
        one.tolist() for one in rows
    ]
    packed = R.pack_sequence(rows)
    assert packed.lengths.tolist() == [3, 1, 2]
    whole, lengths = R.pad_packed_sequence(packed, True, 7.0, total_length=4)
    assert whole.tolist() == [[0.0, 1.0, 2.0, 7.0], [0.0, 7.0, 7.0, 7.0], [0.0, 1.0, 7.0, 7.0]]
    assert lengths.tolist() == [3, 1, 2]
    with rg.Graph() as g:
        live = R.pad_sequence([g.input(one) for one in rows], padding_value=9.0)
    assert live.tolist() == padded.tolist()
    longer = R.pack_padded_sequence(np.ones((6, 2)), [2, 4])
    assert longer.data.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]


REFUSED = [
    (lambda: R.pack_padded_sequence(np.ones((5, 2)), [1.0, 2.0]), rg.DTypeError, "are integers"),
    (lambda: R.pack_padded_sequence(np.ones((5, 2)), [1]), rg.ShapeError, "give one for each"),
    (lambda: R.pack_padded_sequence(np.ones((5, 2)), [0, 3]), rg.ShapeError, "lengths from 0 to 3"),
    (lambda: R.pack_padded_sequence(np.ones((5, 2)), [1, 6]), rg.ShapeError, "in 5 steps"),
    (lambda: R.pad_sequence([]), rg.ShapeError, "at least one sequence"),
    (lambda: R.pad_sequence([[1.0], [[1.0]]]), rg.ShapeError, "alike but for a known length"),
    (lambda: R.pad_sequence([[1.0]], padding_side="top"), rg.DTypeError, "'right' or 'left'"),
    (
        lambda: R.pad_packed_sequence(R.pack_sequence([[1.0, 2.0]]), total_length=1),
        rg.ShapeError,
        "the longest sequence has 2 steps",
    ),
    (
        lambda: R.unpad_sequence(np.ones((2, 1)), rg.Graph().input([1])),
        rg.DTypeError,
        r"Write lengths\.value",
    ),
]


@pytest.mark.parametrize(("written", "kind", "says"), REFUSED)
def test_what_is_refused_says_why(written: Any, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says):
        written()


def test_params_as_one_vector_and_back(g: rg.Graph) -> None:
    with g:
        net = nn.Sequential(nn.Linear(3, 2, rng=0), nn.Linear(2, 1, rng=0))
    params = list(net.parameters())
    vector = nn.utils.parameters_to_vector(params)
    assert vector.tolist() == [x for one in params for x in one.value.ravel()]
    nn.utils.vector_to_parameters(2.0 * vector, params)
    before = vector.value
    with pytest.raises(rg.ShapeError, match="the params have 11 elements"):
        nn.utils.vector_to_parameters(np.ones(10), params)
    assert vector.value is before
    assert rg.grad(vector.sum(), params[0]).value.tolist() == [[1.0] * 3] * 2
