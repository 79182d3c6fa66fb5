"""State dicts of PyTorch, read without PyTorch and without running what is in the file.

A ``.pt`` file is a zip of storages and of a pickle, a program for a stack machine that builds the objects. The machine
here knows the opcodes that data need, and calls nothing but the functions of ``_GLOBALS``, all of which stand in this
file.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from reactgrad._errors import LoadError
from reactgrad.io._json import MOST_AXES
from reactgrad.io._narrow_floats import BITS, widened
from reactgrad.io._pickle_steps import steps
from reactgrad.io._tensor_file import read_tensors

Array = np.ndarray[Any, Any]

MOST_PICKLE = 1 << 28
MOST_STEPS = 1 << 20  # of a pickle, beside those of tensors:
MOST_STEPS_EACH = 64  # of which each has about 30, and a storage of its own
MOST_OPEN = 1 << 10
MOST_STACK = 1 << 16
MOST_REPEATED = (
    1 << 24
)  # numbers of a tensor that repeats those of its storage, as ``expand`` makes them
_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
_DTYPES = {
    **{name: name for name in (*_STORAGES.values(), *BITS, "uint16", "uint32", "uint64")},
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
}


def load_weights(path: str | os.PathLike[str]) -> dict[Any, Any]:
    """Return the arrays of a file that PyTorch or safetensors has written.

    Nothing in the file is run: a pickle may name tensors, parameters and plain containers, and nothing else. Floats of
    8 and 16 bits, bfloat16 among them, come as float32, which holds them exactly.

    Parameters
    ----------
    path : str or path-like
        A ``.safetensors`` file, or one of ``torch.save`` of PyTorch 1.6 or later.

    Returns
    -------
    dict
        For a file of safetensors the arrays by name. Else what was saved, with arrays where tensors were: a state
        dict, or a dict that has some among its values. Tensors that shared memory share it here.

    Raises
    ------
    LoadError
        If the file is damaged, holds no dict, or names anything that is not data.

    Examples
    --------
    >>> import reactgrad as rg
    >>> state = rg.load_weights("model.pt")  # doctest: +SKIP
    >>> net.load_state_dict(state)  # doctest: +SKIP
    """
    try:
        with open(path, "rb") as file:
            start = file.read(8)
        if start[:4] == b"PK\3\4":
            return _from_zip(os.fspath(path))
        # A header of safetensors may have 128 bytes, but never 4 GB.
        if start[:1] == b"\x80" and start[4:8] != bytes(4):
            raise LoadError(
                "it is a pickle without a zip around it, as PyTorch wrote before 1.6. Read it there, and write it anew "
                "by torch.save(state, path)"
            )
        return {name: _single(array) for name, array in read_tensors(path)[0].items()}
    except LoadError as error:
        raise LoadError(f"{os.fspath(path)} cannot be loaded: {error}.") from error.__cause__


def _single(array: Array) -> Array:
    """Return an array that has at least single precision, if it has floats."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _from_zip(path: str) -> dict[Any, Any]:
    try:
        with _Bounded(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            return _from_archive(archive, path)
    except LoadError:
        raise
    # What zipfile raises for damage, directories that point out of the file and encryption among it.
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, RuntimeError, struct.error) as error:
        raise LoadError(f"it is damaged ({error})") from error
    except MemoryError as error:
        raise LoadError("it is larger than the memory of this machine") from error


class _Bounded(io.BufferedReader):
    """A file that allocates no more for a read than it has left: zipfile asks for as much as an entry declares."""

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _from_archive(archive: zipfile.ZipFile, path: str) -> dict[Any, Any]:
    names = archive.namelist()
    found = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(found) != 1:
        raise LoadError("it is a zip, and not of torch.save: it has no data.pkl, or several")
    storages = _Storages(archive, found[0][: -len("data.pkl")], os.path.getsize(path))
    state = _Machine(storages).run(storages.member("data.pkl", MOST_PICKLE))
    if type(state) is not dict:
        raise LoadError(
            f"it holds a {type(state).__name__}, and no state dict. Save model.state_dict(), not the model"
        )
    return state


