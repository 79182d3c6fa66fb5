"""Convolutions, pooling, norms, attention and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models.export._layout import reshaped
from reactgrad.models.export._node import Node, writes
from reactgrad.models.export._reductions import reduced


def _window(attrs: Any) -> dict[str, Any]:
    """Return the attributes of a convolution in the standard's words."""
    strides, padding, dilations, groups = attrs
    pads = [p for p, _ in padding] + [p for _, p in padding]
    return {"strides": list(strides), "pads": pads, "dilations": list(dilations), "group": groups}


@writes("conv", "conv_bias")
def _conv(n: Node) -> str:
    kernel = n.shape_of(1)
    x, n_space = n.x(0, n.dtype), len(kernel) - 2
    shape = n.shape_of(0)
    if len(shape) != n_space + 2:
        x = reshaped(n, x, [-1, *shape[-n_space - 1 :]])
    rest = [n.x(i, n.dtype) for i in range(1, len(n))]
    y = n.emit("Conv", x, *rest, kernel_shape=list(kernel[2:]), **_window(n.attrs))
    return y if len(shape) == n_space + 2 else reshaped(n, y, n.shape)


@writes("conv_transpose", "conv_transpose_like")
def _conv_transpose(n: Node) -> str:
    kernel, strides, dilations = n.shape_of(1), n.attrs[0], n.attrs[2]
    n_space = len(kernel) - 2
    shape = n.shape_of(0)
    if len(shape) != n_space + 2:
        n.refuse("without one axis of samples")
    window = _window(n.attrs)
    grown = [
        (m - 1) * s + (k - 1) * d + 1
        for m, s, k, d in zip(shape[2:], strides, kernel[2:], dilations, strict=True)
    ]
    # The padding behind is what is left to the shape of the result.
    before = window["pads"][:n_space]
    after = [g - b - m for g, b, m in zip(grown, before, n.shape[2:], strict=True)]
    window["pads"] = before + [max(a, 0) for a in after]
    y = n.emit(
        "ConvTranspose", n.x(0, n.dtype), n.x(1, n.dtype), kernel_shape=list(kernel[2:]), **window
    )
    if min(after) < 0:
        pads = [0] * (len(shape) + 2) + [max(-a, 0) for a in after]
        y = n.emit("Pad", y, n.ints(pads))
    return y


@writes("conv_weight", "conv_weight_like")
def _conv_weight(n: Node) -> str:
    strides, padding, dilations, groups = n.attrs[-4:]
    kernel = n.shape
    x, g = n.x(0, n.dtype), n.x(1, n.dtype)
    shape = n.shape_of(0)
    if groups != 1 or len(shape) != len(kernel):
        n.refuse("in groups")
    flat = [1, 0, *range(2, len(kernel))]
    # Channels as samples: the results are a kernel, whose steps and gaps change places.
    y = n.emit(
        "Conv",
        n.emit("Transpose", x, perm=flat),
        n.emit("Transpose", g, perm=flat),
        strides=list(dilations),
        dilations=list(strides),
        pads=[p for p, _ in padding] + [p for _, p in padding],
    )
    y = n.emit("Transpose", y, perm=flat)
    rows = [[0] * len(kernel[2:]), list(kernel[2:]), list(range(2, len(kernel)))]
    return n.emit("Slice", y, *map(n.ints, rows))


@writes("max_pool")
def _max_pool(n: Node) -> str:
    rules = n.attrs[0]
    shape = n.shape_of(0)
    if any(rule is None or rule[0] != "window" for rule in rules):
        n.refuse("of parts of several sizes")
    k = len(rules)
    x = n.x(0, n.dtype)
    x = x if len(shape) == k + 2 else reshaped(n, x, [1, -1, *shape[-k:]])
    y = n.emit(
        "MaxPool",
        x,
        kernel_shape=[r[1] for r in rules],
        strides=[r[2] for r in rules],
        pads=[r[3] for r in rules] * 2,
        dilations=[r[4] for r in rules],
        ceil_mode=int(any(r[5] for r in rules)),
    )
    return y if len(shape) == k + 2 else reshaped(n, y, n.shape)


