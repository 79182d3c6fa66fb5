"""The laws of every op of this family on a table of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from ..case import LAWS, Case, Law, of_case, of_law

ROWS = np.array([2, 0, 2, -1])
PLACES = np.array([[0, 2, 1, 1], [0, 0, 2, 1]])
KNOTS = np.array([-1.0, 0.0, 0.5, 2.0])


def added(x: Any, index: Any, values: Any) -> Any:
    x = x.copy()
    np.add.at(x, index, values)
    return x


def written(x: Any, s: Any) -> Any:
    x = x.copy()
    for i in range(PLACES.shape[0]):
        for j in range(PLACES.shape[1]):
            x[PLACES[i, j], j] = s[i, j]
    return x


def segments(ufunc: Any, empty: Any) -> Any:
    def of(x: Any) -> Any:
        out = np.full((4, *x.shape[1:]), empty(x.dtype), x.dtype)
        for i, k in enumerate([0, 2, 0]):
            out[k] = ufunc(out[k], x[i])
        return out

    return of


def least(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def most(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def bounded(x: Any) -> Any:
    return rg.clip(x, -100.0, 100.0) if isinstance(x, rg.Var) else np.clip(x, -100.0, 100.0)


def mean_of_segments(x: Any) -> Any:
    wide = x.astype("f4") if x.dtype == np.float16 else x
    out = np.zeros(
        (4, *x.shape[1:]), np.result_type(wide, np.float64) if x.dtype.kind != "f" else wide.dtype
    )
    out[0], out[2] = (wide[0] + wide[2]) / 2, wide[1]
    return out.astype(x.dtype if x.dtype.kind == "f" else "f8")


def ends(rng: Any, shape: Any) -> Any:
    return rng.standard_normal(shape) * 1.5


CASES = [
    Case("sort", rg.sort, np.sort, [(3, 4)], empty=[(0, 4)], dtypes="dfei?D"),
    Case("sort axis", lambda x: rg.sort(x, 0), lambda x: np.sort(x, 0), [(3, 4)], empty=[(0, 4)]),
    Case("sort flat", lambda x: rg.sort(x, None, "stable"), lambda x: np.sort(x, None), [(3, 4)]),
    Case(
        "sort descending",
        lambda x: rg.sort(x, 0, descending=True),
        lambda x: np.sort(x, 0)[::-1],
        [(3, 4)],
        dtypes="dfei?",
    ),
    Case(
        "argsort",
        rg.argsort,
        lambda x: np.argsort(x, kind="stable"),
        [(3, 9)],
        order=0,
        dtypes="dfei?D",
    ),
    Case(
        "argsort descending",
        lambda x: rg.argsort(x, -1, descending=True),
        lambda x: np.argsort(-x, kind="stable"),
        [(3, 9)],
        order=0,
        dtypes="dif",
    ),
    Case(
        "lexsort",
        lambda x, y: rg.lexsort((x, y)),
        lambda x, y: np.lexsort((x, y)),
        [(3, 4), (3, 4)],
        order=0,
        dtypes="dif",
    ),
    Case(
        "sort_complex",
        rg.sort_complex,
        np.sort_complex,
        [(6,)],
        dtypes="Dd",
        modes=("reverse",),
        order=1,
    ),
    Case(
        "partition",
        lambda x: rg.partition(x, 2),
        lambda x: np.partition(x, 2),
        [(3, 5)],
        dtypes="dfe",
    ),
    Case(
        "partition axis",
        lambda x: rg.partition(x, (0, 2), 0),
        lambda x: np.partition(x, (0, 2), 0),
        [(3, 5)],
    ),
    Case(
        "argpartition",
        lambda x: rg.argpartition(x, 2),
        lambda x: np.argpartition(x, 2),
        [(3, 5)],
        order=0,
        dtypes="df",
    ),
    Case(
        "topk",
        lambda x: rg.topk(x, 2),
        lambda x: (np.sort(x)[..., :-3:-1], np.argsort(-x, kind="stable")[..., :2]),
        [(3, 5)],
        dtypes="dfe",
    ),
    Case(
        "topk smallest",
        lambda x: rg.topk(x, 2, 0, largest=False),
        lambda x: (np.sort(x, 0)[:2], np.argsort(x, 0)[:2]),
        [(4, 3)],
        dtypes="dfe",
    ),
    Case(
        "searchsorted",
        lambda x: rg.searchsorted(KNOTS, x, "right"),
        lambda x: np.searchsorted(KNOTS, x, "right"),
        [(3, 4)],
        order=0,
        empty=[(0, 4)],
    ),
    Case(
        "searchsorted sorter",
        lambda x, v: rg.searchsorted(x, v, sorter=rg.argsort(x)),
        lambda x, v: np.searchsorted(x, v, sorter=np.argsort(x)),
        [(5,), (3,)],
        order=0,
    ),
    Case(
        "digitize",
        lambda x: rg.digitize(x, KNOTS[::-1], True),
        lambda x: np.digitize(x, KNOTS[::-1], True),
        [(3, 4)],
        order=0,
        empty=[(0, 4)],
    ),
    Case(
        "interp",
        lambda x, fp: rg.interp(x, KNOTS, fp),
        lambda x, fp: np.interp(x, KNOTS, fp),
        [(3, 4), (4,)],
        draw=[ends, None],
        empty=[(0,), (4,)],
        unknown=False,
    ),
    Case(
        "interp knots",
        lambda x, xp, fp: rg.interp(x, xp, fp),
        np.interp,
        [(6,), (4,), (4,)],
        draw=[ends, lambda rng, shape: KNOTS, None],
        dtypes="df",
    ),
    Case(
        "interp ends",
        lambda x, fp, left: rg.interp(x, KNOTS, fp, left, 3.0),
        lambda x, fp, left: np.interp(x, KNOTS, fp, left, 3.0),
        [(3, 4), (4,), ()],
        draw=[ends, None, None],
        unknown=False,
    ),
    Case(
        "interp period",
        lambda x, fp: rg.interp(x, KNOTS, fp, period=2.7),
        lambda x, fp: np.interp(x, KNOTS, fp, period=2.7),
        [(3, 4), (4,)],
        draw=[ends, None],
        unknown=False,
    ),
    Case(
        "take",
        lambda x: rg.take(x, ROWS, 0),
        lambda x: np.take(x, ROWS, 0),
        [(3, 4)],
        dtypes="dfei?D",
    ),
    Case(
        "take last",
        lambda x: rg.take(x, [[0, -1]], -1),
        lambda x: np.take(x, [[0, -1]], -1),
        [(2, 3, 4)],
    ),
    Case("take flat", lambda x: rg.take(x, [5, 5, 1]), lambda x: np.take(x, [5, 5, 1]), [(3, 4)]),
    Case(
        "take wrap",
        lambda x: rg.take(x, [-7, 9, 1], 1, "wrap"),
        lambda x: np.take(x, [-7, 9, 1], 1, mode="wrap"),
        [(3, 4)],
    ),
    Case(
        "take clip",
        lambda x: rg.take(x, [-7, 9, 1], 0, "clip"),
        lambda x: np.take(x, [-7, 9, 1], 0, mode="clip"),
        [(3, 4)],
    ),
    Case("take one", lambda x: rg.take(x, 1, 1), lambda x: np.take(x, 1, 1), [(3, 4)]),
    Case(
        "take none",
        lambda x: rg.take(x, [], 1),
        lambda x: np.take(x, np.zeros(0, int), 1),
        [(3, 4)],
        empty=[(0, 4)],
    ),
    Case(
        "take_along_axis",
        lambda x: rg.take_along_axis(x, PLACES, 0),
        lambda x: np.take_along_axis(x, PLACES, 0),
        [(3, 4)],
        dtypes="dfei?D",
    ),
    Case(
        "take_along_axis broadcast",
        lambda x: rg.take_along_axis(x, [[0], [2], [2]], 1),
        lambda x: np.take_along_axis(x, np.array([[0], [2], [2]]), 1),
        [(3, 4)],
        unknown=False,
    ),
    Case(
        "take_along_axis one row",
        lambda x: rg.take_along_axis(x, [[1], [-1], [1]], 0),
        lambda x: np.take_along_axis(x, np.array([[1], [-1], [1]]), 0),
        [(3, 4)],
    ),
    Case(
        "gather",
        lambda x: rg.gather(x, 1, [[0, 0, 3], [1, 0, 1]]),
        lambda x: np.stack([x[0, [0, 0, 3]], x[1, [1, 0, 1]]]),
        [(3, 4)],
    ),
    Case(
        "index_select",
        lambda x: rg.index_select(x, 1, [2, 2, 0]),
        lambda x: x[:, [2, 2, 0]],
        [(3, 4)],
    ),
    Case(
        "scatter",
        lambda x, s: rg.scatter(x, 0, PLACES, s),
        written,
        [(3, 4), (2, 4)],
        dtypes="dfei?D",
        fixed="the places are an array of two rows",
    ),
    Case(
        "scatter_add",
        lambda x, s: rg.scatter_add(x, 0, PLACES, s),
        lambda x, s: added(x, (PLACES, np.arange(4)), s),
        [(3, 4), (2, 4)],
        dtypes="dfiD",
        fixed="the places are an array of two rows",
    ),
    Case(
        "index_add",
        lambda x, s: rg.index_add(x, 1, [1, 1], s),
        lambda x, s: added(x, (slice(None), [1, 1]), s),
        [(3, 4), (3, 2)],
        dtypes="dfi",
    ),
    Case(
        "masked_fill",
        lambda x: rg.masked_fill(x, x > 0, -1.0),
        lambda x: np.where(x > 0, np.array(-1.0, x.dtype), x),
        [(3, 4)],
        dtypes="dfei",
    ),
    Case(
        "segment_sum",
        lambda x: rg.segment_sum(x, [0, 2, 0], 4),
        lambda x: added(np.zeros((4, 2), np.add.reduce(x).dtype), [0, 2, 0], x),
        [(3, 2)],
        dtypes="dfi",
    ),
    Case(
        "segment_mean",
        lambda x: rg.segment_mean(x, [0, 2, 0], 4),
        mean_of_segments,
        [(3, 2)],
        dtypes="dfei",
    ),
    Case(
        "segment_max",
        lambda x: bounded(rg.segment_max(x, [0, 2, 0], 4)),
        lambda x: bounded(segments(np.maximum, least)(x)),
        [(3, 2)],
        dtypes="dfe",
    ),
    Case(
        "segment_min",
        lambda x: bounded(rg.segment_min(x, [0, 2, 0], 4)),
        lambda x: bounded(segments(np.minimum, most)(x)),
        [(3, 2)],
        dtypes="dfe",
    ),
    Case(
        "choose",
        lambda x, y: rg.choose([0, 1, 1, 0], [x, y]),
        lambda x, y: np.choose([0, 1, 1, 0], [x, y]),
        [(3, 4), (4,)],
        dtypes="dfei?",
        unknown=False,
    ),
    Case(
        "choose wrap",
        lambda x, y: rg.choose([0, 7, -1, 2], [x, y], mode="wrap"),
        lambda x, y: np.choose([0, 7, -1, 2], [x, y], mode="wrap"),
        [(3, 4), (3, 4)],
    ),
    Case(
        "select",
        lambda x, y: rg.select([x > 1.0, x < 0.0], [x * y, y], 3.0),
        lambda x, y: np.select(
            [x > 1.0, x < 0.0], [x * y, y], np.array(3.0, x.dtype) if x.dtype.kind == "f" else 3.0
        ),
        [(3, 4), (3, 4)],
        dtypes="dfe",
    ),
    Case(
        "piecewise",
        lambda x: rg.piecewise(x, [x < 0.0, x > 1.0], [lambda v: v * v, 2.0, rg.sin]),
        lambda x: np.piecewise(x, [x < 0.0, x > 1.0], [lambda v: v * v, 2.0, np.sin]),
        [(3, 4)],
        dtypes="dfe",
        late="the functions are called when the node is built",
    ),
    Case(
        "isin",
        lambda x: rg.isin(x, [0.0, 4.0, -4.0]),
        lambda x: np.isin(x, [0.0, 4.0, -4.0]),
        [(3, 4)],
        order=0,
        dtypes="di",
        empty=[(0,)],
    ),
]

# Their length shows only when they have been computed, so they are not built before their operands have values.
BY_VALUE = [
    Case("nonzero", rg.nonzero, np.nonzero, [(3, 4)], order=0, dtypes="di?D", empty=[(0, 4)]),
    Case("nonzero row", rg.nonzero, np.nonzero, [(7,)], order=0, dtypes="di?", empty=[(0,)]),
    Case(
        "flatnonzero", rg.flatnonzero, np.flatnonzero, [(3, 4)], order=0, dtypes="di?", empty=[(0,)]
    ),
    Case("argwhere", rg.argwhere, np.argwhere, [(3, 4)], order=0, dtypes="di?", empty=[(0, 2)]),
    Case("where", rg.where, np.where, [(3, 4)], order=0, dtypes="i?", empty=[(0, 2)]),
    Case(
        "compress",
        lambda x: rg.compress(x[:, 0] > 0, x, 0),
        lambda x: np.compress(x[:, 0] > 0, x, 0),
        [(5, 2)],
        dtypes="dfei",
    ),
    Case(
        "compress fixed",
        lambda x: rg.compress([False, True], x, 1),
        lambda x: np.compress([False, True], x, 1),
        [(3, 4)],
    ),
    Case(
        "extract",
        lambda x: rg.extract(x > 0, x),
        lambda x: np.extract(x > 0, x),
        [(3, 4)],
        dtypes="dfei",
    ),
    Case("unique", rg.unique, np.unique, [(3, 4)], dtypes="dfei?", empty=[(0,)]),
    Case(
        "unique axis",
        lambda x: rg.unique(x, axis=0),
        lambda x: np.unique(x, axis=0),
        [(3, 4)],
        dtypes="dfi",
    ),
    Case(
        "unique with all",
        lambda x: rg.unique(x, True, True, True),
        lambda x: np.unique(x, True, True, True),
        [(3, 4)],
        dtypes="dif",
    ),
    Case(
        "unique inverse",
        lambda x: rg.unique(x, return_inverse=True),
        lambda x: np.unique(x, return_inverse=True),
        [(3, 4)],
        dtypes="di",
    ),
    Case(
        "unique rows with all",
        lambda x: rg.unique(x, True, True, True, 0),
        lambda x: np.unique(x, True, True, True, 0),
        [(3, 2)],
        dtypes="di",
    ),
    Case("unique_all", rg.unique_all, np.unique_all, [(3, 4)], dtypes="di"),
    Case("unique_counts", rg.unique_counts, np.unique_counts, [(3, 4)], dtypes="di"),
    Case("unique_inverse", rg.unique_inverse, np.unique_inverse, [(3, 4)], dtypes="di"),
    Case(
        "unique_values",
        rg.unique_values,
        lambda x: np.unique(x, equal_nan=False),
        [(3, 4)],
        dtypes="di",
    ),
    Case("union1d", rg.union1d, np.union1d, [(3, 4), (5,)], dtypes="dif"),
    Case(
        "intersect1d",
        lambda x, y: rg.intersect1d(x, y, return_indices=True),
        lambda x, y: np.intersect1d(x, y, return_indices=True),
        [(3, 4), (9,)],
        dtypes="i",
        order=0,
    ),
    Case("setdiff1d", rg.setdiff1d, np.setdiff1d, [(3, 4), (9,)], dtypes="di"),
    Case("setxor1d", rg.setxor1d, np.setxor1d, [(3, 4), (9,)], dtypes="di"),
]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law.__name__ != "unknown_lengths"], ids=of_law
)
@pytest.mark.parametrize("case", BY_VALUE, ids=of_case)
def test_laws_of_results_whose_length_only_values_show(case: Case, law: Law) -> None:
    law(case)
