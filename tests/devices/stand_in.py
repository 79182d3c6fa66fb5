"""A stand-in for CuPy with several GPUs, on NumPy: it refuses what CuPy refuses, and counts what costs there.

``namespace`` is used as the module ``cupy``. It has the names and parameters of CuPy 14.2 and no more. Its
arrays refuse every implicit copy to the host, each call checks that its operands live on the current device,
and memory comes from a pool for each device, whose growth is counted. Work that is captured runs when its
graph is launched.
"""

from __future__ import annotations

import gc
import inspect
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

KIND = "fake"
COUNT = 2  # devices

_NAMES = json.loads((Path(__file__).parent / "cupy_14_2.json").read_text())
# What needs its result on the host before it can return: its length, or a number.
_WAITS = {"nonzero", "argwhere", "flatnonzero", "unique", "union1d", "histogram", "setdiff1d"}
# What only looks at memory in another way, where NumPy does not have to copy: no kernel, on any device.
_LAYOUT = {"broadcast_to", "expand_dims", "squeeze", "transpose", "reshape", "moveaxis", "swapaxes"}
_LAYOUT |= {
    "rollaxis",
    "ravel",
    "broadcast_arrays",
    "diagonal",
    "flip",
    "matrix_transpose",
    "permute_dims",
}
_LAYOUT |= {"shape", "ndim", "size"}
# Libraries that refuse to be captured: cuBLAS, cuSOLVER, cuSPARSE, cuRAND.
_NOT_CAPTURED = {"matmul", "dot", "tensordot", "einsum", "inner", "outer", "vdot", "kron"}


