"""Constants made from shapes and ranges, and nodes that follow the shape of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda n: n.zeros((2, 3)),
    "zeros of one axis": lambda n: n.zeros(3, dtype=int),
    "ones without axes": lambda n: n.ones((), "f4"),
    "full of an integer": lambda n: n.full((2, 2), 7),
    "full of a row": lambda n: n.full((2, 2), [1.0, 2.0], dtype="f4"),
    "eye": lambda n: n.eye(3),
    "eye above": lambda n: n.eye(2, 4, 1, dtype=bool),
    "identity": lambda n: n.identity(2),
    "arange": lambda n: n.arange(5),
    "arange from": lambda n: n.arange(1, 7, 2),
    "arange with a step only": lambda n: n.arange(5, step=2),
    "arange of floats": lambda n: n.arange(0.0, 1.0, 0.3),
    "arange of a dtype": lambda n: n.arange(3, dtype="f4"),
    "linspace": lambda n: n.linspace(0, 1, 5),
    "linspace without its end": lambda n: n.linspace(0, 1, 5, endpoint=False),
    "linspace of integers": lambda n: n.linspace(0, 10, 4, dtype=int),
    "linspace of rows": lambda n: n.linspace([0, 1], [1, 3], 3, axis=1),
    "linspace of none": lambda n: n.linspace(0, 1, 0),
    "logspace": lambda n: n.logspace(0, 2, 3),
    "geomspace": lambda n: n.geomspace(1, 1000, 4),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_numpys(name: str) -> None:
    wanted = CONSTANTS[name](np)
    with rg.Graph() as g:
        found = CONSTANTS[name](rg)
    assert found.graph is g
    assert not found.parents
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.value, wanted)
    assert not found.value.flags.writeable


def test_empty_shows_no_memory_of_others() -> None:
    with rg.Graph():
        assert rg.empty((2, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_device() -> None:
    with rg.Graph():
        assert rg.zeros(2, device="cpu").device == "cpu"
        with pytest.raises(rg.DeviceError, match="there is no device 'tpu'"):
            rg.zeros(2, device="tpu")


ROW, NUMBER = np.array([4.0, -2.0]), 1.5
FOLLOWING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linspace": lambda n, s, e: n.linspace(s, e, 5),
    "without its end": lambda n, s, e: n.linspace(s, e, 5, endpoint=False),
    "of one": lambda n, s, e: n.linspace(s, e, 1),
    "of none": lambda n, s, e: n.linspace(s, e, 0),
    "last axis": lambda n, s, e: n.linspace(s, e, 4, axis=-1),
    "to a number": lambda n, s, e: n.linspace(s, 3, 4),
    "step": lambda n, s, e: n.linspace(s, e, 3, retstep=True)[1],
    "integers": lambda n, s, e: n.linspace(s, e, 4, dtype=int),
    "logspace": lambda n, s, e: n.logspace(s, e, 4),
    "bases": lambda n, s, e: n.logspace(0.0, s, 4, base=e * e),
    "a base": lambda n, s, e: n.logspace(0.0, 1.0, 4, base=s),
    "geomspace": lambda n, s, e: n.geomspace(s, n.abs(e), 4),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_ranges_between_nodes(name: str) -> None:
    call = FOLLOWING[name]
    for package in (rg, np):
        if package is np and name == "a base":
            continue  # np.logspace asks no node for its base
        g = rg.Graph()
        start, end = g.input(NUMBER), g.input(ROW)
        found = call(package, start, end)
        for number in (NUMBER, 0.25):
            start.set(number)
            wanted = call(np, number, ROW)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.value, wanted, rtol=1e-14)
            assert np.shape(found.value) == np.shape(wanted)


def test_the_last_number_is_the_end() -> None:
    g = rg.Graph()
    for end in (0.1, 1 / 3, 1e300):
        assert rg.linspace(g.input(0.7), end, 7).value[-1] == end


def test_gradients_of_ranges() -> None:
    rg.testing.check_grads(lambda s, e: rg.linspace(s, e, 5) ** 2, [NUMBER, ROW], order=2)
    rg.testing.check_grads(
        lambda s, e: rg.geomspace(s, e, 4), [NUMBER, np.array([2.0, 5.0])], order=2
    )


@pytest.mark.parametrize("package", [np, rg])
@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like"])
def test_likes_follow_the_shape(package: Any, name: str) -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 2), dtype="f4")
    args = (7,) if name == "full_like" else ()
    y = getattr(package, name)(x, *args)
    assert y.dtype == np.float32
    assert y.shape == (None, 2)
    for rows in (2, 3):
        x.set(np.ones((rows, 2)))
        np.testing.assert_array_equal(y.value, getattr(np, name)(x.value, *args))
        assert y.value.dtype == np.float32


def test_like_follows_the_shape_of_a_mask() -> None:
    g = rg.Graph()
    x = g.input([1.0, -1.0, 2.0])
    ones = rg.ones_like(x[x > 0])
    assert ones.tolist() == [1.0, 1.0]
    x.set([1.0, -1.0, -2.0])
    assert ones.tolist() == [1.0]


def test_likes_with_numpys_other_arguments() -> None:
    g = rg.Graph()
    x = g.input(np.ones((2, 3)))
    assert np.zeros_like(x, int, "C", False, (4,)).tolist() == [0, 0, 0, 0]
    assert np.full_like(x, 1.5, dtype=int).value.dtype == np.dtype(int)
    assert rg.zeros_like([1, 2]).tolist() == [0, 0]


def test_no_gradient_passes_a_shape_and_all_passes_the_number() -> None:
    g = rg.Graph()
    x, number = g.param(np.ones((2, 3))), g.param(2.0)
    y = rg.full_like(x, number)
    assert rg.grad(y.sum(), number).value == 6.0
    assert rg.grad(y.sum() + 0.0 * x.sum(), x).value.tolist() == [[0.0] * 3] * 2
    assert rg.grad(rg.full((2, 2), number).sum(), number).value == 4.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rg.zeros(-1), rg.ShapeError, "negative"),
        (lambda: rg.zeros(2.5), rg.DTypeError, "tuple of integers"),
        (lambda: rg.zeros(2, "O"), rg.DTypeError, "numeric"),
        (lambda: rg.full(2, [1, 2, 3]), rg.ShapeError, "broadcast"),
        (lambda: rg.linspace(0, 1, -1), rg.ShapeError, "num=-1; it must be at least 0"),
        (lambda: rg.linspace(0, 1, 2.5), rg.DTypeError, "integer"),
        (lambda: rg.arange(rg.Graph().input(2)), rg.ImplicitValueError, "would not follow"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_constants_may_be_numbers_of_a_range() -> None:
    with rg.Graph() as g:
        assert rg.arange(g.const(3)).tolist() == [0, 1, 2]


def test_an_integer_that_does_not_fit_is_refused_as_in_numpy() -> None:
    g = rg.Graph()
    x = g.input(np.zeros(3, np.int8))
    with g:
        makes = [
            lambda: rg.full_like(x, 1000),
            lambda: np.full_like(x, -1000),
            lambda: rg.full(2, 1000, dtype="int8"),
            lambda: rg.full(2, 10**30, dtype=int),
            lambda: rg.full_like(x, 10**40, dtype="uint64"),
        ]
        for make in makes:
            with pytest.raises(
                rg.DTypeError, match=r"^full(_like)?: the number .* does not fit into u?int\d+\. "
            ):
                make()
        assert rg.full_like(x, 127).value.tolist() == [127] * 3
        assert rg.full(2, 10**30, dtype=float).value.tolist() == [1e30] * 2
