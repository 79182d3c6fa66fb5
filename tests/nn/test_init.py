"""First values: PyTorch's formulas, and seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn
from reactgrad.nn import init

SHAPE = (40, 30, 5)  # fan in 150, fan out 200


@pytest.mark.parametrize(
    ("call", "deviation", "bound"),
    [
        (lambda w: init.uniform_(w, -2.0, 2.0, rng=0), 2.0 / math.sqrt(3.0), 2.0),
        (lambda w: init.normal_(w, 0.0, 0.3, rng=0), 0.3, None),
        (lambda w: init.xavier_uniform_(w, 2.0, rng=0), 2.0 * math.sqrt(2.0 / 350.0), None),
        (lambda w: init.xavier_normal_(w, rng=0), math.sqrt(2.0 / 350.0), None),
        (lambda w: init.kaiming_uniform_(w, rng=0), math.sqrt(2.0 / 150.0), 0.2),
        (lambda w: init.kaiming_uniform_(w, math.sqrt(5.0), rng=0), (450.0) ** -0.5, 150**-0.5),
        (
            lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu", rng=0),
            *(0.1, None),
        ),
        (lambda w: init.trunc_normal_(w, std=1.0, a=-1.0, b=1.0, rng=0), 0.5397, 1.0),
    ],
)
def test_a_formula_has_its_deviation_and_its_bound(
    call: Any, deviation: float, bound: float | None
) -> None:
    array = call(np.empty(SHAPE))
    assert abs(array.std() / deviation - 1.0) < 0.03
    assert abs(array.mean()) < 0.05 * deviation
    if bound is not None:
        assert np.abs(array).max() <= bound
        assert np.abs(array).max() > 0.99 * bound
    with rg.Graph():
        param = nn.Parameter(np.zeros(SHAPE))
    assert call(param) is param
    assert np.array_equal(param.value, array)


def test_orthogonal_rows_are_orthogonal() -> None:
    for shape in ((3, 5), (5, 3), (4, 2, 2)):
        flat = init.orthogonal_(np.empty(shape), 2.0, rng=0).reshape(shape[0], -1)
        gram = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
        assert np.allclose(gram, 4.0 * np.eye(len(gram)))


def test_constants_and_identities() -> None:
    assert np.array_equal(init.eye_(np.empty((2, 3))), np.eye(2, 3))
    assert init.ones_(np.empty(3)).sum() == 3.0
    assert init.zeros_(np.empty(3)).sum() == 0.0
    kernel = init.dirac_(np.empty((4, 2, 3)), groups=2)
    assert np.array_equal(kernel[:, :, 1], np.vstack([np.eye(2), np.eye(2)]))
    assert kernel.sum() == 4.0
    assert (init.sparse_(np.empty((10, 4)), 0.3, rng=0) == 0.0).sum(0).tolist() == [3] * 4


def test_first_values_follow_from_the_seed_of_the_graph_or_of_the_layer() -> None:
    def weights(seed: int, rng: Any = None) -> np.ndarray[Any, Any]:
        with rg.Graph(rng=seed):
            nn.Linear(3, 2, rng=rng)
            return nn.Linear(3, 2, rng=rng).weight.value

    assert np.array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))
    assert np.array_equal(weights(1, rng=5), weights(2, rng=5))
    with rg.Graph():
        rng = np.random.default_rng(0)
        one, other = nn.Linear(3, 2, rng=rng), nn.Linear(3, 2, rng=rng)
    assert not np.array_equal(one.weight.value, other.weight.value)


def test_bad_arguments_say_what_is_wrong() -> None:
    with pytest.raises(rg.ShapeError, match="has no fan in and fan out"):
        init.xavier_uniform_(np.empty(3))
    with pytest.raises(rg.DTypeError, match="it is a seed"), rg.Graph():
        nn.Linear(3, 2, rng=-1)
    with pytest.raises(rg.DTypeError, match="sets a Var or fills an array"):
        init.zeros_([1.0])
    with pytest.raises(rg.DTypeError, match="hardly any number lies there"):
        init.trunc_normal_(np.empty(3), a=8.0, b=9.0)
