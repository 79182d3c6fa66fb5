"""Small models of ONNX, and damaged copies of their files: bits, bytes, ends, lengths and dims.

``python -m tests.models.mutants 2000`` tries so many of them, each in a process of its own whose memory and time are
limited, and prints those that do not end as they should.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models import ModelError

MEMORY, SECONDS = 200 << 20, 2.0  # of one of them, beyond what the process has
HUGE = (1 << 40, (1 << 63) - 1, -1, 1 << 31, 1 << 20, 1 << 28, 0)
RESULTS = ("computed", "loaded", "refused", "stopped by a node")


def models() -> dict[str, bytes]:
    """Return files of models, by name."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)

    def tensor(name: str, value: Any) -> Any:
        return numpy_helper.from_array(np.asarray(value), name)

    def weights(name: str, *shape: int) -> Any:
        return tensor(name, rng.normal(size=shape).astype(np.float32))

    def info(name: str, *shape: Any, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, list(shape))

    def model(nodes: list[Any], inputs: list[Any], initialisers: list[Any] = []) -> bytes:  # noqa: B006, read only
        outputs = [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output if name]
        graph = helper.make_graph(nodes, "g", inputs, outputs, initialisers)
        opsets = [helper.make_opsetid("", 18)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    node = helper.make_node
    scalar, flag = TensorProto.INT64, TensorProto.BOOL
    then, other = (
        helper.make_graph([node(op, ["x"], ["b"])], op, [], [info("b", 2, 3)])
        for op in ("Tanh", "Neg")
    )
    body = helper.make_graph(
        [
            node("Add", ["c", "x"], ["d"]),
            node("Identity", ["k"], ["l"]),
            node("Tanh", ["d"], ["s"]),
        ],
        "body",
        [info("i", kind=scalar), info("k", kind=flag), info("c", 2, 3)],
        [info("l", kind=flag), info("d", 2, 3), info("s", 2, 3)],
    )
    return {
        "layers": model(
            [
                node("Gemm", ["x", "w", "b"], ["h"], transB=1),
                node("Relu", ["h"], ["r"]),
                node("MatMul", ["r", "v"], ["o"]),
                node("Softmax", ["o"], ["y"], axis=-1),
            ],
            [info("x", "n", 3)],
            [weights("w", 4, 3), weights("b", 4), weights("v", 4, 2)],
        ),
        "convolution": model(
            [
                node(
                    "Conv",
                    ["x", "w"],
                    ["c"],
                    kernel_shape=[3, 3],
                    pads=[1, 1, 1, 1],
                    strides=[2, 2],
                ),
                node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2]),
                node("AveragePool", ["p"], ["q"], kernel_shape=[1, 2]),
                node("Flatten", ["q"], ["y"]),
            ],
            [info("x", 1, 2, 8, 8)],
            [weights("w", 3, 2, 3, 3)],
        ),
        "normal": model(
            [
                node("LayerNormalization", ["x", "w", "b"], ["h"], axis=-1),
                node("BatchNormalization", ["h", "w", "b", "b", "w2"], ["y"], epsilon=1e-3),
            ],
            [info("x", 2, 3)],
            [weights("w", 3), weights("b", 3), tensor("w2", np.ones(3, np.float32))],
        ),
        "recurrent": model(
            [node("LSTM", ["x", "w", "r"], ["y", "h"], hidden_size=2, direction="bidirectional")],
            [info("x", 3, 1, 2)],
            [weights("w", 2, 8, 2), weights("r", 2, 8, 2)],
        ),
        "shapes": model(
            [
                node("Reshape", ["x", "to"], ["a"]),
                node("Tile", ["a", "times"], ["t"]),
                node("Expand", ["t", "wide"], ["e"]),
                node("Transpose", ["e"], ["f"], perm=[1, 0, 2]),
                node("Pad", ["f", "pads"], ["g"]),
                node("Slice", ["g", "starts", "ends", "axes"], ["y"]),
            ],
            [info("x", 2, 3)],
            [
                tensor("to", np.array([3, -1])),
                tensor("times", np.array([1, 2])),
                tensor("wide", np.array([2, 3, 4])),
                tensor("pads", np.array([0, 1, 0, 0, 0, 2])),
                tensor("starts", np.array([0, -2])),
                tensor("ends", np.array([3, 9])),
                tensor("axes", np.array([0, 2])),
            ],
        ),
        "made": model(
            [
                node("ConstantOfShape", ["size"], ["z"], value=tensor("v", np.ones(1, np.float32))),
                node("Range", ["begin", "end", "by"], ["r"]),
                node("OneHot", ["r", "end", "pair"], ["h"], axis=0),
                node("EyeLike", ["h"], ["i"], dtype=1),
                node("MatMul", ["z", "i"], ["m"]),
                node("ReduceSum", ["m"], ["s"], keepdims=0),
                node("Add", ["x", "s"], ["y"]),
            ],
            [info("x", 2, 3)],
            [
                tensor("size", np.array([2, 5])),
                *(tensor(n, np.array(v)) for n, v in (("begin", 0), ("end", 5), ("by", 1))),
                tensor("pair", np.array([0.0, 1.0], np.float32)),
            ],
        ),
        "gathered": model(
            [
                node("Gather", ["table", "x"], ["g"], axis=0),
                node("TopK", ["g", "k"], ["t", "which"], axis=-1),
                node("ScatterElements", ["g", "places", "t"], ["s"], axis=-1),
                node("Concat", ["s", "g"], ["c"], axis=1),
                node("GatherND", ["c", "pairs"], ["y"]),
            ],
            [info("x", 4, kind=scalar)],
            [
                weights("table", 5, 3),
                tensor("k", np.array([2])),
                tensor("places", np.array([[0, 2]] * 4)),
                tensor("pairs", np.array([[0, 1], [3, 2]])),
            ],
        ),
        "control": model(
            [
                node("If", ["which"], ["a"], then_branch=then, else_branch=other),
                node("Loop", ["count", "", "a"], ["last", "y"], body=body),
            ],
            [info("x", 2, 3), info("which", kind=flag)],
            [tensor("count", np.array(3))],
        ),
        "resized": model(
            [
                node("Resize", ["x", "", "scales"], ["r"], mode="linear"),
                node("Resize", ["r", "", "", "sizes"], ["s"], mode="nearest"),
                node("DepthToSpace", ["s"], ["y"], blocksize=2),
            ],
            [info("x", 1, 4, 3, 3)],
            [
                tensor("scales", np.array([1, 1, 2, 1.5], np.float32)),
                tensor("sizes", np.array([1, 4, 5, 6])),
            ],
        ),
        "quantised": model(
            [
                node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("MatMulInteger", ["q", "w", "z"], ["i"]),
                node("Cast", ["i"], ["f"], to=1),
                node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                node("Mul", ["f", "d"], ["m"]),
                node("CumSum", ["m", "axis"], ["y"]),
            ],
            [info("x", 2, 3)],
            [
                tensor("s", np.float32(0.1)),
                tensor("z", np.uint8(3)),
                tensor("w", rng.integers(0, 9, (3, 3)).astype(np.uint8)),
                tensor("axis", np.array(1)),
            ],
        ),
    }


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with one to three kinds of damage."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 3)):
        # Half of the damage is to numbers, which leaves a file that can be parsed.
        kind, at = rng.integers(12), int(rng.integers(max(len(data), 1)))
        if kind == 0 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and data:
            data[at] = int(rng.integers(256))
        elif kind == 2 and not rng.integers(4):
            del data[at:]
        elif kind == 3:
            data[at:at] = rng.bytes(int(rng.integers(1, 5)))
        elif kind == 4:
            del data[at : at + int(rng.integers(1, 9))]
        elif kind == 5 and len(data) >= 8:
            data[at : at + 8] = int(rng.choice(HUGE)).to_bytes(8, "little", signed=True)
        else:
            data = bytearray(_huge_dims(bytes(data), rng))
    return bytes(data)


