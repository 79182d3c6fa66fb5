"""Ties, ends, NaN, repeated and wrong indices. Literals without another source are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

NAN = float("nan")


def slope(call: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the gradient of ``sum(call(x) * (1, 2, ...))``, in reverse and in forward mode."""
    g = rg.Graph()
    leaf = g.param(np.asarray(x, np.float64))
    y = call(leaf)
    weights = np.arange(1.0, y.value.size + 1.0).reshape(y.value.shape)
    total = (y * weights).sum()
    reverse = rg.grad(total, leaf).value
    forward = [
        rg.jvp(total, [leaf], [one.reshape(leaf.shape)]).value for one in np.eye(leaf.value.size)
    ]
    np.testing.assert_array_equal(np.reshape(forward, leaf.shape), reverse)
    return y.value, reverse


@pytest.mark.parametrize(
    ("call", "x", "value", "gradient"),
    [
        (rg.sort, [2, 1, 2, 1], [1, 1, 2, 2], [3, 1, 4, 2]),
        (lambda x: rg.sort(x, descending=True), [2, 1, 2, 1], [2, 2, 1, 1], [1, 3, 2, 4]),
        (rg.sort, [3, NAN, 1], [1, 3, NAN], [2, 3, 1]),
        (lambda x: rg.sort(x, descending=True), [3, NAN, 1], [NAN, 3, 1], [2, 1, 3]),
        (lambda x: rg.topk(x, 2)[0], [3, NAN, 1, 7], [NAN, 7], [0, 1, 0, 2]),
        (lambda x: rg.topk(x, 2)[0], [5, 1, 5, 5], [5, 5], [0, 0, 1, 2]),
        (lambda x: rg.topk(x, 3, sorted=False)[0], [4, 1, 5, 3], [4, 5, 3], [1, 0, 2, 3]),
        (lambda x: rg.topk(x, 0)[0], [4, 1], np.zeros(0), [0, 0]),
        (lambda x: rg.partition(x, 1), [2, 1, 1], [1, 1, 2], [3, 1, 2]),
        # Distinct elements: of the gradient of each one its first occurrence has all.
        (rg.unique, [2, 1, 2, 1], [1, 2], [2, 1, 0, 0]),
        (rg.unique, [NAN, 1, NAN], [1, NAN], [2, 1, 0]),
        (rg.unique_values, [NAN, 1, NAN], [1, NAN, NAN], [2, 1, 3]),
        # Of several elements for one place the last one counts. (PyTorch gives all of them its gradient.)
        (lambda x: rg.scatter(np.zeros(3), 0, [1, 1], x), [5, 6], [0, 6, 0], [0, 2]),
        (lambda x: rg.scatter(x, 0, [1], 9.0), [5, 6], [5, 9], [1, 0]),
        (lambda x: rg.segment_max(x, [0, 0, 0]), [1, 3, 3], [3], [0, 0.5, 0.5]),
        (lambda x: rg.segment_min(x, [0, 0, 0]), [1, 1, 3], [1], [0.5, 0.5, 0]),
        (lambda x: rg.take(x, [0, 0, -1, 0]), [1, 2], [1, 1, 2, 1], [7, 3]),
        (lambda x: rg.masked_fill(x, x != x, 0.0), [NAN, 2], [0, 2], [0, 2]),
        (lambda x: rg.select([x > 0], [rg.log(x)], 0.0), [0, 1], [0, 0], [0, 2]),
    ],
)  # fmt: skip
def test_value_and_gradient(call: Any, x: Any, value: Any, gradient: Any) -> None:
    found, slopes = slope(call, x)
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(slopes, gradient)


