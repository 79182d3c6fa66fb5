"""Values with as many axes as NumPy's arrays may have work everywhere; more are refused where the node is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.values._brief import brief

MOST = 64

BUILT: dict[str, Callable[[rg.Graph, Any], Any]] = {
    "input": lambda g, x: g.input(shape=(1,) * 71, dtype="f8"),
    "reshape": lambda g, x: x.reshape((1,) * 71),
    "broadcast": lambda g, x: rg.broadcast_to(x, (2,) + (1,) * MOST),
    "expand_dims": lambda g, x: rg.expand_dims(x, 0),
    "stack": lambda g, x: rg.stack([x, x]),
    "outer": lambda g, x: np.multiply.outer(x, x),
    "tensordot": lambda g, x: rg.tensordot(x, x, 0),
    "draw": lambda g, x: rg.random.normal(size=(1,) * 71),
    "index": lambda g, x: x[None],
}


@pytest.mark.parametrize("name", BUILT)
def test_a_value_with_more_axes_is_refused_where_it_is_built(name: str) -> None:
    g = rg.Graph()
    x = g.input(np.zeros((1,) * MOST), name="x")
    before = len(g)
    with g, pytest.raises(rg.ReactgradError, match=r"axes|dimensions"):
        BUILT[name](g, x)
    assert len(g) == before
    assert x.sum().value == 0.0


def test_as_many_axes_as_numpy_has_are_computed_shown_and_saved(tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(np.full((1,) * (MOST - 1) + (3,), 2.0), name="x")
    y = g.keep(rg.exp(x) + x)
    y.name = "y"
    (slope,) = rg.grad(y.sum(), [x])
    np.testing.assert_allclose(slope.value, np.exp(2.0) + 1.0)
    assert "[[2. 2. 2.]]" in x._repr_html_()
    assert g.snapshot().nodes
    assert "digraph" in g.to_dot()
    g.save(tmp_path / "many.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "many.rg")["y"].value, y.value)


@pytest.mark.parametrize(
    "shape", [(1,) * MOST, (1,) * 40 + (0,), (1,) * 33 + (2, 5), (2,) + (1,) * 32]
)
def test_many_axes_in_a_line(shape: tuple[int, ...]) -> None:
    values = np.arange(float(np.prod(shape))).reshape(shape)
    assert brief(values) == brief(values.reshape(-1))