class Counts:
    """What has happened since the last ``clear``."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.syncs = 0  # the host has waited for a device
        self.uploads = 0  # arrays that came from the host
        self.grown = 0  # times that a pool had to ask the device for memory
        self.pinned = 0  # arrays of the host that the system does not move
        self.launches = 0  # kernels and graphs
        self.kernels: list[str] = []
        self.devices: set[int] = set()


counts = Counts()


class _State(threading.local):
    device = 0
    stream: Any = None


_state = _State()
_free: dict[tuple[int, int], int] = defaultdict(int)


class _Block:
    """Memory of one device; given back to its pool when nothing refers to it."""

    __slots__ = ("key",)

    def __init__(self, device: int, size: int) -> None:
        self.key = (device, -(-size // 512))
        if _free[self.key]:
            _free[self.key] -= 1
        else:
            counts.grown += 1

    def __del__(self) -> None:
        _free[self.key] += 1


class _Place:
    def __init__(self, number: int) -> None:
        self.id = number

    def __repr__(self) -> str:
        return f"<a stand-in for GPU {self.id}>"


class Array:
    """An array of the stand-in."""

    __slots__ = ("__weakref__", "_a", "_block", "_number")

    def __init__(self, a: np.ndarray, block: _Block | None = None) -> None:
        self._a, self._number = a, _state.device
        if block is None and _state.stream is not None and _state.stream.record is not None:
            raise RuntimeError("memory was allocated while work is captured")
        self._block = block or _Block(self._number, a.nbytes)

    # --- what CuPy would do by a copy to the host, in silence or with an error -------------------

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an implicit copy of a device array to the host")

    __array__ = __float__ = __int__ = __index__ = __bool__ = __complex__ = _refuse
    item = tolist = _refuse

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module: Any = namespace
        for part in func.__module__.split(".")[1:]:
            module = getattr(module, part, None)
        found = getattr(module, func.__name__, None)
        return NotImplemented if found is None else found(*args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(namespace, ufunc.__name__, None)
        out = kwargs.get("out")
        if isinstance(out, tuple) and len(out) == 1:
            kwargs["out"] = out[0]
        if not isinstance(found, _ufunc):
            return NotImplemented
        return (found if method == "__call__" else getattr(found, method))(*args, **kwargs)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("DLPack of a device array")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._number)

    def get(self, out: Any = None) -> np.ndarray:
        _wait()
        if out is None:
            return self._a.copy()
        np.copyto(out, self._a)
        return out

    def set(self, value: Any) -> None:
        if type(value) is not np.ndarray or value.dtype != self.dtype or value.shape != self.shape:
            raise TypeError(f"set: {value!r} is not a host array of {self.dtype}{self.shape}")
        counts.uploads += 1
        _launch("set", self._check()._copy_from, value.copy())

    def _copy_from(self, value: Any) -> None:
        self._a[...] = value

    # --- shape and layout: no kernel ---------------------------------------------------------------

    @property
    def device(self) -> _Place:
        return _Place(self._number)

    @property
    def nbytes(self) -> int:
        return self._a.nbytes

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    strides = property(lambda self: self._a.strides)
    flags = property(lambda self: self._a.flags)
    T = property(lambda self: self._view(self._a.T))

    def _view(self, a: np.ndarray) -> Array:
        """Return a view of this array, or a new one where NumPy has made a copy."""
        if a.base is None and a is not self._a:
            return _new("copy", a)
        with _current(self._number):
            return Array(a, self._block)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self._a)

    def _check(self) -> Array:
        if self._number != _state.device:
            raise RuntimeError(
                f"an array of device {self._number} in a kernel of device {_state.device}"
            )
        return self

    @property
    def real(self) -> Array:
        return self._view(self._a.real)

    @property
    def imag(self) -> Array:
        if self.dtype.kind != "c":  # as CuPy, which makes new zeros
            return _new("imag", np.zeros_like(self._a))
        return self._view(self._a.imag)

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        return self._view(self._a.reshape(*shape, order=order))  # type: ignore[call-overload]

    def transpose(self, *axes: Any) -> Array:
        return self._view(self._a.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> Array:
        return self._view(self._a.swapaxes(one, other))

    def ravel(self) -> Array:
        return self._view(self._a.reshape(-1))

    def squeeze(self, axis: Any = None) -> Array:
        return self._view(self._a.squeeze(axis))

    def view(self, dtype: Any = None) -> Array:
        return self._view(self._a.view() if dtype is None else self._a.view(dtype))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        found = self._a.diagonal(offset, axis1, axis2)
        found.flags.writeable = True
        return self._view(found)

    # --- kernels ----------------------------------------------------------------------------------

    def copy(self) -> Array:  # onto the current device, from any
        return _new("copy", self._a.copy())

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        self._check()
        if not copy and self.dtype == np.dtype(dtype):
            return self
        with np.errstate(all="ignore"):
            return _new("astype", self._a.astype(dtype))

    def fill(self, value: Any) -> None:
        _launch("fill", self._check()._a.fill, _unwrap(value))

    def __getitem__(self, key: Any) -> Any:
        key = _key(key)
        if any(isinstance(one, np.ndarray) for one in (key if type(key) is tuple else (key,))):
            self._check()
            if any(getattr(one, "dtype", None) == np.bool_ for one in _parts(key)):
                _wait()
            return _new("take", self._a[key])
        found = self._a[key]
        if not isinstance(found, np.ndarray):
            found = self._a[(*(key if type(key) is tuple else (key,)), ...)]
        return self._view(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, value, a = _key(key), _unwrap(value), self._check()._a

        def write() -> None:
            with np.errstate(all="ignore"):
                a[key] = value

        _launch("setitem", write)

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES["methods"] or name.startswith("_"):
            raise AttributeError(f"CuPy's arrays have no {name!r}")
        method = getattr(np.ndarray, name)
        return lambda *args, **kwargs: _call(name, method, (self, *args), kwargs)


def _operator(name: str, ufunc: np.ufunc) -> None:
    def left(self: Array, other: Any) -> Any:
        return _ufunc(ufunc.__name__, ufunc)(self, other)

    def right(self: Array, other: Any) -> Any:
        return _ufunc(ufunc.__name__, ufunc)(other, self)

    def inside(self: Array, other: Any) -> Any:
        return _ufunc(ufunc.__name__, ufunc)(self, other, self)

    setattr(Array, f"__{name}__", left)
    setattr(Array, f"__r{name}__", right)
    setattr(Array, f"__i{name}__", inside)


for _name, _of in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "matmul": np.matmul,
}.items():
    _operator(_name, _of)  # type: ignore[arg-type]
for _name, _of in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    setattr(Array, f"__{_name}__", lambda s, o, f=_of: _ufunc(f.__name__, f)(s, o))
for _name, _of in {"neg": np.negative, "invert": np.invert, "abs": np.absolute}.items():
    setattr(Array, f"__{_name}__", lambda s, f=_of: _ufunc(f.__name__, f)(s))


def _unwrap(value: Any) -> Any:
    """Return operands as NumPy's, after a check that they live on the current device."""
    if type(value) is Array:
        return value._check()._a
    if isinstance(value, np.ndarray):
        raise TypeError("an array of the host in a kernel of a device")
    if isinstance(value, tuple | list):
        return type(value)([_unwrap(one) for one in value])
    return value


