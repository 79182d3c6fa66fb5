"""Kernels that need whole rows, for any namespace of the array API standard; see ``blocks._rows``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reactgrad.backend._device import Device
from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import register_kernel


def sum_of(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the sum of `x` in its dtype; short floats are added up in a longer one."""
    wide = {xp.float32: xp.float64, xp.complex64: xp.complex128}.get(x.dtype, x.dtype)
    found = xp.sum(x, axis=axis, dtype=wide, keepdims=keepdims)
    return found if wide == x.dtype else xp.astype(found, x.dtype)


def register_rows(xp: Any, kind: str, device: Device) -> None:
    """Register kernels for arrays of `device` that only call functions of the standard."""

    def total(x: Any, axis: Any) -> Any:
        return sum_of(xp, x, axis, True)

    def average(x: Any, axis: Any) -> Any:
        return total(x, axis) / (math.prod(x.shape) // math.prod(total(x, axis).shape))

    def below_max(x: Any, axis: Any) -> Any:
        return x - xp.max(x, axis=axis, keepdims=True)

    def softmax(x: Any, axis: Any) -> Any:
        e = xp.exp(below_max(x, axis))
        return e / total(e, axis)

    def softmax_grad(g: Any, y: Any, axis: Any) -> Any:
        apart = g - total(g * y, axis)
        return (apart - total(apart * y, axis)) * y

    def log_softmax(x: Any, axis: Any) -> Any:
        below = below_max(x, axis)
        largest = xp.astype(below == 0, x.dtype)
        rest = total(xp.exp(below) - largest, axis) + (total(largest, axis) - 1.0)
        return below - xp.log1p(rest)

    def log_softmax_grad(g: Any, y: Any, axis: Any) -> Any:
        apart = g - xp.exp(y) * total(g, axis)
        return apart - xp.exp(y) * total(apart, axis)

    def chosen(numbers: Any, shape: tuple[int, ...], axis: int) -> Any:
        """Return a mask that is true at the element of each row along `axis` that has its number.

        Raises
        ------
        IndexingError
            If a row has no such element.
        """
        numbers_check(device.to_numpy(numbers), shape, axis)()
        places = [shape[axis] if i == axis % len(shape) else 1 for i in range(len(shape))]
        every = xp.reshape(xp.arange(shape[axis], dtype=numbers.dtype), tuple(places))
        return xp.equal(xp.expand_dims(numbers, axis=axis), every)

    def pick(x: Any, numbers: Any, out: Any, axis: int) -> None:
        # Not a product: 0 times minus infinity is NaN.
        found = xp.where(chosen(numbers, x.shape, axis), x, xp.zeros_like(x))
        out[...] = xp.sum(found, axis=axis, dtype=out.dtype)

    def place(g: Any, numbers: Any, like: Any, out: Any, axis: int) -> None:
        wide = xp.broadcast_to(xp.expand_dims(g, axis=axis), out.shape)
        out[...] = xp.where(chosen(numbers, out.shape, axis), wide, xp.zeros_like(out))

    def scaled(x: Any, axis: Any, eps: float) -> tuple[Any, Any, Any]:
        """Return deviations from the mean and sqrt(variance + eps), all times a factor, and the factor."""
        size = xp.max(xp.abs(x), axis=axis, keepdims=True)
        least = xp.asarray(max(eps**0.5, float(xp.finfo(x.dtype).smallest_normal)), dtype=x.dtype)
        scale = xp.pow(
            xp.full(size.shape, 2.0, dtype=x.dtype), -xp.floor(xp.log2(xp.maximum(size, least)))
        )
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
        size = math.prod(x.shape)
        if not size:  # rows without elements have no deviation but that of eps
            out[...] = xp.full(out.shape, math.sqrt(eps), dtype=out.dtype)
            return
        own, deviation, scale = scaled(xp.astype(x, out.dtype), axis, eps)
        out[:size] = xp.reshape(own / deviation, (-1,))
        out[size:] = xp.reshape(deviation / scale, (-1,))

    def kernel(function: Callable[..., Any], count: int) -> Callable[..., None]:
        """Return a kernel that calls `function` with `count` operands in the dtype of the result."""

        def run(*given: Any) -> None:
            operands, out, attrs = given[:count], given[count], given[count + 1 :]
            if 0 not in out.shape:
                out[...] = function(*[xp.astype(x, out.dtype) for x in operands], *attrs)

        return run

    register_kernel("softmax", kind, kernel(softmax, 1))
    register_kernel("softmax_grad", kind, kernel(softmax_grad, 2))
    register_kernel("log_softmax", kind, kernel(log_softmax, 1))
    register_kernel("log_softmax_grad", kind, kernel(log_softmax_grad, 2))
    register_kernel("pick", kind, pick)
    register_kernel("place", kind, place)
    register_kernel("standardize", kind, kernel(standardize, 1))
    register_kernel("standardize_grad", kind, kernel(standardize_grad, 3))
    register_kernel("standardize_back", kind, kernel(standardize_back, 3))
    register_kernel("standardize_kept", kind, standardize_kept)
    register_kernel("over_std", kind, kernel(over_std, 3))
