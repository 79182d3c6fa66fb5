"""Forms of arguments, results that are views, and refusals of ops that move elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.arange(12.0).reshape(3, 4)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "flip": lambda x: rg.flip(x, 0),
    "rot90": rg.rot90,
    "moveaxis": lambda x: rg.moveaxis(x, 0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "rollaxis": lambda x: rg.rollaxis(x, 1),
    "atleast_3d": rg.atleast_3d,
    "ravel": rg.ravel,
    "flatten": lambda x: rg.flatten(x, 0, 1),
    "unflatten": lambda x: rg.unflatten(x, 1, (2, -1)),
    "narrow": lambda x: rg.narrow(x, 0, 1, 200),
    "array_split": lambda x: rg.array_split(x, 2)[1],
    "unstack": lambda x: rg.unstack(rg.unflatten(x, 0, (3, -1)))[0],
    "broadcast_arrays": lambda x: rg.broadcast_arrays(x, np.zeros((2, 1, 1)))[0],
    "sliding_window_view": lambda x: rg.sliding_window_view(x, (2, 2)),
    "resize to fewer": lambda x: rg.resize(x, (200, 300)),
    "copy": rg.copy,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_cost_nothing(name: str) -> None:
    large = np.arange(120_000.0).reshape(300, 400)  # small values are copied when they are read
    x = rg.Graph().input(large)
    y = VIEWS[name](x)
    assert np.may_share_memory(y.value, x.value)
    x.set(large + 1.0)
    assert np.may_share_memory(y.value, x.value)


def test_counts_that_are_a_node() -> None:
    g = rg.Graph()
    x, counts = g.param(A), g.input([1, 0, 2])
    y = rg.repeat(x, counts, 0)
    slope = rg.grad((y * y).sum(), x)
    for now in ([1, 0, 2], [0, 3, 1]):
        counts.set(now)
        np.testing.assert_array_equal(y.value, np.repeat(A, now, 0))
        np.testing.assert_array_equal(slope.value, 2 * A * np.array(now)[:, None])
    assert rg.repeat_interleave(x, 2, 0).tolist() == rg.repeat(x, 2, 0).tolist()
    number = g.input(2)
    np.testing.assert_array_equal(rg.repeat(x, number).value, np.repeat(A, 2))
    number.set(3)
    with pytest.raises(rg.DTypeError, match="integers"):
        rg.repeat(x, g.input([0.5, 1.0, 1.0]), 0)


def test_lists_that_hold_nodes() -> None:
    g = rg.Graph()
    x, y = g.input(1.0), g.input(2.0)
    assert rg.flip([x, y]).tolist() == [2.0, 1.0]
    assert rg.hstack([[x, 3.0], [y]]).tolist() == [1.0, 3.0, 2.0]
    assert rg.append([x], [y, 4.0]).tolist() == [1.0, 2.0, 4.0]
    assert rg.insert([1.0, 2.0], 1, y).tolist() == [1.0, 2.0, 2.0]
    assert rg.block([[x, y], [y, x]]).tolist() == [[1.0, 2.0], [2.0, 1.0]]
    assert rg.pad(np.ones(1), 1, constant_values=x).tolist() == [1.0, 1.0, 1.0]
    x.set(5.0)
    assert rg.flip([x, y]).tolist() == [2.0, 5.0]


def test_arrays_alone_become_nodes_of_the_current_graph() -> None:
    with rg.Graph() as g:
        for node in (rg.flip(A), rg.pad(A, 1), rg.vstack([A, A]), rg.roll([1, 2], 1)):
            assert isinstance(node, rg.Var)
            assert node.graph is g


def test_a_node_in_place_of_a_list_is_joined_along_its_first_axis() -> None:
    x = rg.Graph().input(A)
    for name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"):
        wanted = getattr(np, name)(A)
        np.testing.assert_array_equal(getattr(np, name)(x).value, wanted)
        np.testing.assert_array_equal(getattr(rg, name)(x).value, wanted)


def test_few_nodes() -> None:
    g = rg.Graph()
    x = g.input(A)
    for build in (
        lambda: rg.pad(x, 2, "reflect", reflect_type="odd"),
        lambda: rg.vstack([x[0], x[1]]).parents[0],
        lambda: rg.roll(x, (1, 2), (0, 1)),
        lambda: rg.tile(x, (2, 2)),
        lambda: rg.repeat(x, 2, 1),
        lambda: rg.moveaxis(x, 0, 1),
        lambda: rg.sliding_window_view(x, (2, 2)),
        lambda: rg.block([[x, x], [x, x]]),
    ):
        before = len(g)
        kept = build()
        assert len(g) - before <= (1 if kept.parents[0] is x else 2), kept


def test_an_index_of_all_combinations() -> None:
    g = rg.Graph()
    x, rows = g.input(A), g.input([2, 0])
    y = x[rg.ix_(rows, [True, False, True, False])]
    for now in ([2, 0], [1, 1, 0]):
        rows.set(now)
        np.testing.assert_array_equal(y.value, A[np.ix_(now, [0, 2])])
    chosen = g.input([True, False, True])
    z = x[np.ix_(chosen, [1])]
    np.testing.assert_array_equal(z.value, A[[0, 2]][:, [1]])
    chosen.set([False, False, True])
    np.testing.assert_array_equal(z.value, A[[2]][:, [1]])


def test_zeros_trimmed_follow_the_values() -> None:
    g = rg.Graph()
    x = g.param([0.0, 1.0, 0.0, 2.0, 0.0])
    y = rg.trim_zeros(x)
    slope = rg.grad((y * 3.0).sum(), x)
    assert y.tolist() == [1.0, 0.0, 2.0]
    assert slope.tolist() == [0.0, 3.0, 3.0, 3.0, 0.0]
    x.set([4.0, 0.0, 0.0, 0.0, 0.0])
    assert y.tolist() == [4.0]
    assert slope.tolist() == [3.0, 0.0, 0.0, 0.0, 0.0]
    x.set(np.zeros(5))
    assert y.tolist() == []


def test_long_borders_of_short_floats_are_summed_with_care() -> None:
    n = 200_000
    for dtype, rtol in ((np.float32, 1e-6), (np.float16, 1e-3)):
        g = rg.Graph()
        x = g.param(np.zeros(2, dtype))
        weights = np.full(n + 2, 0.01, dtype)
        slope = rg.grad((rg.pad(x, (n, 0), "edge") * weights).astype(np.float32).sum(), x)
        if dtype is np.float16:
            n_exact = (n + 1) * float(dtype(0.01))
            assert slope.dtype == dtype
            np.testing.assert_allclose(float(slope.value[0]), n_exact, rtol=rtol)
        else:
            np.testing.assert_allclose(slope.value[0], (n + 1) * float(dtype(0.01)), rtol=rtol)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: rg.ravel(x, "K"), TypeError, "lie in memory"),
        (lambda x: rg.reshape(x, (4, 3), "A"), TypeError, "lie in memory"),
        (lambda x: rg.pad(x, 1, lambda *a: None), TypeError, r"rg\.concatenate.*rg\.lift"),
        (lambda x: rg.pad(x, 1, "edges"), TypeError, "write one of constant, edge"),
        (lambda x: rg.pad(x, 1, "edge", end_values=1), TypeError, "takes no end_values"),
        (lambda x: rg.pad(x, -1), ValueError, r"slice instead"),
        (lambda x: rg.pad(x, (1, 2, 3)), ValueError, "for 2 axes"),
        (lambda x: rg.pad(x[:, :0], 1, "edge"), ValueError, "use mode='constant'"),
        (lambda x: rg.roll(x, x[0, 0]), TypeError, "would not follow"),
        (lambda x: rg.roll(x, (1, 2, 3), (0, 1)), ValueError, "one shift for each axis"),
        (lambda x: rg.repeat(x, [1, 2], 0), ValueError, "give one number for all"),
        (lambda x: rg.repeat(x, -1), ValueError, "negative"),
        (lambda x: rg.tile(x, -1), ValueError, "less than 0"),
        (lambda x: rg.moveaxis(x, (0, 1), 0), ValueError, "one place for each"),
        (lambda x: rg.flip(x, 2), IndexError, "axis 2 does not exist"),
        (lambda x: rg.rot90(x, 1, (0,)), ValueError, "two axes"),
        (lambda x: rg.fliplr(x[0]), ValueError, "at least 2 axes"),
        (lambda x: rg.dsplit(x, 2), ValueError, "at least 3 axes"),
        (lambda x: rg.array_split(x, 0), TypeError, "at least one"),
        (lambda x: rg.narrow(x, 0, 2, 2), ValueError, "do not lie in axis 0"),
        (lambda x: rg.unflatten(x, 1, (3, -1)), ValueError, "do not fill"),
        (lambda x: rg.flatten(x, 1, 0), ValueError, "comes before"),
        (lambda x: rg.delete(x, 7, 0), IndexError, "has length 3"),
        (lambda x: rg.delete(x, x[0, 0], 0), TypeError, r"x\[mask\].*x\.at"),
        (lambda x: rg.insert(x, 7, 1.0, 0), IndexError, "has length 3"),
        (lambda x: rg.insert(x, 1, np.zeros(3), 0), ValueError, "cannot become"),
        (lambda x: rg.meshgrid(x[0], indexing="ji"), TypeError, "'xy' or 'ij'"),
        (lambda x: rg.ix_(x), ValueError, "takes rows"),
        (lambda x: rg.sliding_window_view(x, 9, axis=0), ValueError, "longer than axis 0"),
        (lambda x: rg.sliding_window_view(x, 2), ValueError, "one for each"),
        (lambda x: rg.block([[x], x]), ValueError, "different depths"),
        (lambda x: rg.block([]), ValueError, "empty"),
        (lambda x: rg.vstack([x, x[0, :3]]), ValueError, "must be the same"),
        (lambda x: rg.vstack(3), TypeError, "sequence"),
        (lambda x: rg.concatenate([x], dtype=int), TypeError, "casting='unsafe'"),
        (lambda x: rg.resize(x, -1), ValueError, "negative"),
        (lambda x: rg.trim_zeros(x, "q"), TypeError, "'f', 'b' or 'fb'"),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    x = rg.Graph().input(A)
    with pytest.raises(error, match=words) as caught:
        call(x)
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rg.delete(x, [True, False], 0),
        lambda x: rg.insert(x, slice(0, 2), 1.0, 0),
    ],
)
def test_what_needs_a_length_says_that_it_is_not_known(call: Callable[[Any], Any]) -> None:
    x = rg.Graph().input(shape=(None, 4))
    with pytest.raises(rg.ShapeError, match="not known"):
        call(x)
