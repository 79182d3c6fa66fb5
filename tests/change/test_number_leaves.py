"""Inputs that hold Python numbers: kernels have one array for each, which is written in place."""

from __future__ import annotations

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


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_a_number_that_is_set_gives_what_it_gives_where_it_is_the_first(
    numbers: list[float],
) -> None:
    x = rg.Graph().input(numbers[0])
    y = model(x)
    for number in [*numbers, *numbers]:
        x.set(number)
        try:
            expected = fresh(number)
        except OverflowError:
            with pytest.raises(OverflowError):
                y.value
            continue
        assert y.value.dtype == expected.dtype
        np.testing.assert_array_equal(y.value, expected)
        assert x.value == number


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
