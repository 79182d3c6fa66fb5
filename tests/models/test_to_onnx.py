"""What ``rg.to_onnx`` writes: names, dtypes, lengths; what it refuses; and that files appear whole."""

# ruff: noqa: E402 -- what follows needs the package that may be absent
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx")

from onnx import TensorProto

from reactgrad.models import ModelError, OpError
from tests.models.runs import agree, runtime


def perceptron(dtype="f4", rows=5):
    rng = np.random.default_rng(0)
    g = rg.Graph()
    x = g.input(rng.normal(size=(rows, 3)).astype(dtype), name="x", shape=(None, 3))
    w1 = g.param(rng.normal(size=(3, 4)).astype(dtype), name="w1")
    b = g.param(rng.normal(size=4).astype(dtype), name="b")
    w2 = g.param(rng.normal(size=(4, 2)).astype(dtype), name="w2")
    h = rg.tanh(rg.linear(x, w1, b))
    return g, x, rg.softmax(h @ w2 * 2.0 + 1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_perceptron_gives_the_same_elsewhere(dtype):
    _, _, y = perceptron(dtype)
    model = agree({"y": y})
    assert [v.name for v in model.graph.input] == ["x"]
    assert sorted(t.name for t in model.graph.initializer)[:3] == ["b", "c", "c.1"]
    kind = TensorProto.FLOAT if dtype == "f4" else TensorProto.DOUBLE
    assert {t.data_type for t in model.graph.initializer} == {kind}


def test_gradients_are_outputs_too_and_follow_other_lengths():
    g, x, y = perceptron("f8")
    loss = -rg.log(y[:, 0]).mean()
    slopes = {f"d_{p}": rg.grad(loss, g[p]) for p in ("w1", "b", "w2")}
    model = agree({"loss": loss, **slopes})
    m = rg.from_onnx(model, shapes={"x": (9, 3)})
    rows = np.random.default_rng(1).normal(size=(9, 3))
    x.set(rows)
    found = m(x=rows)
    for name, slope in slopes.items():
        np.testing.assert_allclose(found[name].value, slope.value, rtol=1e-9, atol=1e-12)


def test_names_and_open_lengths():
    _, _, y = perceptron()
    model = rg.to_onnx({"scores": y})
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_param == "x_0"
    assert dims[1].dim_value == 3
    assert [v.name for v in model.graph.output] == ["scores"]
    assert model.graph.node[-1].output == ["scores"]


def test_a_model_read_again_is_the_same_model():
    _, x, y = perceptron()
    model = rg.to_onnx({"y": y})
    m = rg.from_onnx(model)
    rows = np.ones((7, 3), "f4")
    x.set(rows)
    np.testing.assert_allclose(m(x=rows)["y"].value, y.value, rtol=1e-6)
    assert sorted(m.params) == ["b", "c", "c.1", "w1", "w2"]


def test_an_output_may_be_a_leaf_and_one_value_several_outputs():
    g = rg.Graph()
    x = g.input(np.ones(3), name="x")
    y = rg.exp(x)
    model = agree({"same": x, "a": y, "b": y})
    assert [n.op_type for n in model.graph.node] == ["Exp", "Identity", "Identity"]


def test_inputs_may_be_nodes_and_other_leaves_stay_as_they_are():
    g = rg.Graph()
    x = g.input(np.ones(3), name="x")
    scale = g.input(np.full(3, 2.0), name="scale")
    h = x * scale
    y = rg.exp(h) + scale
    model = agree({"y": y}, inputs={"hidden": h})
    assert [t.name for t in model.graph.initializer] == ["scale"]
    assert [n.op_type for n in model.graph.node] == ["Exp", "Add"]


def test_what_has_no_form_is_named_all_at_once_and_nothing_is_written(tmp_path):
    g = rg.Graph()
    x = g.input(np.ones(4), name="x")
    first, second = rg.lift(lambda a: a)(x), rg.fft.fft(x)
    y = rg.real(rg.fft.fft(second)) + first
    path = tmp_path / "m.onnx"
    with pytest.raises(OpError) as caught:
        rg.to_onnx({"y": y}, path)
    assert str(caught.value) == (
        "rg.to_onnx: what this graph computes has no form in ONNX: fft (2x), lambda (1x), real in complex128 "
        "(1x). Nothing was written. Replace these nodes, or export the nodes in front of them."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_appears(tmp_path):
    _, _, y = perceptron()
    path = tmp_path / "m.onnx"
    model = rg.to_onnx({"y": y}, path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert onnx.load(path) == model


def test_large_arrays_in_a_file_beside_it(tmp_path):
    g = rg.Graph()
    x = g.input(np.ones((2, 30), "f4"), name="x")
    w = g.param(np.random.default_rng(0).normal(size=(30, 20)).astype("f4"), name="w")
    path = tmp_path / "m.onnx"
    rg.to_onnx({"y": x @ w}, path, external_data=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx.data").stat().st_size == w.nbytes
    m = rg.from_onnx(path)
    np.testing.assert_array_equal(m.params["w"].value, w.value)
    with pytest.raises(ModelError, match="the model has no path"):
        rg.to_onnx({"y": x @ w}, external_data=True)
    with pytest.raises(ModelError, match="the ops that are written are those of 18 to"):
        rg.to_onnx({"y": x @ w}, opset=11)


def test_lengths_that_follow_others_are_computed():
    g = rg.Graph()
    x = g.input(np.ones((4, 3)), name="x", shape=(None, 3))
    y = g.input(np.ones((2, 5)), name="y", shape=(2, None))
    loss = (x[1:, ::-1] ** 2).mean() * (y**2).mean()
    model = agree({"dx": rg.grad(loss, x), "dy": rg.grad(loss, y), "flat": x.reshape(-1)})
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in model.graph.output
    ]
    assert shapes == [["x_0", 3], [2, "y_1"], ["flat_0"]]
    if (ort := runtime()) is not None:
        feeds = {"x": np.arange(21.0).reshape(7, 3), "y": np.arange(18.0).reshape(2, 9)}
        g.set({x: feeds["x"], y: feeds["y"]})
        found = ort.InferenceSession(model.SerializeToString()).run(["dx", "dy"], feeds)
        np.testing.assert_allclose(found[0], rg.grad(loss, x).value, rtol=1e-12)
        np.testing.assert_allclose(found[1], rg.grad(loss, y).value, rtol=1e-12)


def test_nodes_of_two_graphs_are_refused():
    y, z = perceptron()[2], perceptron()[2]
    with pytest.raises(ModelError, match="lie in 2 graphs"):
        rg.to_onnx({"y": y, "z": z})
    with pytest.raises(ModelError, match="'y' is a float, and outputs are nodes"):
        rg.to_onnx({"y": 1.0})


@pytest.mark.parametrize("name", ["cnn", "text"])
def test_a_model_of_pnnx_goes_on_to_onnx(name):
    data = Path(__file__).parent / "data"
    m = rg.from_pnnx(data / f"{name}.pnnx.param")
    with np.load(data / f"{name}.npz") as file:
        m(in0=file["in0"])
    agree(m.outputs)
