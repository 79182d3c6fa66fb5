"""Models whose batch is open, and which make shapes of its length: one graph serves each batch."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from reactgrad.models import UnknownLengthError  # noqa: E402

# Each takes `float[n, 4, 6, 6] x`, unless it says otherwise, and ends with y.
BATCHES = {
    "a view of rows": """
        s = Shape (x)
        i = Constant <value_ints = [0]> ()
        n = Gather (s, i)
        rest = Constant <value_ints = [-1]> ()
        shape = Concat <axis = 0> (n, rest)
        y = Reshape (x, shape)""",
    "a view and back": """
        s = Shape (x)
        first = Constant <value_ints = [-1, 6]> ()
        flat = Reshape (x, first)
        z = Tanh (flat)
        y = Reshape (z, s)""",
    "groups": """
        first = Constant <value_ints = [0, 2, -1]> ()
        z = Reshape (x, first)
        m = ReduceMean <axes = [2], keepdims = 1> (z)
        c = Sub (z, m)
        s = Shape (x)
        y = Reshape (c, s)""",
    "a token for each sample": """
        t = Constant <value_floats = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> ()
        s = Shape (x)
        i = Constant <value_ints = [0]> ()
        n = Gather (s, i)
        rest = Constant <value_ints = [4, 1, 6]> ()
        shape = Concat <axis = 0> (n, rest)
        many = Expand (t, shape)
        y = Concat <axis = 2> (many, x)""",
    "repeated": """
        c = Constant <value_ints = [1, 4, 6, 6]> ()
        one = Constant <value_ints = [1]> ()
        m = ReduceMean <axes = [1], keepdims = 1> (x)
        y = Expand (m, c)""",
    "zeros for each sample": """
        s = Shape (x)
        zeros = ConstantOfShape <value = float[1] {0.0}> (s)
        y = Max (x, zeros)""",
    "twice as many": """
        s = Shape (x)
        i = Constant <value_ints = [0]> ()
        n = Gather (s, i)
        two = Constant <value_ints = [2]> ()
        double = Mul (n, two)
        ones = ConstantOfShape <value = float[1] {1.0}> (double)
        shape = Constant <value_ints = [-1, 72]> ()
        flat = Reshape (x, shape)
        last = Constant <value_ints = [1]> ()
        column = Unsqueeze (ones, last)
        y = Add (flat, column)""",
    "numbers of the samples": """
        s = Shape (x)
        i = Constant <value_int = 0> ()
        n = Gather (s, i)
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        numbers = Range (zero, n, one)
        floats = Cast <to = 1> (numbers)
        shape = Constant <value_ints = [-1, 1, 1, 1]> ()
        column = Reshape (floats, shape)
        y = Add (x, column)""",
    "all but the last": """
        s = Shape (x)
        i = Constant <value_ints = [0]> ()
        n = Gather (s, i)
        one = Constant <value_ints = [1]> ()
        less = Sub (n, one)
        y = Slice (x, i, less, i)""",
    "halves": "a, b = Split <axis = 1, num_outputs = 2> (x) y = Mul (a, b)",
    "means with a border": "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)",
    "largest, rounded up": "y = MaxPool <kernel_shape = [4, 4], strides = [3, 3], ceil_mode = 1> (x)",
    "places of the largest": "z, p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) y = Cast <to = 1> (p)",
    "twice as large": """
        roi = Constant <value_floats = [0.0]> ()
        scales = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
        y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric"> (x, , scales)""",
    "of a size": """
        s = Shape <start = 0, end = 2> (x)
        size = Constant <value_ints = [5, 3]> ()
        sizes = Concat <axis = 0> (s, size)
        y = Resize <mode = "linear"> (x, , , sizes)""",
    "depth to space": "y = DepthToSpace <blocksize = 2> (x)",
    "space to depth": "y = SpaceToDepth <blocksize = 2> (x)",
    "the largest three": """
        k = Constant <value_ints = [3]> ()
        v, p = TopK <axis = 3> (x, k)
        w = GatherElements <axis = 3> (x, p)
        z = Mul (v, w)
        s = Shape (z)
        y = Expand (z, s)""",
    "one hot": """
        p = ArgMax <axis = 1, keepdims = 0> (x)
        depth = Constant <value_int = 4> ()
        values = Constant <value_floats = [0.0, 1.0]> ()
        y = OneHot <axis = 1> (p, depth, values)""",
    "beside its channels": "y = LRN <size = 3> (x)",
    "a length decides": """
        s = Shape (x)
        i = Constant <value_int = 1> ()
        n = Gather (s, i)
        four = Constant <value_int = 4> ()
        same = Equal (n, four)
        y = If (same) <
            then_branch = t () => (float[n, 4, 6, 6] a) { a = Neg (x) },
            else_branch = e () => (float[n, 4, 6, 6] b) { b = Abs (x) }
        >""",
    "states of zeros": """
        shape = Constant <value_ints = [0, 4, 36]> ()
        rows = Reshape (x, shape)
        steps = Transpose <perm = [1, 0, 2]> (rows)
        w = ConstantOfShape <value = float[1] {0.01}> (wshape)
        r = ConstantOfShape <value = float[1] {0.02}> (rshape)
        one = Constant <value_ints = [1]> ()
        i = Constant <value_ints = [0]> ()
        s = Shape (x)
        n = Gather (s, i)
        five = Constant <value_ints = [5]> ()
        hshape = Concat <axis = 0> (one, n, five)
        h = ConstantOfShape <value = float[1] {0.0}> (hshape)
        y = LSTM <hidden_size = 5> (steps, w, r, , , h, h)""",
    "no states": """
        shape = Constant <value_ints = [0, 4, 36]> ()
        rows = Reshape (x, shape)
        steps = Transpose <perm = [1, 0, 2]> (rows)
        w = ConstantOfShape <value = float[1] {0.01}> (wshape)
        r = ConstantOfShape <value = float[1] {0.02}> (rshape)
        y = LSTM <hidden_size = 5> (steps, w, r)""",
}
# The evaluator of onnx 1.23 counts channels by the length of the batch.
WRONG_IN_REFERENCE = {"beside its channels"}
WEIGHTS = "<int64[3] wshape = {1, 20, 36}, int64[3] rshape = {1, 20, 5}>"


