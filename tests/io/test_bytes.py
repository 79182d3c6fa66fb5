"""Graphs as bytes and in pickles."""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def double(value: Any) -> Any:
    return value * 2.0


def small() -> tuple[rg.Graph, Any, Any]:
    g = rg.Graph(rng=3)
    x = g.input(np.array([1.0, 2.0]), name="x")
    w = g.param(3.0, name="w")
    y = (rg.lift(double, shape=(2,), vjp=None)(x) * w).sum()
    y.name = "y"
    return g, x, y


def test_bytes_hold_what_a_file_holds() -> None:
    g, _, y = small()
    assert y.value == 18.0
    h = rg.from_bytes(g.to_bytes())
    assert not h["y"].is_stale
    assert h["y"].value == 18.0
    assert (h.seed, len(h.params)) == (3, 1)
    h["x"].set([2.0, 2.0])
    assert h["y"].value == 24.0
    assert y.value == 18.0
    assert [one.label for one in h.last_run.ran] == [one.label for one in g.last_run.ran]


def test_a_pickle_of_several_nodes_has_one_graph() -> None:
    g, x, y = small()
    dy = rg.grad(y, g["w"])
    assert dy.value == 6.0
    again, x2, y2, dy2 = pickle.loads(pickle.dumps((g, x, y, dy)))
    assert x2.graph is again
    assert y2.graph is again
    x2.set([0.0, 5.0])
    assert (y2.value, dy2.value) == (30.0, 10.0)
    assert y.value == 18.0


def test_a_var_is_pickled_with_its_graph() -> None:
    _, _, y = small()
    unnamed = y + 1.0
    again = pickle.loads(pickle.dumps(unnamed))
    assert again.value == 19.0
    again.graph["x"].set([0.0, 0.0])
    assert again.value == 1.0


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(small()[2], protocol)).value == 18.0


def test_lambdas_and_closures_are_refused_by_name() -> None:
    g, x, _ = small()
    number = 3.0

    def closure(value: Any) -> Any:
        return value + number

    bad = rg.lift(lambda v: v)(x)
    with pytest.raises(
        rg.SaveError, match=r"node 'lambda_6', function 'lambda', cannot be saved: it is a lambda"
    ):
        g.to_bytes()
    with pytest.raises(rg.SaveError, match=r"Write it as a def at the top level.*cloudpickle=True"):
        pickle.dumps(bad)
    del bad
    worse = rg.lift(closure)(x)
    with pytest.raises(
        rg.SaveError,
        match=r"node 'closure_7', function 'closure'.*defined inside of another function",
    ):
        pickle.dumps(g)
    del worse


@pytest.mark.skipif(find_spec("cloudpickle") is None, reason="cloudpickle is not installed")
def test_code_travels_where_both_sides_allow_it() -> None:
    g, x, _ = small()
    number = 3.0
    y = rg.lift(lambda v: v + number)(x)
    y.name = "sum"
    data = g.to_bytes(cloudpickle=True)
    with pytest.raises(rg.LoadError, match=r"code, not a name.*trust=\['cloudpickle'\]"):
        rg.from_bytes(data)
    h = rg.from_bytes(data, trust="cloudpickle")
    np.testing.assert_array_equal(h["sum"].value, [4.0, 5.0])


def test_damaged_bytes_are_refused() -> None:
    g, _, y = small()
    y.value
    data = g.to_bytes()
    for end in (0, 7, 100, len(data) - 1):
        with pytest.raises(rg.LoadError, match="these bytes are no graph that can be used"):
            rg.from_bytes(data[:end])
    broken = bytearray(data)
    broken[-1] ^= 1
    with pytest.raises(rg.LoadError, match="damaged"):
        rg.from_bytes(broken)
    with pytest.raises(rg.DTypeError, match="rg.from_bytes takes what g.to_bytes"):
        rg.from_bytes("graph.safetensors")  # type: ignore[arg-type]


def test_functions_that_this_program_does_not_use_are_refused() -> None:
    g, _, y = small()
    data = g.to_bytes()
    assert y.is_stale
    assert b":double" in data
    data = data.replace(b":double", b":dxuble")
    with pytest.raises(rg.LoadError):
        rg.from_bytes(data)
