"""Every element draws for itself: shapes that would share draws are refused, and draws follow other lengths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

R = rg.random
EYES = np.stack([np.eye(2)] * 4)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (200, 1)])
def test_categorical_of_a_shape_to_which_logits_do_not_broadcast(shape: tuple[int, ...]) -> None:
    with rg.Graph(), pytest.raises(rg.ShapeError, match="broadcast"):
        R.categorical(np.zeros((200, 3)), shape)


@pytest.mark.parametrize(
    "call",
    [
        lambda: R.multivariate_normal(np.zeros(2), EYES, (1,)),
        lambda: R.multivariate_normal(np.zeros((4, 2)), np.eye(2), ()),
        lambda: R.dirichlet(np.ones((4, 3)), (1,)),
        lambda: R.multivariate_normal(np.zeros(2), np.eye(3)),
        lambda: R.multivariate_normal(0.0, np.eye(1)),
        lambda: R.multivariate_normal(np.zeros(2), np.ones(2)),
    ],
)
def test_shapes_of_vectors_that_do_not_fit(call: Callable[[], Any]) -> None:
    with rg.Graph(), pytest.raises(rg.ShapeError):
        call()


def test_a_batch_of_covariances_has_a_batch_of_draws() -> None:
    g = rg.Graph(rng=1)
    cov = g.input(EYES)
    with g:
        for x, shape in (
            (R.multivariate_normal(np.zeros(2), EYES), (4, 2)),
            (R.multivariate_normal(np.zeros(2), cov), (4, 2)),
            (R.multivariate_normal(np.zeros((3, 1, 2)), cov), (3, 4, 2)),
            (R.multivariate_normal(np.zeros((3, 1, 2)), cov, (5, 3, 4)), (5, 3, 4, 2)),
            (R.categorical(np.zeros((3, 1, 1000)), (5, 3, 4)), (5, 3, 4)),
            (R.dirichlet(np.ones((3, 1, 2)), (5, 3, 4)), (5, 3, 4, 2)),
        ):
            assert x.value.shape == x.shape == shape
            last = x.value.reshape(-1, 2)[:, 0] if shape[-1] == 2 else x.value.ravel()
            assert len(set(last.tolist())) > 0.9 * len(last)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: R.gamma(2.0, x),
        lambda x: R.beta(x, 2.0),
        lambda x: R.beta(2.0, x),
        lambda x: R.f(3.0, x),
        lambda x: R.normal(loc=np.zeros((4, 1)), scale=x),
        lambda x: R.gamma(np.ones((4, 1)), x),
    ],
)
def test_a_parameter_without_axes_does_not_make_draws_shared(call: Callable[[Any], Any]) -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones(3))
    y = call(x)
    assert len(set(y.value.ravel().tolist())) == y.value.size == np.prod(y.shape)


FOLLOWING: dict[str, Callable[[Any], Any]] = {
    "categorical": R.categorical,
    "categorical of a shape": lambda x: R.categorical(x, (4, 4)),
    "categories along the first axis": lambda x: R.categorical(x, axis=0),
    "dirichlet": R.dirichlet,
    "dirichlet of a shape": lambda x: R.dirichlet(x, (2, 4)),
    "normal": lambda x: R.normal(loc=x),
    "gamma": lambda x: R.gamma(2.0, x),
    "beta": lambda x: R.beta(x, 2.0),
    "multivariate_normal": lambda x: R.multivariate_normal(x, x.T @ x + 4.0 * rg.diag(x[0])),
    "dropout": rg.dropout,
    "alpha_dropout": rg.alpha_dropout,
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("known", [True, False])
def test_draws_follow_another_length(name: str, known: bool) -> None:
    first, second = np.ones((4, 3)), np.ones((4, 5))
    g = rg.Graph(rng=1)
    x = g.input(first) if known else g.input(first, shape=(None, None))
    y = FOLLOWING[name](x)
    y.value
    x.set(second)
    h = rg.Graph(rng=1)
    np.testing.assert_array_equal(y.value, FOLLOWING[name](h.input(second)).value)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: R.normal((1, 3), loc=x),
        lambda x: R.gamma(x, 1.0, (1, 3)),
        lambda x: R.gamma(1.0, x, (1, 3)),
        lambda x: R.beta(x, 1.0, (1, 3)),
        lambda x: R.bernoulli(x, (1, 3)),
        lambda x: R.categorical(x, (1,)),
        lambda x: R.dirichlet(x, (1,)),
        lambda x: R.multivariate_normal(x, np.eye(3), (1,)),
        lambda x: R.binomial(3, x, (1, 3)),
    ],
)
def test_a_shape_that_was_asked_for_stays(call: Callable[[Any], Any], known: bool) -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones((1, 3))) if known else g.input(np.ones((1, 3)), shape=(None, 3))
    y = call(x)
    before = y.value
    with pytest.raises(rg.ShapeError):
        x.set(np.ones((4, 3)))
        y.value
    x.set(np.ones((1, 3)))
    np.testing.assert_array_equal(y.value, before)


def test_a_file_keeps_draws_that_follow(tmp_path: Path) -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.ones((4, 3)), name="x")
    nodes = {"d": R.dirichlet(x, (2, 4)), "c": R.categorical(x, (2, 4)), "b": R.beta(x, 2.0)}
    for name, node in nodes.items():
        node.name = name
    g.save(tmp_path / "graph.safetensors")
    h = rg.load(tmp_path / "graph.safetensors")
    for shape in ((4, 3), (4, 5)):
        g["x"].set(np.ones(shape))
        h["x"].set(np.ones(shape))
        for name in nodes:
            np.testing.assert_array_equal(g[name].value, h[name].value)


@pytest.mark.parametrize("name", ["bytes", "spawn", "bit_generator"])
def test_names_of_numpys_generator_say_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=r"Write rg\."):
        getattr(R, name)