def test_interp_has_the_slope_to_the_right_at_a_knot_and_none_beyond_the_ends() -> None:
    knots, values = np.array([0.0, 1.0, 3.0]), np.array([0.0, 10.0, 14.0])
    found, slopes = slope(lambda x: rg.interp(x, knots, values), [-1.0, 0.0, 1.0, 2.0, 3.0, 9.0])
    np.testing.assert_array_equal(found, [0, 0, 10, 12, 14, 14])
    np.testing.assert_array_equal(slopes, [0, 20, 6, 8, 10, 0])
    _, by_value = slope(lambda fp: rg.interp([-1.0, 0.5, 9.0], knots, fp), values)
    np.testing.assert_array_equal(by_value, [2, 1, 3])
    _, by_knot = slope(lambda xp: rg.interp([-1.0, 0.5, 9.0], xp, values), knots)
    np.testing.assert_array_equal(by_knot, [-10, -10, 0])


def test_elements_that_are_not_numbers_are_last() -> None:
    x = np.array([2.0, NAN, 1.0])
    with rg.Graph():
        assert rg.argsort(x).value.tolist() == [2, 0, 1]
        assert rg.searchsorted([1.0, 2.0], NAN).value == 2
        assert rg.argsort([1.0, 3.0, 1.0, 3.0], descending=True).value.tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("taken", [rg.take, lambda x, i: x[i], lambda x, i: rg.gather(x, 0, i)])
def test_an_index_that_is_none_names_the_node_and_the_way_back_is_free(taken: Any) -> None:
    g = rg.Graph()
    x, at = g.param(np.arange(3.0)), g.input(np.array([0, 2]))
    y = taken(x, at)
    assert y.value.tolist() == [0.0, 2.0]
    for wrong in (3, -4):
        at.set(np.array([0, wrong]))
        with pytest.raises(
            rg.IndexingError, match=rf"no element {wrong} along axis 0 .*-3 to 2"
        ) as caught:
            y.value
        assert isinstance(caught.value, IndexError)
        assert "op 'gather', of (x: float64[3], at: int64[2])" in caught.value.__notes__[0]
    at.set(np.array([1, -1]))
    assert y.value.tolist() == [1.0, 2.0]
    assert rg.grad(y.sum(), x).value.tolist() == [0.0, 1.0, 1.0]


def test_many_indices_are_checked_as_few_are() -> None:
    g = rg.Graph()
    x, at = g.input(np.arange(300.0)), g.input(np.arange(-300, 300))
    y = rg.take(x, at)
    np.testing.assert_array_equal(y.value, np.tile(np.arange(300.0), 2))
    at.set(np.arange(-299, 301))
    with pytest.raises(rg.IndexingError, match="no element 300 along axis 0"):
        y.value


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_mode_follows_the_length(mode: str) -> None:
    g = rg.Graph()
    x = g.input(shape=(None,), dtype="float64")
    y = rg.take(x, np.array([-9, 1, 7]), mode=mode)
    for length in (4, 6):
        x.set(np.arange(float(length)))
        np.testing.assert_array_equal(y.value, np.take(np.arange(length), [-9, 1, 7], mode=mode))  # type: ignore[call-overload]