@writes("resample")
def _resample(n: Node) -> str:
    rules = n.attrs[0]
    x = n.x(0, n.dtype)
    shape = n.shape_of(0)
    kinds = {rule and rule[0] for rule in rules}
    if (
        kinds <= {"padded", "inside"}
        and not any(r[5] or r[4] != 1 for r in rules)
        and n.dtype != "f8"
    ):
        k = len(rules)
        flat = x if len(shape) == k + 2 else reshaped(n, x, [1, -1, *shape[-k:]])
        y = n.emit(
            "AveragePool",
            flat,
            kernel_shape=[r[1] for r in rules],
            strides=[r[2] for r in rules],
            pads=[r[3] for r in rules] * 2,
            count_include_pad=int(rules[0][0] == "padded"),
        )
        if len(kinds) == 1:
            return y if len(shape) == k + 2 else reshaped(n, y, n.shape)
    for i, rule in enumerate(rules):
        if rule is not None:
            axis = len(shape) - len(rules) + i
            x = _mapped(n, x, axis, _matrix(rule, shape[axis], n.dtype))
    return x


@writes("resample_back")
def _resample_back(n: Node) -> str:
    rules, x = n.attrs[0], n.x(0, n.dtype)
    for i, rule in enumerate(rules):
        if rule is not None:
            axis = len(n.shape) - len(rules) + i
            x = _mapped(n, x, axis, _matrix(rule, n.shape[axis], n.dtype).T)
    return x


