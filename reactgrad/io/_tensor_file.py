"""Files of safetensors, read without trusting them and without a package.

The header is compared with the real size of the file before any array is made, so nothing is larger than the file.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from reactgrad._errors import LoadError
from reactgrad.io._format import TENSOR_DTYPES
from reactgrad.io._json import MOST_AXES, MOST_LENGTH, items_of, many, record, text, whole
from reactgrad.io._narrow_floats import BITS, widened
from reactgrad.io._strict_json import strict_json

MOST_HEADER = 100_000_000  # the limit of the format
# What has no dtype of NumPy, by PyTorch's names.
NARROW = {"BF16": "bfloat16", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn"}
# NumPy has this one; our files write it as pairs of floats.
COMPLEX = {"C64": "complex64"}

Array = np.ndarray[Any, Any]


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays of a file, which may be written to, and its metadata.

    Raises
    ------
    LoadError
        If the file is damaged, or has an array of a dtype that there is none for here.
    """
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise LoadError("it is no regular file")
    with open(path, "rb") as file:
        return read_open(file, os.fstat(file.fileno()).st_size)


def read_open(file: Any, size: int) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays and the metadata of an open file of this size; see ``read_tensors``."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, MOST_HEADER):
        raise LoadError("it is truncated, or no safetensors file")
    header = record(strict_json(file.read(length)), "the header")
    given = record(header.pop("__metadata__", {}), "the metadata")
    metadata = {key: text(value, "an entry of the metadata") for key, value in given.items()}
    entries = [_entry(name, entry) for name, entry in header.items()]
    end = 0
    for name, _, _, begin, stop in sorted(entries, key=lambda one: one[3:]):
        if begin != end:
            raise LoadError(f"its tensors overlap, or have gaps, before {name!r:.60}")
        end = stop
    if end != size - 8 - length:
        raise LoadError(
            f"it has {size - 8 - length} bytes of tensors, and declares {end}: it is truncated or damaged"
        )
    tensors = {}
    for name, code, shape, begin, stop in entries:
        file.seek(8 + length + begin)
        try:
            data = bytearray(stop - begin)  # to be written to
            if file.readinto(data) != len(data):
                raise LoadError("it became shorter while it was read")
            tensors[name] = _array(name, code, data).reshape(shape)
        except MemoryError as error:
            raise LoadError("it is larger than the memory of this machine") from error
    return tensors, metadata


def _entry(name: str, entry: Any) -> tuple[str, str, tuple[int, ...], int, int]:
    """Return name, dtype, shape and place of a tensor, after checks that they fit each other."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise LoadError(f"the name {name!r:.60} is no text") from None
    fields = record(entry, "an entry of the header")
    code = text(fields.get("dtype"), "the dtype of a tensor")
    lengths = many(fields.get("shape"), "the shape of a tensor")
    if len(lengths) > MOST_AXES:
        raise LoadError(
            f"tensor {name!r:.60} has {len(lengths)} axes; NumPy has at most {MOST_AXES}"
        )
    shape = tuple([whole(n, "a length of a shape", 0, MOST_LENGTH) for n in lengths])
    begin, stop = (
        whole(n, "the place of a tensor", 0, MOST_LENGTH)
        for n in items_of(fields.get("data_offsets"), 2, "the place of a tensor")
    )
    if code not in TENSOR_DTYPES and code not in NARROW and code not in COMPLEX:
        raise LoadError(f"tensor {name!r:.60} has the dtype {code!r:.60}, for which NumPy has none")
    if math.prod(max(n, 1) for n in shape) > MOST_LENGTH:
        raise LoadError(f"tensor {name!r:.60} does not fit any memory")
    if math.prod(shape) * _stored(code).itemsize != stop - begin:
        raise LoadError(f"tensor {name!r:.60} declares other bytes than its shape has")
    return name, code, shape, begin, stop


def _stored(code: str) -> np.dtype[Any]:
    """Return the dtype of the bits in the file."""
    if code in NARROW:
        return BITS[NARROW[code]].newbyteorder("<")
    return np.dtype(TENSOR_DTYPES.get(code) or COMPLEX[code]).newbyteorder("<")


def _array(name: str, code: str, data: bytearray) -> Array:
    stored = np.frombuffer(data, _stored(code))
    if code == "BOOL" and stored.size and stored.view(np.uint8).max() > 1:
        raise LoadError(f"tensor {name!r:.60} holds booleans that are neither true nor false")
    array = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    return widened(array, NARROW[code]) if code in NARROW else array