def test_many_look_ups_add_up_in_one_array() -> None:
    g = rg.Graph()
    table = g.param(np.zeros((1000, 2)))
    total = sum((rg.take(table, np.array([i, 0]), axis=0) * (1.0 + i)).sum() for i in range(50))
    slope = rg.grad(total, table)
    run = g.forward(slope)
    assert [one.shape for one in run.ran].count((1000, 2)) == 1
    wanted = np.zeros((1000, 2))
    wanted[:50] += np.arange(1.0, 51.0)[:, None]
    wanted[0] += np.arange(1.0, 51.0).sum()
    np.testing.assert_array_equal(slope.value, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_short_floats_add_up_in_float64(dtype: str) -> None:
    rows = np.zeros(5000, int)
    g = rg.Graph()
    table = g.param(np.ones((20000, 2), dtype))
    few = rg.grad((rg.take(table, rows, axis=0)).sum(), table).value
    assert few.dtype == np.dtype(dtype)
    assert few[0].tolist() == [5000.0, 5000.0]
    assert not few[1:].any()
    short = g.param(np.ones((3, 2), dtype))
    assert rg.grad(rg.take(short, rows, axis=0).sum(), short).value[0].tolist() == [5000.0, 5000.0]
    assert rg.segment_sum(np.ones(5000, dtype), rows, 2).value.tolist() == [5000.0, 0.0]
    assert rg.index_add(np.zeros(2, dtype), 0, rows, np.ones(5000, dtype)).value[0] == 5000.0
    weights = np.random.default_rng(0).normal(size=(2, 6)).astype(dtype)
    for axis, shape in ((0, (40, 2)), (1, (2, 40))):
        wide = g.param(np.zeros(shape, dtype))
        each = weights.T if axis == 0 else weights
        slope = rg.grad((rg.take(wide, [7, 3, -1, 7, 3, 7], axis) * each).sum(), wide).value
        wanted = np.zeros(shape)
        where = (slice(None),) * axis + ([7, 3, -1, 7, 3, 7],)
        np.add.at(wanted, where, each.astype("f8"))
        np.testing.assert_array_equal(slope, wanted.astype(dtype))
    tenths = np.full(4096, 0.1, dtype)
    assert rg.segment_mean(tenths, rows[:4096], 1).value[0] == np.dtype(dtype).type(0.1)


def test_the_rows_of_a_gradient_are_read_without_the_table() -> None:
    g = rg.Graph()
    table, words = g.param(np.arange(12.0).reshape(6, 2)), g.input([4, 1, 4])
    loss = (table[words] ** 2.0).sum() + rg.take(table, [0], axis=0).sum()
    slope = rg.grad(loss, table)
    indices, rows = rg.row_gradient(slope)
    run = g.forward(indices, rows)
    assert not any(one.shape == (6, 2) for one in run.ran)
    words.set([3, 1, 3])
    dense = np.zeros((6, 2))
    np.add.at(dense, indices.value, rows.value)
    np.testing.assert_array_equal(dense, slope.value)
    distinct = rg.row_gradient(slope, distinct=True)
    assert distinct.indices.value.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(distinct.rows.value, slope.value[[0, 1, 3]])
    words.set([2, 2, 2])
    assert distinct.indices.value.tolist() == [0, 2]
    np.testing.assert_array_equal(distinct.rows.value, slope.value[[0, 2]])
    assert rg.row_gradient(rg.grad((table * 2.0).sum(), table)) is None
    assert rg.row_gradient(rg.grad(table[:, [0]].sum(), table)) is None
    assert rg.row_gradient(rg.grad(rg.take(table, [9], 0, "wrap").sum(), table)) is None


def test_conditions_that_change_give_other_lengths() -> None:
    g = rg.Graph()
    x = g.param([1.0, -2.0, 3.0])
    taken, places = rg.compress(x > 0, x), rg.flatnonzero(x > 0)
    square = rg.grad((taken * taken).sum(), x)
    assert (taken.value.tolist(), places.value.tolist()) == ([1.0, 3.0], [0, 2])
    assert square.value.tolist() == [2.0, 0.0, 6.0]
    x.set([-1.0, -2.0, -3.0])
    assert (taken.value.tolist(), places.value.tolist()) == ([], [])
    assert square.value.tolist() == [0.0, 0.0, 0.0]


def test_wrong_calls_say_what_to_write() -> None:
    g = rg.Graph()
    x, at = g.input(np.zeros((2, 3))), g.input([0, 1])
    cases = [
        (lambda: rg.take(x, [0.5]), rg.DTypeError, "indices are integers, not float64"),
        (lambda: rg.take(x, [0], 2), IndexError, "axis 2 does not exist"),
        (lambda: rg.take(x, [0], mode="last"), rg.DTypeError, '"wrap" and "clip"'),
        (lambda: rg.take(x, [7], 0), rg.IndexingError, "no element 7"),
        (lambda: rg.take_along_axis(x, [0], 1), rg.ShapeError, "rg.take"),
        (lambda: rg.take_along_axis(x, np.zeros((5, 1), int), 1), rg.ShapeError, "5 at axis 0 does not fit 2"),
        (lambda: rg.index_select(x, 0, [[0]]), rg.ShapeError, "rg.take takes indices of any shape"),
        (lambda: rg.scatter(x, 0, [[0, 0, 0]], np.zeros((3, 3, 3))), rg.ShapeError, "does not broadcast"),
        (lambda: rg.segment_sum(x, [0, 1, 1]), rg.ShapeError, "one number of a segment for each row"),
        (lambda: rg.topk(x, 4), rg.ShapeError, "no 4 elements"),
        (lambda: rg.partition(x, 3), rg.ShapeError, "no place 3"),
        (lambda: rg.partition(x, at), rg.DTypeError, r"rg\.sort\(x\)\[k\]"),
        (lambda: rg.sort(x.sum()), rg.ShapeError, "no axes"),
        (lambda: rg.sort(x, kind="best"), rg.DTypeError, '"stable"'),
        (lambda: rg.searchsorted(x, 1.0), rg.ShapeError, "have one axis"),
        (lambda: rg.interp(x, [1.0, 2.0], [1.0]), rg.ShapeError, "2 knots and 1 values"),
        (lambda: rg.select([x > 0], []), rg.ShapeError, "one value for each"),
        (lambda: rg.select([x], [x]), rg.DTypeError, "Compare"),
        (lambda: rg.nonzero(x.sum()), rg.ShapeError, r"x\[None\]"),
        (lambda: rg.compress(x > 0, x), rg.ShapeError, r"x\[mask\]"),
        (lambda: rg.where(x, x), rg.DTypeError, "both x and y"),
        (lambda: np.put(x, [0], 1.0), rg.ImplicitValueError, r"rg\.scatter"),
        (lambda: np.place(x, x > 0, 1.0), rg.ImplicitValueError, r"rg\.where"),
        (lambda: np.putmask(x, x > 0, 1.0), rg.ImplicitValueError, r"rg\.where"),
        (lambda: np.copyto(np.zeros((2, 3)), x), rg.ImplicitValueError, r"\.set"),
        (lambda: np.put_along_axis(x, np.zeros((1, 3), int), 1.0, 0), rg.ImplicitValueError, r"rg\.scatter"),
    ]  # fmt: skip
    for call, error, text in cases:
        with pytest.raises(error, match=text):  # type: ignore[call-overload]
            call()


def test_numbers_that_name_nothing_are_refused_when_they_are_read() -> None:
    g = rg.Graph()
    numbers = g.input([0, -1])
    for node, text in (
        (rg.segment_sum(np.ones(2), numbers, 2), "no element -1"),
        (rg.segment_max(np.ones(2), numbers, 2), "no element -1"),
        (rg.choose(numbers, [1.0, 2.0]), "no choice -1 among 2"),
        (rg.scatter_add(np.ones(2), 0, numbers - 5, 1.0), "no element -5"),
    ):
        with pytest.raises(rg.IndexingError, match=text):
            node.value


@pytest.mark.parametrize("n", [0, 1, 7])
def test_sets_are_numpys(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 5, n), rng.integers(2, 8, 2 * n)
    g = rg.Graph()
    x, y = g.input(a), g.input(b.astype(np.float32))
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        wanted = getattr(np, name)(a, b.astype(np.float32))
        found = getattr(np, name)(x, y).value
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype, name
    one, other = np.unique(a), np.unique(b)
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        wanted = getattr(np, name)(one, other, assume_unique=True)
        np.testing.assert_array_equal(getattr(rg, name)(g.input(one), other, True).value, wanted)


def test_segments_of_numbers_that_change_are_as_many_as_there_are() -> None:
    g = rg.Graph()
    x, numbers = g.param([1.0, 2.0, 4.0]), g.input([0, 1, 0])
    total, mean, most = (f(x, numbers) for f in (rg.segment_sum, rg.segment_mean, rg.segment_max))
    slope = rg.grad((total * total).sum(), x)
    assert (total.value.tolist(), mean.value.tolist()) == ([5.0, 2.0], [2.5, 2.0])
    assert slope.value.tolist() == [10.0, 4.0, 10.0]
    numbers.set([2, 2, 0])
    assert (total.value.tolist(), most.value.tolist()) == ([4.0, 0.0, 3.0], [4.0, -np.inf, 2.0])
    assert slope.value.tolist() == [6.0, 6.0, 8.0]


def test_rows_are_searched_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rows, wanted = np.sort(rng.normal(size=(2, 3, 5))), rng.normal(size=(2, 3, 4))
    g = rg.Graph()
    found = rg.searchsorted(g.input(rows), wanted, "right").value
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[at], np.searchsorted(rows[at], wanted[at], "right"))
    mixed = rows[..., ::-1]
    again = rg.searchsorted(mixed, wanted, sorter=rg.argsort(g.input(mixed)))
    np.testing.assert_array_equal(again.value, rg.searchsorted(rows, wanted).value)


