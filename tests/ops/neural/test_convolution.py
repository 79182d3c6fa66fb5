"""Convolutions and their transposes: values, derivatives, steps, padding, groups, unknown lengths, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

from . import direct

# Half floats are added up in float32 and rounded once; the oracle adds in another order.
SUMS = {"f": 1e-4, "e": 1e-2}


def _conv(name: str, shapes: Any, groups: int = 1, empty: Any = None, **arguments: Any) -> Case:
    axes = len(shapes[0]) - 2
    given = {"stride": (1,) * axes, "padding": (0,) * axes, "dilation": (1,) * axes, **arguments}
    call = getattr(rg, f"conv{axes}d")
    return Case(
        name,
        partial(call, groups=groups, **given),
        partial(direct.conv, groups=groups, **given),
        shapes,
        empty=empty,
        tolerance=SUMS,
    )


def _transposed(name: str, shapes: Any, more: Any = None, **arguments: Any) -> Case:
    axes = len(shapes[0]) - 2
    given = {"stride": (1,) * axes, "padding": (0,) * axes, "dilation": (1,) * axes, **arguments}
    more = (0,) * axes if more is None else more
    call = getattr(rg, f"conv_transpose{axes}d")
    return Case(
        name,
        partial(call, output_padding=more, **given),
        partial(direct.conv_transpose, more=more, **given),
        shapes,
        tolerance=SUMS,
    )


CASES = [
    _conv("conv1d", [(2, 3, 7), (4, 3, 3), (4,)], stride=(2,), padding=(1,)),
    _conv("conv2d", [(2, 2, 4, 5), (3, 2, 3, 2)], empty=[(0, 2, 4, 5), (3, 2, 3, 2)]),
    _conv(
        "conv2d steps", [(2, 2, 7, 6), (2, 2, 3, 2)], stride=(2, 3), padding=(2, 1), dilation=(2, 1)
    ),
    _conv("conv2d groups", [(2, 4, 4, 4), (6, 2, 2, 2), (6,)], groups=2, padding=(1, 0)),
    _conv("conv2d depthwise", [(1, 3, 5, 4), (3, 1, 3, 3)], groups=3, padding=(1, 1)),
    _conv("conv2d 1x1", [(2, 3, 3, 2), (2, 3, 1, 1)]),
    _conv("conv3d", [(2, 2, 3, 3, 4), (2, 2, 2, 2, 2)], stride=(1, 2, 1), padding=(0, 1, 1)),
    _transposed("conv_transpose1d", [(2, 2, 4), (2, 3, 3)], stride=(2,), padding=(1,), more=(1,)),
    _transposed("conv_transpose2d", [(2, 2, 3, 2), (2, 2, 2, 3)], stride=(2, 1), dilation=(1, 2)),
    _transposed("conv_transpose2d, longer step", [(1, 2, 2, 3), (2, 2, 2, 2)], stride=(3, 4)),
    _transposed("conv_transpose3d", [(1, 2, 2, 2, 2), (2, 1, 2, 2, 1)], stride=(1, 2, 1)),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


def test_one_image_without_an_axis_of_samples() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 6)), rng.standard_normal((3, 2, 3, 3))
    g = rg.Graph()
    one, many = rg.conv2d(g.input(x), g.input(w)), rg.conv2d(g.input(x[None]), g.input(w))
    assert one.shape == (3, 3, 4)
    np.testing.assert_array_equal(one.value, many.value[0])


def test_same_padding_is_as_long_as_the_image_and_longer_behind() -> None:
    g = rg.Graph()
    x = g.input(np.arange(1.0, 6.0).reshape(1, 1, 5))
    y = rg.conv1d(x, np.array([[[1.0, 10.0]]]), padding="same")
    assert y.value.tolist() == [[[21.0, 32.0, 43.0, 54.0, 5.0]]]
    wide = rg.conv1d(x, np.ones((1, 1, 3)), padding="same", dilation=2)
    assert wide.value.tolist() == [[[4.0, 6.0, 9.0, 6.0, 8.0]]]
    assert rg.conv1d(x, np.ones((1, 1, 3)), padding="valid").shape == (1, 1, 3)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_unknown_lengths_of_samples_and_of_space(stride: int) -> None:
    rng = np.random.default_rng(1)
    w = rng.standard_normal((3, 2, 3, 2))

    def build(x: Any, weight: Any) -> list[Any]:
        y = rg.conv2d(x, weight, stride=stride, padding=1)
        slopes = rg.grad((y * y).sum(), [x, weight])
        return [y, *slopes, rg.grad((slopes[0] ** 2).sum(), weight)]

    g = rg.Graph()
    x, weight = g.input(shape=(None, 2, None, None), dtype="f8"), g.param(w)
    found = build(x, weight)
    assert found[0].shape == (None, 3, None, None)
    for shape in ((2, 2, 5, 6), (1, 2, 8, 7), (0, 2, 5, 5)):
        value = rng.standard_normal(shape)
        x.set(value)
        fresh = rg.Graph()
        wanted = build(fresh.input(value), fresh.param(w))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.value, other.value)


def test_operands_whose_shapes_only_a_run_shows() -> None:
    rng = np.random.default_rng(2)
    g = rg.Graph()
    x = g.input(rng.standard_normal((2, 2, 6, 6)))
    w = g.param(rng.standard_normal((2, 2, 3, 3)))
    lifted = rg.lift(lambda a: a * 1.0, vjp=lambda g, ans, a: g)(x)
    y = rg.conv2d(lifted, w, stride=2)
    slope = rg.grad((y * y).sum(), x)
    known = rg.conv2d(x, w, stride=2)
    np.testing.assert_array_equal(y.value, known.value)
    np.testing.assert_array_equal(slope.value, rg.grad((known * known).sum(), x).value)


def test_one_of_64_images_changed_and_only_that_is_convolved() -> None:
    rng = np.random.default_rng(3)
    g = rg.Graph()
    images = [g.input(rng.standard_normal((1, 2, 6, 6))) for _ in range(64)]
    w = g.param(rng.standard_normal((3, 2, 3, 3)))
    outs = [rg.conv2d(one, w, padding=1) for one in images]
    total = rg.concatenate([(one * one).sum().reshape((1,)) for one in outs]).sum()
    slopes = rg.grad(total, images)
    g.forward(total, *slopes)
    images[5].set(rng.standard_normal((1, 2, 6, 6)))
    run = g.forward(*outs, *slopes)
    convolved = [one for one in run.ran if one.name.startswith("conv")]
    assert len(convolved) == 2
    assert {id(one) for one in convolved} == {id(outs[5]), id(slopes[5])}


def test_half_floats_are_added_up_in_float32() -> None:
    g = rg.Graph()
    x = g.input(np.full((1, 1, 3000), 1.0, "f2"))
    w = g.param(np.ones((1, 1, 3000), "f2"))
    y = rg.conv1d(x, w)
    assert y.dtype == np.float16
    assert y.item() == 3000.0  # one by one, half floats end at 2048
    long = rg.grad(rg.conv1d(x, np.ones((1, 1, 1), "f2")).sum(), x)
    assert long.dtype == np.float16
    of_kernel = g.param(np.ones((1, 1, 1), "f2"))
    assert rg.grad(rg.conv1d(x, of_kernel).sum(), of_kernel).item() == 3000.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x, w: rg.conv2d(x, w[:, :1]),
            rg.ShapeError,
            (
                "conv2d of float64[2, 2, 5, 5] with weight float64[4, 1, 3, 3] and groups=1: the weight takes 1 * 1 "
                "channels, but x has 2 (axis 1). The weight's second length must be the number of channels of x "
                "divided by groups."
            ),
        ),
        (
            lambda x, w: rg.conv2d(x[:, :, :2], w),
            rg.ShapeError,
            (
                "conv2d of float64[2, 2, 2, 5]: a kernel of shape (3, 3) spans (3, 3) elements, more than the image of "
                "(2, 5) with padding ((0, 0), (0, 0)). Use a smaller kernel or dilation, or more padding."
            ),
        ),
        (
            lambda x, w: rg.conv2d(x, w, w),
            rg.ShapeError,
            (
                "conv2d with bias float64[4, 2, 3, 3]: the bias has one number for each of the 4 channels of the "
                "result, shape (4,)."
            ),
        ),
        (
            lambda x, w: rg.conv2d(x, w, stride=(1, 2, 3)),
            rg.ShapeError,
            "conv2d: stride=(1, 2, 3) has 3 numbers for 2 axes of space; write one integer, or one for each axis.",
        ),
        (
            lambda x, w: rg.conv2d(x, w, stride=2, padding="same"),
            rg.ShapeError,
            (
                "conv2d: padding='same' with stride=(2, 2): a result as long as the image needs a stride of 1. Write "
                "the padding as integers."
            ),
        ),
        (
            lambda x, w: rg.conv2d(x, w, padding=1.5),
            rg.DTypeError,
            "conv2d: padding=1.5; it is an integer, fixed when the node is built.",
        ),
        (
            lambda x, w: rg.conv2d(x[0, 0], w),
            rg.ShapeError,
            (
                "conv2d of an array of shape (5, 5): it takes images of shape (N, C, H, W), or one image of shape (C, "
                "H, W). Reshape it, or add axes of length 1 with x[:, None]."
            ),
        ),
        (
            lambda x, w: rg.conv_transpose2d(x, w, output_padding=1),
            rg.ShapeError,
            (
                "conv_transpose2d: output_padding=1 must be smaller than the stride, (1, 1), or the dilation, (1, 1): "
                "it chooses between lengths that give the same number of places."
            ),
        ),
        (
            lambda x, w: rg.conv_transpose2d(x, w),
            rg.ShapeError,
            (
                "conv_transpose2d of float64[2, 2, 5, 5] with weight float64[4, 2, 3, 3]: the weight's first length, "
                "4, must be the number of channels of x, 2 (axis 1)."
            ),
        ),
        (
            lambda x, w: rg.conv1d(x, w),
            rg.ShapeError,
            (
                "conv1d of an array of shape (2, 2, 5, 5): it takes images of shape (N, C, L), or one image of shape "
                "(C, L). Reshape it, or add axes of length 1 with x[:, None]."
            ),
        ),
        (
            lambda x, w: rg.conv2d(x, w, groups=3),
            rg.ShapeError,
            (
                "conv2d with weight float64[4, 2, 3, 3] and groups=3: its first length, 4, is the number of channels "
                "of the result, and must be a multiple of groups."
            ),
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    g = rg.Graph()
    with pytest.raises(error) as caught:
        call(g.input(np.zeros((2, 2, 5, 5))), g.param(np.zeros((4, 2, 3, 3))))
    assert str(caught.value) == message


def test_gradients_of_large_kernels_on_small_images_and_of_many_images() -> None:
    rng = np.random.default_rng(4)
    for images, channels, made, size in ((5, 40, 40, 2), (150, 1, 1, 40)):
        x, w = rng.standard_normal((images, channels, size, size)), np.zeros((made, channels, 3, 3))
        for dtype, rtol in (("f8", 1e-12), ("f4", 1e-4)):
            g = rg.Graph()
            kernel = g.param(w.astype(dtype))
            y = rg.conv2d(x.astype(dtype), kernel, padding=1)
            seed = rng.standard_normal(y.shape).astype(dtype)
            slope = rg.grad(y, kernel, gradient=seed).value
            wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
            for i, j in ((0, 0), (1, 2)):
                part = wide[:, :, i : i + size, j : j + size]
                wanted = np.einsum("nohw,nchw->oc", seed, part)
                np.testing.assert_allclose(slope[:, :, i, j], wanted, rtol=rtol, atol=100 * rtol)
