"""The laws of ``case`` for quantiles, averages, differences, covariances and histograms; NumPy's argument forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.numpy import _order_statistics

from ..case import LAWS, Case, Law, of_case, of_law

M = [(3, 4)]
W = np.random.default_rng(5).random((3, 4))
ROW = W[0].cumsum()
EDGES = np.array([-1.0, 0.0, 0.5, 2.0])
METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]


def same(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    return (
        lambda *xs: getattr(rg, name)(*xs, *args, **options),
        lambda *xs: getattr(np, name)(*xs, *args, **options),
    )


def counted(rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 5, shape) / 4.0  # the harness multiplies by 4


def flat(found: Any) -> list[Any]:
    if isinstance(found, tuple | list):
        return [one for part in found for one in flat(part)]
    return [found]


CASES = [
    Case("median", *same("median", 0), M, dtypes="dfei?D", empty=[(0, 4)]),
    Case("nanmedian of nothing", *same("nanmedian", 0), M, dtypes="d", empty=[(0, 4)]),
    Case("median of all", *same("median", keepdims=True), [(2, 3)]),
    Case("quantile", *same("quantile", 0.3, 0), M),
    Case("quantiles", *same("quantile", [[0.0, 0.3], [0.7, 1.0]], (0, 1)), M, unknown=False),
    Case("percentile", *same("percentile", 40, 1, method="hazen", keepdims=True), M),
    Case("nanmedian", *same("nanmedian", 1), M),
    Case("nanpercentile", *same("nanpercentile", [10, 90.0], 0), M),
    Case("nanquantile", *same("nanquantile", 0.8), M),
    Case("average", *same("average", 0), M),
    Case(
        "average weighted",
        lambda x, w: rg.average(x, 1, w),
        lambda x, w: np.average(x, 1, w),
        [(3, 4), (3, 4)],
        draw=[None, lambda rng, shape: rng.random(shape) + 0.5],
        dtypes="dfeD",
    ),
    Case(
        "average returned",
        lambda x: rg.average(x, 1, ROW, returned=True),
        lambda x: np.average(x, 1, ROW, returned=True),
        M,
        dtypes="dD",
    ),
    Case("diff", *same("diff"), M, dtypes="dfei?D", empty=[(0, 4)]),
    Case("diff twice", *same("diff", 2, 0), [(4, 3)], empty=[(0, 4)]),
    Case("diff beside", *same("diff", axis=0, prepend=1.0, append=[[0.0] * 4]), M, dtypes="d"),
    Case("ediff1d", *same("ediff1d", to_end=[1, 2], to_begin=3), M, dtypes="di"),
    Case("trapezoid", *same("trapezoid", dx=0.5, axis=0), M, dtypes="dfiD"),
    Case("trapezoid at", *same("trapezoid", ROW), M, dtypes="dfi"),
    Case(
        "trapezoid of two",
        lambda y, x: rg.trapezoid(y, x),
        lambda y, x: np.trapezoid(y, x),
        [(3, 4), (3, 4)],
    ),
    Case("gradient", *same("gradient"), [(5,)], dtypes="dfi"),
    Case(
        "gradient of two",
        *same("gradient", 2.0, edge_order=2),
        [(4, 3)],
        dtypes="dfiD",
        unknown=False,
    ),
    Case("gradient at", *same("gradient", ROW, axis=1, edge_order=2), M, dtypes="df"),
    Case("gradient evenly", *same("gradient", np.arange(4) * 0.5, axis=-1), M, dtypes="dfi"),
    Case(
        "gradient of coordinates",
        lambda f, x: rg.gradient(f, x, axis=0),
        lambda f, x: np.gradient(f, x, axis=0),
        [(4, 2), (4,)],
        draw=[None, lambda rng, shape: (rng.random(shape) + 0.5).cumsum()],
        dtypes="d",
    ),
    Case("cov", *same("cov"), M, dtypes="dfiD", unknown=False),
    Case("cov of columns", *same("cov", rowvar=False, bias=True), [(4, 3)], dtypes="di"),
    Case("cov weighted", *same("cov", fweights=[1, 2, 0, 1], aweights=ROW), M, dtypes="dD"),
    Case("cov of one", *same("cov"), [(5,)], dtypes="di"),
    Case("corrcoef", *same("corrcoef"), M, dtypes="dfiD", unknown=False),
    Case("unwrap", *same("unwrap", axis=0, period=1.5), M, dtypes="df"),
    Case("unwrap integers", *same("unwrap", period=4), M, dtypes="i", order=0),
    Case("histogram", *same("histogram", 5), M, dtypes="dfi?", order=0),
    Case("histogram edges", *same("histogram", EDGES, density=True), M, dtypes="d", order=0),
    Case("histogram rule", *same("histogram", "auto"), [(30,)], dtypes="df", order=0),
    Case("histogram2d", *same("histogram2d", [2, EDGES]), [(9,), (9,)], dtypes="df", order=0),
    Case(
        "histogramdd",
        lambda x: flat(rg.histogramdd(x, (2, EDGES))),
        lambda x: flat(np.histogramdd(x, (2, EDGES))),
        [(9, 2)],
        dtypes="df",
        order=0,
    ),
    Case("bincount", *same("bincount", minlength=3), [(6,)], draw=counted, dtypes="i", order=0),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


A = np.random.default_rng(0).standard_normal((3, 4))
HOLES = np.where(np.eye(3, 4, dtype=bool), np.nan, A)
HOLES[1] = np.nan


def agree(call: Callable[[Any], Any], a: Any) -> None:
    found = flat(call(rg.Graph().input(a)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = flat(call(a))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one.value, other, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_quantiles(method: str) -> None:
    for axis in (None, 0, (0, 1), -1):
        for q in (0.3, [0.0, 0.25, 0.5, 1.0], [[0.1, 0.9]]):
            agree(lambda x, q=q, axis=axis: np.quantile(x, q, axis, method=method), A)
            agree(lambda x, q=q, axis=axis: np.nanquantile(x, q, axis, method=method), HOLES)
            half = (A * 10).astype("f2")
            agree(lambda x, q=q, axis=axis: np.quantile(x, q, axis, method=method), half)
    rg.testing.check_grads(lambda x: np.quantile(x, [0.1, 0.5, 0.8], 1, method=method), [A])


@pytest.mark.parametrize("weights", [W, W[:, 0]], ids=["all", "axis"])
def test_weighted_quantiles(weights: Any) -> None:
    options: dict[str, Any] = {"weights": weights, "method": "inverted_cdf"}
    agree(lambda x: np.quantile(x, [0.2, 0.6], 0, **options), A)
    found = rg.nanpercentile(rg.Graph().input(A), 30, 0, **options).value
    np.testing.assert_array_equal(found, np.percentile(A, 30, 0, **options))
    rg.testing.check_grads(lambda x: rg.quantile(x, [0.2, 0.6], 0, **options), [A])


@pytest.mark.parametrize("method", ["linear", "lower", "midpoint", "hazen"])
def test_gradients_of_quantiles_of_long_rows(method: str) -> None:
    """Such rows are not sorted as a whole."""
    a = np.random.default_rng(0).permutation(2000).reshape(2, 1000) * 1.0
    q = [0.0, 0.123, 0.5, 1.0]
    for f in (rg.quantile, rg.nanquantile):
        x = rg.Graph().param(a)
        y = f(x, q, 1, method=method)
        slopes = rg.grad(y.sum(), x).value
        np.testing.assert_allclose((slopes * a).sum(1), y.value.sum(0), rtol=1e-13)
        np.testing.assert_allclose(rg.jvp(y, [x], [a]).value, y.value, rtol=1e-13)
        assert (slopes != 0).sum() <= 2 * 2 * len(q)


def test_quantiles_follow_q() -> None:
    g = rg.Graph()
    x, q = g.input(A), g.input(0.5)
    y = rg.quantile(x, q, 0)
    for number in (0.5, 0.1):
        q.set(number)
        np.testing.assert_array_equal(y.value, np.quantile(A, number, 0))


SLANTED = sorted(_order_statistics.SLANTS)


@pytest.mark.slow
@pytest.mark.parametrize("method", SLANTED)
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_have_a_gradient_by_q(name: str, method: str) -> None:
    most = 100.0 if name.endswith("percentile") else 1.0
    holes = np.where(np.eye(3, 4, dtype=bool), np.nan, A)
    for axis, keepdims in ((0, False), (None, False), ((0, 1), True)):

        def call(x: Any, q: Any, axis: Any = axis, keepdims: bool = keepdims) -> Any:
            return getattr(rg, name)(x, q, axis, method=method, keepdims=keepdims)

        # Also beyond the middles of the outermost elements, where some methods give these elements themselves.
        for q in (0.31, [0.02, 0.43, 0.97], [[0.61], [0.83]]):
            places = np.asarray(q) * most
            rg.testing.check_grads(call, [A, places], rtol=1e-5, atol=1e-6)
            if name.startswith("nan"):
                rg.testing.check_grads(
                    lambda q, call=call: call(holes, q), [places], rtol=1e-5, atol=1e-6
                )


def test_the_gradient_by_q_of_numbers_of_other_dtypes() -> None:
    g = rg.Graph()
    q = g.input(0.25)
    assert rg.grad(rg.quantile([1, 3, 7], q), q).value == 4.0
    x = g.input(np.array([1, 3, 7], "f4"))
    assert rg.grad(rg.quantile(x, q), q).value == 4.0
    assert rg.grad(rg.percentile(x, q * 100.0), q).value == pytest.approx(4.0)
    assert rg.grad(rg.quantile(x[:1], q), q).value == 0.0


@pytest.mark.parametrize(("q", "slope"), [(0.0, 4.0), (0.5, 6.0), (1.0, 8.0)])
def test_the_gradient_by_q_at_an_element_is_the_mean_of_both_sides(q: float, slope: float) -> None:
    g = rg.Graph()
    leaf = g.input(q)
    y = rg.quantile([1.0, 7.0, 3.0], leaf)
    assert rg.grad(y, leaf).value == slope
    assert rg.jvp(y, leaf, 1.0).value == slope


@pytest.mark.parametrize("method", sorted({*METHODS} - {*SLANTED}))
def test_quantiles_that_are_steps_have_the_gradient_0_by_q(method: str) -> None:
    rg.testing.check_grads(lambda x, q: rg.quantile(x, q, method=method), [A, np.array(0.43)])


def test_gradients_of_quantiles_leave_nan_out() -> None:
    x = rg.Graph().param(HOLES)
    slopes = rg.grad(rg.nanmedian(x, 1)[[0, 2]].sum(), x).value
    np.testing.assert_array_equal(slopes[0] > 0, np.argsort(np.argsort(HOLES[0])) == 1)
    assert not slopes[1].any()
    assert slopes.sum() == 2.0


def test_equal_elements_in_the_middle() -> None:
    """One of equal elements gets the gradient, as in torch.quantile."""
    x = rg.Graph().param([1.0, 2.0, 2.0, 2.0, 3.0])
    assert rg.grad(rg.quantile(x, 0.5), x).value.sum() == 1.0


FORMS: dict[str, Callable[[Any], Any]] = {
    "average tuple": lambda x: np.average(x, (1, 0), W.T),
    "average row": lambda x: np.average(x, 0, W[:, 0]),
    "average keepdims": lambda x: np.average(x, 1, W, keepdims=True),
    "average plain returned": lambda x: np.average(x, 1, returned=True),
    "cov y": lambda x: np.cov(x[0], x[1]),
    "cov ddof": lambda x: np.cov(x, ddof=2),
    "cov aweights ddof": lambda x: np.cov(x, aweights=W[0], ddof=0),
    "cov fweights": lambda x: np.cov(x, fweights=[1, 2, 1, 3]),
    "cov dtype": lambda x: np.cov(x * 0 + 1, dtype="f4"),
    "corrcoef y": lambda x: np.corrcoef(x[0], x[2]),
    "corrcoef one": lambda x: np.corrcoef(x[0]),
    "diff n 0": lambda x: np.diff(x, 0),
    "unwrap discont": lambda x: np.unwrap(x * 9, discont=5.0),
    "gradient two": lambda x: np.gradient(x, 1.0, ROW),
    "gradient axes": lambda x: np.gradient(x, axis=(1, 0)),
    "histogram range": lambda x: np.histogram(x, 5, (-1, 1)),
    "histogram weights": lambda x: np.histogram(x, 5, weights=W),
    "histogram edges weights": lambda x: np.histogram(x, EDGES, weights=W, density=True),
    "histogram rule density": lambda x: np.histogram(x, "sturges", density=True),
    "histogram_bin_edges": lambda x: np.histogram_bin_edges(x, "fd"),
    "histogram2d edges": lambda x: np.histogram2d(x[0], x[1], EDGES, density=True),
    "histogram2d weights": lambda x: np.histogram2d(
        x[0], x[1], 3, [[-1, 1], [-2, 2]], weights=W[0]
    ),
    "histogramdd density": lambda x: np.histogramdd(x, 2, density=True),
    "histogramdd range": lambda x: np.histogramdd(x, 2, [None, (-1, 1), None, None]),
    "bincount weights": lambda x: np.bincount([0, 3, 3, 1], x[0]),
    "bincount cut": lambda x: np.bincount(np.int64([2, 0, 2, 1]), weights=x[1], minlength=6),
}


@pytest.mark.parametrize("form", FORMS)
def test_form_is_numpys(form: str) -> None:
    agree(FORMS[form], A)


@pytest.mark.parametrize(
    "call",
    [
        lambda w: rg.histogram(A, 5, weights=w, density=True)[0],
        lambda w: rg.histogram(A, EDGES, weights=w)[0],
        lambda w: rg.histogram2d(A[0], A[1], [EDGES, 3], weights=w[0])[0],
        lambda w: rg.bincount(np.array([0, 3, 3, 1]), w[0]),
    ],
)
def test_histograms_are_linear_in_their_weights(call: Any) -> None:
    rg.testing.check_grads(call, [W])


def test_counts_follow_another_length() -> None:
    g = rg.Graph()
    x = g.input(np.array([0, 1]))
    y = rg.bincount(x)
    assert y.value.tolist() == [1, 1]
    x.set(np.array([3, 3]))
    assert y.value.tolist() == [0, 0, 0, 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: rg.quantile(x * 1j, 0.5), "no order"),
        (lambda x: rg.quantile(x[:0], 0.5, 0), "no element"),
        (lambda x: rg.quantile(x, 1.5), "from 0 to 1"),
        (lambda x: rg.percentile(x, -1), "from 0 to 100"),
        (lambda x: rg.quantile(x, 0.5, method="best"), "it is one of"),
        (lambda x: rg.quantile(x, 0.5, weights=x), "inverted_cdf"),
        (lambda x: rg.average(x, weights=W[0]), "name the axes"),
        (lambda x: rg.average(x, 0, weights=W[0]), "of lengths"),
        (lambda x: rg.diff(x, -1), "n=-1; it must be at least 0"),
        (lambda x: rg.diff(x, prepend=[1.0]), "give a number"),
        (lambda x: rg.ediff1d(x.astype("int64"), to_end=0.5), "does not fit"),
        (lambda x: rg.gradient(x, edge_order=3), "1 or 2"),
        (lambda x: rg.gradient(x, 1.0, 2.0, 3.0), "one number for all"),
        (lambda x: rg.gradient(x[:, :1]), "at least 2"),
        (lambda x: rg.gradient(x, ROW, axis=0), "one row of that length"),
        (lambda x: rg.cov(x[None]), "one or two"),
        (lambda x: rg.cov(x, ddof=0.5), "integer"),
        (lambda x: rg.cov(x, aweights=[1.0]), "one row of that"),
        (lambda x: rg.unwrap(x, period=x[0, 0]), "fixed when the node is built"),
        (lambda x: rg.histogram(x, 0), "at least one"),
        (lambda x: rg.histogram(x, 0.5), "a number, a rule, or edges"),
        (lambda x: rg.histogram(x, 3, (1, 0)), "lower one"),
        (lambda x: rg.histogram(x, 3, (x[0, 0], 2)), "fixed when the node is built"),
        (lambda x: rg.histogram(x, 3, weights=W[0]), "each element has one"),
        (lambda x: rg.histogramdd(x, [2, 2]), "one for each"),
        (lambda x: rg.bincount(x[0]), "counts integers"),
    ],
)
def test_refusals_say_what_to_write(call: Any, words: str) -> None:
    with pytest.raises(rg.ReactgradError, match=words.replace("(", r"\(")):
        call(rg.Graph().input(A))