def _matrix(rule: Any, length: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return the map of a rule along an axis as a matrix, by applying it to unit vectors."""
    import networkx as nx

    network = nx.MultiDiGraph()
    network.add_node("x", op="input", value=np.eye(length, dtype=dtype))
    network.add_node("y", op="resample", attrs=((rule,),))
    network.add_edge("x", "y", position=0)
    return rg.from_networkx(network)["y"].value


def _mapped(n: Node, x: str, axis: int, matrix: np.ndarray[Any, Any]) -> str:
    ndim = len(n.shape)
    order = [*(i for i in range(ndim) if i != axis), axis]
    if axis != ndim - 1:
        x = n.emit("Transpose", x, perm=order)
    x = n.emit("MatMul", x, n.const(np.ascontiguousarray(matrix)))
    return x if axis == ndim - 1 else n.emit("Transpose", x, perm=np.argsort(order).tolist())


# --- norms ---------------------------------------------------------------------------------------


def _standardized(n: Node, x: str, axes: list[int], eps: float) -> tuple[str, str]:
    """Return the rows of a value with mean 0 and variance 1, and their deviations."""
    apart = n.emit("Sub", x, reduced(n, "ReduceMean", x, axes, True))
    variance = reduced(n, "ReduceMean", n.emit("Mul", apart, apart), axes, True)
    std = n.emit("Sqrt", n.emit("Add", variance, n.const(eps, n.dtype)))
    return n.emit("Div", apart, std), std


@writes("standardize_kept")
def _kept(n: Node) -> tuple[str, str]:
    axis, eps = n.attrs
    return _standardized(n, n.x(0, n.dtype), n.axes(axis), eps)


@writes("standardized_rows")
def _rows(n: Node) -> str:
    return n.values[0].written[0]


@writes("row_deviations")
def _deviations(n: Node) -> str:
    return n.values[0].written[1]


@writes("standardize")
def _standardize(n: Node) -> str:
    return _standardized(n, n.x(0, n.dtype), n.axes(n.attrs[0]), n.attrs[1])[0]


@writes("standardize_back")
def _standardize_back(n: Node) -> str:
    g, y, std = n.all(n.dtype)
    axes = n.axes(n.attrs[0])
    rest = n.emit("Sub", g, reduced(n, "ReduceMean", g, axes, True))
    share = reduced(n, "ReduceMean", n.emit("Mul", g, y), axes, True)
    return n.emit("Div", n.emit("Sub", rest, n.emit("Mul", y, share)), std)


@writes("root_mean_square")
def _root_mean_square(n: Node) -> str:
    axis, eps = n.attrs
    x = n.x(0, n.dtype)
    mean = reduced(n, "ReduceMean", n.emit("Mul", x, x), n.axes(axis), True)
    return n.emit("Sqrt", n.emit("Add", mean, n.const(eps, n.dtype)))


# --- attention, labels, pixels -------------------------------------------------------------------


@writes("over_root_length")
def _over_root_length(n: Node) -> str:
    length = n.shape_of(0)[-1]
    return n.emit("Div", n.x(0, n.dtype), n.const(math.sqrt(length), n.dtype))


@writes("causal")
def _causal(n: Node) -> str:
    x = n.x(0, n.dtype)
    below = n.emit("Trilu", n.emit("Expand", n.const(True), n.ints(n.shape)), upper=0)
    return n.emit("Where", below, x, n.const(-np.inf, n.dtype), of=1)


@writes("pick")
def _pick(n: Node) -> str:
    axis = n.axes(n.attrs[0])[0]
    numbers = n.emit("Unsqueeze", n.x(1, "i8"), n.ints([axis]))
    return n.emit("Squeeze", n.emit("GatherElements", n[0], numbers, axis=axis), n.ints([axis]))


@writes("place")
def _place(n: Node) -> str:
    axis = n.axes(n.attrs[0], n.rank(2))[0]
    zeros = n.emit("Expand", n.const(0, n.dtype), n.ints(n.shape))
    rows = n.ints([axis])
    numbers, values = (
        n.emit("Unsqueeze", n.x(1, "i8"), rows),
        n.emit("Unsqueeze", n.x(0, n.dtype), rows),
    )
    return n.emit("ScatterElements", zeros, numbers, values, axis=axis)


@writes("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(n: Node) -> str:
    r, shape = n.attrs[0], n.shape_of(0)
    c, h, w = shape[-3:]
    lead = [-1] if len(shape) == 4 else list(shape[:-3])
    k = len(lead)
    if n.op == "pixel_shuffle":
        parts, order = [c // (r * r), r, r, h, w], [0, 3, 1, 4, 2]
        whole = [c // (r * r), h * r, w * r]
    else:
        parts, order = [c, h // r, r, w // r, r], [0, 2, 4, 1, 3]
        whole = [c * r * r, h // r, w // r]
    x = reshaped(n, n[0], [*lead, *parts])
    x = n.emit("Transpose", x, perm=[*range(k), *(k + i for i in order)])
    return reshaped(n, x, [*lead, *whole])


# --- recurrent layers ----------------------------------------------------------------------------

# PyTorch's gates by the standard's order: of four (i, f, g, o) as (i, o, f, g), of three (r, z, n) as (z, r, n).
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}


@writes("lstm_tape", "gru_tape", "rnn_tape")
def _tape(n: Node) -> tuple[str, str]:
    """Write the layer as a node whose input is what the weights of the input have made of it already."""
    kind = n.op.partition("_")[0]
    x, w = n.values[0].written, n.values[3 if kind == "lstm" else 2]
    size, gates = w.spec.shape[1], GATES[kind]
    dtype = n.dtype_of(0)
    rows = np.concatenate([np.arange(g * size, (g + 1) * size) for g in gates])
    weight = n.const(np.eye(len(gates) * size, dtype=dtype)[rows][None])
    place = n.const(rows)
    again = n.emit("Unsqueeze", n.emit("Gather", w.written, place, axis=0), n.ints([0]))
    bias, extra = None, {"hidden_size": size}
    if kind == "gru":
        extra["linear_before_reset"] = 1
        if len(n) > 3:
            zeros = n.const(np.zeros((1, 3 * size), dtype))
            own = n.emit("Unsqueeze", n.emit("Gather", n[3], place, axis=0), n.ints([0]))
            bias = n.emit("Concat", zeros, own, axis=1)
    states = [
        n.emit("Unsqueeze", n.x(i, dtype), n.ints([0]))
        for i in ((1, 2) if kind == "lstm" else (1,))
    ]
    options: dict[str, Any] = dict(extra)
    if kind == "rnn":
        options["activations"] = ["Relu" if n.attrs[0] == "relu" else "Tanh"]
    op = kind.upper()
    found = n.emit(
        op,
        n.cast(x, dtype),
        weight,
        again,
        bias,
        None,
        *states,
        outputs=3 if kind == "lstm" else 2,
        **options,
    )
    return n.emit("Squeeze", found[0], n.ints([1])), n.emit("Squeeze", found[-1], n.ints([0]))


@writes("lstm_states", "gru_states", "rnn_states")
def _states(n: Node) -> str:
    return n.values[0].written[0]


@writes("lstm_cell")
def _cell(n: Node) -> str:
    return n.values[0].written[1]


@writes("recurrent_zeros")
def _zeros(n: Node) -> str:
    return n.emit("Expand", n.const(0, n.dtype), n.ints(n.shape))
