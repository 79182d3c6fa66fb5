"""Interpolation, patches and channels as space: values and derivatives, special lengths, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

from . import direct

# A half float is rounded after each axis' weights in the oracle, and once in the op.
HALF = {"e": 4e-3, "f": 1e-5}


def _linear(x: Any, length: int, *, align: bool) -> Any:
    n = x.shape[-1]
    at = np.arange(length) * (n - 1) / max(length - 1, 1)
    if not align:
        at = (np.arange(length) + 0.5) * n / length - 0.5
    rows = [np.interp(at, np.arange(n), row) for row in x.reshape(-1, n).astype(float)]
    return np.stack(rows).reshape(*x.shape[:-1], length)


def _bilinear(x: Any, h: int, w: int, *, align: bool) -> Any:
    y = _linear(x, w, align=align).swapaxes(-1, -2)
    y = _linear(y, h, align=align).swapaxes(-1, -2)
    return y.astype(x.dtype if x.dtype.kind == "f" else float)


def _mean(part: Any) -> Any:
    return part.mean(-1, dtype=np.float32 if part.dtype == np.float16 else None).astype(
        part.dtype if part.dtype.kind == "f" else float
    )


def _unfold(x: Any) -> Any:
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
    columns = [
        wide[:, :, i : i + 2 * 2 + 1 : 2, j : j + 3][:, :, :2] for i in range(3) for j in range(2)
    ]
    return np.stack(columns, 2).reshape(x.shape[0], x.shape[1] * 6, -1)


def _response(x: Any) -> Any:
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    squares = np.pad(wide * wide, [(0, 0), (1, 1), (0, 0)])
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) / 3
    y = wide / (1.5 + 0.3 * mean) ** 0.6
    return y.astype(x.dtype) if x.dtype.kind == "f" else y


IMAGE = [(2, 3, 4, 5)]

CASES = [
    Case("nearest", lambda x: rg.interpolate(x, (8, 5)), lambda x: x.repeat(2, 2), IMAGE),
    Case("nearest, fewer", lambda x: rg.interpolate(x, (2, 5)), lambda x: x[:, :, ::2], IMAGE),
    Case(
        "nearest-exact",
        lambda x: rg.interpolate(x, (2, 5), mode="nearest-exact"),
        lambda x: x[:, :, 1::2],
        IMAGE,
    ),
    Case(
        "linear",
        lambda x: rg.interpolate(x, 7, mode="linear"),
        lambda x: _linear(x, 7, align=False).astype(x.dtype if x.dtype.kind == "f" else float),
        [(2, 3, 4)],
        tolerance=HALF,
    ),
    *[
        Case(
            f"bilinear to {h}, {w}, corners aligned: {align}",
            lambda x, h=h, w=w, align=align: rg.interpolate(
                x, (h, w), mode="bilinear", align_corners=align
            ),
            lambda x, h=h, w=w, align=align: _bilinear(x, h, w, align=align),
            IMAGE,
            tolerance=HALF,
        )
        for h, w in ((7, 3), (1, 10))
        for align in (True, False)
    ],
    Case(
        "area",
        lambda x: rg.interpolate(x, (3, 2), mode="area"),
        lambda x: direct.parts(x, _mean, (3, 2)),
        IMAGE,
    ),
    Case(
        "unfold",
        lambda x: rg.unfold(x, (3, 2), 1, (1, 0), (2, 1)),
        _unfold,
        [(2, 2, 4, 4)],
    ),
    Case(
        "fold",
        lambda x: rg.fold(x, (2, 3), (1, 2)),
        lambda x: _fold(x),  # defined below
        [(2, 4, 4)],
    ),
    Case(
        "pixel_shuffle",
        lambda x: rg.pixel_shuffle(x, 2),
        lambda x: (
            x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 4)
            if x.size
            else x.reshape(0, 2, 6, 4)
        ),
        [(2, 8, 3, 2)],
        empty=[(0, 8, 3, 2)],
    ),
    Case(
        "pixel_unshuffle",
        lambda x: rg.pixel_unshuffle(x, 2),
        lambda x: x.reshape(2, 1, 3, 2, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 4, 3, 2),
        [(2, 1, 6, 4)],
    ),
    Case(
        "local_response_norm",
        lambda x: rg.local_response_norm(x, 3, 0.3, 0.6, 1.5),
        _response,
        [(2, 4, 3)],
        dtypes="df",
    ),
]


def _fold(x: Any) -> Any:
    first, second = x.reshape(x.shape[0], 2, 2, 2, 2).transpose(2, 0, 1, 3, 4)
    y = np.zeros((*first.shape[:3], 3), x.dtype)
    y[..., :2] += first
    y[..., 1:] += second
    return y


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


# What PyTorch 2.13 gives for [0, 1, 4, 9, 16], by the mode and what is asked for.
FIVE = [0.0, 1.0, 4.0, 9.0, 16.0]
ROWS = [
    ({"size": 3}, "nearest", [0, 1, 9]),
    ({"size": 3}, "nearest-exact", [0, 4, 16]),
    ({"scale_factor": 1.5}, "nearest", [0, 0, 1, 4, 4, 9, 16]),
    ({"size": 3}, "area", [0.5, 14 / 3, 12.5]),
]


@pytest.mark.parametrize(("given", "mode", "wanted"), ROWS)
def test_places_as_in_torch(given: Any, mode: str, wanted: Any) -> None:
    g = rg.Graph()
    x = g.input(np.array(FIVE)[None, None])
    np.testing.assert_allclose(rg.interpolate(x, mode=mode, **given).value[0, 0], wanted)


def test_cubic_rows_as_in_torch() -> None:
    g = rg.Graph()
    x = g.input(np.array(FIVE)[None, None, None])
    wanted = {
        (False, False): [0.14814814814814725, 4.0, 14.074074074074076],
        (True, False): [0.0, 4.0, 16.0],
        (False, True): [0.16923076923077027, 4.195348837209302, 13.33846153846154],
    }
    for (align, antialias), row in wanted.items():
        y = rg.interpolate(x, (1, 3), mode="bicubic", align_corners=align, antialias=antialias)
        np.testing.assert_allclose(y.value[0, 0, 0], row, rtol=1e-12)


def test_weights_add_up_to_one() -> None:
    g = rg.Graph()
    x = g.input(np.ones((1, 1, 7, 5)))
    for mode in ("bilinear", "bicubic"):
        for antialias in (False, True):
            for size in ((3, 9), (1, 2), (7, 4)):
                y = rg.interpolate(x, size, mode=mode, antialias=antialias)
                np.testing.assert_allclose(y.value, 1.0, rtol=1e-14)


def test_unknown_lengths_of_space() -> None:
    rng = np.random.default_rng(0)
    builds: list[Any] = [
        lambda x: rg.interpolate(x, scale_factor=1.5, mode="bilinear"),
        lambda x: rg.interpolate(x, (3, 4), mode="bicubic", antialias=True),
        lambda x: rg.interpolate(x, scale_factor=0.5, mode="area"),
        lambda x: rg.unfold(x, 2, padding=1),
        lambda x: rg.pixel_shuffle(x, 2),
    ]
    for build in builds:
        g = rg.Graph()
        x = g.input(shape=(None, 4, None, None), dtype="f8")
        found = build(x)
        slope = rg.grad((found**2).sum(), x)
        for shape in ((2, 4, 5, 6), (1, 4, 4, 3)):
            value = rng.standard_normal(shape)
            x.set(value)
            fresh = rg.Graph().param(value)
            wanted = build(fresh)
            np.testing.assert_array_equal(found.value, wanted.value)
            np.testing.assert_array_equal(slope.value, rg.grad((wanted**2).sum(), fresh).value)


def test_an_infinite_pixel_stays_among_its_neighbours() -> None:
    g = rg.Graph()
    row = np.zeros((1, 1, 6))
    row[0, 0, 2] = np.inf
    y = rg.interpolate(g.input(row), 12, mode="linear").value[0, 0]
    assert np.flatnonzero(~(y == 0.0)).tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: rg.interpolate(x, 3, mode="linear"),
            rg.ShapeError,
            (
                "interpolate of an array of shape (2, 3, 4, 5) with mode='linear': it takes images of shape (N, C, L). "
                "The other modes are nearest, nearest-exact, area, bilinear, trilinear, bicubic."
            ),
        ),
        (
            lambda x: rg.interpolate(x),
            rg.DTypeError,
            "interpolate: size=None and scale_factor=None; exactly one of them says how large the result is.",
        ),
        (
            lambda x: rg.interpolate(x, 3, align_corners=True),
            rg.DTypeError,
            (
                "interpolate: align_corners=True with mode='nearest'; only the linear and the cubic modes have it. "
                "Leave it out."
            ),
        ),
        (
            lambda x: rg.pixel_shuffle(x, 2),
            rg.ShapeError,
            "pixel_shuffle of float64[2, 3, 4, 5] by 2: the number of channels, 3, must be a multiple of 4.",
        ),
        (
            lambda x: rg.unfold(x, 6),
            rg.ShapeError,
            (
                "unfold of float64[2, 3, 4, 5]: a kernel of shape (6, 6) spans (6, 6) elements, more than the image of "
                "(4, 5) with padding ((0, 0), (0, 0)). Use a smaller kernel or dilation, or more padding."
            ),
        ),
        (
            lambda x: rg.fold(x[:, :, :, 0], 4, (1, 3)),
            rg.ShapeError,
            "fold of float64[2, 3, 4] to images of (4, 4): these have (4, 2) patches, so the last length must be 8.",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    g = rg.Graph()
    with pytest.raises(error) as caught:
        call(g.input(np.zeros((2, 3, 4, 5))))
    assert str(caught.value) == message
