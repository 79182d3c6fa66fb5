"""Images at the places of a grid: values, derivatives by both, what lies outside, kinks, refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def _sampled(x: Any, grid: Any, *, align: bool = False, border: bool = False) -> Any:
    """Return the bilinear values, place by place."""
    axes = x.ndim - 2
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.result_type(x, grid))
    for n, at in product(range(len(x)), product(*map(range, grid.shape[1:-1]))):
        place = []
        for c, m in zip(grid[n][at][::-1], x.shape[2:], strict=True):
            pixel = (c + 1) / 2 * (m - 1) if align else ((c + 1) * m - 1) / 2
            place.append(np.clip(pixel, 0, m - 1) if border else pixel)
        for corner in product((0, 1), repeat=axes):
            number = [int(np.floor(p)) + k for p, k in zip(place, corner, strict=True)]
            if all(0 <= i < m for i, m in zip(number, x.shape[2:], strict=True)):
                weight = np.prod([1 - abs(p - i) for p, i in zip(place, number, strict=True)])
                y[(n, slice(None), *at)] += x[(n, slice(None), *number)] * weight.astype(y.dtype)
    return y


def _drawn(rng: Any, shape: Any) -> Any:
    return rng.uniform(-1.3, 1.3, shape)


SHAPES = [(2, 2, 3, 4), (2, 2, 3, 2)]
DRAW = [lambda rng, shape: rng.standard_normal(shape), _drawn]

CASES = [
    Case("bilinear", rg.grid_sample, _sampled, SHAPES, DRAW, "df"),
    Case(
        "bilinear, corners aligned, border",
        lambda x, grid: rg.grid_sample(x, grid, "bilinear", "border", True),
        lambda x, grid: _sampled(x, grid, align=True, border=True),
        SHAPES,
        DRAW,
        "df",
    ),
    Case(
        "trilinear",
        rg.grid_sample,
        _sampled,
        [(2, 1, 2, 3, 2), (2, 1, 2, 2, 3)],
        DRAW,
        "d",
    ),
    Case(
        "affine_grid",
        lambda theta: rg.affine_grid(theta, (2, 1, 2, 3)),
        lambda theta: np.einsum(
            "hwk,nik->nhwi",
            np.stack(
                [
                    *np.meshgrid(np.arange(3) * 2 / 3 - 2 / 3, np.arange(2) - 0.5),
                    np.ones((2, 3)),
                ],
                -1,
            ).astype(theta.dtype),
            theta,
        ),
        [(2, 2, 3)],
        dtypes="df",
        unknown=False,
        fixed="the shape of the images",
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bicubic"])
def test_derivatives_of_the_other_modes(mode: str, padding: str) -> None:
    rng = np.random.default_rng(0)
    x, grid = rng.standard_normal((1, 2, 4, 5)), rng.uniform(-0.8, 0.8, (1, 2, 3, 2))

    def sampled(x: Any, grid: Any) -> Any:
        return rg.grid_sample(x, grid, mode, padding)

    rg.testing.check_grads(sampled, [x, grid], order=2, modes=("forward", "reverse"), rtol=1e-4)


# In PyTorch 2.13: a row of pixels 1, 2, 4, the place along it, the padding; the value and the slope by the place.
ROWS = [
    (0.0, "zeros", 2.0, 3.0),  # at a pixel: the slope towards the next one
    (-1.0, "zeros", 0.5, 1.5),
    (1.0, "zeros", 2.0, -6.0),
    (5.0, "zeros", 0.0, 0.0),
    (5.0, "border", 4.0, 0.0),
    (1.2, "reflection", 4.0, 0.0),
    (1.6, "reflection", 3.2, -3.0),
    (np.nan, "zeros", np.nan, np.nan),
]


@pytest.mark.parametrize(("place", "padding", "value", "slope"), ROWS)
def test_what_lies_outside_as_in_torch(
    place: float, padding: str, value: float, slope: float
) -> None:
    g = rg.Graph()
    x = g.input(np.array([[[[1.0, 2.0, 4.0]]]]))
    grid = g.param(np.array([[[[place, 0.0]]]]))
    y = rg.grid_sample(x, grid, padding_mode=padding)
    np.testing.assert_allclose(y.value, [[[[value]]]], rtol=1e-12)
    np.testing.assert_allclose(rg.grad(y.sum(), grid).value[0, 0, 0, 0], slope, rtol=1e-12)


def test_an_infinite_pixel_outside_of_the_neighbours_is_not_seen() -> None:
    g = rg.Graph()
    x = g.input(np.array([[[[1.0, 2.0, np.inf]]]]))
    grid = g.input(np.array([[[[-0.5, 0.0], [-3.0, 0.0]]]]))
    assert rg.grid_sample(x, grid).value.tolist() == [[[[1.25, 0.0]]]]


def test_unknown_lengths() -> None:
    rng = np.random.default_rng(1)
    g = rg.Graph()
    x = g.input(shape=(None, 2, None, None), dtype="f8")
    grid = g.input(shape=(None, None, 2, 2), dtype="f8")
    y = rg.grid_sample(x, grid)
    slopes = rg.grad((y**2).sum(), [x, grid])
    for n, h in ((2, 4), (1, 3)):
        values = rng.standard_normal((n, 2, h, 5)), rng.uniform(-1, 1, (n, h, 2, 2))
        g.set({x: values[0], grid: values[1]})
        fresh = rg.Graph()
        leaves = [fresh.param(one) for one in values]
        wanted = rg.grid_sample(*leaves)
        np.testing.assert_array_equal(y.value, wanted.value)
        for one, other in zip(slopes, rg.grad((wanted**2).sum(), leaves), strict=True):
            np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: rg.grid_sample(x, np.zeros((2, 3, 3, 3))),
            rg.ShapeError,
            (
                "grid_sample of float64[2, 1, 3, 4] with grid float64[2, 3, 3, 3]: for images of 2 axes of space the "
                "grid has shape (N, H, W, 2), one place for each pixel of the result."
            ),
        ),
        (
            lambda x: rg.grid_sample(x, np.zeros((1, 3, 3, 2))),
            rg.ShapeError,
            (
                "grid_sample of float64[2, 1, 3, 4] with grid float64[1, 3, 3, 2]: there are 2 images and 1 grids "
                "(axis 0). Give each image a grid, with rg.broadcast_to for one grid of all."
            ),
        ),
        (
            lambda x: rg.grid_sample(x, np.zeros((2, 3, 3, 2)), "linear"),
            rg.DTypeError,
            (
                "grid_sample: mode='linear' for images of 2 axes of space; it is bilinear, nearest, or, for two axes, "
                "bicubic."
            ),
        ),
        (
            lambda x: rg.affine_grid(x, (1, 1, 2, 2)),
            rg.ShapeError,
            (
                "affine_grid of theta of shape (2, 1, 3, 4) for images of shape (1, 1, 2, 2): theta has shape (N, 2, "
                "3) for images (N, C, H, W), and (N, 3, 4) for (N, C, D, H, W)."
            ),
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    g = rg.Graph()
    with pytest.raises(error) as caught:
        call(g.input(np.zeros((2, 1, 3, 4))))
    assert str(caught.value) == message