def _huge_dims(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the file with one number of its shapes, attributes or constants made huge or negative."""
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:
        return content
    value = int(rng.choice(HUGE))
    places: list[Any] = []
    for given in (*model.graph.input, *model.graph.value_info):
        places += [(dim, "dim_value", value) for dim in given.type.tensor_type.shape.dim]
    for node in model.graph.node:
        for one in node.attribute:
            places += [(one.ints, i, value) for i in range(len(one.ints))]
            places += [(one, "i", value)] if one.type == 2 else []
    for one in model.graph.initializer:
        places += [(one.dims, i, value) for i in range(len(one.dims))]
        if one.data_type == 7 and one.raw_data:
            array = np.frombuffer(one.raw_data[: len(one.raw_data) // 8 * 8], "<i8").copy()
            if array.size:
                array[int(rng.integers(array.size))] = value
                places.append((one, "raw_data", array.tobytes()))
    if not places:
        return content
    where, name, number = places[int(rng.integers(len(places)))]
    if isinstance(name, str):
        setattr(where, name, number)
    else:
        where[name] = number
    return model.SerializeToString()


def mutants(count: int) -> Iterator[tuple[str, int, bytes]]:
    """Return damaged files, with the name of the model and a number; the same ones each time."""
    known = list(models().items())
    for i in range(count):
        name, content = known[i % len(known)]
        yield name, i, mutant(content, np.random.default_rng(i))


def tried(content: bytes) -> str:
    """Load a file, feed its inputs and read its outputs; return one of ``RESULTS``, or raise what must not be."""
    try:
        model = rg.from_onnx(content)
    except ModelError:
        return "refused"
    try:
        for one in model.inputs.values():
            shape = tuple(2 if n is None else n for n in one.shape)
            if np.prod([max(float(n), 1.0) for n in shape]) > 1 << 16:
                return "loaded"
            one.set(np.ones(shape, one.dtype))
        for one in model.outputs.values():
            for var in one if isinstance(one, list) else [one]:
                if var is not None:
                    var.value
    except rg.ReactgradError:
        return "stopped by a node"
    return "computed"


def apart(content: bytes) -> str:
    """Return what becomes of a file in a process that has little memory and time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            with open("/proc/self/statm") as file:
                pages = int(file.read().split()[0])
            limit = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
            began = time.process_time()
            found = tried(content)
            spent = time.process_time() - began
            text = found if spent < SECONDS else f"{found} after {spent:.1f} s"
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-3:]
            places = " < ".join(f"{one.filename[-40:]}:{one.lineno}" for one in reversed(last))
            text = f"{type(error).__name__}: {str(error)[:200]} at {places}"
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read().decode()
    _, status = os.waitpid(child, 0)
    return text or f"died of signal {os.waitstatus_to_exitcode(status)}"


if __name__ == "__main__":
    for (
        content
    ) in models().values():  # what is imported and compiled once is no part of what is measured
        tried(content)
    first, last = (int(one) for one in (["0", *sys.argv[1:]])[-2:])
    counts: dict[str, int] = {}
    for name, i, content in mutants(last):
        if i < first:
            continue
        found = apart(content)
        counts[found if found in RESULTS else "WRONG"] = (
            counts.get(found if found in RESULTS else "WRONG", 0) + 1
        )
        if found not in RESULTS:
            print(name, i, found, flush=True)
    print(counts)
