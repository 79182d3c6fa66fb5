"""Nodes that are built for one shape have, after a set of another one, the values and gradients of a new graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import tuple_of

IMAGES = ((2, 4, 6, 6), (3, 4, 9, 7), (1, 4, 5, 8))
LINES = ((2, 4, 6), (3, 4, 9), (5, 4, 11))
TABLES = ((3, 4), (5, 4), (4, 4))

CALLS: dict[str, tuple[Callable[[Any], Any], tuple[tuple[int, ...], ...]]] = {
    "group_norm": (lambda x: rg.group_norm(x, 2, [1.0, 2.0, 3.0, 4.0]), IMAGES),
    "group_norm, one axis of space": (lambda x: rg.group_norm(x, 2), LINES),
    "group_norm, other channels": (lambda x: rg.group_norm(x, 2), ((2, 4), (3, 8), (1, 2))),
    "batch_norm": (lambda x: rg.batch_norm(x, training=True), IMAGES),
    "instance_norm": (rg.instance_norm, IMAGES),
    "rms_norm": (lambda x: rg.rms_norm(x, axis=(-1, -2)), IMAGES),
    "batch_moments": (rg.batch_moments, IMAGES),
    "attention": (lambda x: rg.scaled_dot_product_attention(x, x, x), IMAGES),
    "causal attention": (
        lambda x: rg.scaled_dot_product_attention(x, x, x, is_causal=True),
        IMAGES,
    ),
    "grouped attention": (
        lambda x: rg.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True),
        IMAGES,
    ),
    "kl_div": (lambda x: rg.kl_div(x, rg.softmax(x), reduction="batchmean"), IMAGES),
    "cross_entropy": (
        lambda x: rg.cross_entropy(
            x,
            rg.argmax(x, 1),
            axis=1,
            label_smoothing=0.1,
            weight=[1.0, 2.0, 3.0, 4.0],
            ignore_index=1,
            reduction="mean",
        ),
        IMAGES,
    ),
    "mse_loss": (lambda x: rg.mse_loss(x, 0.0 * x, weight=[2.0]), IMAGES),
    "gaussian_nll_loss": (lambda x: rg.gaussian_nll_loss(x, 0.0 * x, x * x + 1.0), IMAGES),
    "embedding": (lambda x: rg.embedding([0, 2, 1, 2], x, padding_idx=-1), TABLES),
    "glu": (lambda x: rg.glu(x), ((2, 4), (3, 8), (1, 2))),
    "bilinear": (lambda x: rg.bilinear(x, x, np.ones((2, 4, 4))), TABLES),
    "adaptive_avg_pool": (lambda x: rg.adaptive_avg_pool2d(x, (3, None)), IMAGES),
    "adaptive_max_pool": (lambda x: rg.adaptive_max_pool2d(x, 3, True), IMAGES),
    "adaptive_max_pool, one axis": (lambda x: rg.adaptive_max_pool2d(x, (None, 2), True), IMAGES),
    "adaptive_max_pool, no axis": (lambda x: rg.adaptive_max_pool2d(x, (None, None), True), IMAGES),
    "adaptive_max_pool1d": (lambda x: rg.adaptive_max_pool1d(x, 3), LINES),
    "max_pool": (lambda x: rg.max_pool2d(x, 2, return_indices=True), IMAGES),
    "avg_pool": (lambda x: rg.avg_pool2d(x, 2, 2, 1, True, False), IMAGES),
    "interpolate, size": (lambda x: rg.interpolate(x, (8, 9), mode="bilinear"), IMAGES),
    "interpolate, scale": (
        lambda x: rg.interpolate(x, scale_factor=1.5, mode="bicubic", recompute_scale_factor=True),
        IMAGES,
    ),
}


def made(call: Callable[[Any], Any], value: np.ndarray) -> tuple[Any, tuple[Any, ...], Any]:
    """Return a param, the results of a call, and the gradient of the first one's squares."""
    x = rg.Graph(rng=0).param(value)
    results = tuple_of(call(x))
    return x, results, rg.grad((results[0] * results[0]).sum(), x)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_follow_another_shape(name: str) -> None:
    call, shapes = CALLS[name]
    rng = np.random.default_rng(0)
    first, *others = [rng.standard_normal(shape) for shape in shapes]
    x, results, slope = made(call, first)
    for one in (*results, slope):
        assert one.value is not None
    for other in others:
        x.set(other)
        _, wanted, wanted_slope = made(call, other)
        for found, want in zip((*results, slope), (*wanted, wanted_slope), strict=True):
            assert found.shape == want.shape
            assert np.shape(found.value) == np.shape(want.value)
            np.testing.assert_allclose(found.value, want.value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rg.group_norm(x, 2),
        lambda x: rg.rms_norm(x, axis=(-1, -2)),
        lambda x: rg.scaled_dot_product_attention(x, x, x),
        lambda x: rg.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: rg.kl_div(x, rg.softmax(x), reduction="batchmean"),
        lambda x: rg.interpolate(x, scale_factor=1.5, recompute_scale_factor=True),
        lambda x: rg.adaptive_max_pool2d(x, 2),
    ],
    ids=["group", "rms", "attention", "causal", "kl_div", "interpolate", "adaptive_max_pool"],
)
def test_all_lengths_may_be_unknown(call: Callable[[Any], Any]) -> None:
    x = rg.Graph().input(shape=(None,) * 4, dtype="float64")
    y = call(x)
    slope = rg.grad((y * y).sum(), x)
    for shape in IMAGES:
        value = np.random.default_rng(0).standard_normal(shape)
        x.set(value)
        _, (wanted,), wanted_slope = made(call, value)
        np.testing.assert_allclose(y.value, wanted.value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(slope.value, wanted_slope.value, rtol=1e-9, atol=1e-12)


def test_channels_that_the_groups_do_not_divide_are_refused_at_the_set() -> None:
    x = rg.Graph().input(np.zeros((2, 4, 3)))
    y = rg.group_norm(x, 2)
    with pytest.raises(rg.ShapeError):
        x.set(np.zeros((2, 5, 3)))
    assert y.value.shape == x.value.shape == (2, 4, 3)


@pytest.mark.parametrize("lengths", [(4, 4), (2, 5), (5, 2), (0, 3)])
def test_later_keys_do_not_count(lengths: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    queries, keys = (rng.standard_normal((3, n, 2)) for n in lengths)
    with rg.Graph():
        found = rg.attention_weights(queries, keys, is_causal=True)
        wanted = rg.attention_weights(queries, keys, np.tri(*lengths, dtype=bool))
    np.testing.assert_array_equal(found.value, wanted.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_attention_keeps_the_dtype_and_its_second_derivatives(dtype: str) -> None:
    g = rg.Graph()
    x = g.param(np.random.default_rng(0).standard_normal((2, 3, 4)).astype(dtype))
    y = rg.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert y.dtype == y.value.dtype == np.dtype(dtype)
    if dtype == "float64":
        rg.testing.check_grads(
            lambda a: rg.scaled_dot_product_attention(a, 2.0 * a, a, is_causal=True),
            (x.value,),
            order=2,
        )


def test_nodes_of_attention_and_padding_go_through_files(tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.input(np.random.default_rng(0).standard_normal((3, 4)), name="x")
    y = rg.scaled_dot_product_attention(x, x, x, is_causal=True)
    rows = rg.embedding([0, 2], x, padding_idx=-1)
    y.name, rows.name = "y", "rows"
    g.save(tmp_path / "g.safetensors")
    h = rg.load(tmp_path / "g.safetensors")
    for one in (y, rows):
        np.testing.assert_array_equal(h[one.name].value, one.value)