@pytest.mark.parametrize(
    "call",
    [
        rg.sort,
        rg.unique,
        lambda u: rg.masked_fill(u, u > 2, 0.0),
        lambda u: rg.segment_max(u, np.array([0, 1, 0]), 2),
        lambda u: rg.segment_mean(u, np.array([0, 1, 0]), 2),
        lambda u: rg.topk(u, 2)[0],
        lambda u: rg.partition(u, 1),
        lambda u: rg.interp(u, [0.0, 2.5, 9.0], [1.0, 5.0, 2.0]),
        lambda u: rg.interp([0.5], [0.0, 1.0, 2.0], u),
        lambda u: rg.take_along_axis(u, rg.argsort(u), 0),
        lambda u: rg.scatter_add(np.zeros(3), 0, [0, 0, 1], u),
        lambda u: rg.select([u > 2.5], [u], u * 2),
        lambda u: rg.piecewise(u, [u > 2.5], [lambda t: t * t]),
        lambda u: rg.choose([0, 1, 0], [u, u * 2]),
        lambda u: rg.compress(u > 2.5, u),
    ],
)
def test_ops_on_what_has_no_shape_before_it_is_computed(call: Any) -> None:
    x = np.array([3.0, -1.0, 2.0, 5.0])

    def built(by_value: bool) -> list[Any]:
        g = rg.Graph()
        leaf = g.param(x)
        y = call(rg.compress(leaf > 0, leaf) if by_value else leaf[[0, 2, 3]])
        direction = [np.arange(4.0)]
        (second,) = rg.hvp((y * y * y).sum(), [leaf], direction)
        return [y, rg.grad((y * y).sum(), leaf), rg.jvp(y, [leaf], direction), second]

    for one, other in zip(built(True), built(False), strict=True):
        np.testing.assert_allclose(one.value, other.value)


def test_numbers_are_compared_in_their_own_dtype_as_numpy_does() -> None:
    short, small = np.array([0.1], "f4"), np.array([1], "i1")
    g = rg.Graph()
    x, n = g.input(short), g.input(small)
    assert rg.searchsorted(x, 0.1, "right").value == np.searchsorted(short, 0.1, "right") == 0
    assert rg.isin(x, 0.1).value.tolist() == np.isin(short, 0.1).tolist() == [False]
    assert rg.digitize(x, [0.1]).value.tolist() == np.digitize(short, [0.1]).tolist()
    assert rg.isin(n, 1000).value.tolist() == [False]
    assert rg.searchsorted(n, 1000).value == 1
    assert rg.choose([0, 1], [g.input(np.ones(2, "f4")), 2.0]).dtype == np.float32


def test_lexsort_of_one_axis_takes_numbers_for_keys_as_numpy_does() -> None:
    a = np.array([3.0, 1.0, 2.0])
    x = rg.Graph().input(a)
    assert np.lexsort(x).value == np.lexsort(a) == 0
    assert rg.lexsort([x]).value.tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match=r"rg.lexsort\(\[key\]\)"):
        np.lexsort(x[0])