def _parts(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple else (key,)


def _key(key: Any) -> Any:
    if type(key) is tuple:
        return tuple([_key(one) for one in key])
    if isinstance(key, list | np.ndarray):  # CuPy copies it to the device, at each call
        counts.uploads += 1
        return np.asarray(key)
    return _unwrap(key)


def _wait() -> None:
    if _state.stream is not None and _state.stream.record is not None:
        raise RuntimeError("the host waits while work is captured")
    counts.syncs += 1


def _launch(name: str, call: Callable[..., object], *args: Any) -> None:
    """Run a kernel that writes into memory that is there; note it where work is captured."""
    stream = _state.stream
    if stream is not None and stream.record is not None:
        if name in _NOT_CAPTURED:
            raise RuntimeError(f"{name} cannot be captured")
        stream.record.append((name, call, args))
        return
    counts.launches += 1
    counts.kernels.append(name)
    counts.devices.add(_state.device)
    call(*args)


def _new(name: str, a: Any) -> Array:
    """Return the result of a kernel in memory of its own."""
    counts.launches += 1
    counts.kernels.append(name)
    counts.devices.add(_state.device)
    a = np.asarray(a)
    return Array(a if a.base is None and a.flags.owndata else a.copy())


def _result(name: str, found: Any, inputs: list[np.ndarray], arrays: list[Array]) -> Any:
    if isinstance(found, tuple | list):
        parts = [_result(name, one, inputs, arrays) for one in found]
        return found._make(parts) if hasattr(found, "_make") else type(found)(parts)
    if isinstance(found, np.generic):
        return _new(name, np.asarray(found))
    if not isinstance(found, np.ndarray):
        return found
    for one, array in zip(inputs, arrays):
        if found is one:
            return array
        if found.base is not None and np.may_share_memory(found, one):
            return array._view(found)
    return _new(name, found)


def _flat(values: Any) -> list[Array]:
    if type(values) is Array:
        return [values]
    if isinstance(values, tuple | list):
        return [one for value in values for one in _flat(value)]
    return []


def _call(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy on arrays of the current device."""
    out = kwargs.get("out")
    if name in _LAYOUT and args and type(args[0]) is Array:
        x = args[0]
        found = function(x._a, *args[1:], **kwargs)
        if not isinstance(found, np.ndarray) or np.may_share_memory(found, x._a):
            return _result(name, found, [x._a], [x])
    if name in _WAITS:
        _wait()
    plain, named = _unwrap(args), {key: _unwrap(value) for key, value in kwargs.items()}
    if out is not None:

        def compute() -> None:
            with np.errstate(all="ignore"):
                function(*plain, **named)

        _launch(name, compute)
        return out
    with np.errstate(all="ignore"):
        found = function(*plain, **named)
    arrays = _flat([args, list(kwargs.values())])
    return _result(name, found, [one._a for one in arrays], arrays)


class _ufunc:
    """A ufunc as CuPy has it: few methods, and no ``where``."""

    def __init__(self, name: str, ufunc: Any) -> None:
        self.name, self._ufunc, self.nin, self.nout = name, ufunc, ufunc.nin, ufunc.nout
        self.__name__ = name

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: Any = None) -> Any:
        outs = args[self.nin :] or (
            () if out is None else out if isinstance(out, tuple) else (out,)
        )
        if not any(type(one) is Array for one in args):
            raise TypeError(f"{self.name}: no operand is an array of a device")
        kwargs: dict[str, Any] = {"dtype": dtype} if dtype is not None else {}
        if casting is not None:
            kwargs["casting"] = casting
        if outs:
            kwargs["out"] = outs
        _call(self.name, self._ufunc, args[: self.nin], kwargs)
        if outs:
            return outs[0] if self.nout == 1 else tuple(outs)
        counts.kernels.pop()  # it was run for its checks; once more for the result
        counts.launches -= 1
        return _call(self.name, self._ufunc, args[: self.nin], kwargs)

    def _only(self, what: str, *names: str) -> None:
        if self.name not in names:
            raise NotImplementedError(f"`cupy_{self.name}.{what}` is not supported yet")

    def reduce(
        self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False
    ) -> Any:
        self._only("reduce", "add", "multiply")
        kwargs = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return _call(
            "sum", self._ufunc.reduce, (x,), kwargs | ({"out": out} if out is not None else {})
        )

    def accumulate(self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        self._only("accumulate", "add", "multiply")
        kwargs = {"axis": axis, "dtype": dtype} | ({"out": out} if out is not None else {})
        return _call("cumsum", self._ufunc.accumulate, (x,), kwargs)

    def at(self, x: Any, indices: Any, values: Any = None) -> None:
        self._only("at", "add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or")
        if x.dtype.char not in "fdiIlLqQeFD":
            raise TypeError(f"scatter of {x.dtype}")
        a, key, given = x._check()._a, _key(indices), _unwrap(values)
        _launch("scatter", self._ufunc.at, a, key, given)

    def outer(self, x: Any, y: Any, **kwargs: Any) -> Any:
        return self(
            x.reshape(x.shape + (1,) * y.ndim), y.reshape((1,) * x.ndim + y.shape), **kwargs
        )


def _signature(name: str, parameters: Any) -> inspect.Signature | None:
    if parameters is None:
        return None
    return inspect.Signature(
        [
            inspect.Parameter(
                one,
                inspect._ParameterKind(kind),
                default=None if default else inspect.Parameter.empty,
            )
            for one, kind, default in parameters
        ]
    )


class _Module:
    """The functions of CuPy, or of a part of it."""

    def __init__(self, numpy: Any, functions: dict[str, Any], label: str) -> None:
        self._numpy, self._functions, self._label = numpy, functions, label

    def __getattr__(self, name: str) -> Any:
        if name not in self._functions:
            raise AttributeError(f"module {self._label!r} has no attribute {name!r}")
        function = getattr(self._numpy, name)
        signature = _signature(name, self._functions[name])

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "matmul" and len(args) == 3:
                args, kwargs = args[:2], {**kwargs, "out": args[2]}
            if signature is not None:
                try:
                    bound = signature.bind(*args, **kwargs)
                except TypeError as error:
                    raise TypeError(f"cupy.{name}: {error}") from None
                names = list(signature.parameters)
                if "out" in names and names.index("out") < len(
                    args
                ):  # by name, as `_call` knows it
                    at = names.index("out")
                    args, kwargs = args[:at], {**dict(zip(names[at:], args[at:])), **kwargs}
                    if kwargs["out"] is None:
                        del kwargs["out"]
                assert bound is not None
            return _call(name, function, args, kwargs)

        setattr(self, name, call)
        return call


@contextmanager
def _current(number: int) -> Any:
    former, _state.device = _state.device, number
    try:
        yield
    finally:
        _state.device = former


class _Runtime:
    @staticmethod
    def getDeviceCount() -> int:
        return COUNT

    @staticmethod
    def getDevice() -> int:
        return _state.device

    @staticmethod
    def setDevice(number: int) -> None:
        assert 0 <= number < COUNT
        _state.device = number


class _Graph:
    def __init__(self, record: list[Any], device: int) -> None:
        self._record, self._device = record, device

    def launch(self, stream: Any = None) -> None:
        assert _state.device == self._device, "a graph of another device"
        counts.launches += 1
        counts.kernels.append("graph")
        for _, call, args in self._record:
            call(*args)


class _Stream:
    """A stream that is not the default one, which cannot be captured."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.record: list[Any] | None = None
        self._non_blocking, self._device = non_blocking, _state.device
        self._former: Any = None

    def __enter__(self) -> _Stream:
        assert _state.device == self._device
        self._former, _state.stream = _state.stream, self
        return self

    def __exit__(self, *exc: object) -> None:
        _state.stream = self._former

    def begin_capture(self, mode: Any = None) -> None:
        assert self.record is None
        self.record = []

    def end_capture(self) -> _Graph:
        record, self.record = self.record, None
        assert record is not None
        return _Graph(record, self._device)

    def is_capturing(self) -> bool:
        return self.record is not None

    def synchronize(self) -> None:
        counts.syncs += 1


class _Cuda:
    runtime = _Runtime()
    Stream = _Stream

    @staticmethod
    def alloc_pinned_memory(size: int) -> bytearray:
        counts.pinned += 1
        return bytearray(-(-size // 512) * 512)

    @staticmethod
    def is_available() -> bool:
        return True


class _Lib:
    """``cupy.lib``: only ``stride_tricks.as_strided`` and ``sliding_window_view``, which make views."""

    class stride_tricks:
        @staticmethod
        def as_strided(x: Any, shape: Any = None, strides: Any = None) -> Any:
            return x._view(np.lib.stride_tricks.as_strided(x._a, shape, strides))

        @staticmethod
        def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
            view = np.lib.stride_tricks.sliding_window_view
            return x._view(view(x._a, window_shape, axis, writeable=True))


class _Grid:
    """``cupy.ogrid`` and ``cupy.mgrid``."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        found = self._grid[key]
        if isinstance(found, np.ndarray):
            return _new("arange", found)
        return tuple([_new("arange", one) for one in found])


class _Namespace(_Module):
    ndarray = Array
    newaxis, pi, e, inf, nan, euler_gamma = None, np.pi, np.e, np.inf, np.nan, np.euler_gamma
    cuda = _Cuda()
    ogrid, mgrid = _Grid(np.ogrid), _Grid(np.mgrid)

    def __init__(self) -> None:
        super().__init__(np, _NAMES["functions"], "cupy")
        self.linalg = _Module(np.linalg, _NAMES["linalg"], "cupy.linalg")
        self.fft = _Module(np.fft, _NAMES["fft"], "cupy.fft")
        self.lib = _Lib()

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES["ufuncs"]:
            found: Any = getattr(np, name)
            found = (
                _ufunc(name, found) if isinstance(found, np.ufunc) else super().__getattr__(name)
            )
            setattr(self, name, found)
            return found
        if isinstance(getattr(np, name, None), type):  # dtypes
            return getattr(np, name)
        return super().__getattr__(name)

    def empty(self, shape: Any, dtype: Any = float, order: str = "C") -> Array:
        return Array(np.empty(shape, dtype, order))  # type: ignore[call-overload]

    def empty_like(self, x: Any, dtype: Any = None, order: str = "K", shape: Any = None) -> Array:
        return Array(np.empty_like(x._a, dtype, order, True, shape))  # type: ignore[call-overload]

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Array:
        if type(a) is Array:
            if a._number != _state.device:
                a = a.copy()
            return a if dtype is None else a.astype(dtype, copy=False)
        if isinstance(a, np.ndarray):
            counts.uploads += 1
        elif _flat(a):
            raise TypeError("a list of device arrays")
        return Array(np.array(a, dtype))

    array = ascontiguousarray = asarray

    def asnumpy(self, a: Any) -> np.ndarray:
        return a.get()

    def copyto(self, dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
        if isinstance(src, np.ndarray):
            raise TypeError("copyto from the host")
        source, a, mask = _unwrap(src), dst._check()._a, _unwrap(where)

        def copy() -> None:
            with np.errstate(all="ignore"):
                np.copyto(a, source, casting=casting, **({} if mask is None else {"where": mask}))  # type: ignore[call-overload]

        _launch("copyto", copy)

    def result_type(self, *args: Any) -> Any:
        return np.result_type(*[one.dtype if type(one) is Array else one for one in args])


namespace: Any = _Namespace()


def to_host(value: Any) -> np.ndarray:
    """Return a copy of an array of the stand-in, without counting it."""
    return value._a.copy()


def collect() -> None:
    """Let memory that nothing refers to go back to its pool."""
    gc.collect()


class _Special:
    """The functions of ``cupyx.scipy.special`` that are used, from the kernels of the host."""

    def __getattr__(self, name: str) -> Any:
        from reactgrad.backend import find_binder

        def function(*xs: np.ndarray) -> np.ndarray:
            out = np.empty(np.broadcast_shapes(*[x.shape for x in xs]), xs[0].dtype)
            find_binder({"ndtr": "norm_cdf"}.get(name, name), "cpu")(list(xs), out, ())()
            return out

        return lambda *xs: _call(name, function, xs, {})


special: Any = _Special()
