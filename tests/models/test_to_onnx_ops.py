"""Each op that has a form in ONNX, beside other engines: in float32 and float64, where both have kernels."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

pytest.importorskip("onnx")

from reactgrad.models import OpError
from tests.models.runs import agree


class Operands:
    """Inputs of one dtype, made when they are asked for."""

    def __init__(self, dtype):
        self.graph = rg.Graph()
        self.dtype = dtype
        self.rng = np.random.default_rng(7)
        self.count = 0

    def __call__(self, *shape, low=0.0, high=0.0):
        """Return an input of normal numbers, or of uniform ones between two."""
        normal = low == high
        numbers = self.rng.normal(size=shape) if normal else self.rng.uniform(low, high, size=shape)
        self.count += 1
        return self.graph.input(np.asarray(numbers, self.dtype), name=f"x{self.count}")

    def ints(self, *values, dtype="i8"):
        self.count += 1
        return self.graph.input(np.array(values, dtype), name=f"x{self.count}")


# fmt: off
UNARY = [
    "absolute", "sign", "floor", "ceil", "exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "sigmoid", "relu", "erf", "erfc", "norm_cdf", "norm_pdf", "square", "negative", "reciprocal", "trunc",
    "rint", "cbrt", "deg2rad", "silu", "mish", "gelu", "log_sigmoid", "softplus", "elu", "celu", "selu", "leaky_relu",
    "hardtanh", "relu6", "hardsigmoid", "hardswish", "softshrink", "hardshrink", "tanhshrink", "softsign", "isnan",
    "isfinite", "isinf", "softmax", "log_softmax", "softmin", "glu", "flip", "ravel", "cumsum", "all", "any", "max",
    "min", "sum", "mean", "prod", "var", "std", "ptp", "argmax", "argmin", "count_nonzero", "logsumexp", "norm", "sort",
    "tril", "triu", "diagonal", "trace", "transpose", "fliplr", "rot90", "nansum", "nanmean", "zeros_like", "diff",
]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "arccosh"]
INSIDE = ["arcsin", "arccos", "arctanh"]
BINARY = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "arctan2", "logaddexp", "floor_divide",
    "remainder", "fmod", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "heaviside", "mse_loss", "l1_loss", "huber_loss", "outer", "vecdot",
    "kron", "isclose", "cosine_similarity",
]
CASES = {
    **{name: (lambda x, f=name: getattr(rg, f)(x(3, 4))) for name in UNARY},
    **{name: (lambda x, f=name: getattr(rg, f)(x(3, 4, low=1.1, high=3))) for name in POSITIVE},
    **{name: (lambda x, f=name: getattr(rg, f)(x(3, 4, low=-0.9, high=0.9))) for name in INSIDE},
    **{name: (lambda x, f=name: getattr(rg, f)(x(3, 4), x(3, 4))) for name in BINARY},
    "power": lambda x: x(3, low=0.5, high=2) ** x(4, 3),
    "broadcast": lambda x: x(3, 1) * x(4) + 2.0,
    "numbers": lambda x: (3.0 - x(3)) / 2 + x(3) // 2 - x(3) % 3,
    "where": lambda x: rg.where(x(3, 4) > 0, x(4), 1.0),
    "clip": lambda x: rg.clip(x(3, 4), -0.5, x(4)),
    "matmul": lambda x: x(2, 3, 4) @ x(4, 5),
    "matvec": lambda x: x(3, 4) @ x(4),
    "linear": lambda x: rg.linear(x(2, 3), x(3, 4), x(4)),
    "einsum": lambda x: rg.einsum("ij,kj->ik", x(3, 4), x(2, 4)),
    "tensordot": lambda x: rg.tensordot(x(3, 4), x(4, 2), axes=1),
    "cross": lambda x: rg.cross(x(4, 3), x(4, 3)),
    "several axes": lambda x: rg.sum(x(2, 3, 4), axis=(0, -1), keepdims=True),
    "softmax of axes": lambda x: rg.softmax(x(2, 3, 4), axis=(1, 2)),
    "concatenate": lambda x: rg.concatenate([x(2, 3), x(1, 3)]),
    "stack": lambda x: rg.stack([x(2, 3), x(2, 3)], axis=-1),
    "block": lambda x: rg.block([[x(2, 3), x(2, 1)], [x(1, 4)]]),
    "split": lambda x: sum(p.sum() * (i + 1) for i, p in enumerate(rg.split(x(5, 2), [1, 3]))),
    "array_split": lambda x: rg.array_split(x(5), 2)[1],
    "unbind": lambda x: rg.unbind(x(2, 3), axis=1)[2],
    "slices": lambda x: x(5, 6, 2)[1:-1, ::-2, None, -1],
    "ellipsis": lambda x: x(2, 3, 4)[..., 1:, None],
    "rows": lambda x: x(5, 3)[np.array([[0, -1], [2, 2]])],
    "rows by a node": lambda x: x(5, 3)[x.ints(0, -1, 2)],
    "pairs": lambda x: x(4, 5, 2)[[0, 2, -1], :, [1, 0, 1]],
    "points": lambda x: x(4, 5)[x.ints(0, 2), x.ints(-1, 1)],
    "mask": lambda x: x(3, 4)[np.eye(3, 4, dtype=bool)],
    "take": lambda x: rg.take(x(3, 4), x.ints(5, -1), axis=1, mode="wrap"),
    "take_along_axis": lambda x: rg.take_along_axis(x(3, 4), x.ints([0], [3], [-1]), axis=1),
    "embedding": lambda x: rg.embedding(x.ints([0, 2], [1, 1]), x(3, 4)),
    "one_hot": lambda x: rg.one_hot(x.ints(2, 0), 3),
    "reshape": lambda x: x(2, 6).reshape(3, -1),
    "squeeze": lambda x: rg.squeeze(rg.expand_dims(x(2, 3), (0, 2))),
    "broadcast_to": lambda x: rg.broadcast_to(x(3, 1), (2, 3, 4)),
    "moveaxis": lambda x: rg.moveaxis(x(2, 3, 4), 0, 2),
    "roll": lambda x: rg.roll(x(3, 4), (1, -1), (0, 1)),
    "tile": lambda x: rg.tile(x(2, 3), (2, 1, 2)),
    "repeat": lambda x: rg.repeat(x(2, 3), 2, axis=1),
    "pad": lambda x: rg.pad(x(2, 3), ((1, 0), (0, 2)), constant_values=2.5),
    "pad by reflection": lambda x: rg.pad(x(4, 5), 2, mode="reflect"),
    "windows": lambda x: rg.sliding_window_view(x(5, 4), (2, 3), axis=(0, 1)),
    "diag": lambda x: rg.diag(x(3)),
    "topk": lambda x: rg.topk(x(3, 5), 2)[0],
    "argsort": lambda x: rg.argsort(x(3, 5), axis=0),
    "choose": lambda x: rg.choose(x.ints(1, 0, 1), [x(3), x(3)]),
    "searchsorted": lambda x: rg.searchsorted(rg.cumsum(x(6, low=0, high=1)), x(2, 3)),
    "select": lambda x: rg.select([x(4) > 0, x(4) > 1], [x(4), x(4)], 0.5),
    "astype": lambda x: (x(3) > 0).astype("i4") + x.ints(1, 2, 3, dtype="i4"),
    "small integers": lambda x: x.ints(100, -3, dtype="i1") * x.ints(2, 5, dtype="i1") - 1,
    "unsigned": lambda x: -x.ints(3, 200, dtype="u1") // 7,
    "bits": lambda x: (x.ints(6, 5) & 3) | ~x.ints(1, 2) ^ 9,
    "booleans": lambda x: (x(3) > 0) & (x(3) < 1) | ~(x(3) > 2),
    "round": lambda x: rg.round(x(3, 4), 2),
    "softplus with a limit": lambda x: rg.softplus(x(3, 4) * 5.0, 2.0, 3.0),
    "gelu_tanh": lambda x: rg.gelu(x(3, 4), "tanh"),
    "prelu": lambda x: rg.prelu(x(2, 3, 4), x(3)),
    "layer_norm": lambda x: rg.layer_norm(x(2, 3, 4), x(4), x(4)),
    "group_norm": lambda x: rg.group_norm(x(2, 4, 3), 2, x(4), x(4)),
    "instance_norm": lambda x: rg.instance_norm(x(2, 3, 5)),
    "batch_norm": lambda x: rg.batch_norm(x(2, 3, 4), x(3), x(3, low=1, high=2), x(3), x(3)),
    "rms_norm": lambda x: rg.rms_norm(x(2, 5), x(5)),
    "attention": lambda x: rg.scaled_dot_product_attention(x(2, 3, 4), x(2, 5, 4), x(2, 5, 4)),
    "causal": lambda x: rg.scaled_dot_product_attention(*(x(2, 3, 4) for _ in range(3)), is_causal=True),
    "cross_entropy": lambda x: rg.cross_entropy(x(3, 5), x.ints(1, 0, 4), reduction="mean"),
    "binary_cross_entropy": lambda x: rg.binary_cross_entropy(x(3, low=0.1, high=0.9), x(3, low=0, high=1)),
    "interpolate": lambda x: rg.interpolate(x(1, 2, 4, 3), size=(7, 5), mode="bilinear"),
    "interpolate to the nearest": lambda x: rg.interpolate(x(1, 2, 4, 3), scale_factor=2.0),
    "adaptive_avg_pool2d": lambda x: rg.adaptive_avg_pool2d(x(1, 2, 5, 7), 3),
    "max_pool2d": lambda x: rg.max_pool2d(x(1, 2, 6, 7), 3, 2, 1, ceil_mode=True),
    "avg_pool2d": lambda x: rg.avg_pool2d(x(1, 2, 6, 7), 3, 2, 1, count_include_pad=False),
    "pixel_shuffle": lambda x: rg.pixel_shuffle(x(2, 8, 3, 2), 2),
    "pixel_unshuffle": lambda x: rg.pixel_unshuffle(x(2, 2, 4, 6), 2),
}
# In double precision onnxruntime has no kernels of these.
SINGLE = {
    "lstm": lambda x: rg.concatenate([rg.lstm(x(5, 2, 3), (x(2, 4), x(2, 4)), x(16, 3), x(16, 4), x(16), x(16))[0],
                                      rg.lstm(x(5, 2, 3), None, x(16, 3), x(16, 4), reverse=True)[1][1][None]]),
    "gru": lambda x: rg.gru(x(5, 2, 3), None, x(12, 3), x(12, 4), x(12), x(12))[0],
    "conv2d": lambda x: rg.conv2d(x(2, 4, 6, 5), x(6, 2, 3, 3), x(6), stride=2, padding=1, groups=2),
    "conv1d": lambda x: rg.conv1d(x(2, 3, 8), x(4, 3, 3), dilation=2, padding="same"),
    "conv_transpose2d": lambda x: rg.conv_transpose2d(x(1, 3, 4, 5), x(3, 2, 3, 3), None, 2, 1, output_padding=1),
    "rnn": lambda x: rg.rnn(x(5, 2, 3), None, x(4, 3), x(4, 4))[0],
    "det": lambda x: rg.linalg.det(x(2, 3, 3)),
}
# fmt: on


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CASES)
def test_an_op_gives_the_same_elsewhere(name, dtype):
    x = Operands(dtype)
    # Of the places of TopK the reader does not know the shape before they are computed.
    agree({"y": CASES[name](x)}, again=name != "topk")


@pytest.mark.parametrize("name", SINGLE)
def test_an_op_of_single_precision(name):
    x = Operands("f4")
    agree({"y": SINGLE[name](x)})
    with pytest.raises(OpError, match=r"in float64 \([12]x\)"):
        rg.to_onnx({"y": SINGLE[name](Operands("f8"))})


SMOOTH = [
    "tanh",
    "sigmoid",
    "exp",
    "log1p",
    "sqrt",
    "square",
    "relu",
    "erf",
    "arctan",
    "softmax",
    "log_softmax",
    "sin",
]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_an_op(name):
    x = Operands("f8")
    one = x(3, 4, low=0.2, high=0.8)
    y = getattr(rg, name)(one)
    agree({"slope": rg.grad((y * y).sum(), one)})


def test_gradients_of_parts():
    x = Operands("f8")
    table, numbers = x(5, 3), x.ints(0, 2, 2)
    loss = (
        (table[numbers] ** 2).sum()
        + (table[1:4, ::-2] ** 3).sum()
        + table[0, 1] * table[[1, 1], [0, 2]].sum()
    )
    agree({"slope": rg.grad(loss, table)})


def test_gradients_of_a_network():
    x = Operands("f4")
    images, kernel, bias = x(2, 2, 6, 6), x(3, 2, 3, 3), x(3)
    hidden = rg.avg_pool2d(rg.relu(rg.conv2d(images, kernel, bias, padding=1, stride=2)), 3)
    loss = rg.layer_norm(hidden.reshape(2, -1)).sum(axis=0)[0] + rg.logsumexp(hidden)
    agree({f"d{i}": rg.grad(loss, one) for i, one in enumerate((images, kernel, bias))})
