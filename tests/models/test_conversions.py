"""Converted ops beyond values: gradients against finite differences, constants, lengths that stay open."""

# ruff: noqa: E402 -- what follows needs the package that may be absent
from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from reactgrad.models import ModelError


def graph_of(op, shapes, outputs=1, constants=(), opset=18, **attributes):
    """Return the model of one node whose inputs are doubles x0, x1, ..., then constants."""
    names = [f"x{i}" for i in range(len(shapes))]
    given = {f"c{i}": np.asarray(c) for i, c in enumerate(constants)}
    node = helper.make_node(op, [*names, *given], [f"y{i}" for i in range(outputs)], **attributes)
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.DOUBLE, s)
        for n, s in zip(names, shapes, strict=True)
    ]
    result = [
        helper.make_tensor_value_info(f"y{i}", TensorProto.DOUBLE, None) for i in range(outputs)
    ]
    weights = [numpy_helper.from_array(v, k) for k, v in given.items()]
    graph = helper.make_graph([node], "g", inputs, result, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


CASES = [
    ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"pads": [0, 1, 1, 0], "strides": [2, 1]}),
    ("ConvTranspose", [(1, 2, 3, 3), (2, 2, 3, 3)], {"strides": [2, 2], "pads": [1, 1, 0, 0]}),
    (
        "AveragePool",
        [(1, 1, 5, 5)],
        {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "strides": [2, 2]},
    ),
    (
        "MaxPool",
        [(1, 1, 5, 5)],
        {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "ceil_mode": 1, "strides": [2, 2]},
    ),
    ("LpPool", [(1, 1, 4, 4)], {"kernel_shape": [2, 2], "p": 2}),
    ("LayerNormalization", [(2, 4), (4,), (4,)], {}),
    ("InstanceNormalization", [(1, 2, 3), (2,), (2,)], {}),
    ("LRN", [(1, 4, 2, 2)], {"size": 3}),
    ("Softmax", [(2, 3)], {"axis": 0}),
    ("ReduceLogSumExp", [(2, 3)], {}),
    ("Gemm", [(2, 3), (2, 3), (2,)], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("RNN", [(3, 1, 2), (1, 2, 2), (1, 2, 2), (1, 4)], {"hidden_size": 2}),
    ("GRU", [(2, 1, 2), (1, 6, 2), (1, 6, 2), (1, 12)], {"hidden_size": 2}),
    (
        "LSTM",
        [(2, 1, 2), (2, 8, 2), (2, 8, 2), (2, 16)],
        {"hidden_size": 2, "direction": "bidirectional"},
    ),
    ("Selu", [(4,)], {}),
    ("Pow", [(3,), (3,)], {}),
    ("DepthToSpace", [(1, 4, 1, 2)], {"blocksize": 2}),
]


@pytest.mark.parametrize(("op", "shapes", "attributes"), CASES, ids=[c[0] for c in CASES])
def test_gradients_are_finite_differences(op, shapes, attributes):
    m = rg.from_onnx(graph_of(op, shapes, **attributes))
    rng = np.random.default_rng(3)
    values = {f"x{i}": rng.uniform(0.3, 1.3, s) for i, s in enumerate(shapes)}
    y = m(**values)["y0"]
    weights = rng.normal(size=y.value.shape)
    loss = (y * weights).sum()
    for name, value in values.items():
        slope = rg.grad(loss, m.inputs[name]).value
        direction = rng.normal(size=value.shape)
        ends = []
        for sign in (1, -1):
            m(**{name: value + sign * 1e-5 * direction})
            ends.append(loss.value)
        m(**{name: value})
        np.testing.assert_allclose(
            (slope * direction).sum(), (ends[0] - ends[1]) / 2e-5, rtol=2e-5, atol=1e-8
        )


def test_an_attribute_left_out_of_an_op_with_a_body_has_its_default():
    # The inliner of the package forgets defaults: without them this was a mean over all axes.
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("f8")
    m = rg.from_onnx(graph_of("ReduceSumSquare", [(2, 3, 4)]))
    assert m(x0=x)["y0"].value.shape == (1, 1, 1)
    window = (
        rg.from_onnx(graph_of("HannWindow", [], constants=[np.array(8)], opset=17))
        .outputs["y0"]
        .value
    )
    np.testing.assert_allclose(window, 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(8) / 8), atol=1e-6)
    assert window.dtype == np.float32


def test_lengths_of_a_convolution_may_stay_open():
    rng = np.random.default_rng(0)
    m = rg.from_onnx(graph_of("Conv", [("n", 1, "h", "w"), (2, 1, 3, 3)], pads=[1, 1, 1, 1]))
    w = rng.normal(size=(2, 1, 3, 3))
    for n, h in ((1, 4), (2, 6)):
        x = rng.normal(size=(n, 1, h, h))
        y = m(x0=x, x1=w)["y0"].value
        assert y.shape == (n, 2, h, h)
        np.testing.assert_allclose(y[0, 0, 1, 1], (x[0, 0, :3, :3] * w[0, 0]).sum())


def test_an_if_computes_only_the_branch_that_it_takes():
    def branch(op):
        return helper.make_graph(
            [helper.make_node(op, ["x"], [f"{op}_y"])],
            op,
            [],
            [helper.make_tensor_value_info(f"{op}_y", TensorProto.DOUBLE, [2])],
        )

    node = helper.make_node(
        "If", ["on"], ["y"], then_branch=branch("Exp"), else_branch=branch("Neg")
    )
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.DOUBLE, [2]),
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2])]
    proto = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)]
    )
    m = rg.from_onnx(proto)
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(m(x=x, on=False)["y"].value, -x)
    assert len(m.graph.last_run.ran) == 2
    np.testing.assert_array_equal(m(on=True)["y"].value, np.exp(x))
    slope = rg.grad(m.outputs["y"].sum(), m.inputs["x"])
    np.testing.assert_array_equal(slope.value, np.exp(x))
    m(on=False)
    np.testing.assert_array_equal(slope.value, [-1.0, -1.0])


def test_a_scan_runs_again_from_the_step_that_changed():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "v"], ["t"]), helper.make_node("Identity", ["t"], ["u"])],
        "body",
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, []) for n in ("s", "v")],
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, []) for n in ("t", "u")],
    )
    m = rg.from_onnx(graph_of("Scan", [(), (4,)], outputs=2, body=body, num_scan_inputs=1))
    outputs = m(x0=1.0, x1=np.arange(4.0))
    assert outputs["y0"].value == 7.0
    assert outputs["y1"].value.tolist() == [1.0, 2.0, 4.0, 7.0]
    assert rg.grad(outputs["y1"].sum(), m.inputs["x1"]).value.tolist() == [4.0, 3.0, 2.0, 1.0]


@pytest.mark.slow
def test_a_loop_without_end_is_refused():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["on"]),
            helper.make_node("Add", ["v", "v"], ["w"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.DOUBLE, []),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.DOUBLE, []),
        ],
    )
    node = helper.make_node("Loop", ["", "", "x0"], ["y0"], body=body)
    proto = graph_of("Identity", [()])
    del proto.graph.node[:]
    proto.graph.node.append(node)
    with pytest.raises(ModelError, match="take more than 5000 steps"):
        rg.from_onnx(proto)


def test_a_shape_with_an_open_length_is_followed_to_the_reshape():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "six"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "six": np.array([6])}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    m = rg.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    for n in (1, 4):
        assert m(x=np.ones((n, 2, 3)))["y"].value.shape == (n, 6)
    assert rg.grad(m.outputs["y"].sum(), m.inputs["x"]).value.shape == (4, 2, 3)
