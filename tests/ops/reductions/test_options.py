"""Options of NumPy's reductions: dtype, initial, where, keepdims, mean, correction; methods of ufuncs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.random.default_rng(0).standard_normal((3, 4)) + 0.25
MASK = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], bool)
ROW = np.array([True, False, True, True])

# Each call is made on an array and on a node of it.
CALLS: dict[str, Callable[[Any], Any]] = {
    "sum dtype": lambda x: np.sum(x, dtype="f4"),
    "sum int8": lambda x: np.sum(x, 0, dtype="i1"),
    "sum initial": lambda x: np.sum(x, 1, initial=2.5),
    "sum where": lambda x: np.sum(x, 0, where=MASK),
    "sum where row": lambda x: np.sum(x, 1, where=ROW, keepdims=True),
    "sum all options": lambda x: np.sum(x, dtype="f4", where=MASK, initial=1, keepdims=True),
    "mean where": lambda x: np.mean(x, 1, where=MASK),
    "mean where row": lambda x: np.mean(x, where=ROW),
    "mean dtype": lambda x: np.mean(x, 0, dtype="f4"),
    "mean dtype where": lambda x: np.mean(x, 0, dtype="f4", where=MASK, keepdims=True),
    "max initial": lambda x: np.max(x, 0, initial=0.5),
    "max where": lambda x: np.max(x, 0, initial=-9.0, where=MASK),
    "max initial int": lambda x: np.max(x, initial=1),
    "min where": lambda x: np.min(x, initial=3, where=ROW, keepdims=True),
    "amax": lambda x: np.amax(x, 0, initial=0.0),
    "prod dtype": lambda x: np.prod(x, 0, dtype="f4"),
    "prod where": lambda x: np.prod(x, 0, where=MASK, initial=2.0),
    "all where": lambda x: np.all(x > 0, 0, where=MASK),
    "any where": lambda x: np.any(x > 0, 1, where=MASK, keepdims=True),
    "var where": lambda x: np.var(x, 0, where=MASK),
    "var where ddof": lambda x: np.var(x, where=ROW, ddof=1, keepdims=True),
    "var correction": lambda x: np.var(x, 1, correction=1),
    "var dtype": lambda x: np.var(x, 1, dtype="f4"),
    "var mean": lambda x: np.var(x, 1, mean=np.mean(x, 1, keepdims=True)),
    "std mean where": lambda x: np.std(x, 0, where=MASK, mean=np.zeros((1, 4))),
    "std where": lambda x: np.std(x, 0, where=MASK, ddof=0.5),
    "std correction": lambda x: np.std(x, correction=1),
    "nansum where": lambda x: np.nansum(x, 0, where=MASK),
    "nanmean where": lambda x: np.nanmean(x, 0, where=MASK),
    "nanmax initial": lambda x: np.nanmax(x, 0, initial=0.5),
    "nanmin where": lambda x: np.nanmin(x, 0, initial=7, where=MASK),
    "nanvar where": lambda x: np.nanvar(x, 1, where=MASK, ddof=1),
    "nanstd dtype": lambda x: np.nanstd(x, 1, dtype="f4"),
    "cumsum dtype": lambda x: np.cumsum(x, dtype="f4"),
    "cumsum int8": lambda x: np.cumsum(x * 100, 0, dtype="i1"),
    "cumprod dtype": lambda x: np.cumprod(x, 1, dtype="f4"),
    "cumulative_sum dtype": lambda x: np.cumulative_sum(x, axis=1, dtype="f4"),
    "out by position": lambda x: np.std(x, 0, None, None, 1),
    "keepdims by position": lambda x: np.mean(x, 0, None, None, True),
    "median by position": lambda x: np.median(x, 0, None, True, True),
    "overwrite_input": lambda x: np.percentile(x, 30, 0, overwrite_input=False),
    "keyword a": lambda x: np.prod(a=x, axis=0),
    "add.reduce": lambda x: np.add.reduce(x),
    "add.reduce where": lambda x: np.add.reduce(x, 1, where=MASK, initial=1, keepdims=True),
    "add.reduce None": lambda x: np.add.reduce(x, None, dtype="f4"),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=(0, 1)),
    "maximum.reduce": lambda x: np.maximum.reduce(x, 1, initial=0),
    "minimum.reduce": lambda x: np.minimum.reduce(x),
    "fmax.reduce": lambda x: np.fmax.reduce(x),
    "fmin.reduce": lambda x: np.fmin.reduce(x, 1),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x > 0, where=MASK),
    "logical_or.reduce": lambda x: np.logical_or.reduce(x > 9, 1, initial=True),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, 1),
    "logaddexp.reduce where": lambda x: np.logaddexp.reduce(x, 1, where=MASK, initial=0.5),
    "add.accumulate": lambda x: np.add.accumulate(x),
    "add.accumulate dtype": lambda x: np.add.accumulate(x, 1, "f4"),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=1),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x),
    "minimum.accumulate": lambda x: np.minimum.accumulate(x, 1),
    "logaddexp.accumulate": lambda x: np.logaddexp.accumulate(x),
    "logical_and.accumulate": lambda x: np.logical_and.accumulate(x > 0, 1),
    "logical_or.accumulate": lambda x: np.logical_or.accumulate(x > 0),
    "add.outer": lambda x: np.add.outer(x, x[0]),
    "multiply.outer": lambda x: np.multiply.outer(x[0], A),
    "power.outer": lambda x: np.power.outer(A * A, x),
    "subtract.outer": lambda x: np.subtract.outer(2.0, x),
}


def quiet(call: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call(*args)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("name", CALLS)
def test_option_is_numpys(name: str, dtype: str) -> None:
    a = np.round(A * 3).astype(dtype) if dtype == "int64" else A.astype(dtype)
    x = rg.Graph().input(a * 0 + 1)
    y = CALLS[name](x)
    assert isinstance(y, rg.Var)
    assert y.value_version == 0
    x.set(a)
    wanted = quiet(CALLS[name], a)
    assert y.dtype == y.value.dtype == wanted.dtype
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.value, wanted, rtol=2e-6 if wanted.dtype == "f4" else 1e-13)


WITH_GRADIENTS = [
    name
    for name in CALLS
    if not any(word in name for word in ("int8", "logical", "all", "any", "f4"))
    and quiet(CALLS[name], A).dtype == np.float64
]


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_option_differentiates(name: str) -> None:
    rg.testing.check_grads(CALLS[name], [A], order=2, rtol=1e-5, atol=1e-5)


def test_live_mask_and_start() -> None:
    g = rg.Graph()
    x, mask, start = g.input(A), g.input(MASK), g.input(0.5)
    nodes = {
        "sum": rg.sum(x, 0, where=mask, initial=start),
        "max": rg.max(x, 0, where=mask, initial=start),
        "prod": rg.prod(x, 0, where=mask, initial=start),
    }
    for m, s in ((MASK, 0.5), (~MASK, 2.0)):
        g.set({mask: m, start: s})
        for name, y in nodes.items():
            wanted = getattr(np, name)(A, 0, where=m, initial=s)
            np.testing.assert_allclose(y.value, wanted, rtol=1e-13)


def test_extremum_of_nothing_is_where_it_begins() -> None:
    x = rg.Graph().input(np.zeros((0, 3)))
    np.testing.assert_array_equal(rg.max(x, 0, initial=-np.inf).value, [-np.inf] * 3)
    np.testing.assert_array_equal(rg.nanmin(x, 0, initial=2.0).value, [2.0] * 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: rg.max(x, 0, where=MASK), "needs initial="),
        (lambda x: np.nanmin(x, where=MASK), "needs initial="),
        (lambda x: rg.var(x, ddof=1, correction=1), "two names"),
        (lambda x: rg.std(x, ddof=x[0, 0]), "fixed when the node is built"),
        (lambda x: rg.cumulative_sum(x), "say which one"),
        (lambda x: rg.cumsum(x, 2), "does not exist"),
        (lambda x: rg.argmax(x, (0, 1)), r"argmax: axis=\(0, 1\); it is an integer"),
        (lambda x: rg.cumsum(x, axis=True), "must be an integer, not True"),
        (lambda x: rg.argmax(x[:0], 0), "length 0"),
        (lambda x: np.add.reduceat(x, [0, 2]), r"rg\.stack\(\[rg\.sum"),
        (lambda x: np.add.at(x, [0], 1.0), "never written in place"),
        (lambda x: rg.norm(x, "fro", 1), "norm of matrices"),
        (lambda x: rg.norm(x, 5), "no norm of matrices"),
        (lambda x: rg.norm(x[None], 2), "one axis"),
        (lambda x: rg.logsumexp(x * 1j), "real numbers"),
        (lambda x: rg.prod(x, dtype="long double float"), "is no dtype"),
        (lambda x: rg.cummax(x * 1j), "no order"),
    ],
)
def test_refusals_say_what_to_write(call: Any, words: str) -> None:
    with pytest.raises(rg.ReactgradError, match=words):
        call(rg.Graph().input(A))
