"""The format of a saved graph.

The file is a safetensors file. Its metadata hold ``format``, ``format_version``, ``checksum`` and
``manifest``, a JSON object. Its tensors are

- ``graph/...``    one column of integers for each property that every node has (see ``State``)
- ``values/NAME``  the value of a named node; ``nodes/SERIAL`` that of a large one without a name
- ``pool/DTYPE``   all other values of a dtype, flattened, one after the other in order of the nodes
- ``arrays/N``     arrays inside of attributes and Python objects
- ``manifest``     the manifest in UTF-8, where it is too large for the metadata

Complex numbers are stored as pairs of floats along an additional last axis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any, BinaryIO, Final

import numpy as np

from reactgrad._errors import MissingExtraError

FORMAT: Final = "reactgrad.graph"
VERSION: Final = 1

# The header of a safetensors file holds at most 100 MB, and the manifest is part of it.
MOST_MANIFEST = 30_000_000
# Values of more bytes than this get their own tensor; so do named ones, up to `MOST_NAMED`.
POOLED_BYTES = 4096
MOST_NAMED = 10_000

COLUMNS: Final = (
    "definition",
    "spec",
    "form",
    "serial",
    "rank",
    "version",
    "parents",
    "parent_count",
    "records",
    "record_count",
)

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
# A look-up here costs a tenth of ``dtype.name``.
NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}
PAIRS: Final = {"complex64": "float32", "complex128": "float64"}
# The names that safetensors has for the dtypes in our files.
TENSOR_DTYPES: Final = {
    "BOOL": "bool",
    **{f"{kind}{bits}": f"{name}{bits}" for kind, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}  # fmt: skip


def tensor_name(serial: int, name: str | None) -> str:
    """Return the name of the tensor for a value that has its own."""
    if name is not None:
        try:
            name.encode()
        except UnicodeEncodeError:
            name = None
    return f"nodes/{serial}" if name is None else f"values/{name}"


def to_tensor(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` as it is stored: contiguous, complex numbers as pairs."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    pair = PAIRS.get(NAMES[array.dtype])
    return array if pair is None else array.reshape((*array.shape, 1)).view(pair)


def from_tensor(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return the array that ``to_tensor`` was given."""
    return array if dtype not in PAIRS else array.view(dtype).reshape(array.shape[:-1])


def checksum(manifest: bytes, tensors: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """Return a checksum of everything in the file that has a meaning.

    It finds damage, not malice.
    """
    import hashlib  # here, since it takes longer to import than this whole package

    digest = hashlib.sha256(manifest)
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\0{name}\0{array.dtype.name}{array.shape}\0".encode())
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_tensors(
    file: BinaryIO, tensors: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file: the length of the header, the header in JSON, the bytes of all tensors.

    Not by the package, whose code ends the process where memory is short.
    """
    codes = {name: code for code, name in TENSOR_DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    # The widest first, so that each lies at a multiple of its width.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    end = 0
    for name in names:
        array = tensors[name]
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": codes[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in names:
        little = tensors[name].astype(tensors[name].dtype.newbyteorder("<"), copy=False)
        file.write(little.reshape(-1).view(np.uint8).data)


def import_safetensors() -> ModuleType:
    """Return the package that reads and writes the format."""
    try:
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "saving and loading graphs needs the package safetensors, which is not installed: "
            'pip install "reactgrad[io]"'
        ) from error
    return safetensors
