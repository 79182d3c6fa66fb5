"""``rg.polyfit`` is NumPy's, and its gradient is that of the fit that NumPy makes, also where points determine less."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

POINTS = (7,)


def rising(rng: Any, shape: Any) -> Any:
    return np.arange(shape[0]) + rng.random(shape) * 0.3


def positive(rng: Any, shape: Any) -> Any:
    return rng.uniform(0.5, 2.0, shape)


def one(name: str, call: Any, *shapes: Any, draw: Any = (rising, None), **more: Any) -> Case:
    return Case(name, call, call, [POINTS, *shapes], list(draw), **{"dtypes": "d", **more})


CASES = [
    one("fit", lambda x, y: np.polyfit(x, y, 2), POINTS, dtypes="dfi", tolerance={"f": 1e-4}),
    one("fit of columns", lambda x, y: np.polyfit(x, y, 2), (7, 2)),
    one(
        "fit with weights",
        lambda x, y, w: np.polyfit(x, y, 2, w=w),
        *(POINTS, POINTS),
        draw=(rising, None, positive),
    ),
    one(
        "fit of columns with weights",
        lambda x, y, w: np.polyfit(x, y, 1, w=w),
        *((7, 2), POINTS),
        draw=(rising, None, positive),
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


# Places of points, and a degree, of which the points determine less than all coefficients.
LOOSE = {
    "a place twice": ([0.0, 1.0, 1.0], 2, None),
    "one place": ([2.0, 2.0, 2.0], 1, None),
    "less points than coefficients": ([1.0, 2.0], 3, None),
    "one point": ([2.0], 1, None),
    "all at 0": ([0.0, 0.0], 0, None),
    "far from 0": (1e4 + np.arange(6.0), 5, None),
    "a cutoff": ([0.0, 1.0, 2.0, 2.1], 3, 0.05),
}


@pytest.mark.parametrize("name", LOOSE)
def test_the_gradient_is_that_of_the_fit_that_leaves_singular_values_out(name: str) -> None:
    places, deg, rcond = LOOSE[name]
    x = np.asarray(places)
    y = np.random.default_rng(3).standard_normal(len(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.RankWarning)
        # A fit is linear in `y`: its derivatives are the fits of unit vectors.
        rows = [np.polyfit(x, unit, deg, rcond) for unit in np.eye(len(x))]
        value = np.polyfit(x, y, deg, rcond)
    g = rg.Graph()
    leaf = g.input(y)
    found = np.polyfit(g.input(x), leaf, deg, rcond)
    scale = np.abs(value).max()
    np.testing.assert_allclose(found.value, value, rtol=1e-6, atol=1e-9 * scale)
    for i in range(deg + 1):
        expected = np.array([row[i] for row in rows])
        slope = rg.grad(found[i], leaf).value
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-9 * np.abs(rows).max())


def test_a_place_that_stands_twice_shares_the_gradient_of_the_value_there() -> None:
    g = rg.Graph()
    y = g.input([1.0, 2.0, 3.0])
    fit = rg.polyval(rg.polyfit([0.0, 1.0, 1.0], y, 2), 1.0)
    np.testing.assert_allclose(rg.grad(fit, y).value, [0.0, 0.5, 0.5], atol=1e-14)


def test_places_have_the_gradient_of_the_fit_that_leaves_singular_values_out() -> None:
    # Both points at 1 move together, so that the rank stays.
    y = np.array([1.0, 2.0, 4.0])

    def fit(p: Any) -> Any:
        return np.polyfit(rg.stack([p[0], p[1], p[1]]), y, 2)

    rg.testing.check_grads(fit, (np.array([0.5, 1.0]),), order=1, rtol=1e-5, atol=1e-6)


def test_less_points_than_coefficients_with_a_length_that_is_not_known() -> None:
    g = rg.Graph()
    x, y = g.input(shape=(None,), dtype="d"), g.input(shape=(None,), dtype="d")
    found = rg.polyfit(x, y, 1)
    g.set({x: [1.0, 2.0, 4.0], y: [1.0, 3.0, 7.0]})
    np.testing.assert_allclose(found.value, [2.0, -1.0], rtol=1e-12)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda x: np.polyfit(x, [1.0], 1), rg.ShapeError, "one y for each x"),
    (lambda x: np.polyfit(x, x, 1, w=[1.0]), rg.ShapeError, "one weight"),
    (lambda x: np.polyfit(x[None], x, 1), rg.ShapeError, "of one axis"),
    (lambda x: np.polyfit(x[:0], x[:0], 1), rg.ShapeError, "needs one"),
    (lambda x: np.polyfit(x, x, -1), rg.ShapeError, "deg=-1; it must be at least 0"),
    (lambda x: np.polyfit(x, x, 1, full=True), rg.DTypeError, r"rg\.linalg\.lstsq"),
    (lambda x: np.polyfit(x, x, 1, cov=True), rg.DTypeError, r"rg\.linalg\.inv"),
])  # fmt: skip
def test_refusals_say_what_to_write(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(rg.Graph().input([1.0, 2.0, 3.0]))
