"""Labels: a node that nobody has named is called what its line assigns it to (rule V5)."""

from __future__ import annotations

import linecache
import warnings
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Model:
    def __init__(self, g: rg.Graph) -> None:
        self.weight = g.param([1.0, 2.0])
        self.table: dict[str, rg.Var] = {}
        self.table["spot"] = g.input(95.0)


def test_the_word_on_the_left_is_the_label(g: rg.Graph) -> None:
    rate = g.input(0.02)
    growth = rg.exp(rate * 2.0)
    typed: rg.Var = rate + 1.0
    first = second = rg.tanh(rate)
    up, down = rg.exp(rate), -rate
    (walrus := rg.log(rate)) + 1.0
    over_lines = (
        rate
        * 2.0
    )  # fmt: skip
    chain = (rate.reshape(1)
             .sum())  # fmt: skip
    either = rg.sqrt(rate) if g is not None else rg.log(rate)
    kept = g.keep(rg.cos(rate))
    constant = g.const([1.0])
    frozen = growth.snapshot()
    model = Model(g)
    for var, label in (
        (rate, "rate"),
        (growth, "growth"),
        (typed, "typed"),
        (first, "first"),
        (second, "first"),
        (up, "up"),
        (down, "down"),
        (walrus, "walrus"),
        (over_lines, "over_lines"),
        (chain, "chain"),
        (either, "either"),
        (kept, "kept"),
        (constant, "constant"),
        (frozen, "frozen"),
        (model.weight, "weight"),
        (model.table["spot"], "spot"),
        (growth.detach(), "growth"),
    ):
        assert var.label == label
    assert growth.name == "exp_4"
    assert growth.parents[0].label == "multiply_3"  # a part of the line, not what it assigns
    growth.name = "g"
    assert growth.label == "g"


def test_of_a_call_that_builds_several_nodes_the_outermost_has_the_word(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    density = rg.norm_pdf(x)
    squared = x**2
    deep = rg.sqrt(rg.exp(x) + 1.0)
    labels = [var.label for var in g.nodes]
    assert [labels.count(label) for label in ("density", "squared", "deep")] == [1, 1, 1]
    assert (density.label, squared.label, deep.label) == ("density", "squared", "deep")


def test_outputs_and_parts(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    left, right = rg.split(x, 2)
    whole, rest = rg.lift(divmod, outputs=2)(left, 1.0)
    both = rg.lift(divmod, outputs=2)(right, 1.0)
    assert [v.label for v in (left, right, whole, rest)] == ["left", "right", "whole", "rest"]
    assert [v.label for v in both] == ["both[0]", "both[1]"]


def test_gradients(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0])
    loss = (x * x * 3.0).sum()
    slope = rg.grad(loss, x)
    run = loss.backward()
    assert slope.label == "slope"
    labels = [var.label for var in g.nodes]
    assert labels.count("slope") == 1
    assert not any(label.startswith("run") for label in labels)
    assert run is not None


def test_labels_are_unique(g: rg.Graph) -> None:
    h = g.input(1.0)
    chain = [h]
    for _ in range(3):
        h = rg.tanh(h)
        chain.append(h)
    h_4 = h * 2.0
    tanh_2 = rg.exp(h)
    labels = [var.label for var in g.nodes]
    assert len(set(labels)) == len(labels)
    assert labels[:5] == ["h", "h_2", "h_3", "h_4", "const_5"]
    assert h_4.label == "h_4_6"
    assert tanh_2.label == "tanh_2_7"  # the made name of another node
    assert [var.label for var in chain] == labels[:4]
    twin = g.fork()
    assert [twin[var].label for var in g.nodes] == labels


def test_a_word_is_free_again_once_its_node_is_gone(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = None
    for build in (rg.exp, rg.sin):
        y = None  # as when a notebook's cell runs again
        y = build(x)
        assert y.label == "y"


def test_scopes_and_given_names(g: rg.Graph) -> None:
    with g.scope("layer"):
        x = g.input(1.0)
        y = rg.tanh(x)
    other = g.input(1.0, name="z")
    z = other + 1.0
    assert (x.label, y.label, z.label) == ("layer/x", "layer/y", "z_5")


def test_without_a_source_or_an_assignment_it_is_the_made_name(g: rg.Graph) -> None:
    x = g.input(1.0)
    found: dict[str, Any] = {"x": x, "rg": rg}
    exec("y = rg.tanh(x)", found)
    assert found["y"].label == found["y"].name == "tanh_2"
    assert rg.exp(x).label == "exp_3"
    vars_in_a_list = [rg.sin(x)]
    assert vars_in_a_list[0].label == "sin_4"
    _ = rg.cos(x)
    assert _.label == _.name


def test_a_cell_of_a_notebook_is_read_like_a_file(g: rg.Graph) -> None:
    found: dict[str, Any] = {"g": g, "rg": rg}
    for name in ("<ipython-input-1>", "<ipython-input-2>"):
        source = "rate = g.input(0.5)\ngrowth = rg.exp(rate)\n"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), found)
    assert found["growth"].label == "growth"
    assert found["rate"].label == "rate"


