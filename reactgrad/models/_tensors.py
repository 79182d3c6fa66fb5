"""Tensors of ONNX files as arrays, with sizes checked before anything is allocated."""

from __future__ import annotations

import math
import os
from typing import Any, Final

import numpy as np

from reactgrad.models._errors import ModelError

# From the numbers of TensorProto.DataType to dtypes that nodes can have.
DTYPES: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype("f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    4: np.dtype("u2"),
    5: np.dtype("i2"),
    6: np.dtype("i4"),
    7: np.dtype("i8"),
    9: np.dtype("?"),
    10: np.dtype("f2"),
    11: np.dtype("f8"),
    12: np.dtype("u4"),
    13: np.dtype("u8"),
    14: np.dtype("c8"),
    15: np.dtype("c16"),
}
NAMES: Final = {
    8: "string",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
# The repeated field of a TensorProto that holds the elements of a dtype where there is no raw data.
_FIELDS: Final = {
    1: "float_data",
    7: "int64_data",
    11: "double_data",
    12: "uint64_data",
    13: "uint64_data",
}
_FIELDS_OF_PAIRS: Final = {14: "float_data", 15: "double_data"}


class Weight:
    """An initialiser of floats: a param as soon as something computes with it."""

    def __init__(self, name: str, array: np.ndarray[Any, Any]) -> None:
        self.name = name
        self.array = array
        self.var: Any = None


def dtype_of(number: int, place: str) -> np.dtype[Any]:
    """Return the dtype that an ONNX element type is, or refuse it by name."""
    found = DTYPES.get(number)
    if found is None:
        name = NAMES.get(number, f"number {number}")
        raise ModelError(
            f"{place} has elements of type {name}: nodes hold booleans, integers, floats and complex "
            "numbers of NumPy. Convert the model to float32 or float16."
        )
    return found


def array_of(tensor: Any, folder: str | None) -> np.ndarray[Any, Any]:
    """Return a tensor of a file as an array of its own.

    Raises
    ------
    ModelError
        If its dtype has no nodes, its shape does not agree with how much data there is, or its data
        lies in a file outside of `folder`.
    """
    place = f"tensor {tensor.name!r}" if tensor.name else "a constant tensor"
    dtype = dtype_of(tensor.data_type, place)
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape):
        raise ModelError(
            f"{place} has shape {shape}: no length is negative. Export the model again."
        )
    size = math.prod(shape)
    if tensor.data_location == 1:
        data = _external(tensor, folder, size * dtype.itemsize, place)
        flat = np.frombuffer(data, dtype.newbyteorder("<"))
    elif tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size * dtype.itemsize:
            raise _other_size(place, shape, dtype, len(tensor.raw_data))
        flat = np.frombuffer(tensor.raw_data, dtype.newbyteorder("<"))
    else:
        flat = _listed(tensor, dtype)
    if flat.size != size:
        raise _other_size(place, shape, dtype, flat.nbytes)
    return flat.astype(dtype).reshape(shape)


def _listed(tensor: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the elements from the field that holds them as numbers."""
    number = tensor.data_type
    if number in _FIELDS_OF_PAIRS:
        pairs = np.array(
            getattr(tensor, _FIELDS_OF_PAIRS[number]), dtype=np.dtype(f"f{dtype.itemsize // 2}")
        )
        return pairs[: len(pairs) // 2 * 2].view(dtype)
    values = np.array(getattr(tensor, _FIELDS.get(number, "int32_data")))
    if number == 10:  # the bits of half-precision numbers, as integers
        return values.astype("u2").view("f2")
    return values.astype(dtype)


def _external(tensor: Any, folder: str | None, nbytes: int, place: str) -> bytes:
    """Return the data of a tensor from a file beside the model."""
    entries = {e.key: e.value for e in tensor.external_data}
    name = entries.get("location", "")
    if folder is None:
        raise ModelError(
            f"{place} has its data in the file {name!r}, and the model was given without a folder. "
            "Give the path of the model."
        )
    root = os.path.realpath(folder)
    if "\0" in name:
        raise ModelError(f"{place} has its data in {name!r}, which is no name of a file.")
    path = os.path.realpath(os.path.join(root, name))
    if not name or os.path.isabs(name) or os.path.commonpath([root, path]) != root:
        raise ModelError(
            f"{place} has its data in {name!r}, which is outside of the folder of the model. Nothing outside "
            "is read: move the file beside the model."
        )
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(nbytes)))
        if not os.path.isfile(path):
            raise ModelError(
                f"{place} has its data in {name!r}: there is no such file beside the model."
            )
        if offset < 0 or length != nbytes or offset + length > os.path.getsize(path):
            raise ModelError(
                f"{place} needs {nbytes} bytes, and {name!r} has {length} of them from {offset} in a file of "
                f"{os.path.getsize(path)} bytes. Export the model again."
            )
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)
    except (ValueError, OSError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{place} has its data in {name!r}, which cannot be read: {error}"
        ) from error


def _other_size(
    place: str, shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int
) -> ModelError:
    return ModelError(
        f"{place} is declared as {dtype}{list(shape)} and comes with {nbytes} bytes, which is another size. "
        "The file is damaged: export the model again."
    )
