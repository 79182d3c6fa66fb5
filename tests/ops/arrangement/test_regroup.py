"""What adds axes looks at the present value, also where a number becomes an array, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

VALUES: list[Any] = [2.0, np.arange(3.0), np.ones((2, 3)), np.ones((2, 1, 3)), 5.0]


@pytest.mark.parametrize("first", VALUES, ids=np.ndim)
@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_axes_are_added_to_the_present_value(name: str, first: Any) -> None:
    x = rg.Graph().input(first)
    y = getattr(rg, name)(x)
    slope = rg.grad((y * y).sum(), x)
    for value in VALUES:
        x.set(value)
        expected = getattr(np, name)(np.asarray(value, float))
        assert y.shape == expected.shape
        np.testing.assert_array_equal(y.value, expected)
        np.testing.assert_array_equal(slope.value, 2.0 * np.asarray(value))
        assert np.shape(slope.value) == np.shape(value)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_a_row_that_becomes_a_matrix_has_no_axis_to_go_along(name: str) -> None:
    x = rg.Graph().input([1.0, 2.0])
    y = getattr(rg, name)(x)
    slope = rg.grad(y.sum(), x)
    assert slope.value is not None
    with pytest.raises(rg.DTypeError, match=f"{name} of a value with 2 axes: say which one"):
        x.set(np.ones((2, 2)))
    assert x.shape == (2,)
    x.set(3.0)
    assert y.shape == (1,)
    assert slope.value.shape == ()
