"""Kernels and a device for any namespace of the array API standard.

Only functions of the standard are called; results go into their buffer with ``out[...] = result``.
The standard has no in-place forms, no gather or scatter of repeated indices and no error function.
Positions of indices, and the error function, are therefore computed on the host. This backend is
there to reach many libraries, and to prove that the engine does not depend on NumPy; it is not fast.

The namespace's arrays must be writable and ``xp.reshape(..., copy=False)`` must share memory: those of
array-api-strict, and those of PyTorch through array-api-compat; not those of JAX. CuPy has a device of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from reactgrad._errors import DeviceError, DTypeError
from reactgrad.backend._device import cpu, register_device
from reactgrad.backend._libraries import add_standard_library
from reactgrad.backend._parts import Key, placed, split_key, unbind_key
from reactgrad.backend._registry import find_binder, register_binder, register_kernel
from reactgrad.backend._spec import DType
from reactgrad.backend.array_api._array_api_rows import register_rows, sum_of

Call = Callable[[], object]

# By NumPy's name of a function: the standard's, where it is another one.
_RENAMED = {
    "absolute": "abs",
    "power": "pow",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
# Ops whose operands are converted to the dtype of the result.
_IN_RESULT_DTYPE = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"),
    *("maximum", "minimum"),
    *("hypot", "arctan2", "logaddexp", "negative", "sign", "floor", "ceil"),
    *("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "reciprocal"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
)
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
# The standard has no arithmetic of booleans; these functions do what NumPy's arithmetic does.
_ON_BOOLEANS = {
    "add": "logical_or",
    "maximum": "logical_or",
    "multiply": "logical_and",
    "minimum": "logical_and",
}


class ArrayAPIDevice:
    """The arrays of one namespace.

    Attributes
    ----------
    kind : str
        The name of its devices.
    views : bool
        ``False``: the standard does not promise that arrays share memory, so layout ops copy.
    """

    views = False

    def __init__(self, xp: Any, kind: str) -> None:
        self.xp = xp
        self.kind = kind
        sample = xp.empty((0,))
        self._array = type(sample)
        self._place = _place(sample)

    def owns(self, value: object) -> bool:
        # By class, since arrays of PyTorch and CuPy have no ``__array_namespace__``.
        return isinstance(value, self._array)

    def name_of(self, array: Any) -> str:
        if _place(array) != self._place:
            raise DeviceError(
                f"devices of kind {self.kind!r} are arrays on {self._place}, and this one is on "
                f"{_place(array)}. Move it there first, with the function of its library."
            )
        return self.kind

    def dtype(self, dtype: DType) -> Any:
        """Return the namespace's dtype of the same name.

        Raises
        ------
        DTypeError
            If it has none.
        """
        try:
            return getattr(self.xp, dtype.name)
        except AttributeError:
            raise DTypeError(
                f"devices of kind {self.kind!r} have no dtype {dtype.name}. Convert with "
                ".astype('float32') or .astype('float64') before the op that gives it."
            ) from None

    def dtype_name(self, array: Any) -> str:
        """Return NumPy's name for an array's dtype."""
        return str(array.dtype).rpartition(".")[2]

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return self.xp.empty(shape, dtype=self.dtype(dtype))

    def asarray(self, value: Any, dtype: DType) -> Any:
        wanted = self.dtype(dtype)
        if self.owns(value):
            value = _alone(value)
            return value if value.dtype == wanted else self.xp.astype(value, wanted)
        return self.xp.asarray(value, dtype=wanted)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.xp.reshape(array, shape, copy=False)

    def assign(self, target: Any, value: Any) -> None:
        xp = self.xp
        value = _alone(value) if self.owns(value) else xp.asarray(value)
        value = xp.astype(value, target.dtype)
        target[...] = xp.reshape(value, target.shape) if _size(value) == _size(target) else value

    def hand_out(self, array: Any) -> tuple[Any, bool]:
        # The standard has no read-only arrays: a caller gets a copy, and can change only that.
        return self.xp.asarray(array, copy=True), False

    def to_numpy(self, array: Any) -> np.ndarray[Any, DType]:
        return np.array(np.from_dlpack(array))


def _place(array: Any) -> str:
    """Return the text for the device on which the library itself has an array."""
    return str(getattr(array, "device", ""))


def _alone(array: Any) -> Any:
    """Return an array without the gradient that its library may record for it (PyTorch)."""
    return array.detach() if getattr(array, "requires_grad", False) else array


def _namespace(xp: Any) -> Any:
    """Return the namespace of the standard for a library: itself, or that of array-api-compat for it."""
    if hasattr(xp, "astype") and hasattr(xp, "permute_dims"):
        return xp
    name = getattr(xp, "__name__", type(xp).__name__)
    try:
        return import_module("array_api_compat").array_namespace(xp.empty((0,)))
    except (ImportError, TypeError):
        raise DeviceError(
            f"{name} is no namespace of the array API standard. Install array-api-compat and give "
            f"array_api_compat.{name}."
        ) from None


def register_array_api(xp: Any, kind: str) -> None:
    """Register a namespace of the array API standard as a device kind, with kernels for all ops.

    Its arrays are known by their class. They must all live where ``xp.empty`` makes them. Ops that the
    standard has no functions for, and which have no form of their own for it, raise ``DeviceError``.

    Parameters
    ----------
    xp : module
        The namespace: ``array_api_strict``, ``array_api_compat.torch``; or ``torch`` itself, where
        array-api-compat is installed.
    kind : str
        The name of its devices, other than ``"cpu"``.

    Raises
    ------
    DeviceError
        If `xp` is no such namespace.

    Examples
    --------
    >>> import array_api_strict, reactgrad as rg
    >>> from reactgrad.backend.array_api._array_api import register_array_api
    >>> register_array_api(array_api_strict, "strict")
    >>> g = rg.Graph()
    >>> x = g.input(array_api_strict.asarray([1.0, 2.0]))
    >>> (x * 2.0).numpy()
    array([2., 4.])
    """
    xp = _namespace(xp)
    device = ArrayAPIDevice(xp, kind)
    register_device(device)
    _register_elementwise(xp, kind, device)
    _register_choices(xp, kind, device)
    _register_reductions(xp, kind, device)
    _register_layout(xp, kind)
    _register_indexing(xp, kind, device)
    register_rows(xp, kind, device)
    add_standard_library(device)


def _size(x: Any) -> int:
    size = 1
    for n in x.shape:
        size *= n
    return size


def _standard(xp: Any, name: str) -> Any:
    return getattr(xp, _RENAMED.get(name, name))


def _register_elementwise(xp: Any, kind: str, device: ArrayAPIDevice) -> None:
    def common(operands: Sequence[Any]) -> Any:
        names = [np.dtype(device.dtype_name(x)) for x in operands]
        return device.dtype(np.result_type(*names))

    def in_result_dtype(name: str) -> Callable[..., None]:
        function = _standard(xp, name)
        on_booleans = _ON_BOOLEANS.get(name)

        def kernel(*operands: Any) -> None:
            *values, out = operands
            if out.dtype == xp.bool:
                if on_booleans is not None:
                    out[...] = getattr(xp, on_booleans)(*values)
                else:  # floor and ceil, which leave booleans as they are
                    out[...] = values[0]
                return
            out[...] = function(*[xp.astype(v, out.dtype) for v in values])

        return kernel

    def comparison(name: str) -> Callable[..., None]:
        function = _standard(xp, name)
        host = getattr(np, name)

        def kernel(x: Any, y: Any, out: Any) -> None:
            if isinstance(x, int) or isinstance(y, int):  # a number too large for any dtype here
                x, y = (v if isinstance(v, int) else device.to_numpy(v) for v in (x, y))
                out[...] = xp.asarray(host(x, y))
                return
            dtype = common((x, y))
            x, y = xp.astype(x, dtype), xp.astype(y, dtype)
            if name in ("equal", "not_equal") or "complex" not in str(dtype):
                if dtype == xp.bool and name not in ("equal", "not_equal"):
                    x, y = xp.astype(x, xp.uint8), xp.astype(y, xp.uint8)
                out[...] = function(x, y)
            else:  # NumPy orders complex numbers by their real, then by their imaginary parts
                first, strict = xp.real(x), function(xp.real(x), xp.real(y))
                tie = xp.equal(first, xp.real(y))
                out[...] = xp.where(tie, function(xp.imag(x), xp.imag(y)), strict)

        return kernel

    def truth(x: Any) -> Any:
        return x if x.dtype == xp.bool else xp.not_equal(x, xp.zeros_like(x))

    def logical(name: str) -> Callable[..., None]:
        function = _standard(xp, name)

        def kernel(*operands: Any) -> None:
            *values, out = operands
            out[...] = function(*map(truth, values))

        return kernel

    def question(name: str) -> Callable[..., None]:
        function = _standard(xp, name)
        of_integers = name == "isfinite"

        def kernel(x: Any, out: Any) -> None:
            if xp.isdtype(x.dtype, ("bool", "integral")):
                out[...] = xp.full(out.shape, of_integers, dtype=xp.bool)
            else:
                out[...] = function(x)

        return kernel

    def absolute(x: Any, out: Any) -> None:
        out[...] = x if x.dtype == xp.bool else xp.abs(x)

    def exp2(x: Any, out: Any) -> None:
        x = xp.astype(x, out.dtype)
        out[...] = xp.pow(xp.full(x.shape, 2.0, dtype=out.dtype), x)

    def relu(x: Any, out: Any) -> None:
        out[...] = xp.maximum(x, xp.zeros_like(x))

    def sigmoid(x: Any, out: Any) -> None:
        out[...] = xp.reciprocal(xp.exp(xp.negative(xp.astype(x, out.dtype))) + 1.0)

    def slope(function: Callable[..., Any]) -> Callable[..., None]:
        def kernel(*operands: Any) -> None:
            *values, out = operands
            out[...] = function(*[xp.astype(x, out.dtype) for x in values])

        return kernel

    def part(name: str) -> Callable[[Any, Any], None]:
        function = getattr(xp, name)

        def kernel(x: Any, out: Any) -> None:
            if xp.isdtype(x.dtype, "complex floating"):
                out[...] = function(x)
            else:
                out[...] = xp.zeros_like(x) if name == "imag" else x

        return kernel

    def tanh_grad(g: Any, y: Any, x: Any) -> Any:
        return g / xp.cosh(x) / xp.cosh(x)

    def angle_slope(a: Any, b: Any, length: Any) -> Any:
        return xp.where(length == 0, xp.zeros_like(length), b / length / length)

    def chain_times(a: Any, b: Any) -> Any:
        return xp.where((a == 0) | (b == 0), xp.zeros_like(a * b), a * b)

    def chain_over(g: Any, x: Any) -> Any:
        return xp.where(g == 0, xp.zeros_like(g / x), g / x)

    def astype(x: Any, out: Any, dtype: Any) -> None:
        out[...] = truth(x) if out.dtype == xp.bool else xp.astype(x, out.dtype)

    def bind_on_host(name: str) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            (x,) = inputs
            dtype = np.dtype(device.dtype_name(out))
            result = np.empty(out.shape, dtype)

            def step() -> None:
                value = device.to_numpy(x).astype(dtype)
                find_binder(name, cpu.kind)([value], result, attrs)()
                # A copy, since the next call writes into `result` again.
                out[...] = xp.asarray(result, copy=True)

            return step

        return bind

    for name in _IN_RESULT_DTYPE:
        register_kernel(name, kind, in_result_dtype(name))
    for name in _COMPARISONS:
        register_kernel(name, kind, comparison(name))
    for name in ("logical_and", "logical_or", "logical_not"):
        register_kernel(name, kind, logical(name))
    for name in ("isnan", "isfinite"):
        register_kernel(name, kind, question(name))
    for name in ("erf", "erfc", "norm_cdf", "gaussian"):
        register_binder(name, kind, bind_on_host(name))
    register_kernel("absolute", kind, absolute)
    register_kernel("exp2", kind, exp2)
    register_kernel("relu", kind, relu)
    register_kernel("sigmoid", kind, sigmoid)
    register_kernel("tanh_backward", kind, slope(tanh_grad))
    register_kernel("tanh_grad", kind, slope(lambda g, y: g * (1.0 - y * y)))
    register_kernel("sigmoid_grad", kind, slope(lambda g, y: g * (y * (1.0 - y))))
    register_kernel("sigmoid_backward", kind, slope(lambda g, y, x: g * (y / (xp.exp(x) + 1.0))))
    for name in ("real", "imag", "conj"):
        register_kernel(name, kind, part(name))
    register_kernel("chain_times", kind, slope(chain_times))
    register_kernel("chain_over", kind, slope(chain_over))
    register_kernel("angle_slope", kind, slope(angle_slope))
    register_kernel("unit", kind, slope(lambda a, b, r: a / r))
    register_kernel("one_minus_square", kind, slope(lambda x: (1.0 - x) * (1.0 + x)))
    register_kernel("relu_grad", kind, slope(lambda g, x: xp.where(x <= 0.0, xp.zeros_like(g), g)))
    register_kernel("astype", kind, astype)


def _register_choices(xp: Any, kind: str, device: ArrayAPIDevice) -> None:
    def where(condition: Any, x: Any, y: Any, out: Any) -> None:
        if condition.dtype != xp.bool:
            condition = xp.not_equal(condition, xp.zeros_like(condition))
        out[...] = xp.where(condition, xp.astype(x, out.dtype), xp.astype(y, out.dtype))

    def bind_clip(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        def clip() -> None:
            result = xp.astype(inputs[0], out.dtype)
            for side, bound in zip(attrs[0], inputs[1:], strict=True):
                limit = xp.maximum if side == "l" else xp.minimum
                result = limit(result, xp.astype(bound, out.dtype))
            out[...] = result

        return clip

    def matmul(x: Any, y: Any, out: Any) -> None:
        if out.dtype == xp.bool:
            counts = xp.matmul(xp.astype(x, xp.int64), xp.astype(y, xp.int64))
            out[...] = xp.not_equal(counts, xp.zeros_like(counts))
        else:
            out[...] = xp.matmul(xp.astype(x, out.dtype), xp.astype(y, out.dtype))

    register_kernel("where", kind, where)
    register_binder("clip", kind, bind_clip)

    def linear(x: Any, w: Any, b: Any, out: Any) -> None:
        x, w, b = (xp.astype(one, out.dtype) for one in (x, w, b))
        out[...] = xp.matmul(x, w) + b

    register_kernel("matmul", kind, matmul)
    register_kernel("linear", kind, linear)


def _register_reductions(xp: Any, kind: str, device: ArrayAPIDevice) -> None:
    def total(x: Any, out: Any, axis: Any, keepdims: bool) -> None:
        out[...] = sum_of(xp, xp.astype(x, out.dtype), axis, keepdims)

    def average(x: Any, out: Any, axis: Any, keepdims: bool) -> None:
        if _size(x):
            total(x, out, axis, keepdims)
            out[...] = out / xp.astype(xp.asarray(_size(x) // _size(out)), out.dtype)
        else:
            out[...] = xp.full(out.shape, float("nan"), dtype=out.dtype)

    def extremum(name: str) -> Callable[..., None]:
        function = getattr(xp, name)

        def kernel(x: Any, out: Any, axis: Any, keepdims: bool) -> None:
            if x.dtype == xp.bool:
                x = xp.astype(x, xp.uint8)
            out[...] = xp.astype(function(x, axis=axis, keepdims=keepdims), out.dtype)

        return kernel

    def sum_to(x: Any, out: Any, *attrs: Any) -> None:
        new = x.ndim - out.ndim
        stretched = [new + i for i, n in enumerate(out.shape) if n == 1 != x.shape[new + i]]
        axes = (*range(new), *stretched)
        out[...] = xp.reshape(sum_of(xp, xp.astype(x, out.dtype), axes, True), out.shape)

    def sum_like(x: Any, like: Any, out: Any) -> None:
        if xp.isdtype(like.dtype, "real floating") and xp.isdtype(x.dtype, "complex floating"):
            sum_to(xp.real(x), out)  # a real operand moves along the real axis only
        elif xp.isdtype(like.dtype, ("real floating", "complex floating")):
            sum_to(x, out)
        else:  # integers and booleans have no gradient
            out[...] = xp.zeros_like(out)

    def vdot(x: Any, y: Any, out: Any, shape: Any) -> None:
        out[...] = xp.reshape(xp.sum(x * y, dtype=out.dtype), out.shape)

    register_kernel("vdot", kind, vdot)
    register_kernel("sum", kind, total)
    register_kernel("mean", kind, average)
    register_kernel("max", kind, extremum("max"))
    register_kernel("min", kind, extremum("min"))
    register_kernel("sum_to", kind, sum_to)
    register_kernel("sum_like", kind, sum_like)


def _register_layout(xp: Any, kind: str) -> None:
    def transpose(x: Any, out: Any, axes: tuple[int, ...] | None) -> None:
        order = range(x.ndim)[::-1] if axes is None else [a % x.ndim for a in axes]
        out[...] = xp.permute_dims(x, tuple(order))

    def reshape_like(x: Any, like: Any, out: Any) -> None:
        out[...] = xp.reshape(x, out.shape)

    def broadcast_like(x: Any, like: Any, out: Any) -> None:
        out[...] = xp.broadcast_to(x, out.shape)

    def checked(part: Any, like: Any, out: Any, *attrs: Any) -> None:
        out[...] = xp.astype(part, out.dtype)

    def in_shape_of_out(x: Any, out: Any, *attrs: Any) -> None:
        out[...] = xp.reshape(x, out.shape)

    def broadcast_to(x: Any, out: Any, shape: tuple[int, ...]) -> None:
        out[...] = xp.broadcast_to(x, out.shape)

    def join(function: Any) -> Callable[..., None]:
        def kernel(*operands: Any) -> None:
            *values, out, axis = operands
            out[...] = function([xp.astype(v, out.dtype) for v in values], axis=axis)

        return kernel

    register_kernel("transpose", kind, transpose)
    for name in ("reshape", "expand_dims", "squeeze", "alias", "detach", "scale_grad"):
        register_kernel(name, kind, in_shape_of_out)
    register_kernel("broadcast_to", kind, broadcast_to)
    register_kernel("reshape_like", kind, reshape_like)
    register_kernel("broadcast_like", kind, broadcast_like)
    register_kernel("checked", kind, checked)
    register_kernel("concatenate", kind, join(xp.concat))
    register_kernel("stack", kind, join(xp.stack))


def _register_indexing(xp: Any, kind: str, device: ArrayAPIDevice) -> None:
    def flat(x: Any) -> Any:
        return xp.reshape(x, (-1,))

    def places(shape: tuple[int, ...], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """Return for each element of an index's result its flat place in the operand."""
        return np.arange(int(np.prod(shape))).reshape(shape)[key]

    def positions(shape: tuple[int, ...], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        return places(shape, key).ravel()

    def take(x: Any, at: Any, out: Any) -> None:
        out[...] = xp.reshape(xp.take(flat(x), at, axis=0), out.shape)

    def bind_getitem(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,) = inputs
        at = xp.asarray(positions(tuple(x.shape), attrs[0].parts))
        return partial(take, x, at, out)

    def layers(shape: tuple[int, ...], key: tuple[Any, ...]) -> Iterable[tuple[Any, Any]]:
        """Yield pairs (source of each place, mask) that together say which element goes where.

        The standard cannot add to one place twice in a call. So the k-th pair has the k-th element of
        each place, and no place twice.
        """
        at = positions(shape, key)
        order = np.argsort(at, kind="stable")
        ranks = np.empty(at.size, np.intp)
        starts = np.flatnonzero(np.diff(at[order], prepend=-1))
        counts = np.diff(np.append(starts, at.size))
        ranks[order] = np.arange(at.size) - np.repeat(starts, counts)
        for rank in range(int(ranks.max()) + 1 if at.size else 0):
            chosen = np.flatnonzero(ranks == rank)
            source, mask = (
                np.zeros(int(np.prod(shape)), np.intp),
                np.zeros(int(np.prod(shape)), bool),
            )
            source[at[chosen]], mask[at[chosen]] = chosen, True
            yield xp.asarray(source), xp.asarray(mask)

    def add_layers(out: Any, g: Any, parts: Iterable[tuple[Any, Any]]) -> None:
        total = flat(out)
        values = flat(xp.astype(g, out.dtype))
        nothing = xp.zeros(1, dtype=out.dtype)
        for source, mask in parts:
            total = total + xp.where(mask, xp.take(values, source, axis=0), nothing)
        out[...] = xp.reshape(total, out.shape)

    def host_key(index: Any, indices: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
        return index.filled([None, *[device.to_numpy(i) for i in indices]], shape)

    def gather(x: Any, *operands: Any) -> Any:
        *indices, out, index = operands
        shape = tuple(x.shape)
        at = places(shape, host_key(index, indices, shape))
        if out is None:
            out = xp.empty(at.shape, dtype=x.dtype)
        take(x, xp.asarray(at.ravel()), out)
        return out

    def bind_accumulate(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        shape = tuple(out.shape)
        parts = [
            (x, place, list(layers(shape, place.parts)) if place and not indices else indices)
            for x, place, indices in placed(inputs, attrs[1])
        ]

        def accumulate() -> None:
            (first, place, where), rest = parts[0], parts[1:]
            if place is None:
                out[...] = xp.astype(first, out.dtype)
            else:
                out[...] = xp.zeros(shape, dtype=out.dtype)
                rest = parts
            for x, place, where in rest:
                if place is None:
                    out[...] = out + xp.astype(x, out.dtype)
                elif place.count:
                    add_layers(out, x, layers(shape, host_key(place, where, shape)))
                else:
                    add_layers(out, x, where)

        return accumulate

    def bind_part(key: Callable[..., Key]) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            shape = tuple(inputs[0].shape)
            at = xp.asarray(positions(shape, key(shape, *attrs)))
            return partial(take, inputs[0], at, out)

        return bind

    register_binder("getitem", kind, bind_getitem)
    for name in ("split", "array_split"):
        register_binder(name, kind, bind_part(split_key))
    register_binder("unbind", kind, bind_part(unbind_key))
    register_kernel("gather", kind, gather)
    register_binder("accumulate", kind, bind_accumulate)
