"""Calls from NumPy's and PyTorch's own test suites that had another result here, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SINGULAR = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -2.0]])
HALF = np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 1.0]], "float16")
WITH_NAN = np.array([np.nan, 2.0, 1.0])
EMPTY = np.zeros((0, 3, 3, 0))

CALLS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "svd of a singular Hermitian matrix": (
        lambda a: np.linalg.svd(a, hermitian=True),
        [SINGULAR],
    ),
    "cov in half precision": (lambda x: np.cov(x, dtype=np.float16), [HALF]),
    "cov in half precision, weighted": (
        lambda x: np.cov(x, dtype=np.float16, fweights=np.array([1, 2, 1])),
        [HALF],
    ),
    "corrcoef in half precision": (lambda x: np.corrcoef(x, dtype=np.float16), [HALF]),
    "tensorsolve without elements": (np.linalg.tensorsolve, [EMPTY, np.zeros((0, 3))]),
    "sort by a short name": (lambda x: np.sort(x, kind="quick"), [WITH_NAN]),
    "argsort by a short name": (lambda x: np.argsort(x, kind="heap"), [WITH_NAN]),
    "partition without elements": (lambda x: np.partition(x, 0), [np.zeros(0)]),
    "argpartition without elements": (lambda x: np.argpartition(x, 0, axis=0), [EMPTY]),
    "stack with a dtype": (lambda x: np.stack([x, x], axis=1, dtype="float32"), [HALF]),
    "repeat by one number in a row": (np.repeat, [np.arange(3.0), np.array([2])]),
    "repeat of nothing by one number": (np.repeat, [np.zeros(0), np.array([3])]),
    "repeat by a number each": (np.repeat, [np.arange(3.0), np.array([2, 0, 1])]),
    "reshape with a copy": (lambda x: np.reshape(x, (3, 2), copy=True), [HALF]),
}


def leaves(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_numpys_result(name: str) -> None:
    call, arrays = CALLS[name]
    g = rg.Graph()
    found = leaves(call(*[g.input(one) for one in arrays]))
    wanted = leaves(call(*arrays))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.value.dtype == other.dtype
        np.testing.assert_allclose(one.value, other, rtol=1e-3 if other.dtype == "e" else 1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: rg.rms_norm(x, (3,)),
            r"rms_norm: weight=\(3,\)\. To normalise over the last axes",
        ),
        (lambda x: rg.one_hot(x.astype(int), -1), "num_classes=-1; it must be at least 0"),
        (
            lambda x: np.cov(x, fweights=np.array([1.5, 1.0, 1.0])),
            "fweights of float64; they are counts",
        ),
        (lambda x: np.sort(x, kind="bubble"), "is none of"),
        (lambda x: np.repeat(x, x[0, :2].astype(int), axis=1), "has 3 elements along axis 1"),
        (lambda x: np.stack([x, x], dtype=int), "stack"),
        (
            lambda x: np.bincount(x[0].astype(int), minlength=-1),
            "minlength=-1; it must be at least 0",
        ),
    ],
)
def test_a_call_is_refused_in_words(call: Callable[[Any], Any], words: str) -> None:
    x = rg.Graph().input(HALF.astype(float))
    with pytest.raises(rg.ReactgradError, match=words):
        call(x)


def test_shares_of_two_infinities_are_even() -> None:
    g = rg.Graph()
    x, y = g.param(-np.inf), g.param(-np.inf)
    assert [one.value for one in rg.grad(rg.logaddexp2(x, y), [x, y])] == [0.5, 0.5]
