"""What ``rg.from_onnx`` builds: names, gradients, what runs, edits; and the files that it refuses."""

# ruff: noqa: E402 -- what follows needs the package that may be absent
from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from reactgrad.models import ModelError, OpError, UnknownLengthError


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=(), **options):
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(weights).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], **options)


def perceptron():
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=(4, 2)).astype("f4")
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    weights = {"w1": w1, "b": np.zeros(4, "f4"), "w2": w2}
    return model(nodes, [tensor("x", ["batch", 3])], [tensor("y", ["batch", 2])], weights), w1, w2


def test_inputs_outputs_and_params_have_the_names_of_the_file():
    m = rg.from_onnx(perceptron()[0])
    names = [list(m.inputs), list(m.outputs), sorted(m.params)]
    assert names == [["x"], ["y"], ["b", "w1", "w2"]]
    assert all(v.requires_grad for v in m.params.values())
    assert repr(m) == "<Model: inputs ['x'], outputs ['y'], 3 params, 8 nodes>"


def test_values_follow_feeds_and_params_and_only_stale_nodes_run():
    proto, w1, w2 = perceptron()
    m = rg.from_onnx(proto.SerializeToString())
    x = np.ones((5, 3), "f4")
    y = m(x=x)["y"]
    np.testing.assert_allclose(y.value, np.maximum(x @ w1, 0) @ w2, rtol=1e-5)
    size = len(m.graph)
    m.params["w2"].set(2 * w2)
    np.testing.assert_allclose(y.value, np.maximum(x @ w1, 0) @ (2 * w2), rtol=1e-5)
    assert len(m.graph.last_run.ran) == 1  # the last product; the layer before it stays
    assert m(x=x[:2])["y"].value.shape == (2, 2)
    assert len(m.graph) == size


def test_gradients_reach_inputs_and_params():
    proto, w1, w2 = perceptron()
    m = rg.from_onnx(proto)
    x = np.array([[1.0, -2.0, 0.5]], "f4")
    loss = m(x=x)["y"].sum()
    on = (x @ w1 > 0).astype("f4")
    np.testing.assert_allclose(
        rg.grad(loss, m.inputs["x"]).value, (on * w2.sum(1)) @ w1.T, rtol=1e-5
    )
    np.testing.assert_allclose(
        rg.grad(loss, m.params["w1"]).value, x.T @ (on * w2.sum(1)), rtol=1e-5
    )


def test_an_imported_graph_can_be_edited():
    m = rg.from_onnx(perceptron()[0])
    (y,) = m.outputs.values()
    before = m(x=np.ones((1, 3), "f4"))["y"].value
    m.graph.insert(y.parents[0], y, lambda hidden: 2 * hidden)
    np.testing.assert_allclose(y.value, 2 * before, rtol=1e-6)


def test_shapes_are_folded_and_leave_no_nodes():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Concat", ["s", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    m = rg.from_onnx(
        model(nodes, [tensor("x", [2, 6])], [tensor("y", None)], {"rest": np.array([3, 2])})
    )
    assert len(m.graph) == 2
    assert m(x=np.arange(12.0).reshape(2, 6))["y"].value.shape == (2, 3, 2)


def test_a_number_that_decides_about_the_graph_is_asked_for():
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    proto = model(
        nodes, [tensor("x", [6]), tensor("shape", [2], TensorProto.INT64)], [tensor("y", None)]
    )
    with pytest.raises(
        UnknownLengthError, match=r"its input 'shape' decides .* \['shape'\], as constants"
    ) as caught:
        rg.from_onnx(proto)
    assert caught.value.needs == ("shape",)
    m = rg.from_onnx(proto, constants={"shape": [2, 3]})
    assert list(m.inputs) == ["x"]
    assert m.outputs["y"].shape == (2, 3)


def test_all_missing_ops_are_named_with_counts_before_anything_is_built():
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"]),
        helper.make_node("Frobnicate", ["a"], ["b"]),
        helper.make_node("Odd", ["b"], ["y"], domain="my.ops"),
    ]
    g = rg.Graph()
    with pytest.raises(OpError, match=r"Frobnicate \(2x\), my.ops.Odd \(1x\)\. Nothing was built"):
        rg.from_onnx(model(nodes, [tensor("x", [1])], [tensor("y", [1])]), graph=g)
    assert len(g) == 0


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("Relu", ["b"], ["a"]), ("Relu", ["a"], ["b"]), ("Relu", ["a"], ["y"])], "has a cycle"),
        ([("Relu", ["nothing"], ["y"])], "reads 'nothing', which is no input"),
        ([("Relu", ["x"], ["a"])], "the output 'y', which nothing computes"),
        ([("Relu", ["x"], ["y"]), ("Abs", ["x"], ["y"])], "computes 'y' twice"),
    ],
)
def test_nodes_that_form_no_graph_are_refused(nodes, message):
    with pytest.raises(ModelError, match=message):
        rg.from_onnx(
            model([helper.make_node(*n) for n in nodes], [tensor("x", [1])], [tensor("y", [1])])
        )


def test_nodes_in_any_order_are_read():
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Exp", ["x"], ["a"])]
    m = rg.from_onnx(model(nodes, [tensor("x", [1])], [tensor("y", [1])]))
    assert m(x=[0.0])["y"].value.tolist() == [-1.0]


def test_a_huge_shape_is_refused_without_an_allocation():
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["y"])]
    with pytest.raises(ModelError, match="at most 16777216 elements"):
        rg.from_onnx(model(nodes, [], [tensor("y", None)], {"n": np.array([1 << 40, 1 << 20])}))
    proto, *_ = perceptron()
    proto.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
    with pytest.raises(ModelError, match="comes with 48 bytes, which is another size"):
        rg.from_onnx(proto)


