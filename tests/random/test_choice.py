"""Draws among given things follow another shape of these, and refuse what they cannot draw by errors of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

R = rg.random
SHAPES = ((2, 4, 6), (3, 4, 9), (5, 4, 3))
P = np.array([0.1, 0.2, 0.3, 0.4])

CALLS: dict[str, Callable[[Any], Any]] = {
    "permutation": R.permutation,
    "permutation along an axis": lambda x: R.permutation(x, -1),
    "permuted": R.permuted,
    "permuted along an axis": lambda x: R.permuted(x, 2),
    "choice": lambda x: R.choice(x, (4,)),
    "choice along an axis": lambda x: R.choice(x, (3,), replace=False, axis=-1),
    "choice with probabilities": lambda x: R.choice(x, (7,), p=P, axis=1),
    "choice with a node of probabilities": lambda x: R.choice(
        x, (7,), p=rg.softmax(x.detach()[0, 0]), axis=2
    ),
    "categorical": lambda x: x.sum() * R.categorical(x),
    "categorical along an axis": lambda x: x.sum() * R.categorical(x, axis=0),
    "categorical of a shape": lambda x: x.sum() * R.categorical(x[0, 0], (5,)),
}


def made(call: Callable[[Any], Any], value: np.ndarray) -> tuple[Any, Any, Any]:
    x = rg.Graph(rng=0).param(value)
    y = call(x)
    return x, y, rg.grad((y * y).sum(), x)


@pytest.mark.parametrize("name", CALLS)
def test_draws_and_gradients_follow_another_shape(name: str) -> None:
    rng = np.random.default_rng(0)
    first, *others = [rng.standard_normal(shape) for shape in SHAPES]
    x, y, slope = made(CALLS[name], first)
    assert y.value is not None
    assert slope.value.shape == first.shape
    for other in others:
        x.set(other)
        _, wanted, wanted_slope = made(CALLS[name], other)
        assert y.shape == wanted.shape
        np.testing.assert_array_equal(y.value, wanted.value)
        np.testing.assert_allclose(slope.value, wanted_slope.value, rtol=1e-12)


@pytest.mark.parametrize("length", [1, 3, 8])
def test_places_are_drawn_from_all_of_the_new_length(length: int) -> None:
    g = rg.Graph(rng=0)
    x = g.input(np.arange(4.0))
    y, z = R.permutation(x), R.choice(x, (200,))
    assert sorted(y.tolist()) == [0.0, 1.0, 2.0, 3.0]
    x.set(np.arange(float(length)))
    assert sorted(y.tolist()) == list(range(length))
    assert set(z.tolist()) == set(range(length))


def test_a_choice_from_a_length_that_is_not_known_when_built() -> None:
    g = rg.Graph(rng=0)
    x = g.input(shape=(None, 2), dtype="float64")
    y = R.choice(x, (5,))
    x.set(np.ones((3, 2)))
    assert y.value.shape == (5, 2)


def test_a_set_that_leaves_too_few_parts_is_refused() -> None:
    g = rg.Graph(rng=0)
    x = g.input(np.arange(4.0))
    y, z = R.choice(x, (3,), replace=False), R.choice(x, (2,), p=P)
    for length in (2, 5):
        with pytest.raises(rg.ShapeError, match="each at most once|one probability"):
            x.set(np.zeros(length))
    assert y.value.shape == (3,)
    assert z.value.shape == (2,)


def test_touch_draws_again_among_the_same_parts() -> None:
    g = rg.Graph(rng=0)
    x = g.input(np.arange(50.0))
    for y in (R.permutation(x), R.permuted(x), R.permuted(x, 0), R.choice(x, (50,))):
        before = y.tolist()
        assert y.tolist() == before
        y.touch()
        assert y.tolist() != before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: R.choice(3, p=[0.5, 0.5]), rg.ShapeError, "one probability for each of the 3"),
        (lambda g: R.choice(3, p=0.5), rg.ShapeError, "one probability"),
        (lambda g: R.choice(g.input(np.ones((2, 3))), p=[[0.5, 0.5]]), rg.ShapeError, "one prob"),
        (lambda g: R.choice(3, p=["a", "b", "c"]), rg.DTypeError, "real numbers"),
        (lambda g: R.choice(3, (5,), replace=False), rg.ShapeError, "replace=True"),
        (lambda g: R.choice(0), rg.ShapeError, "none to draw"),
        (lambda g: R.choice([], (2,)), rg.ShapeError, "none to draw"),
        (lambda g: R.choice(g.input(3)), rg.ShapeError, "rg.random.integers"),
        (lambda g: R.choice(g.input(2.5)), rg.ShapeError, "without axes"),
        (lambda g: R.choice([1.0, 2.0], axis=3), rg.ShapeError, "axis 3"),
        (lambda g: R.permutation(g.input(3)), rg.ShapeError, "Python integer"),
        (lambda g: R.permuted(g.input(3), 0), rg.ShapeError, "axis 0"),
        (lambda g: R.integers(5, 2), ValueError, "no integer from 5 to below 2"),
        (lambda g: R.integers(0), rg.DTypeError, "no integer from 0 to below 0"),
        (lambda g: R.integers(1, 0, endpoint=True), ValueError, "from 1 up to 0"),
    ],
)
def test_what_cannot_be_drawn_says_so_when_it_is_built(
    call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with rg.Graph(rng=0) as g, pytest.raises(error, match=message) as caught:
        call(g)
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: R.choice(3, p=[0.5, 0.5, 0.5]), "sum to 1"),
        (lambda g: R.choice(3, p=[1.5, -0.5, 0.0]), "non-negative"),
        (lambda g: R.choice(g.input(np.ones(2)), p=g.input(np.ones(2))), "sum to 1"),
        (lambda g: R.choice(3, (2,), replace=False, p=[1.0, 0.0, 0.0]), "non-zero"),
        (lambda g: R.integers(g.input(5), 2), "low >= high"),
        (lambda g: R.integers([1, 2], [3, 1]), "low >= high"),
        (lambda g: R.integers(0, 300, dtype="u1"), "out of bounds"),
        (lambda g: R.binomial(-1, 0.5), "n < 0"),
        (lambda g: R.poisson(-1.0), "lam < 0"),
    ],
)
def test_values_that_cannot_be_drawn_from_say_so_when_they_are_read(
    call: Callable[[Any], Any], message: str
) -> None:
    with rg.Graph(rng=0) as g:
        y = call(g)
    with pytest.raises(ValueError, match=message) as caught:
        _ = y.value
    assert isinstance(caught.value, rg.ReactgradError)


def test_draws_from_nodes_go_through_files(tmp_path: Any) -> None:
    g = rg.Graph(rng=0)
    x = g.input(np.arange(12.0).reshape(4, 3), name="x")
    made = [R.permutation(x), R.permuted(x), R.choice(x, (5,), axis=1), R.categorical(x)]
    for number, one in enumerate(made):
        one.name = f"draw{number}"
    g.save(tmp_path / "g.safetensors")
    h = rg.load(tmp_path / "g.safetensors")
    for one in made:
        np.testing.assert_array_equal(h[one.name].value, one.value)
