"""Methods of nodes that have the names of NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.random.default_rng(0).standard_normal((3, 4))
MASK = A > -0.5

METHODS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x.all(),
    "all where": lambda x: x.all(axis=0, where=MASK),
    "any": lambda x: x.any(axis=1, keepdims=True),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(1, keepdims=True),
    "cumprod": lambda x: x.cumprod(),
    "cumsum": lambda x: x.cumsum(0, dtype="f4"),
    "max": lambda x: x.max(0, initial=0.5, where=MASK),
    "mean": lambda x: x.mean(1, where=MASK),
    "min": lambda x: x.min(initial=-1.0),
    "prod": lambda x: x.prod(1, "f4"),
    "prod where": lambda x: x.prod(initial=2.0, where=MASK),
    "std": lambda x: x.std(ddof=1),
    "std dtype": lambda x: x.std(0, "f4"),
    "sum": lambda x: x.sum(1, dtype="f4", keepdims=True),
    "sum where": lambda x: x.sum(0, initial=1.0, where=MASK),
    "var": lambda x: x.var(1, keepdims=True),
    "var mean": lambda x: x.var(1, mean=x.mean(1, keepdims=True), ddof=1),
}


@pytest.mark.parametrize("name", METHODS)
def test_method_is_that_of_arrays(name: str) -> None:
    x = rg.Graph().input(A)
    for node in (x, x.detach()):
        found, wanted = METHODS[name](node).value, METHODS[name](A)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if wanted.dtype == "f4" else 1e-13)


def test_dtype_in_the_place_of_keepdims_is_refused() -> None:
    x = rg.Graph().input(A)
    for function in (rg.logsumexp, rg.norm):
        with pytest.raises(rg.DTypeError, match="dtype="):
            function(x, keepdims="f4")
    with pytest.raises(rg.DTypeError, match="dtype="):
        x.sum(0, "f4")
