"""Facts, functions along axes, places and bits: NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

CASES = [
    Case(
        "apply_along_axis",
        lambda x: rg.apply_along_axis(lambda r: r * r.sum(), 1, x),
        lambda x: np.apply_along_axis(lambda r: r * r.sum(), 1, x),
        [(3, 4)],
        dtypes="df",
        unknown=False,
        fixed="one part of the graph for each row",
        late="one part of the graph for each row",
    ),
    Case(
        "apply_along_axis to matrices",
        lambda x: rg.apply_along_axis(lambda r: r[:, None] * r, 0, x),
        lambda x: np.apply_along_axis(lambda r: r[:, None] * r, 0, x),
        [(2, 3)],
        dtypes="df",
        unknown=False,
        fixed="one part of the graph for each row",
        late="one part of the graph for each row",
    ),
    Case(
        "apply_over_axes",
        lambda x: rg.apply_over_axes(rg.sum, x, (0, 2)),
        lambda x: np.apply_over_axes(np.sum, x, (0, 2)),
        [(2, 3, 4)],
        dtypes="dfi",
        late="the function is called when the node is built",
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


PLACES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "ravel": (lambda a: np.ravel_multi_index((a, a), (3, 4)), np.array([[0, 1], [2, 2]])),
    "ravel wrap": (lambda a: np.ravel_multi_index((a, a), (3, 4), mode="wrap"), np.array([5, 7])),
    "ravel modes": (
        lambda a: np.ravel_multi_index((a, a), (3, 4), mode=("clip", "wrap"), order="F"),
        np.array([5, 7]),
    ),
    "unravel": (lambda a: np.unravel_index(a, (3, 4)), np.array([0, 5, 11])),
    "unravel one": (lambda a: np.unravel_index(a, 12), np.array([0, 5, 11])),
    "packbits": (np.packbits, np.array([[True, False, True], [True, True, False]])),
    "packbits axis": (
        lambda a: np.packbits(a, axis=-1, bitorder="little"),
        np.array([[True, False, True], [True, True, False]]),
    ),
    "packbits of integers": (np.packbits, np.array([3, 0, 1])),
    "unpackbits": (np.unpackbits, np.array([[2], [23]], np.uint8)),
    "unpackbits axis": (
        lambda a: np.unpackbits(a, axis=1, count=-2),
        np.array([[2], [23]], np.uint8),
    ),
    "unpackbits count": (
        lambda a: np.unpackbits(a, count=11, bitorder="little"),
        np.array([2, 23], np.uint8),
    ),
    "diag_indices_from": (np.diag_indices_from, np.zeros((3, 3))),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_and_bits(name: str) -> None:
    call, a = PLACES[name]
    g = rg.Graph()
    x = g.input(a)
    found, wanted = call(x), call(a)
    if not isinstance(wanted, tuple):
        found, wanted = (found,), (wanted,)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.value, other)


def test_a_place_outside_is_an_error_of_its_node() -> None:
    g = rg.Graph()
    i = g.input(np.array([5]))
    y = rg.ravel_multi_index((i,), (3,))
    with pytest.raises(ValueError, match="invalid entry"):
        y.value
    i.set(np.array([2]))
    assert y.tolist() == [2]


def test_facts() -> None:
    g = rg.Graph()
    x, z, n = g.input([1.0, 2.0]), g.input([1j]), g.input(np.array([1], np.int32))
    assert np.result_type(x, n, 2.0) == np.float64
    assert np.result_type(n, g.input(2)) == np.int32
    assert np.can_cast(n, np.int64)
    assert not np.can_cast(x, n.dtype)
    assert np.astype(x, np.float32).dtype == np.float32
    assert np.iscomplexobj(z)
    assert np.isrealobj(x)
    assert np.common_type(x, n) == np.float64
    assert np.min_scalar_type(n) == np.int32
    assert not np.shares_memory(x, x.value)
    assert np.array_repr(x) == "array([1., 2.])"
    assert np.array_str(x) == np.array2string(x) == "[1. 2.]"
    number = x[0]
    assert (np.array_str(number), np.array2string(number)) == ("1.0", "1.")
    assert np.array_repr(number) == "array(1.)"


def test_what_does_not_fit_says_so() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 3), dtype="float64")
    with pytest.raises(rg.ShapeError, match="once a row"):
        rg.apply_along_axis(rg.sum, 1, x)
    with pytest.raises(rg.ShapeError, match="number of rows must be known and more than 0"):
        rg.apply_along_axis(rg.sum, 1, g.input(np.zeros((0, 3))))
    with pytest.raises(rg.ShapeError, match="it must keep them"):
        rg.apply_over_axes(lambda a, axis: a.sum(), x, [0])
    with pytest.raises(rg.DTypeError, match="places are integers"):
        rg.ravel_multi_index((x,), (3,))
    with pytest.raises(rg.ShapeError, match="for the 2 axes"):
        rg.ravel_multi_index(([1],), (3, 4))
    with pytest.raises(rg.DTypeError, match="packbits"):
        rg.packbits(x)
    with pytest.raises(rg.DTypeError, match="uint8"):
        rg.unpackbits(x)
    with pytest.raises(rg.ShapeError, match="one length"):
        rg.diag_indices_from(g.input(np.zeros((2, 3))))
