"""Inputs that hold Python numbers: kernels have one array for each, which is written in place."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg


def fresh(number: float) -> np.ndarray:
    x = rg.Graph().input(number)
    return model(x).value


def model(x: rg.Var) -> rg.Var:
    return rg.maximum(np.arange(3.0) * x, x - 1.0)


NUMBERS = st.one_of(
    st.floats(allow_nan=False),
    st.integers(-(10**6), 10**6),
    st.sampled_from([True, 10**400, 1e308]),
)
KINDS = (bool, int, float)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_a_number_that_is_set_gives_what_it_gives_where_it_is_the_first(
    numbers: list[float],
) -> None:
    """An input of one kind of numbers holds that kind until a wider one is set."""
    x = rg.Graph().input(numbers[0])
    y, kind = model(x), type(numbers[0])
    for number in [*numbers, *numbers]:
        if max(kind, type(number), key=KINDS.index) is float and number == 10**400:
            with pytest.raises(TypeError, match="holds a Python float, into which"):
                x.set(number)
            continue
        x.set(number)
        kind = max(kind, type(number), key=KINDS.index)
        number = float(number) if kind is float else number
        assert type(x.value) is type(number)
        assert x.value == number
        try:
            expected = fresh(number)
        except OverflowError:
            with pytest.raises(OverflowError):
                y.value
            continue
        assert y.value.dtype == expected.dtype
        np.testing.assert_array_equal(y.value, expected)


NUMBERS_OF_ALL_SORTS = {
    "int": 2,
    "bool": True,
    "numpy int": np.int64(2),
    "numpy bool": np.bool_(True),
    "numpy float": np.float32(0.5),
    "long double": np.longdouble(2),
    "0-d array": np.array(2),
    "enum": enum.IntEnum("E", "ONE TWO").TWO,
    "large": 10**300,
}
WAYS = {
    "set": lambda g, x, new: x.set(new),
    "without a copy": lambda g, x, new: x.set(new, copy=False),
    "together": lambda g, x, new: g.set({x: new}),
    "by name": lambda g, x, new: g.set({"x": new}),
    "in a transaction": lambda g, x, new: _in_a_transaction(g, x, new),
}


def _in_a_transaction(g: rg.Graph, x: rg.Var, new: object) -> None:
    with g.transaction():
        x.set(new)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sort", NUMBERS_OF_ALL_SORTS)
def test_an_input_of_floats_holds_floats(sort: str, way: str, g: rg.Graph) -> None:
    new = NUMBERS_OF_ALL_SORTS[sort]
    x = g.input(4.0, name="x")
    half, cube, back = x / 2, x * 10**6 * 10**6 * 10**6, rg.reciprocal(x)
    inverse, kind = x**-2, rg.lift(type)(x)
    [v.value for v in (half, cube, back, inverse, kind)]
    for graph in (g.fork(), g):
        WAYS[way](graph, graph["x"], new)
        number = float(new)
        assert type(graph["x"].value) is float
        assert graph["x"].value == number
        assert graph[kind].value is float
        assert graph[half].value == number / 2
        assert graph[cube].value == number * 1e6 * 1e6 * 1e6
        assert graph[back].value == 1 / number
        assert graph[inverse].value == number**-2.0
        before = graph[cube].value
        assert rg.grad(graph[cube], graph["x"]).value == 1e18
        assert graph[cube].value == before
    with g.whatif({"x": new}) as w:
        assert type(w["x"].value) is float


def test_an_input_of_ints_becomes_one_of_floats_for_good(g: rg.Graph) -> None:
    x = g.input(4)
    seen = rg.lift(lambda n: n)(x)
    doubled = x * 2
    for new, held in ((10**30, 10**30), (np.int8(3), 3), (True, True), (2.5, 2.5), (3, 3.0)):
        x.set(new)
        assert seen.value == held
        assert type(seen.value) is type(held)
    assert type(doubled.value) is np.float64
    assert doubled.value == 6.0


def test_a_bool_in_an_input_of_ints_counts_as_one(g: rg.Graph) -> None:
    x, y = g.input(2), g.input(3)
    total = x + y
    g.set({x: True, y: True})
    assert total.value == 2
    assert x.value is True
    n = g.input(1)
    with pytest.raises(ZeroDivisionError), g.transaction():
        n.set(0.5)
        raise ZeroDivisionError
    n.set(2)
    assert type(n.value) is int  # the float was taken back


def test_an_array_set_in_place_of_a_number_is_of_no_narrower_kind(g: rg.Graph) -> None:
    x, n = g.input(1.0), g.input(1)
    x.set([1, 2])
    n.set([True, False])
    assert (x.dtype, n.dtype) == (np.float64, np.int64)
    y = g.input(1.0)
    y.set(np.ones(2, "f4"))
    assert y.dtype == np.float32
    with pytest.raises(TypeError, match="which is no number or array"):
        g.input(1.0).set("1.0")


@pytest.fixture
def replayed() -> Iterator[tuple[rg.Graph, rg.Var, rg.Var]]:
    g = rg.Graph()
    x = g.input(1.0)
    y = g.keep(np.arange(3.0) * x)
    for k in range(5):
        x.set(float(k))
        y.value
    yield g, x, y
    g.check_invariants()


def test_a_fork_has_numbers_of_its_own(replayed: tuple[rg.Graph, rg.Var, rg.Var]) -> None:
    g, x, y = replayed
    h = g.fork()
    h[x].set(7.0)
    assert h[y].value.tolist() == [0.0, 7.0, 14.0]
    assert y.value.tolist() == [0.0, 4.0, 8.0]
    x.set(2.0)
    assert y.value.tolist() == [0.0, 2.0, 4.0]
    h[x].set(3.0)
    assert h[y].value.tolist() == [0.0, 3.0, 6.0]
    x.touch()
    assert y.value.tolist() == [0.0, 2.0, 4.0]


def test_a_transaction_that_fails_gives_the_number_back(
    replayed: tuple[rg.Graph, rg.Var, rg.Var],
) -> None:
    g, x, y = replayed
    for k in (5.0, 6.0):
        with pytest.raises(ZeroDivisionError), g.transaction():
            x.set(k)
            assert y.value.tolist() == [0.0, k, 2 * k]
            x.set(np.ones(3))
            assert y.value.tolist() == [0.0, 1.0, 2.0]
            raise ZeroDivisionError
        assert y.value.tolist() == [0.0, 4.0, 8.0]
    x.set(3.0)
    assert y.value.tolist() == [0.0, 3.0, 6.0]


def test_a_number_that_comes_after_an_array_is_a_number_again(
    replayed: tuple[rg.Graph, rg.Var, rg.Var],
) -> None:
    _, x, y = replayed
    x.set(np.ones(3))
    assert y.value.tolist() == [0.0, 1.0, 2.0]
    for k in (2.0, 3.0, 4.0, 5.0):
        x.set(np.full(3, k))
        assert y.value.tolist() == [0.0, k, 2 * k]


def test_values_that_were_read_before_stay(replayed: tuple[rg.Graph, rg.Var, rg.Var]) -> None:
    _, x, y = replayed
    held = [(x.value, y.value)]
    for k in (7.0, 8.0, 9.0):
        x.set(k)
        held.append((x.value, y.value))
    assert [number for number, _ in held] == [4.0, 7.0, 8.0, 9.0]
    assert [value.tolist()[1] for _, value in held] == [4.0, 7.0, 8.0, 9.0]


def test_an_integer_that_stands_for_a_float_reaches_the_kernels(
    replayed: tuple[rg.Graph, rg.Var, rg.Var],
) -> None:
    """Where gradients exist the leaf stays one of floats, and nothing is bound anew for that."""
    _, x, y = replayed
    slope = rg.grad(y.sum(), x)
    assert slope.value == 3.0
    for number in (7, 2.0, 8, 9, 2.5):
        x.set(number)
        assert y.value.tolist() == [0.0, number, 2.0 * number]
        assert x.value == number


PAIRS = {
    "arrays": (np.array([1.0]), np.array([2.0, 3.0])),
    "lists": ([1.0], [2.0, 3.0]),
    "lists of objects": ([object()], [None]),
    "dicts": ({"a": 1}, {"b": 2}),
    "texts": ("a", "b"),
    "numbers": (1.0, 2.0),
    "objects": (object(), object()),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("first", [{"a": 1}, "text", None], ids=["dict", "str", "None"])
def test_an_input_of_objects_takes_the_second_of_a_kind_as_the_first(
    first: object, pair: tuple[object, object], g: rg.Graph
) -> None:
    x, other = g.input(first), g.input(first)
    try:
        other.set(pair[1])
    except TypeError as error:
        for given in pair:
            with pytest.raises(type(error)):
                x.set(given)
        return
    for given in pair:
        x.set(given)
    assert type(x.value) is type(other.value)
    assert np.array_equal(x.value, other.value)
    assert x.value_version == 3


@pytest.mark.parametrize(
    "given", [object(), None, {"a": 1}, "text"], ids=["object", "None", "dict", "str"]
)
def test_an_input_without_a_value_takes_what_its_dtype_can_hold(given: object, g: rg.Graph) -> None:
    x = g.input(dtype="f4")
    with pytest.raises(TypeError):
        x.set(given)
    x.set([1.0, 2.0])
    assert x.value.dtype == np.float32
