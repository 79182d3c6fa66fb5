"""``x.at[i].set(v)`` and its relatives: NumPy's forms of indices, places that stand twice, ties, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.arange(12.0).reshape(3, 4) + 1.0
INDICES: dict[str, Any] = {
    "number": 1,
    "negative number": -1,
    "slice": slice(1, None),
    "step": (slice(None), slice(None, None, 2)),
    "reversed": slice(None, None, -1),
    "ellipsis": (..., 0),
    "new axis": (None, 1),
    "element": (1, 2),
    "all": ...,
    "nothing": (),
    "list": [2, 0],
    "repeated": [2, 0, 2],
    "negative twin": [2, -1],
    "pairs": ([0, 2, 0], [1, 1, 1]),
    "array and slice": ([0, 2], slice(1, 3)),
    "slice and array": (slice(0, 2), [3, 1, 3]),
    "array of two axes": np.array([[0, 1], [1, 0]]),
    "mask": A > 5,
    "mask of rows": [True, False, True],
    "mask and slice": ([True, False, True], slice(2)),
    "mask and number": ([True, False, True], 1),
    "no place": [],
}
REPEATED = {"repeated", "negative twin", "pairs", "slice and array", "array of two axes"}
HOW = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]
UFUNCS = {"min": np.minimum, "max": np.maximum}


def wanted(a: np.ndarray, index: Any, how: str, v: Any) -> np.ndarray:
    """Return what NumPy's assignment, or its ufunc with ``at``, makes of a copy."""
    out = a.copy()
    if how == "set":
        out[index] = v
    else:
        ufunc: Any = UFUNCS.get(how) or getattr(np, how)
        ufunc.at(out, index, v)
    return out


