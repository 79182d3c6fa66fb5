"""Gradients in files: they follow new lengths, edits and rules, as in a graph that was never saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.io import functions, graphs_of_0_1
from tests.io.files import assert_same_graph, forged, packed, same, there_and_back

pytest.importorskip("safetensors")

Model = Callable[[Any, Any], Any]

MODELS: dict[str, Model] = {
    "cubes": lambda x, w: (x**3).sum(),
    "mean": lambda x, w: (x.mean(axis=0) * w).sum(),
    "variance": lambda x, w: rg.var(x * w, axis=0).sum(),
    "matmul": lambda x, w: rg.tanh(x @ w).sum(),
    "layer": lambda x, w: rg.softmax(rg.outer(x @ w, w), axis=-1)[:, 0].sum(),
    "rows": lambda x, w: (x[1:] * x[:-1]).sum(),
    "gathered": lambda x, w: (x[np.array([0, 1, 0])] ** 2 * w).sum(),
    "columns": lambda x, w: (rg.concatenate([x, x * w], axis=1) ** 2).sum(),
    "rolled": lambda x, w: (rg.roll(x, 1, axis=0) * x * x).sum(),
    "transposed": lambda x, w: (x.T @ x).sum() * (w * w).sum(),
    "products": lambda x, w: rg.einsum("ni,mi->nm", x * x, x).sum(),
    "scan": lambda x, w: (rg.cumsum(x, axis=0) ** 2 * w).sum(),
    "sorted": lambda x, w: (rg.sort(x, axis=0) ** 2 * w).sum(),
    "padded": lambda x, w: (rg.pad(x, ((1, 1), (0, 0))) ** 3).sum(),
    "greatest": lambda x, w: (x.max(axis=0) ** 2).sum() + rg.logsumexp(x, axis=0).sum(),
    "chosen": lambda x, w: (rg.where(x > 0.1, x * x, w * x) * x).sum(),
}


def first(x: Any, w: Any, y: Any) -> list[Any]:
    return list(rg.grad(y, (x, w), allow_unused=True))


def second(x: Any, w: Any, y: Any) -> list[Any]:
    s = rg.grad(y, x)
    return [s, rg.grad((s * s).sum(), x, allow_unused=True)]


def with_gradient(x: Any, w: Any, y: Any) -> list[Any]:
    """Of elements, whose gradient is a node that has an unknown length as well."""
    z = rg.tanh(x) * x
    return [rg.grad(z, x, gradient=x * 2.0), rg.grad(y * x, x, gradient=rg.tanh(x))]


def along(x: Any, w: Any, y: Any) -> list[Any]:
    return [rg.jvp(y, x, x * 2.0), rg.vjp(y, x, 2.0)]


def products(x: Any, w: Any, y: Any) -> list[Any]:
    return [rg.hvp(y, x, x * 2.0)]


ASKED = (first, second, with_gradient, along, products)


def graph_of(model: Model) -> rg.Graph:
    """A graph whose input has an unknown length, with named gradients."""
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    w = g.keep(g.param([0.5, -1.5], name="w"))
    y = g.keep(model(x, w))
    y.name = "y"
    for ask in ASKED:
        for i, one in enumerate(ask(x, w, y)):
            if one is not None:
                g.keep(one).name = f"d_{ask.__name__}_{i}"
    return g


def values(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, 2))


def gradients(g: rg.Graph) -> list[rg.Var]:
    return [var for var in g.nodes if var.name.startswith("d_")]


def read(g: rg.Graph, n: int) -> list[Any]:
    """The gradients of a graph after it has got an array of this length."""
    g["x"].set(values(n))
    return [np.asarray(var.value) for var in gradients(g)]


def all_same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) > 0 and all(map(same, a, b))


def by_networkx(g: rg.Graph) -> rg.Graph:
    return rg.from_networkx(rg.to_networkx(g))


WAYS: dict[str, Callable[[rg.Graph], rg.Graph]] = {
    "file": there_and_back,
    "networkx": by_networkx,
    "twice": lambda g: there_and_back(by_networkx(there_and_back(g))),
    "fork": lambda g: there_and_back(g).fork(),
    "of a fork": lambda g: there_and_back(g.fork()),
}


FEW = ("cubes", "layer", "scan")  # these by all ways


@pytest.mark.slow
@pytest.mark.parametrize("before", [None, 4], ids=["without values", "with values"])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_follow_lengths(model: str, before: int | None) -> None:
    fresh = graph_of(MODELS[model])
    if before is not None:
        read(fresh, before)
    ways = WAYS if model in FEW else ("file", "networkx")
    saved = {way: WAYS[way](fresh) for way in ways}
    for way, g in saved.items():
        if before is not None:
            assert len(g.forward(*gradients(g)).ran) == 0, way
    for n in (5, 3, 5):
        wanted = read(fresh, n)
        for way, g in saved.items():
            assert all_same(read(g, n), wanted), (way, n)
            g.check_invariants()
    back = there_and_back(saved["file"])
    assert all_same(read(back, 6), read(fresh, 6))


@pytest.mark.parametrize("model", MODELS)
def test_gradients_that_are_read_too_early_say_so(model: str) -> None:
    fresh = graph_of(MODELS[model])
    for g in (fresh, there_and_back(fresh)):
        for var in gradients(g):
            with pytest.raises(rg.UnsetError, match=r"\.set\(value\)"):
                _ = var.value
        with pytest.raises(rg.UnsetError):
            g.forward(*gradients(g))
        g.check_invariants()
    assert all_same(read(g, 3), read(fresh, 3))


@pytest.mark.slow
@pytest.mark.parametrize("model", FEW)
def test_the_gradient_in_the_file_is_the_one_that_is_asked_for(model: str) -> None:
    fresh = graph_of(MODELS[model])
    for go in WAYS.values():
        g = go(fresh)
        count = len(g)
        assert rg.grad(g["y"], g["x"]) is g["d_second_0"]
        assert rg.hvp(g["y"], g["x"], g["x"] * 2.0) is not g["d_products_0"]  # another direction
        g = go(fresh)
        assert rg.grad(g["y"], g["x"]) is g["d_second_0"]
        assert len(g) == count
        s = rg.grad(g["y"], g["x"])  # a third derivative of what was loaded
        mine, its = (rg.grad((h["d_second_1"] ** 2).sum(), h["x"]) for h in (g, fresh))
        for h in (g, fresh):
            h["x"].set(values(3))
        assert same(mine.value, its.value)
        assert same(s.value, fresh["d_second_0"].value)


def test_shapes_that_nobody_declared_are_followed() -> None:
    g = rg.Graph()
    x = g.keep(g.input(values(3), name="x"))
    g.keep(rg.grad((x**3).sum(), x)).name = "d_x"
    for go in WAYS.values():
        h = go(g)
        h["x"].set(np.arange(4.0))
        assert same(h["d_x"].value, 3.0 * np.arange(4.0) ** 2)


def test_jacobians_follow() -> None:
    g = rg.Graph()
    x = g.keep(g.input(shape=(None,), dtype="f8", name="x"))
    x.set([1.0, 2.0])
    y = g.keep(rg.cumsum(x * x))
    g.keep(rg.jacobian(y, x, mode="forward")).name = "d_f"
    g.keep(rg.jacobian(y, x, mode="reverse")).name = "d_r"
    g.keep(rg.hessian((x**3).sum(), x)).name = "d_h"
    for go in WAYS.values():
        h = go(g)
        for n in (3, 1, 4):
            a = np.arange(1.0, n + 1)
            h["x"].set(a)
            wanted = np.tril(np.ones((n, n))) * 2.0 * a
            assert np.array_equal(h["d_f"].value, wanted)
            assert np.array_equal(h["d_r"].value, wanted)
            assert np.array_equal(h["d_h"].value, np.diag(6.0 * a))


@pytest.mark.slow
def test_functions_whose_shape_only_values_show() -> None:
    g = rg.Graph()
    x = g.keep(g.input(values(3), name="x"))
    y = rg.lift(functions.double, vjp=functions.double_vjp)(x)
    g.keep(rg.grad((y * x).sum(), x)).name = "d_x"
    g.keep(rg.grad((g["d_x"] ** 2).sum(), x)).name = "d_2"
    g.keep(rg.jacobian((y * y).sum(axis=1), y)).name = "d_j"
    for go in WAYS.values():
        h = go(g)
        for n in (5, 2):
            assert all_same(read(h, n), read(g, n))


def test_edits_are_followed() -> None:
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    g.keep(x * x).name = "square"
    g.keep((g["square"] * 3.0).sum()).name = "y"
    g.keep(rg.grad(g["y"], x)).name = "d_x"
    for go in WAYS.values():
        h = go(g)
        h["square"].replace_parent(1, h.const(5.0))
        h["x"].set(values(3))
        assert same(h["d_x"].value, np.full((3, 2), 15.0))


def test_a_change_that_is_undone_leaves_the_gradient() -> None:
    g = graph_of(MODELS["cubes"])
    read(g, 3)
    h = there_and_back(g)
    wanted = read(h, 3)
    with pytest.raises(RuntimeError), h.transaction():
        h["x"].set(values(5))
        raise RuntimeError
    assert all_same([np.asarray(var.value) for var in gradients(h)], wanted)
    assert all_same(read(h, 5), read(g, 5))


def test_a_gradient_without_a_name_is_saved_again() -> None:
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    held = rg.grad((x**3).sum(), x)
    twice = there_and_back(there_and_back(g))
    (its,) = (var for var in twice.nodes if var.name == held.name)
    assert_same_graph(g, twice)
    twice["x"].set(values(3))
    assert same(its.value, 3.0 * values(3) ** 2)


def test_old_nodes_of_a_gradient_go_when_it_is_built_again() -> None:
    g = graph_of(MODELS["layer"])
    h = there_and_back(g)
    for one in (g, h):
        read(one, 3)
    # What comes from a file is built again, and what was given out becomes an alias of it.
    assert len(there_and_back(h)) == len(there_and_back(g)) + len(h.params) + 1
    sizes = {(read(h, n), len(h))[1] for n in (4, 5, 6, 4, 3)}
    assert len(sizes) == 1


def test_a_network_without_a_node_of_a_gradient_has_the_rest() -> None:
    g = rg.Graph()
    x = g.keep(g.input(values(3), name="x"))
    g.keep((x**3).sum()).name = "y"
    g.keep(rg.grad(g["y"], x)).name = "d_x"
    network = rg.to_networkx(g)
    network.remove_node("y")
    h = rg.from_networkx(network)
    h["x"].set(2.0 * values(3))
    assert same(h["d_x"].value, 3.0 * (2.0 * values(3)) ** 2)


SPOILT: dict[str, Callable[[list[Any]], Any]] = {
    "kind": lambda one: one.__setitem__(0, "sideways"),
    "output": lambda one: one.__setitem__(1, 999),
    "no output": lambda one: one.__setitem__(1, None),
    "keys": lambda one: one.__setitem__(2, [1.5]),
    "no seed": lambda one: one.__setitem__(3, []),
    "seed of another": lambda one: one.__setitem__(3, [[0, 1]]),
    "given leaf": lambda one: one.__setitem__(4, [[0, 0]]),
    "pairs": lambda one: one.__setitem__(4, [[0, 1, 2]]),
    "shape": lambda one: one.__setitem__(5, [[0, [-1]]]),
    "about": lambda one: one.__setitem__(6, [0]),
    "nodes": lambda one: one.__setitem__(7, [-1]),
    "short": lambda one: one.pop(),
}


@pytest.mark.parametrize("how", SPOILT)
def test_spoilt_gradients_are_refused(how: str, tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    g.keep(rg.grad((x**3).sum(), x)).name = "d_x"
    manifest, tensors = packed(g)
    SPOILT[how](manifest["gradients"][0])
    with pytest.raises(rg.LoadError):
        rg.load(forged(tmp_path / "graph.safetensors", manifest, tensors))


@pytest.mark.parametrize("given", [[[0, 2]], [[0, 3]]], ids=repr)
def test_gradients_that_contradict_the_graph_raise_and_do_no_harm(
    given: Any, tmp_path: Any
) -> None:
    """What was given out stands above the output: no order of running exists."""
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    g.keep(rg.grad((x**3).sum(), x)).name = "d_x"
    manifest, tensors = packed(g)
    manifest["gradients"][0][4] = given
    h = rg.load(forged(tmp_path / "graph.safetensors", manifest, tensors))
    with pytest.raises(rg.ReactgradError):
        h["x"].set(values(3))
    h.check_invariants()


@rg.subgraph
def cell(a: Any) -> Any:
    return rg.tanh(a) * a


def test_subgraphs_and_reuse_of_what_was_loaded() -> None:
    """Of gradients in the file, and of their gradients, built before or after."""
    g = rg.Graph()
    x = g.keep(g.input(shape=(None, 2), dtype="f8", name="x"))
    g.keep(cell(cell(x)).sum()).name = "y"
    g.keep(rg.grad(g["y"], x)).name = "d_1"
    g.keep(cell(g["d_1"]).sum()).name = "z"
    g.keep(rg.grad(g["z"], x)).name = "d_2"

    def again(h: rg.Graph) -> Any:
        with h.reuse():
            return rg.grad(cell(rg.grad((h["x"] ** 3).sum(), h["x"])).sum(), h["x"])

    for go in WAYS.values():
        h = go(g)
        mine, its = again(g), again(h)
        assert again(h) is its
        assert rg.grad(h["z"], h["x"]) is h["d_2"]
        for n in (3, 5):
            assert all_same(read(h, n), read(g, n))
            assert same(its.value, mine.value)
            assert (again(h) is its) is (again(g) is mine)
            assert same(again(h).value, mine.value)


def test_a_rule_that_reads_what_its_function_has_left_is_asked_again() -> None:
    g = graphs_of_0_1.GRAPHS["functions"]()
    h = there_and_back(g)
    for values in ([1.0, 2.0, -3.0, 0.5], [1.0, -2.0, -9.0, 0.5]):
        for one in (g, h):
            one["x"].set(np.array(values))
        assert same(h["dx"].value, g["dx"].value)
        assert np.allclose(h["dx"].value, rg.grad(g["y"], g["x"]).value, rtol=1e-12)
