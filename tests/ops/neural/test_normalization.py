"""Normalisations obey the laws of all ops, and are what their formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

W, C = np.array([0.5, 2.0, -1.0, 1.5]), np.array([1.0, 0.0, -2.0, 0.5])


def standard(x: np.ndarray, axes: Any, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(
        x.var(axes, keepdims=True) + x.dtype.type(eps)
    )


def column(a: np.ndarray) -> np.ndarray:
    return a.reshape(-1, 1, 1)


FEW = {"dtypes": "df", "tolerance": {"f": 3e-5, "d": 1e-10}}
CASES = [
    Case(
        "batch",
        lambda x, w, b: rg.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: standard(x, (0, 2, 3)) * column(w) + column(b),
        [(3, 4, 2, 2), (4,), (4,)],
        unknown=False,
        **FEW,
    ),
    Case(
        "batch of rows",
        lambda x: rg.batch_norm(x, training=True),
        lambda x: standard(x, 0),
        [(5, 4)],
        **FEW,
    ),
    Case(
        "running moments",
        lambda x: rg.batch_norm(x, C.astype(x.dtype), (W * W).astype(x.dtype)),
        lambda x: (x - C.astype(x.dtype)) / np.sqrt((W * W).astype(x.dtype) + x.dtype.type(1e-5)),
        [(5, 4)],
        **FEW,
        late="the call reads the dtype",
    ),
    Case("instance", rg.instance_norm, lambda x: standard(x, (2, 3)), [(3, 4, 2, 3)], **FEW),
    Case(
        "group",
        lambda x, w: rg.group_norm(x, 2, w),
        lambda x, w: (
            standard(x.reshape(len(x), 2, 2, 2, 3), (2, 3, 4)).reshape(x.shape) * column(w)
        ),
        [(3, 4, 2, 3), (4,)],
        unknown=False,
        **FEW,
    ),
    Case(
        "group of unknown batch",
        lambda x: rg.group_norm(x, 2),
        lambda x: standard(x.reshape(len(x), 2, 2), 2).reshape(x.shape),
        [(3, 4)],
        **FEW,
    ),
    Case(
        "rms",
        lambda x: rg.rms_norm(x, eps=1e-6),
        lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(1e-6)),
        [(3, 4)],
        **FEW,
    ),
    Case(
        "rms over two axes",
        lambda x, w: rg.rms_norm(x, w, axis=(1, 2), eps=0.5),
        lambda x, w: x / np.sqrt((x * x).mean((1, 2), keepdims=True) + x.dtype.type(0.5)) * w,
        [(3, 4, 2), (4, 2)],
        unknown=False,
        **FEW,
    ),
    Case(
        "moments",
        rg.batch_moments,
        lambda x: (x.mean((0, 2)), x.var((0, 2), ddof=1)),
        [(3, 4, 2)],
        **FEW,
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


@pytest.mark.parametrize(
    ("dtype", "size"), [("f2", 300.0), ("f4", 1e25), ("f8", 1e200), ("f4", 1e-25), ("f8", 1e-200)]
)
def test_squares_that_leave_the_dtype_do_no_harm(dtype: str, size: float) -> None:
    g = rg.Graph()
    row = np.array([3.0, 4.0], dtype)
    x = g.param(np.stack([row * np.dtype(dtype).type(size), row]))
    y = rg.rms_norm(x, eps=0.0)
    tolerance = 1e-3 if dtype == "f2" else 1e-6
    np.testing.assert_allclose(y.value, np.array([[3.0, 4.0]] * 2) / 12.5**0.5, rtol=tolerance)
    assert np.isfinite(rg.grad(y.sum(), x).value).all()


def test_half_floats_are_rounded_once() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 2000)).astype(np.float16)
    g = rg.Graph()
    wanted = x.astype("f8") / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True))
    np.testing.assert_allclose(rg.rms_norm(g.input(x), eps=0.0).value, wanted, rtol=2e-3)


def test_what_does_not_fit_says_so() -> None:
    g = rg.Graph()
    x = g.input(np.zeros((2, 3)))
    with pytest.raises(rg.DTypeError, match="training=True"):
        rg.batch_norm(x)
    with pytest.raises(rg.ShapeError, match="3 axes or more"):
        rg.instance_norm(x)
    with pytest.raises(rg.ShapeError, match="divide the channels"):
        rg.group_norm(x, 2)