def values(index: Any) -> np.ndarray:
    return np.linspace(0.5, 2.5, max(np.size(A[index]), 1)).reshape(
        np.shape(A[index]) if np.size(A[index]) else (1,)
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", INDICES)
def test_values_and_gradients(name: str, how: str) -> None:
    index = INDICES[name]
    v = values(index)
    g = rg.Graph()
    x, part = g.input(A), g.input(v)
    y = getattr(x.at[index], how)(part)
    assert y.shape == A.shape
    np.testing.assert_array_equal(y.value, wanted(A, index, how, v))
    np.testing.assert_array_equal(x.value, A)
    if how in ("multiply", "power") and name in REPEATED:
        with pytest.raises(rg.GradientError, match="stands twice"):
            rg.grad(y.sum(), part)
        return
    rg.testing.check_grads(
        lambda x, v: getattr(x.at[index], how)(v) ** 2, [A / 3, v], order=2, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "index", [[2, 0], [[True, False, True], [False, True, False]], 1], ids=["row", "mask", "number"]
)
def test_vars_as_indices(how: str, index: Any) -> None:
    a = A[:2, :3]
    first = np.array(index)
    if first.dtype != bool:
        a = A
    other = ~first if first.dtype == bool else first * 0 if first.ndim == 0 else first[::-1].copy()
    g = rg.Graph()
    x, i, v = g.param(a), g.input(first), g.input(2.0)
    y = getattr(x.at[i], how)(v)
    slope, second = rg.grad(y.sum(), [x, v])
    for now in (first, other):
        i.set(now)
        np.testing.assert_array_equal(y.value, wanted(a, now, how, 2.0))
        fresh = rg.Graph()
        fx, fv = fresh.param(a), fresh.input(2.0)
        fixed = rg.grad(getattr(fx.at[now], how)(fv).sum(), [fx, fv])
        np.testing.assert_array_equal(slope.value, fixed[0].value)
        np.testing.assert_allclose(second.value, fixed[1].value, rtol=1e-14)


def test_several_vars_in_an_index() -> None:
    g = rg.Graph()
    x, rows, columns, v = g.param(A), g.input([0, 2]), g.input([1, 3]), g.param([5.0, 6.0])
    y = x.at[rows, columns].set(v)
    slopes = rg.grad((y * y).sum(), [x, v])
    for r, c in (([0, 2], [1, 3]), ([1, 1], [0, 0])):
        g.set({rows: r, columns: c})
        np.testing.assert_array_equal(y.value, wanted(A, (r, c), "set", [5.0, 6.0]))
    # The last one stays, and gets the gradient.
    assert slopes[1].tolist() == [0.0, 12.0]
    assert slopes[0].value[1, 0] == 0.0


def test_of_values_set_to_one_place_the_last_one_has_the_gradient() -> None:
    g = rg.Graph()
    x, v = g.param(np.zeros(3)), g.param([1.0, 2.0, 3.0])
    y = x.at[[1, 1, 0]].set(v)
    assert y.tolist() == [3.0, 2.0, 0.0]
    slopes = rg.grad((y * [10.0, 20.0, 30.0]).sum(), [x, v])
    assert [one.tolist() for one in slopes] == [[0.0, 0.0, 30.0], [0.0, 20.0, 10.0]]
    assert rg.jvp(y, [v], [np.array([1.0, 2.0, 4.0])]).tolist() == [4.0, 2.0, 0.0]


def test_ties_share_the_gradient_evenly() -> None:
    g = rg.Graph()
    x, v = g.param([2.0, 1.0, 7.0]), g.param([2.0, 2.0, 0.0])
    for y in (x.at[[0, 0, 1]].max(v), -(-x).at[[0, 0, 1]].min(-v)):
        assert y.tolist() == [2.0, 1.0, 7.0]
        slopes = rg.grad(y.sum(), [x, v])
        np.testing.assert_allclose(slopes[0].value, [1 / 3, 1.0, 1.0])
        np.testing.assert_allclose(slopes[1].value, [1 / 3, 1 / 3, 0.0])


def test_nan_elsewhere_does_not_touch_the_gradient() -> None:
    g = rg.Graph()
    x, v = g.param([np.nan, 1.0, np.inf]), g.param(3.0)
    y = x.at[1].max(v)
    slope, other = rg.grad(y.sum(), [x, v])
    assert slope.tolist() == [1.0, 0.0, 1.0]
    assert other.value == 1.0


def test_one_node_and_get_and_apply() -> None:
    g = rg.Graph()
    x = g.input(A)
    before = len(g)
    y = x.at[1].add(1.0)
    assert len(g) == before + 2  # the node, and the number
    np.testing.assert_array_equal(x.at[1:, 0].get().value, A[1:, 0])
    np.testing.assert_array_equal(
        x.at[1].apply(rg.exp).value, np.vstack([A[0], np.exp(A[1]), A[2]])
    )
    assert y.shape == (3, 4)


def test_the_whole_keeps_its_dtype() -> None:
    g = rg.Graph()
    x = g.input(np.ones(3, np.float32))
    assert x.at[0].set(2.0).dtype == np.float32
    assert x.at[0].add(np.float64(0.1)).dtype == np.float32
    assert g.input([1, 2]).at[0].set(np.int8(5)).tolist() == [5, 2]
    assert g.input([True, False]).at[1].set(True).tolist() == [True, True]


def test_many_small_floats_added_to_one_place() -> None:
    n = 100_000
    for dtype, tolerance in ((np.float32, 1e-6), (np.float16, 1e-3)):
        g = rg.Graph()
        x = g.input(np.zeros(2, dtype))
        y = x.at[np.zeros(n, int)].add(np.full(n, 0.01, dtype))
        exact = float(dtype(0.01)) * n
        assert abs(float(y.value[0]) - exact) < tolerance * exact


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.at[5].set(1.0), IndexError, "out of bounds"),
        (lambda x: x.at[0].set([1.0, 2.0]), ValueError, "does not broadcast"),
        (lambda x: x.at[0].set(1j), TypeError, "keeps the dtype"),
        (lambda x: rg.astype(x, int).at[0].set(1.5), TypeError, "keeps the dtype"),
        (lambda x: rg.astype(x, int).at[0].divide(2), TypeError, "keeps the dtype"),
        (lambda x: x.at["a"].set(1.0), TypeError, "integers, slices"),
        (lambda x: x.at[0, 0, 0].set(1.0), IndexError, "too many"),
    ],
)
def test_errors(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    x = rg.Graph().input(A)
    with pytest.raises(error, match=words) as caught:
        _ = call(x).value
    assert isinstance(caught.value, rg.ReactgradError)


def test_a_var_that_names_a_place_twice_has_no_gradient_of_a_product() -> None:
    g = rg.Graph()
    x, i, v = g.param(A[0]), g.input([0, 1]), g.param([2.0, 3.0])
    y = x.at[i].multiply(v)
    slope = rg.grad(y.sum(), v)
    assert slope.tolist() == [1.0, 2.0]
    i.set([1, 1])
    assert y.tolist() == [1.0, 12.0, 3.0, 4.0]
    with pytest.raises(rg.IndexingError, match="stands twice"):
        _ = slope.value
    i.set([2, 0])
    assert slope.tolist() == [3.0, 1.0]


def test_unknown_lengths_and_lifted_values() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 4), dtype=float)
    y = x.at[-1].set(0.0)
    slope = rg.grad((y * y).sum(), x)
    for rows in (A, A[:2]):
        x.set(rows)
        np.testing.assert_array_equal(y.value, wanted(rows, -1, "set", 0.0))
        np.testing.assert_array_equal(slope.value, 2 * y.value)
    lifted = rg.lift(np.cumsum, vjp=lambda g, ans, a: (g,))(x)
    z = lifted.at[0].add(1.0)
    np.testing.assert_array_equal(z.value, wanted(np.cumsum(A[:2]), 0, "add", 1.0))


def test_an_index_changes_only_what_follows_from_it() -> None:
    g = rg.Graph()
    x, i = g.input(A), g.input(1)
    y = x.at[i].set(0.0)
    _ = y.value
    i.set(2)
    assert [*g.forward(y).ran] == [y]


def test_files_keep_it(tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.input(A, name="x")
    y = x.at[[0, 2], 1:].multiply(2.0).at[g.input([1], name="i")].set(0.0)
    y.name = "y"
    g.save(tmp_path / "graph")
    again = rg.load(tmp_path / "graph")
    again["i"].set([0])
    kept = wanted(wanted(A, ([0, 2], slice(1, None)), "multiply", 2.0), 0, "set", 0.0)
    np.testing.assert_array_equal(again["y"].value, kept)


def test_filling_a_diagonal_says_what_to_write() -> None:
    x = rg.Graph().input(np.zeros((3, 3)))
    for fill in (np.fill_diagonal, rg.fill_diagonal):
        with pytest.raises(rg.SetError, match=r"\.at\[i, i\]\.set"):
            fill(x, 1.0)
    i = np.arange(3)
    np.testing.assert_array_equal(x.at[i, i].set(1.0).value, np.eye(3))