def test_external_data_is_read_from_the_folder_and_from_nowhere_else(tmp_path):
    proto, w1, _ = perceptron()
    (tmp_path / "models").mkdir()
    (tmp_path / "secret.bin").write_bytes(w1.tobytes())
    path = tmp_path / "models" / "m.onnx"
    x = np.ones((1, 3), "f4")
    expected = rg.from_onnx(proto)(x=x)["y"].value
    onnx.save_model(
        proto, str(path), save_as_external_data=True, location="w.bin", size_threshold=0
    )
    np.testing.assert_array_equal(rg.from_onnx(path)(x=x)["y"].value, expected)
    stored = onnx.load(str(path), load_external_data=False)
    for bad, message in (
        ("../secret.bin", "outside of the folder"),
        ("none.bin", "there is no such file"),
        ("a\0b", "no name of a file"),
    ):
        for entry in stored.graph.initializer[0].external_data:
            if entry.key == "location":
                entry.value = bad
        path.write_bytes(stored.SerializeToString())
        with pytest.raises(ModelError, match=message):
            rg.from_onnx(path)


def test_damaged_files_are_refused():
    data = perceptron()[0].SerializeToString()
    for cut in range(0, len(data), 7):
        with pytest.raises(ModelError):
            rg.from_onnx(data[:cut])
    with pytest.raises(ModelError, match="reads the path of a file, its bytes"):
        rg.from_onnx(3)


def test_names_that_are_no_inputs_are_refused():
    m = rg.from_onnx(perceptron()[0])
    with pytest.raises(rg.GraphError, match=r"no input 'z'\. Its inputs are \['x'\]"):
        m(z=1)
    with pytest.raises(ModelError, match=r"'z' is no input of this model"):
        rg.from_onnx(perceptron()[0], constants={"z": 1})


def test_functions_that_stand_for_absurdly_many_nodes_are_refused():
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = [
        helper.make_function(
            "f", "f0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opset
        )
    ]
    for i in range(40):
        calls = [
            helper.make_node(f"f{i}", ["a"], ["c"], domain="f"),
            helper.make_node(f"f{i}", ["c"], ["b"], domain="f"),
        ]
        functions.append(helper.make_function("f", f"f{i + 1}", ["a"], ["b"], calls, opset))
    nodes = [helper.make_node("f40", ["x"], ["y"], domain="f")]
    with pytest.raises(ModelError, match=r"stand for \d+ nodes"):
        rg.from_onnx(model(nodes, [tensor("x", [1])], [tensor("y", [1])], functions=functions))
    functions[0] = helper.make_function(
        "f", "f0", ["a"], ["b"], [helper.make_node("f0", ["a"], ["b"], domain="f")], opset
    )
    with pytest.raises(ModelError, match="call themselves"):
        rg.from_onnx(model(nodes, [tensor("x", [1])], [tensor("y", [1])], functions=functions))
    nodes[0] = helper.make_node("f3", ["x"], ["y"], domain="f")
    functions[0] = helper.make_function(
        "f", "f0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opset
    )
    m = rg.from_onnx(model(nodes, [tensor("x", [1])], [tensor("y", [1])], functions=functions[:4]))
    assert m(x=[2.0])["y"].value.tolist() == [2.0]


@pytest.mark.parametrize(
    ("op", "extra", "attributes"),
    [
        ("CumSum", {"n": np.array(9)}, {}),
        ("ReduceSum", {"n": np.array([5])}, {}),
        ("Flatten", {}, {"axis": 9}),
        ("Hardmax", {}, {"axis": 7}),
        ("LayerNormalization", {"n": np.ones(3, "f4")}, {"axis": -3}),
        ("GatherElements", {"n": np.zeros((2, 3), int)}, {"axis": 2}),
        ("Pad", {"n": np.zeros(2, int), "v": np.float32(0), "a": np.array([2])}, {}),
        ("Slice", {"n": [0], "e": [1], "a": [7]}, {}),
        ("OneHot", {"n": np.array(3), "v": np.array([0.0, 1.0], "f4")}, {"axis": 3}),
        ("TopK", {"n": np.array([1])}, {"axis": 2}),
        ("TopK", {"n": np.array([4])}, {}),
        ("TopK", {"n": np.array([-1])}, {}),
        ("Split", {"n": np.array([1, 3])}, {"axis": 1}),
        ("Split", {"n": np.array([-1, 4])}, {"axis": 1}),
        ("SplitToSequence", {"n": np.array(0)}, {}),
    ],
)
def test_axes_and_counts_that_do_not_fit_are_refused(op, extra, attributes):
    outputs = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    node = helper.make_node(op, ["x", *extra], outputs, **attributes)
    with pytest.raises(ModelError, match=rf"{op} (goes along axis|cuts an axis|picks)"):
        rg.from_onnx(model([node], [tensor("x", [2, 3])], [tensor("y", None)], extra))


def test_a_top_k_of_an_open_length_says_that_it_has_too_few():
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=0)
    m = rg.from_onnx(model([node], [tensor("x", ["n"])], [tensor("y", None)], {"k": np.array([3])}))
    assert m(x=[1.0, 3.0, 2.0, 5.0])["y"].value.tolist() == [5.0, 3.0, 2.0]
    with pytest.raises(ModelError, match="picks 3 elements of an axis of 2 length"):
        _ = m(x=[1.0, 2.0])["y"].value