def test_a_loaded_graph_has_no_lines(g: rg.Graph, tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    y = rg.tanh(g.input(1.0))
    y.name = "y"
    g.save(tmp_path / "g.rgx")
    loaded = rg.load(tmp_path / "g.rgx")
    assert [var.label for var in loaded.nodes] == ["input_1", "y"]
    after = loaded["y"] + 1.0
    assert after.label == "after"


def test_building_does_not_read_the_source(g: rg.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*args: object) -> Any:
        raise AssertionError("the source was read")

    monkeypatch.setattr("reactgrad.nodes._label.linecache.getlines", read)
    x = g.input(1.0)
    y = rg.exp(x * 2.0)
    assert y.value == np.exp(2.0)
    x.set(2.0)
    run = g.forward(y)
    assert len(run.ran) == 2


def test_messages_and_pictures_show_labels(g: rg.Graph) -> None:
    rate = g.input(-1.0)
    growth = rg.lift(lambda v: 1 / (v + 1.0))(rate)
    price = growth * 2.0
    assert "[growth, price]" in repr(g.plan(price).nodes)
    with pytest.raises(ZeroDivisionError) as caught:
        price.value
    assert (
        "node 'growth', function 'lambda', of (rate: a Python float)" in caught.value.__notes__[0]
    )
    rate.set(1.0)
    price.value
    rate.set(2.0)
    assert "rate was set" in str(g.why(price))
    price.value
    assert repr(g.last_run.ran) == "[growth, price]"
    assert repr(price).startswith("<Var 'price':")
    assert [node.name for node in g.snapshot().nodes][:2] == ["rate", "growth"]
    assert "growth" in g.to_dot(price)
    with pytest.raises(rg.SetError, match="'price' is computed by"):
        price.set(1.0)
    assert g["price"] is price  # what a message has shown finds the node
    with pytest.raises(KeyError):
        g["cost"]


SOURCE = r"""
def model(x, rg):
    '''\d \N{EM DASH} \
    '''
    one, two, three = f"\{x.shape}\N{EM DASH}\'", r"\d\"", b"\d\\\""
    growth = rg.exp(x)  # \d
    é = "\w"; price = growth * 2.0
    return growth, price
"""


def test_the_source_is_read_without_warnings_and_without_filters_for_them(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters belong to all threads, and an interrupt left them as they were while the source was read."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(SOURCE, "<escapes>", "exec"), found)
    lines = SOURCE.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<escapes>", (len(SOURCE), None, lines, "<escapes>"))
    monkeypatch.delattr(warnings, "catch_warnings")
    growth, price = found["model"](g.input(1.0), rg)
    assert (growth.label, price.label) == ("growth", "price")


def test_what_a_module_returns_has_the_word_and_not_what_it_is_fed(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Sequential(rg.nn.Linear(3, 4, rng=0), rg.nn.ReLU(), rg.nn.Linear(4, 2, rng=1))
        cost = rg.nn.MSELoss()
    y = net(np.ones((5, 3)))
    loss = cost(y, np.zeros((5, 2)))
    assert y.label == "Sequential/2/y"
    assert loss.label == "MSELoss/loss"
    labels = [node.label for node in g.nodes]
    assert [label for label in labels if label.rpartition("/")[2].startswith(("y", "loss"))] == [
        "Sequential/2/y",
        "MSELoss/loss",
    ]
    assert "into Sequential" in labels
    assert "fed to Sequential" in labels
    assert sum(label.startswith("into MSELoss") for label in labels) == 2


def test_an_input_of_a_module_in_a_scope(g: rg.Graph) -> None:
    x = g.input(np.ones((5, 3)), name="x")
    with g, g.scope("head"):
        net = rg.nn.Linear(3, 4, rng=0)
        y = net(x)
    assert y.parents[0].label == "head/into Linear"
    assert y.label == "head/Linear/y"


def test_a_copy_on_the_same_line_is_no_input_of_a_module(g: rg.Graph) -> None:
    x = g.input(np.ones(3), name="x")
    whole = x.detach_node()
    assert whole.label == "whole"


def test_a_cell_of_marimo_is_compiled_without_its_indentation(g: rg.Graph) -> None:
    body = "x = g.input(1.0)\nfwd = rg.exp(\n    x\n) * 2.0\n"
    lines = [
        "@app.cell",
        "def _(g, rg):",
        *("    " + line for line in body.splitlines()),
        "    return",
    ]
    source = "".join(line + "\n" for line in lines)
    linecache.cache["app.py"] = (len(source), None, source.splitlines(keepends=True), "app.py")
    names: dict[str, Any] = {"g": g, "rg": rg}
    try:
        exec(compile("\n" * 2 + body, "app.py", "exec"), names)
        assert names["fwd"].label == "fwd"
        assert names["x"].label == "x"
    finally:
        del linecache.cache["app.py"]
