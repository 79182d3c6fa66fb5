"""Draws of random numbers: by NumPy's generators, from the place in their stream that a key names.

Elsewhere than in NumPy's memory the numbers are drawn on the host and copied, so that they are the same on
every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend._device import holder
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._gamma import digamma

Call = Callable[[], object]

# Methods of generators that draw without parameters; they write into their result.
STANDARD: Final = ("standard_normal", "standard_exponential", "random")


def _on_host(array: Any) -> Any:
    """Return an array of any device as one of NumPy, and a number as it is."""
    held = None if isinstance(array, np.ndarray) else holder(array)
    return array if held is None else held.to_numpy(array)


def _assign(out: Any, value: Any) -> None:
    """Copy an array of the host into a result on any device."""
    held = holder(out)
    assert held is not None  # a result is an array
    held.assign(out, value)


def stream(key: Any, lane: int = 0) -> np.random.Generator:
    """Return a generator at the beginning of the stream of a key; each lane is a stream of its own."""
    first, second, number, count = _on_host(key).tolist()
    # As arrays: NumPy takes a list of large and small integers for floats, and so loses bits.
    place = np.array([0, lane, count, number], np.uint64)
    words = np.array([first, second], np.uint64)
    return np.random.Generator(np.random.Philox(key=words, counter=place))


# NumPy's exponential draws of float32 are 0 once in some millions, those of float64 never in practice. This is also
# the smallest half float.
_LEAST: Final = np.float32(2.0**-24)
_HALVES: Final = np.float32(2.0**11)  # so many half floats are evenly spaced on [0, 1)


def _bind_standard(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    method, lane = attrs[0], attrs[-1]
    key = inputs[0]
    floored = method == "standard_exponential"
    if type(out) is np.ndarray and out.flags.c_contiguous and out.dtype.char in "fd":
        floored = floored and out.dtype.char == "f"

        def draw() -> None:
            getattr(stream(key, lane), method)(None, out.dtype, out=out)
            if floored:
                np.maximum(out, _LEAST, out=out)

        return draw
    # By name, since dtypes of other libraries have no size.
    name = str(out.dtype)
    wide = np.float64 if name.endswith("float64") else np.float32
    even = method == "random" and wide is np.float32 and not name.endswith("float32")

    def draw_apart() -> None:
        found = getattr(stream(key, lane), method)(out.shape, wide)
        if floored and wide is np.float32:
            found = np.maximum(found, _LEAST)
        elif even:  # rounding could give 1
            found = np.floor(found * _HALVES) / _HALVES
        _assign(out, found)

    return draw_apart


def _bind_method(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    method, core, options = attrs[0], attrs[3], dict(attrs[4])
    key, *operands = inputs
    size = tuple(out.shape[:-1] if core else out.shape)

    def draw() -> None:
        found = [_on_host(one) for one in operands]
        try:
            drawn = getattr(stream(key, attrs[-1]), method)(*found, size=size, **options)
        except (TypeError, ValueError, OverflowError) as error:
            raise _refused(method, error) from None
        _assign(out, np.asarray(drawn).astype(str(out.dtype).rpartition(".")[2], copy=False))

    return draw


def _refused(method: str, error: Exception) -> ParameterError:
    """Return the error for parameters that a generator has refused."""
    return ParameterError(
        f"rg.random.{method} cannot draw with the values that its operands have now: {error}"
    )


def _bind_choice(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    key, *weights = inputs
    return _chosen(key, weights, out, *attrs)


def _bind_choice_along(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    key, of, *weights = inputs
    axis, *rest = attrs
    return _chosen(key, weights, out, of.shape[axis], *rest)


def _chosen(
    key: Any, weights: Sequence[Any], out: Any, length: int, size: Any, replace: bool
) -> Call:
    def draw() -> None:
        p = _on_host(weights[0]) if weights else None
        try:
            found = stream(key).choice(length, size, replace, p)
        except (TypeError, ValueError) as error:
            raise _refused("choice", error) from None
        _assign(out, np.asarray(found))

    return draw


def _bind_permutation(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    if len(inputs) == 1:
        return lambda: _assign(out, stream(inputs[0]).permutation(out.shape[0]))
    # Kept by key: a new value of the operand that gives the length draws nothing anew.
    order: dict[tuple[int, ...], Any] = {}

    def draw() -> None:
        key = tuple(_on_host(inputs[0]).tolist())
        found = order.get(key)
        if found is None:
            found = stream(inputs[0]).permutation(out.shape[0])
            order.clear()
            order[key] = found
        _assign(out, found)

    return draw


def _bind_slope(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:

    def slope() -> None:
        x, alpha = (np.asarray(_on_host(one), np.float64) for one in inputs)
        _assign(out, gamma_slope(*np.broadcast_arrays(x, alpha)))

    return slope


def register(xp: Any, kind: str) -> None:
    """Register the kernels of draws."""
    _register_draws(kind)
    register_kernel("draw", kind, lambda x, key, out, *attrs: xp.copyto(out, x))


def register_standard(device: Any) -> None:
    """Register them for a device of the array API standard."""
    _register_draws(device.kind)
    register_kernel("draw", device.kind, lambda x, key, out, *attrs: device.assign(out, x))


def _register_draws(kind: str) -> None:
    register_binder("standard_draw", kind, _bind_standard)
    register_binder("standard_draw_like", kind, _bind_standard)
    register_binder("method_draw", kind, _bind_method)
    register_binder("gamma_draw", kind, _bind_method)
    register_binder("gamma_slope", kind, _bind_slope)
    register_binder("choice_draw", kind, _bind_choice)
    register_binder("choice_draw_along", kind, _bind_choice_along)
    register_binder("permutation_draw", kind, _bind_permutation)


# --- how a draw of the gamma distribution moves with its parameter -----------------------------

_NODES: Final = 60  # of the quadrature
_TERMS: Final = 30  # of the series for small draws
_DECAYED: Final = 40.0  # where the integrand has fallen to exp of minus this, the integral ends


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def gamma_slope(x: Any, alpha: Any) -> Any:
    """Return the derivative of a draw `x` of the gamma distribution by its parameter `alpha`.

    The draw moves so that its probability stays: minus the derivative of the distribution function by `alpha`,
    divided by the density (Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018). The
    derivative of the distribution function is an integral of ``density * (log(t) - digamma(alpha))``. It
    is taken over the side of `x` on which the integrand has one sign, so that nothing cancels, with
    ``t = x * exp(+-s)``, by Gauss-Legendre quadrature. Up to 1 the power series of the distribution function is
    differentiated.
    """
    with np.errstate(all="ignore"):
        small = x <= 1.0
        slope = np.empty(x.shape)
        slope[small] = _by_series(x[small], alpha[small])
        slope[~small] = _by_integral(x[~small], alpha[~small])
        return slope


def _by_series(x: Any, alpha: Any) -> Any:
    logarithm = np.log(x)
    level, factor = digamma(alpha) + 1.0 / alpha, 1.0 / alpha
    total = factor * (level - logarithm)
    for n in range(1, _TERMS):
        level = level + 1.0 / (alpha + n)
        factor = factor * x / (alpha + n)
        total = total + factor * (level - logarithm)
    return np.where(x > 0.0, x * total, 0.0)


def _by_integral(x: Any, alpha: Any) -> Any:
    height = np.log(x) - digamma(alpha)
    sign = np.where(height > 0.0, 1.0, -1.0)
    end = _end(x, alpha, sign)
    total = np.zeros(x.shape)
    for node, weight in zip(*_quadrature(), strict=True):
        s = end * node
        exponent = sign * alpha * s - x * np.expm1(sign * s)
        total += weight * end * np.exp(exponent) * (np.abs(height) + s)
    return x * total


def _end(x: Any, alpha: Any, sign: Any) -> Any:
    """Return where the integrand has decayed, by Newton's method from the right; the exponent is concave."""
    c = _DECAYED / alpha
    below = (c + np.sqrt(c * c + 8.0 * c)) / 2.0
    apart = alpha - x
    above = (apart + np.sqrt(apart * apart + 2.0 * _DECAYED * x)) / x
    s = np.where(sign > 0.0, np.minimum(above, 1e4), below)
    for _ in range(40):
        exponent = sign * alpha * s - x * np.expm1(sign * s)
        slope = sign * (alpha - x * np.exp(sign * s))
        step = (exponent + _DECAYED) / slope
        s = np.where(np.isfinite(step), s - step, s - 1.0)
    return np.maximum(s, 0.0)
