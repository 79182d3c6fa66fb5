"""B26: imported ONNX models, beside onnxruntime on one thread: a full run, and a run after a part of the input changed.

The models are those that packages ship as data: ``magika`` finds the type of a file by its bytes, ``rapidocr`` reads a
line of text. Where a package is absent, as in tests, a small network is written and read back. After a change of one of
eight inputs, each of which has a graph of its own, all results are read; the peer runs all.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import installed, load

# The package of a model, the place in it, the name and the shape of its input, and the limit of integers, 0 for floats.
MODELS = {
    "text classifier": ("magika", "models/standard_v3_3/model.onnx", "bytes", (1, 2048), 256),
    "OCR recogniser": (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        "x",
        (1, 3, 48, 192),
        0,
    ),
}

LINES = 8


class Imported:
    """A model as bytes, with the form of its input."""

    def __init__(self, name: str, setting: Setting) -> None:
        package, place, self.name, self.shape, self.limit = MODELS[name]
        found = None if setting.small else find_spec(package)
        if found is not None and found.origin is not None:
            self.content = (Path(found.origin).parent / place).read_bytes()
        else:
            self.shape, self.limit = ((1, 6), 0) if len(self.shape) == 2 else ((1, 2, 4, 6), 0)
            self.name, self.content = "x", _small(self.shape)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return an input."""
        if self.limit:
            return rng.integers(0, self.limit, self.shape).astype("i4")
        return rng.normal(size=self.shape).astype("f4")

    def read(self) -> Any:
        """Return the model as a live graph."""
        return rg.from_onnx(self.content, shapes={self.name: self.shape})

    def session(self) -> Any:
        """Return the same for the peer, on one thread."""
        runtime = load("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return runtime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])


def _small(shape: tuple[int, ...]) -> bytes:
    """Return a small network as bytes of ONNX."""
    with rg.Graph() as g:
        if len(shape) == 2:
            net = rg.nn.Sequential(rg.nn.Linear(shape[1], 5, rng=0), rg.nn.Softmax(-1))
        else:
            layers = [rg.nn.Conv2d(shape[1], 3, 3, padding=1, rng=0), rg.nn.ReLU(), rg.nn.Flatten()]
            net = rg.nn.Sequential(*layers, rg.nn.Linear(3 * shape[2] * shape[3], 4, rng=0))
        net.to("float32").eval()
        y = net(g.input(np.zeros(shape, "f4"), name="x"))
    return rg.to_onnx({"y": y}).SerializeToString()


def full(model: Imported) -> Step:
    """Return a run of our model on another input."""
    m = model.read()

    def step(given: Any) -> Any:
        return [one.value for one in m(**{model.name: given}).values()]

    return step


def full_by_runtime(model: Imported) -> Step:
    """Return a run of onnxruntime."""
    session = model.session()
    return lambda given: session.run(None, {model.name: given})


def one_of_many(model: Imported, lines: int) -> Step:
    """Return a step that changes one of several lines, and reads what all of them give."""
    read = [model.read() for _ in range(lines)]
    for m in read:
        m.inputs[model.name].set(np.zeros(model.shape, "i4" if model.limit else "f4"))

    def step(given: Any) -> Any:
        at, value = given
        read[at].inputs[model.name].set(value)
        return [one.value for m in read for one in m.outputs.values()]

    return step


def one_of_many_by_runtime(model: Imported, lines: int) -> Step:
    """Return the same by a run of all lines, which the caller would need where it does not know what changed."""
    session = model.session()
    held = [np.zeros(model.shape, "i4" if model.limit else "f4") for _ in range(lines)]

    def step(given: Any) -> Any:
        at, value = given
        held[at] = value
        return [one for line in held for one in session.run(None, {model.name: line})]

    return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    if not installed("onnx"):
        return []
    found: list[Case] = []
    lines = setting.size(7 if setting.permuted else LINES, 2)
    for name in MODELS:
        model = Imported(name, setting)
        peer = Side(
            "onnxruntime",
            lambda model=model: full_by_runtime(model),
            needs="onnxruntime",
            apart=True,
        )
        found.append(
            Contest(
                f"{name}, full run",
                model.draw,
                Side("reactgrad", lambda model=model: full(model)),
                (Peer(peer, at_most(3.0)),),
                unit="run",
                rtol=1e-3,
                atol=2e-4,
            )
        )
        peer = Side(
            "onnxruntime, all",
            lambda model=model: one_of_many_by_runtime(model, lines),
            needs="onnxruntime",
            apart=True,
        )
        found.append(
            Contest(
                f"{name}, one of {lines} inputs changed",
                lambda rng, model=model: (int(rng.integers(lines)), model.draw(rng)),
                Side("reactgrad", lambda model=model: one_of_many(model, lines)),
                (Peer(peer, faster(1.0)),),
                unit="change",
                rtol=1e-3,
                atol=2e-4,
            )
        )
    return found


WORKLOAD = Workload("B26", "imported models", cases)


def test_b26(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
