"""From a draft to a file of ONNX that the package's checker accepts, and that appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from reactgrad.models._errors import ModelError
from reactgrad.models._tensors import DTYPES
from reactgrad.models.export._draft import Draft, Step

# Protobuf messages end at 2 GiB; larger weights go to a file of their own.
MOST_BYTES: Final = 2**31 - 2**20
# Arrays of at least so many bytes go there; smaller ones may decide about shapes, which checkers look at.
OUTSIDE: Final = 1024
NUMBERS: Final = {dtype: number for number, dtype in DTYPES.items()}
IR_VERSIONS: Final = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}


def proto_of(
    draft: Draft,
    shapes: Mapping[str, Sequence[int | str | None] | None],
    outputs: Sequence[str],
    opset: int,
    outside: str | None,
) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """Return a ModelProto, and the arrays of the file beside it, in order.

    Parameters
    ----------
    shapes
        Of inputs and outputs: numbers and names; ``None`` where values decide about it.
    outside
        The name of the file beside it, or ``None`` for none.
    """
    from onnx import helper

    tensors, arrays = _tensors(draft, outside)
    graph = helper.make_graph(
        [_node(step, i) for i, step in enumerate(draft.steps)],
        "reactgrad",
        [_info(name, draft.inputs[name][1], shapes[name]) for name in draft.inputs],
        [_info(name, draft.dtypes[name], shapes[name]) for name in outputs],
        tensors,
    )
    model = helper.make_model(
        graph,
        producer_name="reactgrad",
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSIONS.get(opset, 11),
    )
    return model, arrays


def _node(step: Step, number: int) -> Any:
    from onnx import helper

    attributes: dict[str, Any] = {
        name: NUMBERS[value] if isinstance(value, np.dtype) else value
        for name, value in step.attributes.items()
        if value is not None
    }
    return helper.make_node(
        step.op, list(step.inputs), list(step.outputs), f"{step.op}_{number}", **attributes
    )


def _info(name: str, dtype: Any, shape: Sequence[int | str | None] | None) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, NUMBERS[dtype], shape)


def _tensors(draft: Draft, outside: str | None) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
    from onnx import TensorProto, numpy_helper

    tensors: list[Any] = []
    arrays: list[np.ndarray[Any, Any]] = []
    offset = 0
    for name, array in draft.weights.items():
        if outside is None or array.nbytes < OUTSIDE:
            tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
            if not array.ndim:  # contiguous copies have an axis
                del tensors[-1].dims[:]
            continue
        tensor = TensorProto(name=name, data_type=NUMBERS[array.dtype], dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", outside), ("offset", offset), ("length", array.nbytes)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        offset += array.nbytes
        arrays.append(array)
        tensors.append(tensor)
    return tensors, arrays


def check(model: Any) -> None:
    """Let the package's checker look at the whole model.

    Raises
    ------
    ModelError
        If it finds a fault: a bug here, or an opset that lacks an op.
    """
    import onnx

    # Arrays in the other file are inputs for the checker: it would look for that file.
    inside = [t for t in model.graph.initializer if t.data_location != onnx.TensorProto.EXTERNAL]
    if len(inside) < len(model.graph.initializer):
        outside = [
            t for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL
        ]
        whole, model = model, onnx.ModelProto()
        model.CopyFrom(whole)
        del model.graph.initializer[:]
        model.graph.initializer.extend(inside)
        model.graph.input.extend(
            onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in outside
        )
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise ModelError(
            f"rg.to_onnx: the checker of onnx refuses the model ({error}). Nothing was written. Export it with "
            "opset=18, or report this as a bug."
        ) from error


def write(
    path: str | os.PathLike[str],
    model: Any,
    arrays: list[np.ndarray[Any, Any]],
    outside: str | None,
) -> None:
    """Write a model, and the file beside it first: the model appears last, and whole."""
    from reactgrad.io._whole_file import write_whole

    target = Path(path)
    if outside is not None and arrays:
        write_whole(target.with_name(outside), lambda file: [_put(file, one) for one in arrays])
    data = model.SerializeToString()
    write_whole(target, lambda file: file.write(data))


def _put(file: Any, array: np.ndarray[Any, Any]) -> None:
    file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data.cast("B"))
