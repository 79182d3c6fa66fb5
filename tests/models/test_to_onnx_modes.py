"""A network in eval mode is written without what only training needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx", reason="it makes and checks the file")

ROWS = np.random.default_rng(0).normal(size=(5, 3)).astype("f4")


def network(g: rg.Graph) -> Any:
    with g:
        net = rg.nn.Sequential(
            rg.nn.Linear(3, 4, rng=0),
            rg.nn.BatchNorm1d(4),
            rg.nn.Dropout(0.5),
            rg.nn.ReLU(),
            rg.nn.Linear(4, 2, rng=1),
        ).to("float32")
    for _ in range(3):
        net(ROWS)
    return net


def computed(model: Any, rows: Any) -> Any:
    import onnx.reference

    return onnx.reference.ReferenceEvaluator(model).run(None, {"x": rows})[0]


@pytest.mark.parametrize("rows", [5, None])
@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("of_graph", [False, True])
def test_eval_mode_is_written(rows: int | None, read: bool, of_graph: bool) -> None:
    g = rg.Graph()
    net = network(g)
    x = g.input(shape=(rows, 3), dtype="f4", name="x")
    x.set(ROWS)
    y = net(x)
    if read:
        y.value.sum()  # in train mode
    (g if of_graph else net).eval()
    model = rg.to_onnx({"y": y}, inputs={"x": x})  # running statistics are constants then
    assert [one.name for one in model.graph.input] == ["x"]
    np.testing.assert_allclose(computed(model, ROWS), y.value, rtol=1e-5, atol=1e-6)
    if rows is None:
        more = np.concatenate([ROWS, ROWS + 1.0])
        x.set(more)
        np.testing.assert_allclose(computed(model, more), y.value, rtol=1e-5, atol=1e-6)


def test_draws_of_train_mode_are_refused_by_name() -> None:
    g = rg.Graph()
    net = network(g)
    x = g.input(ROWS, name="x")
    with pytest.raises(rg.ReactgradError, match="draw"):
        rg.to_onnx({"y": net(x)})


def test_what_a_module_holds_is_no_input_of_the_file() -> None:
    g = rg.Graph()
    net = network(g)
    x = g.input(ROWS, name="x")
    y = net(x)
    net.eval()
    assert [one.name for one in rg.to_onnx({"y": y}).graph.input] == ["x"]


def test_what_cannot_be_written_says_what_to_do() -> None:
    with rg.Graph() as g:
        net = rg.nn.Conv1d(1, 1, 3, rng=0)
        rows = np.ones((1, 1, 5))
        with pytest.raises(
            rg.ReactgradError, match=r"Call it with an input of the graph: x = g\.input\(rows\)"
        ):
            rg.to_onnx({"y": net(rows)})
        with pytest.raises(
            rg.ReactgradError, match=r"write net\.to\('float32'\), and inputs of float32"
        ):
            rg.to_onnx({"y": net(g.input(rows))})
        net.to("float32")
        rg.to_onnx({"y": net(g.input(rows.astype("f4"), name="x"))})


def test_rows_of_a_table_are_written() -> None:
    with rg.Graph() as g:
        net = rg.nn.Embedding(4, 2, rng=0)
        model = rg.to_onnx({"y": net(g.input([1, 3], name="i"))})
    assert [node.op_type for node in model.graph.node] == ["Gather"]
