"""Damaged files of ONNX load and compute, or end in one kind of error; more by ``python -m tests.models.mutants``."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.models import ModelError

onnx: Any = pytest.importorskip("onnx")

from tests.models.mutants import RESULTS, models, mutants, tried  # noqa: E402, needs onnx


@pytest.mark.parametrize("name", sorted(models()))
def test_models_compute_before_they_are_damaged(name: str) -> None:
    assert tried(models()[name]) == "computed"


@pytest.mark.slow
def test_damaged_files_end_in_one_kind_of_error_and_take_no_memory() -> None:
    for content in models().values():  # what is imported once does not count
        tried(content)
    found = set()
    tracemalloc.start()
    try:
        for name, i, content in mutants(60):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            found.add(result := tried(content))
            assert result in RESULTS, (name, i)
            assert tracemalloc.get_traced_memory()[1] - before < 200 << 20, (name, i)
    finally:
        tracemalloc.stop()
    assert {"computed", "refused"} <= found


def changed(name: str, change: Any) -> bytes:
    model = onnx.ModelProto.FromString(models()[name])
    change(model.graph)
    return model.SerializeToString()


def huge_input(graph: Any) -> None:
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 40


def huge_batch(graph: Any) -> None:
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1 << 28


def huge_constant(graph: Any) -> None:
    size = next(one for one in graph.initializer if one.name == "size")
    size.raw_data = (1 << 12).to_bytes(8, "little") + (1 << 13).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("control", huge_input, r"The input 'x' is declared with shape \(1099511627776, 3\)"),
        ("recurrent", huge_batch, "begins with 268435456 states of 2 numbers"),
        ("made", huge_constant, "at most 16777216 elements are made of a few numbers"),
    ],
)
def test_what_is_declared_too_large_is_refused(name: str, change: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        rg.from_onnx(changed(name, change))


def test_a_name_that_is_no_text_is_refused() -> None:
    content = models()["layers"].replace(b"Softmax", b"Soft\xffax")
    with pytest.raises(ModelError, match=r"b'Soft\\xffax', which is no text"):
        rg.from_onnx(content)
