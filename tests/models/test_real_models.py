"""Models that packages ship as data, beside onnxruntime, also after one input changed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg

# Where a model is, the shape of its input, and the limit of random integers, or 0 for floats.
MODELS = [
    ("magika", "models/standard_v3_3/model.onnx", (1, 2048), 256),
    ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), 0),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 192), 0),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", (1, 3, 64, 96), 0),
]


@pytest.mark.parametrize(
    ("package", "place", "shape", "limit"), MODELS, ids=[Path(m[1]).stem for m in MODELS]
)
def test_a_real_model_equals_onnxruntime(
    package: str, place: str, shape: tuple[int, ...], limit: int
) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    path = Path(found.origin).parent / place
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (name,) = [i.name for i in session.get_inputs()]
    rng = np.random.default_rng(0)
    value = (
        rng.integers(0, limit, shape).astype("i4") if limit else rng.normal(size=shape).astype("f4")
    )
    m = rg.from_onnx(path, shapes={name: shape})
    size = len(m.graph)
    for _ in range(2):
        outputs = m(**{name: value})
        for one, expected in zip(
            session.get_outputs(), session.run(None, {name: value}), strict=True
        ):
            np.testing.assert_allclose(outputs[one.name].value, expected, atol=2e-4)
        value = value.copy()
        value[..., -1] += 1
    assert len(m.graph) == size
