"""Exported models run by other engines: the evaluator of the onnx package, onnxruntime where it is, and ours."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from reactgrad.models import UnknownLengthError  # noqa: E402

TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-9}


def runtime():
    """Return onnxruntime, or ``None``."""
    try:
        import onnxruntime
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


def alike(name, found, expected):
    expected = np.asarray(expected)
    found = np.asarray(found)
    assert found.dtype == expected.dtype, (name, found.dtype, expected.dtype)
    assert found.shape == expected.shape, (name, found.shape, expected.shape)
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)


def agree(outputs, *, inputs=None, reference=True, again=True, **options):
    """Export outputs, and compare their values with those of each engine; return the model."""
    model = rg.to_onnx(outputs, inputs=inputs, **options)
    graph = next(iter(outputs.values())).graph
    names = [v.name for v in model.graph.input]
    leaves = inputs or {name: graph[name] for name in names}
    feeds = {name: np.asarray(leaves[name].value) for name in names}
    expected = {name: var.value for name, var in outputs.items()}
    data = model.SerializeToString()
    if reference:
        found = ReferenceEvaluator(model).run(list(outputs), feeds)
        for name, value in zip(outputs, found, strict=True):
            alike(f"reference: {name}", value, expected[name])
    if (ort := runtime()) is not None:
        session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
        for name, value in zip(outputs, session.run(list(outputs), feeds), strict=True):
            alike(f"onnxruntime: {name}", value, expected[name])
    if again:
        try:
            m = rg.from_onnx(data)
        except UnknownLengthError:
            m = rg.from_onnx(data, shapes={name: one.shape for name, one in feeds.items()})
        for name, var in m(**feeds).items():
            alike(f"from_onnx: {name}", var.value, expected[name])
    return model
