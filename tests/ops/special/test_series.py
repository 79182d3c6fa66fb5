"""Convolutions and polynomials: values beside NumPy, derivatives, and sums of short floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def leading_one(rng: Any, shape: Any) -> Any:
    found = rng.random(shape)
    found[..., 0] = 1.0 + rng.random()
    return found


def rounded(f: Any) -> Any:
    """Return an oracle in float64, rounded to the common dtype of the operands."""

    def oracle(*operands: Any) -> Any:
        dtype = np.result_type(*operands)
        return np.asarray(f(*[np.asarray(one, "f8") for one in operands])).astype(dtype)

    return oracle


STEPS = "one step for each coefficient"

CASES = [
    *[
        Case(
            f"{f.__name__} {mode} {n} {m}",
            lambda a, b, f=f, mode=mode: f(a, b, mode),
            lambda a, b, f=f, mode=mode: f(a, b, mode),
            [(n,), (m,)],
            dtypes="dfei",
            tolerance={"f": 1e-5, "e": 1e-2},
        )
        for f in (np.convolve, np.correlate)
        for mode in ("full", "same", "valid")
        for n, m in ((5, 3), (2, 5), (4, 4))
    ],
    Case("complex convolve", np.convolve, np.convolve, [(5,), (3,)], dtypes="D"),
    Case("complex correlate", np.correlate, np.correlate, [(5,), (3,)], dtypes="D"),
    Case("polyval", np.polyval, rounded(np.polyval), [(4,), (3, 2)], dtypes="df"),
    Case(
        "polyval in half",
        rg.polyval,
        rounded(np.polyval),
        [(3,), (3, 2)],
        dtypes="e",
        order=0,
        unknown=False,
        tolerance={"e": 1e-2},
    ),
    Case("polyval of integers", np.polyval, np.polyval, [(3,), (5,)], dtypes="i", order=0),
    Case("complex polyval", np.polyval, np.polyval, [(4,), (3,)], dtypes="D"),
    Case(
        "polyval of two",
        np.polyval,
        np.polyval,
        [(4, 3), (3,)],
        dtypes="d",
        unknown=False,
        fixed=STEPS,
    ),
    Case(
        "polyval at a number",
        lambda p: np.polyval(p, 2.0),
        lambda p: np.polyval(p, 2.0),
        [(4,)],
        dtypes="df",
        tolerance={"f": 1e-6},
    ),
    Case("polyadd", np.polyadd, np.polyadd, [(4,), (3,)], dtypes="dfei"),
    Case("polysub", np.polysub, np.polysub, [(2,), (3,)], dtypes="dfei"),
    Case("polymul", np.polymul, np.polymul, [(4,), (3,)], dtypes="df"),
    Case(
        "polydiv",
        np.polydiv,
        np.polydiv,
        [(6,), (3,)],
        leading_one,
        dtypes="d",
        unknown=False,
        fixed=STEPS,
    ),
    Case(
        "polydiv by more",
        np.polydiv,
        np.polydiv,
        [(3,), (4,)],
        leading_one,
        dtypes="d",
        unknown=False,
        fixed=STEPS,
    ),
    Case(
        "polydiv by a number",
        np.polydiv,
        np.polydiv,
        [(3,), (1,)],
        leading_one,
        dtypes="d",
        unknown=False,
        fixed=STEPS,
    ),
    Case("polyder", np.polyder, np.polyder, [(5,)], dtypes="dfei", tolerance={"e": 1e-2}),
    Case(
        "polyder twice",
        lambda p: np.polyder(p, 2),
        lambda p: np.polyder(p, 2),
        [(5,)],
        dtypes="dfe",
        tolerance={"e": 1e-2},
    ),
    Case("polyint", np.polyint, np.polyint, [(5,)], dtypes="di"),
    Case(
        "polyint with",
        lambda p: np.polyint(p, 3, [1.0, 2.0, 3.0]),
        lambda p: np.polyint(p, 3, [1.0, 2.0, 3.0]),
        [(5,)],
        dtypes="di",
    ),
    Case(
        "polyint with one",
        lambda p: np.polyint(p, 2, 1.5),
        lambda p: np.polyint(p, 2, 1.5),
        [(5,)],
        dtypes="d",
    ),
    Case("polyint of constants", lambda p, k: rg.polyint(p, 2, k), None, [(5,), (2,)], dtypes=""),
    Case(
        "roots",
        np.roots,
        lambda p: np.roots(p).astype(complex),
        [(5,)],
        leading_one,
        dtypes="d",
        unknown=False,
        fixed=STEPS,
        order=0,
        late="NumPy iterates over the operand to find whose function this is",
    ),
]
NO_ORACLE = {"polyint of constants"}


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", [one for one in CASES if one.name not in NO_ORACLE], ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


def test_constants_of_an_integral_are_differentiable() -> None:
    rg.testing.check_grads(lambda p, k: rg.polyint(p, 2, k), ([1.0, 2.0], [3.0, 4.0]), order=1)


@pytest.mark.slow
def test_derivatives_of_roots() -> None:
    p = np.array([1.0, -2.0, 3.0, 4.0])

    def parts(p: Any) -> Any:
        found = np.roots(p)
        return rg.concatenate([rg.real(found), rg.imag(found)])

    rg.testing.check_grads(parts, (p,), order=2, rtol=1e-5, atol=1e-5)


def test_leading_zeros_leave_roots_out() -> None:
    found = np.roots(rg.Graph().input([0.0, 1.0, -2.0])).value
    assert found[0] == 2.0
    assert np.isnan(found[1])


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_sums_of_short_floats_keep_their_digits(dtype: str) -> None:
    a = np.full(30_000 if dtype == "f4" else 3000, 0.1, dtype)
    g = rg.Graph()
    found = np.correlate(g.input(a), g.input(np.ones_like(a))).value
    exact = np.float64(a[0]) * a.size
    assert abs(float(found[0]) / exact - 1.0) < (1e-7 if dtype == "f4" else 5e-4)


def test_numpys_newer_polynomials_take_vars_as_points() -> None:
    x = rg.Graph().input([2.0, 3.0])
    y = np.polynomial.polynomial.polyval(x, [1.0, 0.0, 2.0])
    assert y.value.tolist() == [9.0, 19.0]


def test_numbers_are_series_of_one() -> None:
    assert np.convolve(rg.Graph().input(2.0), [1.0, 3.0]).value.tolist() == [2.0, 6.0]


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda x: np.convolve(x, [1.0], "best"), rg.DTypeError, "valid"),
    (lambda x: np.convolve([[1.0]], x), rg.ShapeError, "series"),
    (lambda x: np.convolve(x[:0], x), rg.ShapeError, "needs an element"),
    (lambda x: np.polyder(x, -1), rg.ShapeError, "m=-1; it must be at least 0"),
    (lambda x: np.polyint(x, 2, [1.0, 2.0, 3.0]), rg.ShapeError, "2 constants"),
])  # fmt: skip
def test_refusals_say_why(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(rg.Graph().input([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("u", "v"),
    [
        ([1.0, 2.0, 1.0, 0.0], [1.0, 1.0, 0.0]),
        ([1.0, 0.0, 0.0, 3.0], [1.0, 1.0, 0.0]),
        ([0.0, 0.0], [1.0, 2.0, 3.0]),
        ([0.0, 5.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 1.0, 1.0]),
        ([1.0, 0.0, -1.0], [1.0, -1.0]),
    ],
)
def test_a_remainder_has_no_leading_zeros(u: list[float], v: list[float]) -> None:
    found = np.polydiv(rg.Graph().input(u), np.array(v))
    for one, wanted in zip(found, np.polydiv(u, v), strict=True):
        np.testing.assert_allclose(one.value, wanted, rtol=1e-14)


def test_a_trimmed_remainder_follows_and_has_gradients() -> None:
    g = rg.Graph()
    u = g.input([1.0, 0.0, 0.0, 3.0])
    _, rest = rg.polydiv(u, [1.0, 1.0, 0.0])
    total = rest.sum()
    assert rest.value.tolist() == [1.0, 3.0]
    assert rg.grad(total, u).value.tolist() == [1.0, -1.0, 1.0, 1.0]
    u.set([1.0, 2.0, 1.0, 3.0])
    assert rest.value.tolist() == [3.0]
    assert rg.grad(total, u).value.tolist() == [0.0, 0.0, 0.0, 1.0]
