"""Stable orders by two sorts that are not stable: where elements are equal, and where they are NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import reactgrad as rg
from reactgrad.backend.numpy import _ordering

FEW = {
    "f": st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, np.nan]),
    "i": st.integers(-3, 3),
    "u": st.integers(0, 3),
}


@st.composite
def few_values(draw: st.DrawFn) -> tuple[Any, int]:
    """An array with many equal elements, and an axis."""
    dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8", "u4", "u8"]))
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=20))
    x = draw(arrays.arrays(dtype, shape, elements=FEW[dtype[0]]))
    return (x.T if draw(st.booleans()) else x), draw(st.integers(-len(shape), len(shape) - 1))


@given(few_values())
def test_it_is_numpys_stable_order(drawn: tuple[Any, int]) -> None:
    x, axis = drawn
    wanted = x.argsort(axis, kind="stable")
    np.testing.assert_array_equal(_ordering._stable_order(x, axis), wanted)
    np.testing.assert_array_equal(rg.argsort(rg.Graph().input(x), axis).value, wanted)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4", "u8"])
@pytest.mark.parametrize("length", [24, 100, 5000])
@pytest.mark.parametrize("equals", [1, 3, 30, 70])
def test_runs_of_equals_of_any_length(dtype: str, length: int, equals: int) -> None:
    rng = np.random.default_rng(length + equals)
    x = rng.permuted(np.tile(np.arange(length) // equals, (4, 1)), axis=1).astype(dtype)
    if dtype[0] == "f":
        x[0, ::3], x[1, ::2], x[2, 1::2] = np.nan, -0.0, 0.0
    found = rg.argsort(rg.Graph().input(x)).value
    np.testing.assert_array_equal(found, x.argsort(kind="stable"))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?"])
def test_long_axes_are_sorted_by_it(dtype: str, descending: bool) -> None:
    length = 2 * _ordering.FEWEST_IN_TWO_SORTS
    x = (np.arange(length) * 7919 % 1000 - 500).astype(dtype)
    g = rg.Graph()
    given = g.input(x)
    found = rg.argsort(given, descending=descending).value
    wanted = np.flip(length - 1 - np.flip(x).argsort(kind="stable")) if descending else None
    np.testing.assert_array_equal(found, x.argsort(kind="stable") if wanted is None else wanted)
