"""``exist_ok=True``: a line that makes a leaf can run twice (rule V5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def test_a_cell_that_runs_twice_sets_the_leaves_that_it_has_made(g: rg.Graph) -> None:
    def cell(spot: float, weights: list[float]) -> tuple[rg.Var, ...]:
        x = g.input(spot, name="spot", exist_ok=True)
        w = g.param(weights, name="w", exist_ok=True)
        c = g.const([1.0, 2.0], name="c", exist_ok=True)
        return x, w, c

    first = cell(95.0, [1.0, 2.0])
    total = (first[0] * first[1] * first[2]).sum()
    assert total.value == 475.0
    assert all(a is b for a, b in zip(cell(96, [1, 1]), first, strict=True))
    assert total.value == 288.0
    assert type(first[0].value) is float
    assert len(g.inputs) == len(g.params) == 1


def test_the_current_graph_and_the_scope_count(g: rg.Graph) -> None:
    with g, g.scope("layer"):
        x = rg.input(1.0, name="x", exist_ok=True)
        w = rg.param(1.0, name="w", exist_ok=True)
        c = rg.const({"a": [1]}, name="c", exist_ok=True)
    assert x.name == "layer/x"
    other = g.input(2.0, name="x", exist_ok=True)
    assert other is not x
    with g, g.scope("layer"):
        assert rg.input(3.0, name="x", exist_ok=True) is x
        assert rg.param(3.0, name="w", exist_ok=True) is w
        assert rg.const({"a": [1]}, name="c", exist_ok=True) is c
    assert (x.value, other.value, w.value) == (3.0, 2.0, 3.0)
    assert g.fork().input(4.0, name="layer/x", exist_ok=True).value == 4.0
    assert x.value == 3.0


def test_declared_leaves_and_cutoffs(g: rg.Graph) -> None:
    x = g.input(shape=(None, 2), dtype="f4", name="x", exist_ok=True)
    assert g.input(shape=(None, 2), dtype="f4", name="x", exist_ok=True) is x
    assert x.state == "unset"
    g.input([[1, 2]], shape=(None, 2), dtype="f4", name="x", exist_ok=True)
    assert x.value.dtype == np.float32
    assert g.input(name="x", exist_ok=True) is x
    assert x.value_version == 1
    g.input([[1, 2]], name="x", cutoff="equal", exist_ok=True)
    assert x.value_version == 2
    g.input([[1, 2]], name="x", exist_ok=True)
    assert x.value_version == 2
    y = g.input(dtype="f4", name="y", exist_ok=True)
    assert g.input(1.0, dtype="f4", name="y", exist_ok=True) is y


REFUSED: dict[str, tuple[Callable[[rg.Graph], Any], type[Exception], str]] = {
    "no name": (lambda g: g.input(1.0, exist_ok=True), ValueError, "by its name: write name='x'"),
    "a param": (
        lambda g: g.input(1.0, name="w", exist_ok=True),
        ValueError,
        r"'w' is no input of this graph but param.*g\['w'\]\.name = None",
    ),
    "an input": (lambda g: g.param(1.0, name="x", exist_ok=True), ValueError, "'x' is no param"),
    "computed": (
        lambda g: g.input(1.0, name="y", exist_ok=True),
        ValueError,
        "no input of this graph but op 'multiply'",
    ),
    "another shape": (
        lambda g: g.input(np.ones(2), shape=(2,), name="x", exist_ok=True),
        ValueError,
        r"exists and was not made with shape=\(2,\)",
    ),
    "another dtype": (
        lambda g: g.input(1.0, dtype="f4", name="x", exist_ok=True),
        ValueError,
        "was not made with dtype='float32'",
    ),
    "a shape that does not fit": (
        lambda g: g.param([1.0, 2.0, 3.0], name="w", exist_ok=True),
        ValueError,
        "Nothing was changed",
    ),
    "an object": (
        lambda g: g.input("text", name="x", exist_ok=True),
        TypeError,
        "holds a Python float and was given str",
    ),
    "another const": (
        lambda g: g.const(True, name="c", exist_ok=True),
        ValueError,
        "a const never changes. Make it an input",
    ),
    "a bad cutoff": (
        lambda g: g.input(2.0, name="x", cutoff="nearly", exist_ok=True),
        TypeError,
        "cutoff='nearly'",
    ),
    "name taken": (lambda g: g.input(1.0, name="x"), ValueError, "taken.*exist_ok=True"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_leaf_that_is_another_is_refused_and_nothing_changes(case: str, g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    w = g.param([1.0, 2.0], name="w")
    y = x * w + np.array([1.0, 1.0])
    y.parents[0].name = "y"
    c = g.const(1, name="c")
    before = [v.value_version for v in (x, w, c)], len(g)
    act, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words) as caught:
        act(g)
    assert isinstance(caught.value, rg.ReactgradError)
    assert ([v.value_version for v in (x, w, c)], len(g)) == before
    assert x.cutoff is None
