"""The laws of ``case`` for reductions, scans and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from ..case import LAWS, Case, Law, of_case, of_law

M = [(3, 4)]


def same(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the call of one name in both packages."""
    return (
        lambda *xs: getattr(rg, name)(*xs, *args, **options),
        lambda *xs: getattr(np, name)(*xs, *args, **options),
    )


def positive(rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.random(shape) + 0.5


def logcumsumexp(x: Any, axis: int = 0) -> Any:
    return np.logaddexp.accumulate(x, axis, np.float16 if x.dtype == "e" else None)


def logsumexp(x: Any, **options: Any) -> Any:
    return np.logaddexp.reduce(x, **options)


def holes(rng: Any, shape: tuple[int, ...]) -> Any:
    """Return elements some of which are NaN, always the same ones."""
    x = rng.standard_normal(shape)
    x[0, 1] = x[1, 2] = x[2, 2] = np.nan
    return x


# Integers have no NaN, and no gradient to differences with NaN.
NAN = {"draw": holes, "dtypes": "dfe", "order": 0}

CASES = [
    Case("prod", *same("prod", 0), M, draw=positive, dtypes="dfeiD?", empty=[(0, 4)]),
    Case("prod of all", *same("prod"), M, draw=positive, dtypes="dfD"),
    Case("prod over two", *same("prod", (0, 2)), [(2, 3, 2)], draw=positive),
    Case("prod kept", *same("prod", -1, keepdims=True), M, draw=positive),
    Case("cumsum", *same("cumsum", 1), M, dtypes="dfei?D", empty=[(0, 4)]),
    Case("cumsum of all", *same("cumsum"), M, empty=[(0, 4)]),
    Case("cumsum along the first", *same("cumsum", 0), M, dtypes="df"),
    Case("cumprod", *same("cumprod", 1), M, dtypes="dfei?D", empty=[(0, 4)]),
    Case("cumprod of all", *same("cumprod"), M, dtypes="df"),
    Case("cumprod along the first", *same("cumprod", 0), M, dtypes="df"),
    Case("cumulative_sum of a row", *same("cumulative_sum"), [(4,)], dtypes="df"),
    Case("cumulative_sum", *same("cumulative_sum", axis=0, include_initial=True), M, dtypes="dfi"),
    Case(
        "cumulative_prod", *same("cumulative_prod", axis=1, include_initial=True), M, dtypes="dfi"
    ),
    Case("cummax", lambda x: rg.cummax(x, 0), lambda x: np.maximum.accumulate(x, 0), M),
    Case("cummin", lambda x: rg.cummin(x, 1), lambda x: np.minimum.accumulate(x, 1), M),
    Case("logcumsumexp", lambda x: rg.logcumsumexp(x, 0), logcumsumexp, M, dtypes="dfe"),
    Case("logsumexp of a number", rg.logsumexp, lambda x: x + 0, [()], dtypes="dfe"),
    Case(
        "logsumexp", lambda x: rg.logsumexp(x, 0), lambda x: logsumexp(x, axis=0), M, dtypes="dfe"
    ),
    Case(
        "logsumexp kept",
        lambda x: rg.logsumexp(x, 1, keepdims=True),
        lambda x: logsumexp(x, axis=1, keepdims=True),
        M,
        dtypes="dfe",
    ),
    Case("all", *same("all", 0), M, dtypes="dfei?D", order=0, empty=[(0, 4)]),
    Case("any", *same("any", 1, keepdims=True), M, dtypes="dfei?", order=0, empty=[(0, 4)]),
    Case("count_nonzero", *same("count_nonzero", 0), M, dtypes="dfei?D", order=0, empty=[(0, 4)]),
    Case("argmax", *same("argmax", 0), M, dtypes="dfei?", order=0),
    Case("argmin of all", *same("argmin", keepdims=True), M, order=0),
    Case("var", *same("var", 0), M, dtypes="dfeiD?", tolerance={"e": 8e-3}),
    Case("var of all", *same("var", ddof=1), M, dtypes="dfD"),
    Case("std", *same("std", 1, keepdims=True, ddof=1), M, dtypes="dfeiD"),
    Case("std of all", *same("std"), M, dtypes="df"),
    Case("ptp", *same("ptp", 1), M),
    Case(
        "norm", lambda x: rg.norm(x, axis=0), lambda x: np.linalg.norm(x, axis=0), M, dtypes="dfiD"
    ),
    Case("norm of all", lambda x: rg.norm(x), lambda x: np.linalg.norm(x), M, dtypes="dfD"),
    Case("norm 3", lambda x: rg.norm(x, 3, 1), lambda x: np.linalg.norm(x, 3, 1), M, dtypes="dfD"),
    Case(
        "norm 0.5", lambda x: rg.norm(x, 0.5, 1), lambda x: np.linalg.norm(x, 0.5, 1), M, dtypes="d"
    ),
    Case(
        "norm inf",
        lambda x: rg.norm(x, np.inf),
        lambda x: np.linalg.norm(x, np.inf),
        M,
        dtypes="dD",
    ),
    Case("norm -1", lambda x: rg.norm(x, -1), lambda x: np.linalg.norm(x, -1), M, dtypes="d"),
    Case(
        "norm 0",
        lambda x: rg.norm(x, 0, 1),
        lambda x: np.linalg.norm(x, 0, 1),
        M,
        order=0,
        dtypes="dD",
    ),
    *[
        Case(f"{name} {options}", *same(name, **options), M, **NAN)
        for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin")
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True})
    ],
    Case("nanvar ddof", *same("nanvar", 0, ddof=2), M, **NAN),
    Case("nancumsum", *same("nancumsum", 0), M, **NAN),
    Case("nancumprod", *same("nancumprod"), M, **NAN),
    Case("nanargmax", *same("nanargmax", 0), M, **NAN),
    Case("nanargmin", *same("nanargmin"), M, **NAN),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)