class _Storages:
    """The bytes of tensors, each read once. All together they are no larger than the file."""

    def __init__(self, archive: zipfile.ZipFile, root: str, size: int) -> None:
        self._archive = archive
        self._root = root
        self._left = size
        self._read: dict[str, bytearray] = {}
        self._made: dict[tuple[str, str], Array] = {}
        self._order: Literal["<", ">"] = "<"
        if root + "byteorder" in archive.namelist():
            self._order = ">" if self.member("byteorder", 16).strip() == b"big" else "<"

    def member(self, name: str, most: int) -> bytes:
        """Return a file of the archive, stored as it is."""
        try:
            entry = self._archive.getinfo(self._root + name)
        except KeyError:
            raise LoadError(f"it has no {name!r:.60}, which it names") from None
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > min(most, self._left):
            raise LoadError(f"{name!r:.60} is compressed, or larger than the file")
        self._left -= entry.file_size
        return self._archive.read(entry)

    def most_steps(self) -> int:
        """Return how many steps a pickle may have that names these storages."""
        return MOST_STEPS + MOST_STEPS_EACH * len(self._archive.namelist())

    def array(self, key: str, dtype: str, count: int | None = None) -> Array:
        """Return a storage as one row of numbers, which tensors are views of."""
        if key not in self._read:
            self._read[key] = bytearray(self.member(f"data/{key}", 1 << 62))
        if (key, dtype) not in self._made:
            bits = BITS.get(dtype) or np.dtype(dtype)
            data = self._read[key]
            if len(data) % bits.itemsize:
                raise LoadError(
                    f"storage {key!r:.60} has {len(data)} bytes, no multiple of {bits.itemsize}"
                )
            row = np.frombuffer(data, bits.newbyteorder(self._order))
            row = row.astype(bits, copy=False)
            if dtype in BITS:
                row = widened(row, dtype)
            self._made[key, dtype] = _single(row)
        made = self._made[key, dtype]
        if count is not None and count > len(made):
            raise LoadError(f"storage {key!r:.60} has {len(made)} numbers, and declares {count}")
        return made


# --- what a pickle may name ---------------------------------------------------------------------------


class _Storage:
    """A storage that a tensor is a view of; the dtype of an untyped one is said by the tensor."""

    def __init__(self, storages: _Storages, key: str, dtype: str | None, count: int) -> None:
        self._storages = storages
        self._key = key
        self._dtype = dtype
        self._count = count

    def row(self, dtype: str | None = None) -> Array:
        wanted = dtype or self._dtype
        if wanted is None:
            raise LoadError("a tensor has a storage without a dtype")
        return self._storages.array(self._key, wanted, None if dtype else self._count)


class _Kind:
    """A class of storages."""

    def __init__(self, dtype: str | None) -> None:
        self.dtype = dtype