def model(nodes: str, inputs: str = "float[n, 4, 6, 6] x"):
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> '
        f"open ({inputs}) => (float[] y) {WEIGHTS} {{ {nodes} }}"
    )
    proto = parser.parse_model(text)
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_of_any_length_goes_through_one_graph(kind):
    proto = model(BATCHES[kind])
    m = rg.from_onnx(proto)
    rng = np.random.default_rng(0)
    sizes = []
    for n in (2, 5, 1, 3):
        x = rng.normal(size=(n, 4, 6, 6)).astype("f4")
        expected = rg.from_onnx(proto, shapes={"x": x.shape})(x=x)["y"].value
        if kind not in WRONG_IN_REFERENCE:
            (reference,) = ReferenceEvaluator(proto).run(["y"], {"x": x})
            np.testing.assert_allclose(expected, reference, rtol=1e-5, atol=1e-5)
        m.inputs["x"].set(x)
        found = m.outputs["y"].value
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        sizes.append(len(m.graph))
    assert len(set(sizes)) == 1


@pytest.mark.parametrize(
    "kind", ["a view of rows", "repeated", "a token for each sample", "halves"]
)
def test_gradients_pass_through_shapes_of_open_lengths(kind):
    m = rg.from_onnx(model(BATCHES[kind]))
    x, y = m.inputs["x"], m.outputs["y"]
    slope = rg.grad((y * y).sum(), x)
    for n in (3, 1):
        value = np.random.default_rng(n).normal(size=(n, 4, 6, 6)).astype("f4")
        step = np.zeros_like(value)
        step[-1, 2, 3, 4] = 1e-2
        m(x=value)
        found = slope.value[-1, 2, 3, 4]
        up, down = ((m(x=value + s)["y"].value.astype("f8") ** 2).sum() for s in (step, -step))
        np.testing.assert_allclose(found, (up - down) / 2e-2, rtol=2e-2, atol=2e-2)


def test_two_inputs_may_share_an_open_length_and_a_mask_may_have_it_twice():
    proto = model(
        """s = Shape <start = 0, end = 1> (a)
        shape = Concat <axis = 0> (s, s)
        ones = ConstantOfShape <value = float[1] {1.0}> (shape)
        mask = Trilu <upper = 0> (ones)
        t = Transpose <perm = [1, 0]> (b)
        z = MatMul (a, t)
        y = Mul (z, mask)""",
        "float[t, 3] a, float[t, 3] b",
    )
    m = rg.from_onnx(proto)
    for n in (4, 1, 6):
        a, b = np.random.default_rng(n).normal(size=(2, n, 3)).astype("f4")
        np.testing.assert_allclose(m(a=a, b=b)["y"].value, np.tril(a @ b.T), rtol=1e-5)


def test_numbers_that_hold_for_long_batches_only_are_asked_for():
    proto = model(
        """s = Shape <start = 0, end = 1> (x)
        three = Constant <value_ints = [3]> ()
        least = Min (s, three)
        zeros = ConstantOfShape <value = float[1] {0.0}> (least)
        m = ReduceMean <axes = [0, 1, 2, 3], keepdims = 0> (x)
        y = Add (zeros, m)"""
    )
    with pytest.raises(UnknownLengthError, match="'least' decides about the shape") as caught:
        rg.from_onnx(proto)
    assert caught.value.needs == ("x",)
    m = rg.from_onnx(proto, shapes={"x": (2, 4, 6, 6)})
    assert m(x=np.ones((2, 4, 6, 6)))["y"].shape == (2,)


def test_params_may_be_called_as_nodes_without_a_name_are():
    g = rg.Graph()
    with g:
        x = g.input(np.ones((2, 3)), name="x", shape=(None, 3))
        for _ in range(4):
            x = x * g.const(np.arange(1.0, 4.0))
    proto = rg.to_onnx({"y": x})
    names = {t.name for t in proto.graph.initializer}
    m = rg.from_onnx(proto)
    assert set(m.params) == names
    np.testing.assert_array_equal(m(x=np.ones((1, 3)))["y"].value, np.arange(1.0, 4.0)[None] ** 4)
