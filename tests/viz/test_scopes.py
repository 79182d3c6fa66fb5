"""``Graph.scope``: the parts of a model, in names, snapshots, forks and files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import reactgrad as rg
from reactgrad.viz._picture import picture


def two_layers(g: rg.Graph) -> rg.Var:
    h = g.input(np.ones(3), name="x")
    for i in range(2):
        with g.scope(f"layer{i}"):
            w = g.param(np.full((3, 3), 0.1 * (i + 1)), name="w")
            with g.scope("act"):
                h = rg.tanh(w @ h)
    return h.sum()


def test_names_begin_with_the_scope(g: rg.Graph) -> None:
    y = two_layers(g)
    assert [var.name for var in g.nodes] == [
        "x",
        "layer0/w",
        "layer0/act/matmul_3",
        "layer0/act/tanh_4",
        "layer1/w",
        "layer1/act/matmul_6",
        "layer1/act/tanh_7",
        "sum_8",
    ]
    assert g["layer0/w"].shape == (3, 3)
    assert g["layer1/act/tanh_7"] is y.parents[0]
    assert "tanh_7" not in g


def test_a_snapshot_has_the_scopes(g: rg.Graph) -> None:
    y = two_layers(g)
    hidden = y.parents[0]
    hidden.name = "hidden"  # a name that is set later is taken as it is, and the node stays inside
    g["layer0/act/tanh_4"].name = "elsewhere/tanh"
    rg.grad(y, g["layer0/w"])
    scopes = {node.name: node.scope for node in g.snapshot().nodes if not node.gradient}
    assert scopes["hidden"] == ("layer1", "act")
    assert scopes["elsewhere/tanh"] == ("elsewhere",)
    assert scopes["layer0/act/matmul_3"] == ("layer0", "act")
    assert scopes["x"] == scopes["sum_8"] == ()


def test_gradients_belong_to_the_scopes_of_what_they_are_gradients_of(g: rg.Graph) -> None:
    y = two_layers(g)
    with g.scope("step"):
        d = rg.grad(y, g["layer0/w"])
        used = d * 2.0
    made = [node for node in g.snapshot().nodes if node.gradient]
    assert made
    assert {node.scope for node in made} == {
        (),  # of the sum, which is in no scope
        ("gradient of layer1", "act"),
        ("gradient of layer0", "act"),
    }
    assert [node.name for node in made if node.scope == ()] == ["broadcast_to_10"]
    assert used.name.startswith("step/multiply_")


def test_a_folded_picture_has_one_box_for_the_gradient_of_a_module() -> None:
    with rg.Graph() as g:
        net = rg.nn.Sequential(rg.nn.Linear(3, 4, rng=0), rg.nn.ReLU(), rg.nn.Linear(4, 2, rng=1))
    x = g.input(np.ones((5, 3)), name="x")
    loss = (net(x) ** 2).sum()
    slopes = rg.grad(loss, list(net.parameters()))
    slopes[0].name = "slope"
    second = rg.grad(slopes[1].sum(), net[0].weight, allow_unused=True)
    folded = picture(g.snapshot(), layer="all", fold=1)
    scopes = {box.label for box in folded.boxes if box.node is None}
    assert {"Sequential", "gradient of Sequential"} <= scopes
    assert second is None or second.shape == (4, 3)
    alone = [box.label for box in folded.boxes if box.node is not None and box.node.gradient]
    assert "slope" in alone, "a gradient that has a name of its own is seen"
    made = [node for node in g.snapshot().nodes if node.gradient]
    assert len(alone) == sum(not node.scope for node in made) < len(made) // 2


def test_forks_files_and_networkx_keep_scopes(g: rg.Graph, tmp_path: Path) -> None:
    y = two_layers(g)
    y.name = "y"
    names = [var.name for var in g.nodes]
    g["layer0/act/tanh_4"].name = "hidden"
    names[3] = "hidden"
    h = g.fork()
    assert [var.name for var in h.nodes] == names
    g.save(tmp_path / "g")
    loaded = rg.load(tmp_path / "g")
    assert [var.name for var in loaded.nodes] == names
    made = rg.to_networkx(g)
    assert sorted(made) == sorted(names)
    back = rg.from_networkx(made)
    assert [var.name for var in back.nodes] == names
    for other in (h, loaded, back):
        assert [n.scope for n in other.snapshot().nodes] == [n.scope for n in g.snapshot().nodes]
    assert nx.is_directed_acyclic_graph(made)


def test_a_scope_is_of_its_graph_and_its_thread(g: rg.Graph) -> None:
    other = rg.Graph()
    with g.scope("here"), ThreadPoolExecutor(1) as pool:
        assert other.param(1.0, name="w").name == "w"
        assert pool.submit(lambda: g.param(1.0, name="w").name).result() == "w"
        with other.scope("there"):
            assert (g.input(1.0, name="x").name, other.input(1.0, name="x").name) == (
                "here/x",
                "there/x",
            )


def test_a_scope_as_a_decorator_and_entered_again(g: rg.Graph) -> None:
    block = g.scope("block")

    @block
    def build(name: str) -> rg.Var:
        return g.param(1.0, name=name)

    assert [build(name).name for name in ("a", "b")] == ["block/a", "block/b"]
    with block, block:
        assert g.param(1.0, name="c").name == "block/block/c"
    with pytest.raises(KeyError), block:
        raise KeyError
    assert g.param(1.0, name="c").name == "c"


@pytest.mark.parametrize("name", ["", "a//b", "/a", "a/", 3, None])
def test_what_is_no_name_of_a_scope(g: rg.Graph, name: object) -> None:
    with pytest.raises(rg.GraphError, match="named by a non-empty string"):
        g.scope(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("net/layer1/w", ("net", "layer1")),
        ("price/earnings", ("price",)),
        ("w", ()),
        ("https://example.org", ()),  # a part of it is empty, so it is no path
        ("/w", ()),
        ("w/", ()),
        ("a//w", ()),
    ],
)
def test_slashes_in_a_name_are_scopes_where_all_parts_are_names(
    g: rg.Graph, name: str, scope: tuple[str, ...]
) -> None:
    with g.scope("built"):
        y = rg.tanh(g.input(1.0))
    assert g.snapshot().nodes[-1].scope == ("built",)
    y.name = name
    assert g.snapshot().nodes[-1].scope == (scope or ("built",))
    assert g[name] is y


def test_folded_pictures_count_what_is_inside(g: rg.Graph) -> None:
    y = two_layers(g)
    dot = g.to_dot(fold=1)
    assert "layer0" in dot
    assert "tanh_4" not in dot
    assert y.name in dot


DERIVATIVES = ["ds/dw", "dL/dx1", "d2y/dx2", "d(loss)/d(w)", "\u2202s/\u2202w", "dtotal/dweights"]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_derivative_is_one_name_and_no_scope(g: rg.Graph, name: str) -> None:
    w = g.param(2.0, name="weights")
    s = rg.tanh(w)
    slope = rg.grad(s, w)
    slope.name = name
    (node,) = [node for node in g.snapshot().nodes if node.name == name]
    assert node.scope == ()
    text = g.to_dot(layer="all")
    assert f'label="{name}' in text
    assert "subgraph" not in text
    s.name = f"net/{name}"
    (node,) = [node for node in g.snapshot().nodes if node.name == s.name]
    assert node.scope == ("net",)


def test_scopes_that_begin_alike_are_scopes(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    for name in ("decoder/dense", "data/dim", "d1/d2", "ds/w"):
        x = rg.tanh(x)
        x.name = name
    scopes = [node.scope for node in g.snapshot().nodes]
    assert scopes == [(), ("decoder",), ("data",), ("d1",), ("ds",)]