class _Call:
    """A function that a pickle may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Array:
    return _view(storage, offset, size, stride, None)


def _tensor_of(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *rest: Any
) -> Array:
    return _view(storage, offset, size, stride, dtype)


def _view(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any) -> Array:
    if not isinstance(storage, _Storage) or (dtype is not None and dtype not in _DTYPES):
        raise LoadError("a tensor is made of something that is no storage")
    numbers = (offset, *size, *stride)
    if len(size) != len(stride) or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
        raise LoadError("a tensor has a shape or strides that cannot be")
    row = storage.row(None if dtype is None else _DTYPES[dtype])
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if len(size) > MOST_AXES or (last >= len(row) and 0 not in size):
        raise LoadError("a tensor reaches beyond its storage")
    if math.prod(max(n, 1) for n in size) > max(len(row), MOST_REPEATED):
        raise LoadError("a tensor repeats its storage too often")
    if 0 in size:
        return np.zeros(size, row.dtype)
    steps = [step * row.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(row[offset:], size, steps)


def _parameter(data: Any, *rest: Any) -> Any:
    return data


def _size(lengths: Any = ()) -> tuple[Any, ...]:
    if len(lengths) > MOST_AXES:  # a pickle could copy a long list as often as it has bytes
        raise LoadError(f"a shape has {len(lengths)} axes; NumPy has at most {MOST_AXES}")
    return tuple(lengths)


def _device(kind: Any, number: Any = None) -> str:
    if type(kind) is not str or type(number) not in (int, type(None)) or len(kind) > 16:
        raise LoadError("a device has a name that cannot be")
    return kind if number is None else f"{kind}:{number}"


_GLOBALS: dict[str, Any] = {
    "collections OrderedDict": _Call(dict),
    "torch._utils _rebuild_tensor": _Call(_tensor),
    "torch._utils _rebuild_tensor_v2": _Call(_tensor),
    "torch._utils _rebuild_tensor_v3": _Call(_tensor_of),
    "torch._utils _rebuild_parameter": _Call(_parameter),
    "torch._utils _rebuild_parameter_with_state": _Call(_parameter),
    "torch Size": _Call(_size),
    "torch device": _Call(_device),
    "torch.storage UntypedStorage": _Kind(None),
    "torch UntypedStorage": _Kind(None),
    **{f"torch {name}Storage": _Kind(dtype) for name, dtype in _STORAGES.items()},
    **{f"torch {name}": name for name in _DTYPES},
}


def _put(made: Any, key: Any, value: Any) -> None:
    # Keys of other kinds could take for ever to hash.
    if type(made) is not dict or type(key) not in (str, int, float, bool, type(None)):
        raise LoadError(f"a {type(key).__name__} is a key of a {type(made).__name__}")
    made[key] = value


_MARK = object()


class _Machine:
    """Runs a pickle whose opcodes are those of plain data. What it calls stands in ``_GLOBALS``.

    What a file can make it do is limited: steps by the storages that there are, marks that wait for their end, and the
    stack by what picklers write, who close a list or a dict after each 1,000 elements.
    """

    def __init__(self, storages: _Storages) -> None:
        self._storages = storages
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._open = 0  # marks on the stack
        self._steps: dict[str, Callable[[Any], object]] = {
            "PROTO": _nothing,
            "FRAME": _nothing,
            **dict.fromkeys(_LITERALS, self._stack.append),
            **{name: partial(self._constant, value) for name, value in _CONSTANTS.items()},
            **{name: partial(self._empty, kind) for name, kind in _EMPTY.items()},
            **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), self._remember),
            **dict.fromkeys(("BINGET", "LONG_BINGET"), self._recall),
            "MARK": self._mark,
            "GLOBAL": self._global,
            "STACK_GLOBAL": self._stack_global,
            "REDUCE": self._call,
            "BINPERSID": self._storage,
            "BUILD": self._build,
            **{f"TUPLE{count}": partial(self._tuple, count) for count in (1, 2, 3)},
            "TUPLE": partial(self._tuple, None),
            "APPEND": partial(self._append, False),
            "APPENDS": partial(self._append, True),
            "SETITEM": partial(self._put, False),
            "SETITEMS": partial(self._put, True),
        }

    def run(self, program: bytes) -> Any:
        most, stack, known = self._storages.most_steps(), self._stack, self._steps
        try:
            for count, (name, argument) in enumerate(steps(program)):
                if name == "STOP":
                    return stack.pop()
                if count == most:
                    raise LoadError(
                        f"its pickle has more than {most:,} steps. Save model.state_dict(), with long lists of numbers "
                        "as tensors"
                    )
                step = known.get(name)
                if step is None:
                    raise LoadError(f"its pickle has the opcode {name}, which data do not need")
                step(argument)
                if len(stack) > MOST_STACK:
                    raise LoadError(f"its pickle has more than {MOST_STACK:,} things on its stack")
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, LoadError):
                raise
            raise LoadError(f"its pickle is damaged ({error!s:.200})") from error
        raise LoadError("its pickle has no end")

    def _constant(self, value: Any, argument: Any) -> None:
        self._stack.append(value)

    def _empty(self, kind: Callable[[], Any], argument: Any) -> None:
        self._stack.append(kind())

    def _remember(self, at: Any) -> None:
        self._memo[len(self._memo) if at is None else at] = self._stack[-1]

    def _recall(self, at: Any) -> None:
        self._stack.append(self._memo[at])

    def _mark(self, argument: Any) -> None:
        self._open += 1
        if self._open > MOST_OPEN:
            raise LoadError(f"its pickle nests more than {MOST_OPEN:,} containers")
        self._stack.append(_MARK)

    def _global(self, name: str) -> None:
        if name not in _GLOBALS:
            raise LoadError(
                f"its pickle names {name.replace(' ', '.')!r:.100}, which is no tensor or plain container, and "
                "is not run. Save model.state_dict(), and only numbers and texts beside it"
            )
        self._stack.append(_GLOBALS[name])

    def _stack_global(self, argument: Any) -> None:
        second, first = self._stack.pop(), self._stack.pop()
        self._global(f"{first} {second}" if type(first) is type(second) is str else "")

    def _call(self, argument: Any) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        if type(called) is not _Call or type(arguments) is not tuple:
            raise LoadError("its pickle calls something that is no function")
        if called.function is dict and arguments:
            raise LoadError("its pickle makes an OrderedDict of something")
        self._stack.append(called.function(*arguments))

    def _build(self, argument: Any) -> None:  # `_metadata` of an OrderedDict
        self._stack.pop()
        if type(self._stack[-1]) is not dict:
            raise LoadError("its pickle sets attributes of something that is no dict")

    def _tuple(self, count: int | None, argument: Any) -> None:
        stack = self._stack
        if count is None:
            stack.append(tuple(self._marked()))
            return
        if len(stack) < count:
            raise IndexError("its stack is empty")
        stack[-count:] = [tuple(stack[-count:])]

    def _append(self, several: bool, argument: Any) -> None:
        items = self._marked() if several else [self._stack.pop()]
        if type(self._stack[-1]) is not list:
            raise LoadError("its pickle appends to something that is no list")
        self._stack[-1].extend(items)

    def _put(self, several: bool, argument: Any) -> None:
        stack = self._stack
        flat = self._marked() if several else [stack.pop(-2), stack.pop()]
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            _put(stack[-1], key, value)

    def _marked(self) -> list[Any]:
        """Return what lies above the last mark, and take both away."""
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError("there is no mark")
        items = self._stack[at + 1 :]
        del self._stack[at:]
        self._open -= 1
        return items

    def _storage(self, argument: Any) -> None:
        kind, storage, key, _, count = self._stack.pop()
        if kind != "storage" or type(storage) is not _Kind or type(key) is not str:
            raise LoadError("its pickle names something outside that is no storage")
        if type(count) is not int:
            raise LoadError("a storage has no number of elements")
        self._stack.append(_Storage(self._storages, key, storage.dtype, count))


def _nothing(argument: Any) -> None:
    pass


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES"),
}
