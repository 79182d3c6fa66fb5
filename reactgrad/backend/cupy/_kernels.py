"""Kernels of CuPy: those of NumPy, and other forms where CuPy has no such call or would wait for the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder, register_kernel
from reactgrad.backend.cupy._capture import CAPTURED, Launching
from reactgrad.backend.cupy._forms import with_numpys_forms
from reactgrad.backend.cupy._keys import device_keys
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._numpy import register_like_numpy

Call = Callable[[], object]


def register_kernels(xp: Any, special: Any, kind: str) -> None:
    """Register all kernels for modules with the names of CuPy and of ``cupyx.scipy.special``."""
    register_like_numpy(with_numpys_forms(xp), kind, partial(device_keys, xp))
    _register_reductions(xp, kind)
    _register_indexing(xp, kind)
    _register_rows(xp, kind)
    _register_errors(xp, special, kind)
    _register_chain(xp, kind)
    for name in CAPTURED:
        register_binder(name, kind, Launching(find_binder(name, kind), xp))


def _register_chain(xp: Any, kind: str) -> None:
    """Register products of the chain rule, see ``numpy._chain``, in memory of their own."""

    def bind(ufunc: Any, both: bool) -> Callable[..., Call]:
        def bound(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            zero = xp.zeros((), out.dtype)
            wrong, none = xp.empty(out.shape, bool), xp.empty(out.shape, bool)
            calls = [partial(ufunc, *inputs, out), partial(xp.equal, inputs[0], zero, none)]
            if both:
                other = xp.empty(out.shape, bool)
                calls += [
                    partial(xp.equal, inputs[1], zero, other),
                    partial(xp.logical_or, none, other, wrong),
                ]
                none, wrong = wrong, none
            calls += [
                partial(xp.isnan, out, wrong),
                partial(xp.logical_and, none, wrong, none),
                partial(xp.copyto, out, zero, "same_kind", none),
            ]
            return InTurn(*calls)

        return bound

    register_binder("chain_times", kind, bind(xp.multiply, True))
    register_binder("chain_over", kind, bind(xp.divide, False))


def _register_reductions(xp: Any, kind: str) -> None:
    # Without the detour of ``_forms``.
    def bind_max(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        return partial(xp.max, inputs[0], attrs[0], out, attrs[1])

    def bind_min(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        return partial(xp.min, inputs[0], attrs[0], out, attrs[1])

    register_binder("max", kind, bind_max)
    register_binder("min", kind, bind_min)


def _register_indexing(xp: Any, kind: str) -> None:
    def copy(x: Any, out: Any, key: Callable[[], Any]) -> None:
        xp.copyto(out, x[key()])

    def bind_gather(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, *indices = inputs
        key = device_keys(xp, attrs[0], indices, x.shape)
        if out is None:  # only the kernel finds out how long the result is
            return lambda: x[key()]
        return partial(copy, x, out, key)

    def chosen(numbers: Any, ndim: int, length: int, axis: int) -> Callable[[], tuple[Any, Any]]:
        """Return a call that gives the index of an element of each row, and where there is none.

        An error would have to wait for the host, so such a row has a result of its own: NaN.
        """
        at = axis % ndim
        grid = [xp.asarray(one) for one in np.indices(numbers.shape, sparse=True)]

        def find() -> tuple[Any, Any]:
            wrong = (numbers < 0) | (numbers >= length)
            known = xp.where(wrong, xp.zeros_like(numbers), numbers)
            return (*grid[:at], known, *grid[at:]), wrong

        return find

    def bind_pick(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, numbers = inputs
        find = chosen(numbers, x.ndim, x.shape[attrs[0]], attrs[0])

        def pick() -> None:
            key, wrong = find()
            xp.copyto(out, x[key])
            if out.dtype.kind in "fc":
                xp.copyto(out, math.nan, where=wrong)

        return pick

    def bind_place(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        g, numbers, _ = inputs
        find = chosen(numbers, out.ndim, out.shape[attrs[0]], attrs[0])

        def place() -> None:
            key, wrong = find()
            out.fill(0)
            out[key] = xp.where(wrong, xp.zeros_like(g), g)

        return place

    register_binder("getitem", kind, bind_gather)
    register_binder("gather", kind, bind_gather)
    register_binder("pick", kind, bind_pick)
    register_binder("place", kind, bind_place)


def _register_rows(xp: Any, kind: str) -> None:
    def total(x: Any, axis: Any) -> Any:
        return xp.sum(x, axis, None, None, True)

    def average(x: Any, axis: Any) -> Any:
        found = total(x, axis)
        return found / (x.size // found.size)

    def below_max(x: Any, axis: Any) -> Any:
        return x - xp.max(x, axis, None, True)

    def softmax(x: Any, axis: Any) -> Any:
        e = xp.exp(below_max(x, axis))
        return e / total(e, axis)

    def softmax_grad(g: Any, y: Any, axis: Any) -> Any:
        apart = g - total(g * y, axis)
        return (apart - total(apart * y, axis)) * y

    def log_softmax(x: Any, axis: Any) -> Any:
        below = below_max(x, axis)
        largest = (below == 0).astype(x.dtype)
        rest = total(xp.exp(below) - largest, axis) + (total(largest, axis) - 1.0)
        return below - xp.log1p(rest)

    def log_softmax_grad(g: Any, y: Any, axis: Any) -> Any:
        e = xp.exp(y)
        apart = g - e * total(g, axis)
        return apart - e * total(apart, axis)

    def scaled(x: Any, axis: Any, eps: float) -> tuple[Any, Any, Any]:
        """Return deviations from the mean and sqrt(variance + eps), all times a factor, and the factor."""
        size = xp.max(xp.abs(x), axis, None, True)
        least = max(eps**0.5, float(np.finfo(x.dtype).smallest_normal))
        scale = xp.exp2(-xp.floor(xp.log2(xp.maximum(size, least))))
        scale = xp.where(xp.isfinite(size), scale, xp.ones_like(scale))
        own = x * scale
        own = own - average(own, axis)
        return own, xp.sqrt(average(own * own, axis) + scale * eps * scale), scale

    def standardize(x: Any, axis: Any, eps: float) -> Any:
        own, deviation, _ = scaled(x, axis, eps)
        return own / deviation

    def over_std(h: Any, y: Any, x: Any, axis: Any, eps: float) -> Any:
        _, deviation, scale = scaled(x, axis, eps)
        return h / (deviation / scale)

    def standardize_grad(g: Any, y: Any, x: Any, axis: Any, eps: float) -> Any:
        own = g - average(g, axis) - y * average(g * y, axis)
        return over_std(own, y, x, axis, eps)

    def standardize_back(g: Any, y: Any, std: Any, axis: Any) -> Any:
        return (g - average(g, axis) - y * average(g * y, axis)) / std

    def standardize_kept(x: Any, out: Any, axis: Any, eps: float) -> None:
        if not x.size:  # rows without elements have no deviation but that of eps
            out.fill(math.sqrt(eps))
            return
        wide = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
        own, deviation, scale = scaled(x.astype(wide, copy=False), axis, eps)
        xp.copyto(out[: x.size], (own / deviation).reshape(-1), "same_kind")
        xp.copyto(out[x.size :], (deviation / scale).reshape(-1), "same_kind")

    register_kernel("standardize_kept", kind, standardize_kept)

    def kernel(function: Callable[..., Any], count: int) -> Callable[..., None]:
        """Return a kernel that calls `function` with `count` operands, half floats in float32."""

        def run(*given: Any) -> None:
            operands, out, attrs = given[:count], given[count], given[count + 1 :]
            wide = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
            if out.size:
                xp.copyto(out, function(*[x.astype(wide, copy=False) for x in operands], *attrs))

        return run

    for function, count in (
        (softmax, 1),
        (softmax_grad, 2),
        (log_softmax, 1),
        (log_softmax_grad, 2),
        (standardize, 1),
        (standardize_grad, 3),
        (standardize_back, 3),
        (over_std, 3),
    ):
        register_kernel(function.__name__, kind, kernel(function, count))


def _register_errors(xp: Any, special: Any, kind: str) -> None:
    """Register the error function and its relatives: those of CUDA, within some units in the last place."""

    def kernel(function: Any) -> Callable[[Any, Any], None]:
        def run(x: Any, out: Any) -> None:
            wide = np.dtype(np.float64 if out.dtype.itemsize >= 8 else np.float32)
            xp.copyto(out, function(x.astype(wide, copy=False)))

        return run

    def gaussian(x: Any, out: Any, scale: float, rate: float) -> None:
        # The square in two parts, see ``numpy._gaussian``; beyond the bound the result is 0.
        z = xp.minimum(xp.abs(x.astype(np.float64, copy=False)), math.sqrt(-800.0 / rate))
        high = z.astype(np.float32).astype(np.float64)
        bell = xp.exp(high * high * rate) * xp.exp((z - high) * (z + high) * rate)
        xp.copyto(out, bell * scale)

    def spacing(x: Any, out: Any) -> None:
        away = xp.nextafter(x, xp.copysign(xp.full_like(x, math.inf), x)) - x
        # Beyond the largest number is none: the numbers below it have the same distance.
        xp.copyto(out, xp.where(xp.isinf(away), x - xp.nextafter(x, xp.zeros_like(x)), away))

    register_kernel("spacing", kind, spacing)
    register_kernel("erf", kind, kernel(special.erf))
    register_kernel("erfc", kind, kernel(special.erfc))
    register_kernel("norm_cdf", kind, kernel(special.ndtr))
    register_kernel("gaussian", kind, gaussian)

    def betainc(a: Any, b: Any, x: Any, out: Any) -> None:
        wide = np.dtype(np.float64 if out.dtype.itemsize >= 8 else np.float32)
        operands = [one.astype(wide, copy=False) for one in (a, b, x)]
        xp.copyto(out, special.betainc(*operands))

    register_kernel("betainc", kind, betainc)
