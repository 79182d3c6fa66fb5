"""Vars of booleans as indices: results as long as the mask has true elements, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.arange(12.0).reshape(3, 4) - 5.0
ROWS, COLUMNS = np.array([True, False, True]), np.array([True, False, False, True])

# The mask, and the index of which it is a part.
INDICES: dict[str, tuple[np.ndarray, Any]] = {
    "all axes": (A > 0, lambda m: m),
    "first axis": (ROWS, lambda m: m),
    "last axis": (COLUMNS, lambda m: (slice(None), m)),
    "with a slice": (ROWS, lambda m: (m, slice(2, None))),
    "with a number": (ROWS, lambda m: (m, 1)),
    "with an array": (ROWS, lambda m: (m, np.array([3, 0]))),
    "behind an ellipsis": (COLUMNS, lambda m: (..., m)),
    "with a new axis": (ROWS, lambda m: (None, m)),
    "nothing is true": (A > 99, lambda m: m),
}


@pytest.mark.parametrize("name", INDICES)
def test_value_and_gradients_follow_the_mask(name: str) -> None:
    mask, key = INDICES[name]
    g = rg.Graph()
    x, m = g.param(A), g.input(mask)
    y = x[key(m)]
    loss = (y * y * y).sum()
    first = rg.grad(loss, x)
    second = rg.grad(first.sum(), x)
    other = ~mask if mask.ndim > 1 or "array" not in name else np.array([True, True, False])
    for now in (mask, other):
        m.set(now)
        np.testing.assert_array_equal(y.value, A[key(now)])
        assert y.shape == A[key(now)].shape
        chosen = np.zeros_like(A)
        chosen[key(now)] = 1.0
        np.testing.assert_allclose(first.value, 3 * A**2 * chosen)
        np.testing.assert_allclose(second.value, 6 * A * chosen)
    np.testing.assert_array_equal(rg.jvp(y, [x], [2 * A]).value, 2 * A[key(other)])


def test_a_mask_computed_from_the_values() -> None:
    rg.testing.check_grads(lambda x: x[x > 0.5] ** 2, [A + 0.25], order=2)


def test_a_mask_of_what_a_mask_chose() -> None:
    g = rg.Graph()
    x = g.input(A)
    y = x[x > 0]
    z = y[y > 3]
    slope = rg.grad((z * z).sum(), x)
    np.testing.assert_array_equal(z.value, [4.0, 5.0, 6.0])
    x.set(-A)
    np.testing.assert_array_equal(z.value, [5.0, 4.0])
    np.testing.assert_array_equal(slope.value, np.where(-A > 3, -2 * A, 0.0))


def test_result_is_read_only_and_kept() -> None:
    g = rg.Graph()
    x = g.input(A)
    y = x[x > 0]
    kept = y.value
    assert not kept.flags.writeable
    x.set(-A)
    _ = y.value
    np.testing.assert_array_equal(kept, A[A > 0])


def test_a_mask_of_another_length_is_refused_when_built_and_when_set() -> None:
    g = rg.Graph()
    x, m = g.input(A), g.input(shape=(None,), dtype=bool)
    with pytest.raises(rg.IndexingError, match="boolean index did not match"):
        x[g.input([True, False])]
    y = x[m]
    with pytest.raises(rg.IndexingError, match="boolean index did not match"):
        m.set([True, False])
    m.set([False, True, False])
    np.testing.assert_array_equal(y.value, A[1:2])


def test_a_mask_on_a_value_of_unknown_length() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 4), dtype=float)
    y = x[x[:, 0] > 0]
    for rows in (A, A[::-1] * 2, A[1:]):
        x.set(rows)
        np.testing.assert_array_equal(y.value, rows[rows[:, 0] > 0])


def test_a_file_keeps_the_mask(tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.input(A, name="x")
    y = x[x > 0]
    y.name = "y"
    g.save(tmp_path / "graph")
    again = rg.load(tmp_path / "graph")
    again["x"].set(-A)
    np.testing.assert_array_equal(again["y"].value, -A[A < 0])


def test_only_what_the_mask_touches_runs_again() -> None:
    g = rg.Graph()
    x, m = g.input(A), g.input(ROWS)
    y = x[m]
    other = x * 2.0
    g.forward(y, other)
    m.set(~ROWS)
    assert [*g.forward(y, other).ran] == [y]
