"""Pooling: values and derivatives, ties, NaN, padding, places, parts, unknown lengths, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

from . import direct


def _largest(part: Any, size: int = 0) -> Any:
    return part.max(-1)


def _average(part: Any, size: int = 0) -> Any:
    wide = part.astype(np.float32) if part.dtype == np.float16 else part
    mean = wide.mean(-1)
    return mean.astype(part.dtype) if part.dtype == np.float16 else mean


def _padded(part: Any, size: int) -> Any:
    return (_average(part) * part.shape[-1] / size).astype(
        part.dtype if part.dtype.kind == "f" else float
    )


def _max(
    name: str, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Case:
    call = getattr(rg, f"max_pool{len(kernel)}d")
    return Case(
        name,
        lambda x: call(x, kernel, stride, padding, dilation, ceil),
        lambda x: direct.pool(x, _largest, kernel, stride, padding, dilation, ceil=ceil),
        [shape],
    )


def _avg(
    name: str, shape: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool
) -> Case:
    call = getattr(rg, f"avg_pool{len(kernel)}d")
    reduce = _padded if include else _average
    return Case(
        name,
        lambda x: call(x, kernel, stride, padding, ceil, include),
        lambda x: direct.pool(x, reduce, kernel, stride, padding, ceil=ceil),
        [shape],
    )


CASES = [
    _max("max_pool1d", (2, 3, 7), (3,), (2,), (1,), (1,), False),
    _max("max_pool2d", (2, 2, 4, 6), (2, 2), (2, 2), (0, 0), (1, 1), False),
    _max("max_pool2d overlapping", (2, 2, 5, 6), (3, 2), (1, 2), (1, 1), (1, 2), True),
    _max("max_pool2d of many places", (1, 2, 7, 8), (6, 5), (1, 2), (3, 2), (1, 1), False),
    _max("max_pool3d", (2, 1, 3, 4, 4), (2, 2, 2), (1, 2, 2), (0, 1, 0), (1, 1, 1), False),
    _avg("avg_pool1d", (2, 3, 7), (3,), (2,), (1,), False, True),
    _avg("avg_pool2d", (2, 2, 4, 6), (2, 2), (2, 2), (0, 0), False, True),
    _avg("avg_pool2d with padding", (2, 2, 5, 6), (3, 2), (2, 3), (1, 1), True, True),
    _avg("avg_pool2d without padding", (2, 2, 5, 6), (3, 2), (2, 3), (1, 1), True, False),
    _avg("avg_pool3d", (2, 1, 3, 4, 4), (2, 2, 2), (1, 2, 2), (0, 1, 0), False, True),
    *[
        Case(
            f"adaptive_{kind}_pool2d to {lengths}",
            partial(getattr(rg, f"adaptive_{kind}_pool2d"), output_size=lengths),
            lambda x, reduce=reduce, lengths=lengths: direct.parts(x, reduce, lengths),
            [(2, 2, 6, 5)],
        )
        for kind, reduce in (("max", _largest), ("avg", _average))
        for lengths in ((3, 5), (4, 2), (1, 1), (8, 7))
    ],
    Case(
        "global_max_pool",
        rg.global_max_pool,
        lambda x: x.max((2, 3), keepdims=True),
        [(2, 2, 3, 4)],
    ),
    Case(
        "global_avg_pool",
        rg.global_avg_pool,
        lambda x: x.mean((2, 3), keepdims=True),
        [(2, 2, 3, 4)],
        dtypes="dfi",
    ),
    Case(
        "lp_pool2d",
        lambda x: rg.lp_pool2d(x, 3, 2, 1),
        lambda x: direct.pool(
            x, lambda part, size: (part**3).sum(-1) ** (1 / 3), (2, 2), (1, 1), (0, 0)
        ),
        [(2, 2, 3, 4)],
        draw=lambda rng, shape: rng.uniform(0.5, 2.0, shape),
        dtypes="df",
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


NAN, INF = np.nan, np.inf

# rows of an image, the window, step and padding, and what PyTorch 2.13 says: values, places, gradient of the sum.
SPECIAL = [
    ("ties", [[1, 1], [1, 1]], (2, 2, 0), [[1]], [[0]], [[1, 0], [0, 0]]),
    (
        "ties overlap",
        [[1, 1, 1], [1, 1, 1]],
        (2, 1, 0),
        [[1, 1]],
        [[0, 1]],
        [[1, 1, 0], [0, 0, 0]],
    ),
    ("zeros of both signs", [[0.0, -0.0], [-0.0, 0.0]], (2, 2, 0), [[0]], [[0]], [[1, 0], [0, 0]]),
    (
        "the last NaN",
        [[1, NAN, 0], [NAN, 0, 5]],
        ((2, 3), 1, 0),
        [[NAN]],
        [[3]],
        [[0, 0, 0], [1, 0, 0]],
    ),
    (
        "no padding wins",
        [[-INF] * 3] * 2,
        (2, 1, 1),
        [[-INF] * 4] * 3,
        [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5]],
        [[4, 2, 2], [2, 1, 1]],
    ),
    ("infinity", [[INF, 1], [2, INF]], (2, 2, 0), [[INF]], [[0]], [[1, 0], [0, 0]]),
]


@pytest.mark.parametrize(
    ("image", "window", "values", "places", "slope"),
    [one[1:] for one in SPECIAL],
    ids=[one[0] for one in SPECIAL],
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_special_points_as_in_torch(
    image: Any, window: Any, values: Any, places: Any, slope: Any, dtype: str
) -> None:
    g = rg.Graph()
    x = g.param(np.array(image, dtype)[None, None])
    y, found = rg.max_pool2d(x, *window, return_indices=True)
    np.testing.assert_array_equal(y.value[0, 0], np.array(values, dtype))
    np.testing.assert_array_equal(found.value[0, 0], places)
    np.testing.assert_array_equal(rg.grad(y.sum(), x).value[0, 0], slope)
    t = g.input(np.arange(x.size, dtype=dtype).reshape(x.shape))
    np.testing.assert_array_equal(rg.jvp(y, x, t).value[0, 0], np.array(places, dtype))


def test_windows_of_many_places_have_the_winners_of_one_pass() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 3, (2, 2, 9, 8)).astype(float)
    image[0, 0, 3, 4] = image[0, 0, 5, 2] = np.nan
    g = rg.Graph()
    x = g.param(image)
    for window in ((6, 1, 3), ((5, 6), (2, 1), (2, 0))):
        y, places = rg.max_pool2d(x, *window, return_indices=True)
        slope = rg.grad(y.sum(), x).value
        wanted = np.zeros_like(image)
        for n in range(2):
            for c in range(2):
                np.add.at(wanted[n, c].reshape(-1), places.value[n, c].reshape(-1), 1.0)
                flat = image[n, c].reshape(-1)
                np.testing.assert_array_equal(flat[places.value[n, c]], y.value[n, c])
        np.testing.assert_array_equal(slope, wanted)


def test_a_gradient_of_infinity_reaches_the_winner_only() -> None:
    g = rg.Graph()
    x = g.param(np.array([[[[1.0, 2.0], [0.0, 3.0]]]]))
    slope = rg.grad(rg.max_pool2d(x, 2), x, gradient=np.full((1, 1, 1, 1), np.inf))
    assert slope.value.tolist() == [[[[0.0, 0.0], [0.0, np.inf]]]]


def test_means_of_half_floats_and_of_many_float32() -> None:
    g = rg.Graph()
    x = g.input(np.full((1, 1, 64, 64), 40000.0, "f2"))
    assert rg.avg_pool2d(x, 64).item() == 40000.0  # their sum has left the dtype
    long = g.input(np.full((1, 1, 20_000), 0.1, "f4"))
    mean = rg.avg_pool1d(long, 10_000)
    np.testing.assert_allclose(mean.value, np.float32(0.1), rtol=1e-6)


def test_a_window_of_zeros_has_a_p_norm_without_a_slope() -> None:
    g = rg.Graph()
    x = g.param(np.array([[[0.0, 0.0, 3.0, 4.0]]]))
    y = rg.lp_pool1d(x, 2, 2)
    assert y.value.tolist() == [[[0.0, 5.0]]]
    np.testing.assert_allclose(rg.grad(y.sum(), x).value, [[[0.0, 0.0, 0.6, 0.8]]], rtol=1e-15)
    assert rg.lp_pool1d(x - 3.5, np.inf, 2).value.tolist() == [[[3.5, 0.5]]]


def test_divisor_override() -> None:
    g = rg.Graph()
    x = g.input(np.arange(9.0).reshape(1, 1, 3, 3))
    y = rg.avg_pool2d(x, 2, 1, divisor_override=2)
    assert y.value.tolist() == [[[[4.0, 6.0], [10.0, 12.0]]]]


def test_unknown_lengths_of_space() -> None:
    rng = np.random.default_rng(2)
    builds: list[Any] = [
        lambda x: rg.max_pool2d(x, 3, 2, 1, return_indices=True),
        lambda x: rg.max_pool2d(x, 6, 1, 3, return_indices=True),
        lambda x: (rg.avg_pool2d(x, 3, 2, 1),),
        lambda x: (rg.adaptive_avg_pool2d(x, (3, None)),),
        lambda x: rg.adaptive_max_pool2d(x, (3, 2), return_indices=True),
    ]
    for build in builds:
        g = rg.Graph()
        x = g.input(shape=(None, 2, None, None), dtype="f8")
        found = build(x)
        slope = rg.grad((found[0] ** 2).sum(), x)
        for shape in ((2, 2, 7, 6), (1, 2, 6, 9)):
            value = rng.standard_normal(shape)
            x.set(value)
            fresh = rg.Graph().param(value)
            wanted = build(fresh)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one.value, other.value)
            np.testing.assert_array_equal(slope.value, rg.grad((wanted[0] ** 2).sum(), fresh).value)


def test_one_image_without_an_axis_of_samples() -> None:
    g = rg.Graph()
    x = g.input(np.arange(16.0).reshape(1, 4, 4))
    y, places = rg.max_pool2d(x, 2, return_indices=True)
    assert y.value.tolist() == [[[5.0, 7.0], [13.0, 15.0]]]
    assert places.value.tolist() == [[[5, 7], [13, 15]]]
    assert rg.avg_pool2d(x, 2).value.tolist() == [[[2.5, 4.5], [10.5, 12.5]]]
    assert rg.max_pool2d(np.zeros((0, 1, 4, 4)), 2).shape == (0, 1, 2, 2)


def test_one_of_64_images_changed_and_only_that_is_pooled() -> None:
    rng = np.random.default_rng(3)
    g = rg.Graph()
    images = [g.param(rng.standard_normal((1, 2, 6, 6))) for _ in range(64)]
    outs = [rg.max_pool2d(one, 2) for one in images]
    slopes = rg.grad(rg.concatenate(outs).sum(), images)
    g.forward(*outs, *slopes)
    images[5].set(rng.standard_normal((1, 2, 6, 6)))
    run = g.forward(*outs, *slopes)
    assert {id(one) for one in run.ran} == {id(outs[5]), id(slopes[5])}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: rg.max_pool2d(x, 2, padding=2),
            rg.ShapeError,
            (
                "max_pool2d: padding=2 is more than half of the window, 2: some windows would hold nothing but "
                "padding. Use less padding, or a larger kernel_size."
            ),
        ),
        (
            lambda x: rg.max_pool2d(x, 7),
            rg.ShapeError,
            (
                "max_pool of float64[2, 2, 5, 6]: a window is longer than the image with its padding, so that the "
                "result would have lengths (5, 0). Use a smaller window or dilation, or more padding."
            ),
        ),
        (
            lambda x: rg.max_pool1d(x[:, :, 0, :1], 2, 1, 1, 2),
            rg.ShapeError,
            (
                "max_pool of float64[2, 2, 1]: with dilation 2 a window along axis 2 holds no element, since it begins "
                "at -1 and the axis has 1. Use less padding or dilation."
            ),
        ),
        (
            lambda x: rg.avg_pool2d(x, 2, divisor_override=0),
            rg.DTypeError,
            "avg_pool2d: divisor_override=0; it is an integer other than 0.",
        ),
        (
            lambda x: rg.max_pool2d(x * 1j, 2),
            rg.DTypeError,
            "max_pool of complex128[2, 2, 5, 6]: complex numbers have no order. Pool x.real or abs(x).",
        ),
        (
            lambda x: rg.adaptive_avg_pool2d(x, 0),
            rg.ShapeError,
            "adaptive_avg_pool2d: output_size=0; it must be at least 1.",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    g = rg.Graph()
    with pytest.raises(error) as caught:
        call(g.input(np.zeros((2, 2, 5, 6))))
    assert str(caught.value) == message
