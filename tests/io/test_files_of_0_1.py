"""Files that release 0.1 wrote: they load, hold what they held, and go on as a graph built today does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.io import _former_names
from reactgrad.io._capture import capture
from tests.io import graphs_of_0_1
from tests.io.files import same

pytest.importorskip("safetensors")

FOLDER = Path(__file__).parent / "files_0_1"
CHANGES: dict[str, dict[str, list[Any]]] = {
    "values": {"x": [1.05, 3.0, -2.0], "text": ["lang", ""]},
    "functions": {"x": [np.array(row) for row in ([1.0, -2.0, 4.0, 0.5], [3.0, 1.0, -0.5, 2.0])]},
    "network": {
        "x": [np.linspace(-1.0, 1.0, 20).reshape(5, 4)],
        "b": [np.full(6, 0.25), np.linspace(-1.0, 1.0, 6)],
        "v": [np.linspace(1.0, -1.0, 18).reshape(6, 3)],
    },
}


def load(name: str) -> rg.Graph:
    graph = rg.load(FOLDER / f"{name}.safetensors", trust=[graphs_of_0_1.__name__])
    graph.check_invariants()
    return graph


def named(graph: rg.Graph) -> list[str]:
    """The names that were given; a made-up one ends with a number."""
    return sorted(var.name for var in graph.nodes if not var.name[-1].isdigit())


def test_there_is_a_file_for_each_graph() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*graphs_of_0_1.GRAPHS} == {*CHANGES}


@pytest.mark.parametrize("name", graphs_of_0_1.GRAPHS)
def test_it_holds_what_a_graph_holds_that_is_built_today(name: str) -> None:
    """The same names, values, versions and marks, and nothing is stale that was not."""
    old, new = load(name), graphs_of_0_1.GRAPHS[name]()
    assert named(old) == named(new)
    for one in named(new):
        assert old[one].is_stale == new[one].is_stale, one
        assert same_value(old[one].value, new[one].value), one
        assert old[one].value_version == new[one].value_version, one
        assert repr(old[one].cutoff) == repr(new[one].cutoff), one
    assert [path for _, path in capture(old).scopes] == [path for _, path in capture(new).scopes]


@pytest.mark.parametrize("name", graphs_of_0_1.GRAPHS)
def test_it_follows_changes_as_a_graph_does_that_is_built_today(name: str) -> None:
    old, new = load(name), graphs_of_0_1.GRAPHS[name]()
    for leaf, several in CHANGES[name].items():
        for value in several:
            old[leaf].set(value)
            new[leaf].set(value)
            runs = [graph.forward(*[graph[one] for one in named(new)]) for graph in (old, new)]
            ran = [{var.name for var in run.ran} & {*named(new)} for run in runs]
            assert ran[0] == ran[1]
            for one in named(new):
                assert same_value(old[one].value, new[one].value), (one, leaf)
    old.check_invariants()


def same_value(a: Any, b: Any) -> bool:
    """The same bits, or in sums of many what another machine may round otherwise."""
    if isinstance(b, np.ndarray | np.floating) and np.asarray(b).dtype.kind == "f":
        return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=1e-12, atol=1e-13))
    return same(a, b)


@pytest.mark.parametrize(
    ("name", "of", "params"),
    [("functions", "y", ["x"]), ("network", "total", ["w", "b", "v", "x"])],
)
def test_new_gradients_of_what_was_loaded_are_those_of_differences(
    name: str, of: str, params: list[str]
) -> None:
    g = load(name)
    for param in params:
        gradient = rg.grad(g[of], g[param])
        start = np.array(g[param].value, float)
        direction = np.random.default_rng(5).normal(size=start.shape)
        ends = []
        for step in (-1e-6, 1e-6):
            g[param].set(start + step * direction)
            ends.append(float(g[of].value))
        g[param].set(start)
        slope = (ends[1] - ends[0]) / 2e-6
        assert float((gradient.value * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_the_gradient_in_the_file_still_watches_the_number_that_its_rule_read() -> None:
    """Its node calls a function of the engine, whose module has moved since."""
    g = load("functions")
    g["x"].set(np.array([1.0, 2.0, -3.0, 0.5]))
    assert np.allclose(g["dx"].value, rg.grad(g["y"], g["x"]).value, rtol=1e-12)
    g["x"].set(np.array([1.0, -2.0, -9.0, 0.5]))
    with pytest.raises(rg.GradientError, match="was built with ctx.positive"):
        g["dx"].value


@pytest.mark.parametrize("former", sorted(_former_names._FORMER))
def test_each_former_name_leads_to_a_function(former: str) -> None:
    module, _, qualname = _former_names.present_name(former).partition(":")
    function = getattr(importlib.import_module(module), qualname)
    assert (function.__module__, function.__qualname__) == (module, qualname)


def test_other_names_are_taken_as_they_are() -> None:
    assert _former_names.present_name("reactgrad._context:other") == "reactgrad._context:other"
