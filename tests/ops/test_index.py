"""Indexing against NumPy: values, shapes known before, gradients into the right places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reactgrad as rg

QUICK = settings(max_examples=150, deadline=None)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
FULL_SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def agrees(shape: tuple[int, ...], key: Any) -> None:
    """Value, shape and gradient of x[key], also after a change of x."""
    a = np.arange(float(np.prod(shape))).reshape(shape)
    expected = a[key]
    g = rg.Graph()
    x = g.param(a * 0)
    y = x[key]
    assert y.shape == np.shape(expected)
    assert y.dtype == expected.dtype
    _ = y.value
    x.set(a)
    np.testing.assert_array_equal(y.value, expected)
    assert np.shape(y.value) == np.shape(expected)
    weights = np.random.default_rng(0).normal(size=np.shape(expected))
    gradient = rg.grad((y * weights).sum(), x).value
    dense = np.zeros(shape)
    np.add.at(dense, key, weights)
    np.testing.assert_allclose(gradient, dense, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@QUICK
@given(st.data())
def test_basic_index(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    agrees(shape, data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)))


@pytest.mark.slow
@QUICK
@given(st.data())
def test_integer_arrays_as_index(data: st.DataObject) -> None:
    shape = data.draw(FULL_SHAPES)
    result = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    dtype = data.draw(st.sampled_from([np.int64, np.int8, np.uint8, np.intp]))
    agrees(shape, data.draw(hnp.integer_array_indices(shape, result_shape=result, dtype=dtype)))


@pytest.mark.slow
@QUICK
@given(st.data())
def test_booleans_as_index(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    ndim = data.draw(st.integers(0, len(shape)))
    agrees(shape, data.draw(hnp.arrays(bool, shape[:ndim])))


@pytest.mark.slow
@QUICK
@given(st.data())
def test_arrays_mixed_with_slices_and_new_axes(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=4))
    size = data.draw(st.integers(0, 3))
    parts: list[Any] = []
    for n in shape:
        kind = data.draw(st.sampled_from(["array", "slice", "integer", "mask", "list"]))
        if kind == "array" or (kind == "list" and size):
            values = data.draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            parts.append(values if kind == "list" else np.array(values, int))
        elif kind == "mask":
            mask = np.zeros(n, bool)
            mask[: min(size, n)] = True
            if mask.sum() not in (size, 1):
                parts.append(slice(None))
            else:
                parts.append(mask)
        elif kind == "slice":
            parts.append(data.draw(st.slices(n)))
        else:
            parts.append(data.draw(st.integers(-n, n - 1)))
    for _ in range(data.draw(st.integers(0, 1))):
        parts.insert(data.draw(st.integers(0, len(parts))), None)
    if data.draw(st.booleans()):
        parts.append(...)
    agrees(shape, tuple(parts))


@pytest.mark.slow
@QUICK
@given(st.data())
def test_integer_var_as_index_follows_its_value(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    draws = [data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-rows, rows - 1)))] * 2
    draws[1] = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-rows, rows - 1)))
    a = np.arange(float(rows * columns)).reshape(rows, columns)
    g = rg.Graph()
    x, i = g.param(a), g.input(draws[0])
    y = x[i]
    total = (y * y).sum()
    gradient = rg.grad(total, x)
    for value in draws:
        i.set(value)
        assert y.shape == a[value].shape
        np.testing.assert_array_equal(y.value, a[value])
        dense = np.zeros_like(a)
        np.add.at(dense, value, 2 * a[value])
        np.testing.assert_allclose(gradient.value, dense)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("index", [1, np.int64(1), np.array([0, 1]), np.uint8(1)], ids=repr)
def test_index_input_of_any_integer_kind(dtype: str, index: Any) -> None:
    """A Python integer in an input indexes too, whatever the dtype of what it indexes."""
    a = np.arange(3).astype(dtype)
    g = rg.Graph()
    y = g.input(a)[g.input(index)]
    np.testing.assert_array_equal(y.value, a[index])
    assert y.dtype == a.dtype


def test_python_integer_input_as_index_may_be_set() -> None:
    g = rg.Graph()
    i = g.input(0)
    y = g.input([10.0, 20.0, 30.0])[i]
    assert [y.value, i.set(2), y.value] == [10.0, None, 30.0]


def test_index_var_between_slices() -> None:
    a = np.arange(60.0).reshape(3, 4, 5)
    g = rg.Graph()
    x, i = g.param(a), g.input([0, 2])
    value = i.value
    for ours, numpys in (
        (x[:, i], a[:, value]),
        (x[i, None, :], a[value, None, :]),
        (x[0, :, i], a[0, :, value]),
        (x[i, i + 1], a[value, value + 1]),
        (x[i, 1], a[value, 1]),
        (x[..., i], a[..., value]),
    ):
        assert ours.shape == numpys.shape
        np.testing.assert_array_equal(ours.value, numpys)
        assert rg.grad(ours.sum(), x).value.sum() == numpys.size


def test_index_var_of_unknown_length_has_unknown_length() -> None:
    g = rg.Graph()
    i = g.input(shape=(None,), dtype=int)
    y = g.input([1.0, 2.0, 3.0])[i]
    assert y.shape == (None,)
    z = y + np.ones(3)
    i.set([0, 1, 1])
    np.testing.assert_array_equal(z.value, [2.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (5, IndexError, "out of bounds"),
        (-3, IndexError, "out of bounds"),
        ((0, 0, 0), IndexError, "too many"),
        ([5], IndexError, "out of bounds"),
        ((..., ...), IndexError, r"only one \.\.\."),
        (np.array([True]), IndexError, "boolean"),
        (1.0, TypeError, "integers, slices"),
        ("a", TypeError, "integers, slices"),
        ([0.5], TypeError, "integers, slices"),
        ({}, TypeError, "integers, slices"),
        (slice(0.5, None), TypeError, "integer"),
        (slice(None, None, 0), ValueError, "step"),
        ([[0], [0, 1]], ValueError, "length"),
        (np.array(["a"]), TypeError, "integers, slices"),
    ],
    ids=repr,
)
def test_bad_index(key: Any, error: type[Exception], words: str) -> None:
    x = rg.Graph().input(np.zeros((2, 3)))
    with pytest.raises(error, match=words) as caught:
        _ = x[key].value
    assert isinstance(caught.value, rg.ReactgradError)


def test_slice_with_a_var_is_refused_with_a_way_out() -> None:
    x = rg.Graph().input([1.0, 2.0])
    with pytest.raises(rg.DTypeError, match=r"rg\.lift"):
        x[: x.sum()]


def test_list_with_a_var_as_index_stays_live_or_is_refused() -> None:
    g = rg.Graph()
    x, i = g.input([10.0, 20.0]), g.input(0)
    try:
        y = x[[i, 1]]
    except rg.ReactgradError:
        return
    assert list(y.value) == [10.0, 20.0]
    i.set(1)
    assert list(y.value) == [20.0, 20.0]


def test_index_var_out_of_bounds_raises_and_recovers() -> None:
    g = rg.Graph()
    i = g.input([0])
    y = g.input([1.0, 2.0])[i]
    i.set([7])
    with pytest.raises(IndexError, match="out of bounds"):
        _ = y.value
    i.set([1])
    assert y.value[0] == 2.0


def test_index_array_of_the_caller_is_copied() -> None:
    key = np.array([0, 1])
    x = rg.Graph().input([10.0, 20.0, 30.0])
    y = x[key]
    key[:] = 2
    np.testing.assert_array_equal(y.value, [10.0, 20.0])


@pytest.mark.parametrize("key", [0, slice(None, None, -1), (..., None), (0, 1), ()], ids=repr)
def test_basic_index_is_a_view_that_runs_nothing_of_its_own(key: Any) -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = rg.Graph().input(a)
    y = x[key]
    np.testing.assert_array_equal(y.value, a[key])
    x.set(-a)
    np.testing.assert_array_equal(y.value, -a[key])


def test_iteration_gives_rows() -> None:
    x = rg.Graph().input([[1.0, 2.0], [3.0, 4.0]])
    rows = list(x)
    assert [list(row.value) for row in rows] == [[1.0, 2.0], [3.0, 4.0]]
    assert len(x) == 2
    with pytest.raises(TypeError, match="no length") as caught:
        len(x[0, 0])
    assert isinstance(caught.value, rg.ReactgradError)
    with pytest.raises(TypeError):
        iter(x[0, 0])
