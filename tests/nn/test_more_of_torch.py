"""Layers and functions that fewer models use, beside numbers of PyTorch 2.13 that were written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn
from tests.nn.numbers_of_torch import weights

F = nn.functional
PLANE = [
    [[0.637, 0.27], [0.041, 0.017], [0.813, 0.913]],
    [[0.607, 0.729], [0.544, 0.935], [0.816, 0.003]],
]
SPACE = [
    [[0.512, 0.95, 0.144], [0.949, 0.312, 0.423]],
    [[0.828, 0.409, 0.55], [0.028, 0.754, 0.538]],
]
LABELS = np.array([1, 0, 2, 1, 2])
LISTED = np.array([[1, -1, -1], [0, 2, -1], [2, -1, 0], [-1, -1, -1], [0, 1, 2]])

# A function, the shape of its operand, the sum of its results times `weights`, and that of its gradients.
NUMBERS: dict[str, tuple[Any, tuple[int, ...], float, float]] = {
    "channel_shuffle": (
        lambda x: F.channel_shuffle(x, 2),
        (2, 6, 3, 2),
        -0.5909200536276689,
        0.8017561841066082,
    ),
    "fractional_max_pool2d": (
        lambda x: F.fractional_max_pool2d(x, (2, 3), (4, 3), _random_samples=PLANE),
        (2, 3, 9, 8),
        0.7803365374448187,
        3.6817651474970825,
    ),
    "fractional_max_pool2d by parts": (
        lambda x: F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.7), _random_samples=PLANE),
        (2, 3, 9, 8),
        -0.6288736280491022,
        1.7580476419726505,
    ),
    "fractional_max_pool2d, one window": (
        lambda x: F.fractional_max_pool2d(x, 2, (1, 3), _random_samples=PLANE),
        (2, 3, 9, 8),
        -0.17690718618932655,
        -1.879261675779818,
    ),
    "fractional_max_pool3d": (
        lambda x: F.fractional_max_pool3d(x, 2, (2, 3, 2), _random_samples=SPACE),
        (2, 2, 5, 6, 4),
        0.4353476828818814,
        0.21895154045311038,
    ),
    "pdist": (lambda x: F.pdist(x, 3.0), (5, 3), -0.7605687407433359, 0.026731694205156226),
    "rms_norm": (
        lambda x: F.rms_norm(x, (3,), eps=1e-3),
        (5, 3),
        -6.498732236829022,
        -6.240211451296193,
    ),
    "logsigmoid": (F.logsigmoid, (5, 3), -1.7740252100088416, -1.2030090921135375),
    "multi_margin_loss": (
        lambda x: F.multi_margin_loss(x, LABELS, p=2),
        (5, 3),
        -0.7994301088497713,
        0.08179325484812086,
    ),
    "multilabel_margin_loss": (
        lambda x: F.multilabel_margin_loss(x, LISTED),
        (5, 3),
        -0.36807132830988537,
        -0.021635134694151306,
    ),
    "multilabel_soft_margin_loss": (
        lambda x: F.multilabel_soft_margin_loss(x, np.array([[1.0, 0.0, 1.0]] * 5)),
        (5, 3),
        -0.6668490264682667,
        0.03477632270099028,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_function_has_the_numbers_of_torch(g: rg.Graph, name: str) -> None:
    function, shape, value, slope = NUMBERS[name]
    x = g.input(weights(shape, 7))
    y = function(x)
    cost = (y * weights(y.shape, 3)).sum()
    assert cost.item() == pytest.approx(value, rel=1e-9)
    slopes = rg.grad(cost, x).value
    assert (slopes * weights(shape, 5)).sum() == pytest.approx(slope, rel=1e-9)


def test_places_of_a_fractional_pooling_are_those_of_its_elements(g: rg.Graph) -> None:
    images = np.random.default_rng(0).normal(size=(2, 3, 8, 9))
    with g:
        pool = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)
        y, places = pool(images)
        again, _ = pool(images)
    found = np.take_along_axis(images.reshape(2, 3, -1), places.value.reshape(2, 3, -1), -1)
    assert y.shape == (2, 3, 4, 4)
    assert np.array_equal(found.reshape(y.shape), y.value)
    assert not np.array_equal(y.value, again.value)  # each call draws its own places
    alone, _ = pool(images[0])
    assert alone.shape == (3, 4, 4)


REFUSED = [
    (lambda x: F.fractional_max_pool2d(x, 2), rg.DTypeError, "give output_size or output_ratio"),
    (lambda x: F.fractional_max_pool2d(x, 2, 8), rg.ShapeError, "8 windows of 2 need 9 elements"),
    (lambda x: F.fractional_max_pool2d(x, 2, output_ratio=1.5), rg.DTypeError, "between 0 and 1"),
    (lambda x: F.channel_shuffle(x, 4), rg.ShapeError, "a multiple of 4"),
    (F.pdist, rg.ShapeError, "it takes rows"),
    (lambda x: F.gumbel_softmax(x, tau=0.0), rg.DTypeError, "the temperature is positive"),
    (lambda x: nn.FractionalMaxPool3d(2)(x), rg.DTypeError, "give output_size or output_ratio"),
    (
        lambda x: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4, 10]),
        rg.DTypeError,
        "cutoffs grow, from 1 to below the number of classes",
    ),
    (
        lambda x: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5, 8]),
        rg.DTypeError,
        "cluster 2 would have no feature",
    ),
    (lambda x: rg.optim.Rprop([x], etas=(0.5, 0.9)), rg.DTypeError, "the second above 1"),
]


@pytest.mark.parametrize(("written", "kind", "says"), REFUSED)
def test_what_is_refused_says_what_to_write(
    g: rg.Graph, written: Any, kind: Any, says: str
) -> None:
    with g, pytest.raises(kind, match=says):
        written(g.param(np.zeros((2, 6, 8, 8))))


def test_an_adaptive_softmax_has_the_keys_and_numbers_of_torch(g: rg.Graph) -> None:
    with g:
        layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], 2.0, head_bias=True, rng=0)
    assert {path: array.shape for path, array in layer.state_dict().items()} == {
        "head.weight": (6, 8),
        "head.bias": (6,),
        "tail.0.0.weight": (4, 8),
        "tail.0.1.weight": (6, 4),
        "tail.1.0.weight": (2, 8),
        "tail.1.1.weight": (10, 2),
    }
    for i, param in enumerate(layer.parameters()):
        param.set(weights(param.shape, i))
    x = g.input(weights((6, 8), 7))
    labels = np.array([0, 3, 4, 9, 10, 19])
    output, loss = layer(x, labels)
    assert loss.item() == pytest.approx(5.6467621175893745, rel=1e-12)
    slope = (rg.grad(loss, x).value * weights((6, 8), 5)).sum()
    assert slope == pytest.approx(-1.0215538011296197, rel=1e-9)
    every = layer.log_prob(x).value
    np.testing.assert_allclose(np.exp(every).sum(1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(output.value, every[np.arange(6), labels])
    assert layer.predict(x).tolist() == [0, 9, 5, 0, 9, 2]
    assert layer(x[0], np.array(3)).output.shape == ()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_lazy_transposes_and_instances_are_those_of_their_features(g: rg.Graph, axes: int) -> None:
    images = weights((2, 3, *[5] * axes), 1)
    with g:
        lazy = nn.Sequential(
            getattr(nn, f"LazyConvTranspose{axes}d")(4, 3, rng=0),
            getattr(nn, f"LazyInstanceNorm{axes}d")(affine=True),
        )
        plain = nn.Sequential(
            getattr(nn, f"ConvTranspose{axes}d")(3, 4, 3, rng=0),
            getattr(nn, f"InstanceNorm{axes}d")(4, affine=True),
        )
        assert np.array_equal(lazy(images).value, plain(images).value)
    assert list(lazy.state_dict()) == list(plain.state_dict())


def test_a_hard_choice_is_one_class_and_has_the_gradient_of_the_soft_one(g: rg.Graph) -> None:
    scores = g.input(np.log([[0.1, 0.2, 0.7]] * 4000))
    chosen = F.gumbel_softmax(scores, tau=0.5, hard=True)
    assert set(np.unique(chosen.value).round(12)) == {0.0, 1.0}
    assert (chosen.value.sum(1) == 1.0).all()
    np.testing.assert_allclose(chosen.value.mean(0), [0.1, 0.2, 0.7], atol=0.03)
    slopes = rg.grad((chosen * np.array([1.0, 2.0, 3.0])).sum(), scores).value
    assert (abs(slopes).max(1) > 0.0).all()
    np.testing.assert_allclose(slopes.sum(1), 0.0, atol=1e-12)
    kept = chosen.value
    assert np.array_equal(chosen.value, kept)
    chosen.touch()
    assert not np.array_equal(chosen.value, kept)


def test_whole_channels_go_to_the_limit_and_mean_and_variance_stay(g: rg.Graph) -> None:
    with g:
        layer = nn.FeatureAlphaDropout(0.3)
    rows = np.random.default_rng(0).normal(size=(50, 40, 6))
    found = layer(g.input(rows)).value
    counts = [len(np.unique(channel)) for sample in found for channel in sample]
    assert set(counts) == {1, 6}
    assert abs(found.mean()) < 0.05
    assert abs(found.std() - 1.0) < 0.05
    layer.eval()
    assert np.array_equal(layer(rows).value, rows)
