"""The kernels of neurons as compiled loops, for graphs with ``jit``; see ``_compiled``.

Imported only where it is used, since it needs numba, which compiles the loops once, for all
networks, and keeps the result on disk. Formulas are those of ``_weigh`` and ``_activations``, for
one element. ``exp`` and ``tanh`` are written out, so that the compiler computes several elements at
once.
"""

from __future__ import annotations

import math
from functools import cache
from types import FunctionType
from typing import Any, Final

import numpy as np
from numba import cfunc, njit, types

from reactgrad.neat._activations import SELU, SELU_ALPHA

# The number of samples whose partial sums stay in the nearest cache while a neuron's sources are
# added.
BLOCK = 512


def _compile(**options: Any) -> Any:
    return njit(nogil=True, error_model="numpy", **options)


# --- functions of one element --------------------------------------------------------------------


@_compile(fastmath={"contract"})
def _expm1_parts(z: Any) -> Any:
    """Return s and q such that exp(z) = s + s q, where s is a power of two and q = exp(r) - 1, |r|
    < 0.35.

    By Cody and Waite (1980): z = n log(2) + r. The sum of n and 1.5 2^52 has n in its last bits.
    """
    if z < -708.0:  # NaN stays
        z = -708.0
    shifted = z * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (z - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    # The Taylor polynomial by Estrin's scheme, whose products do not wait for each other.
    r2 = r * r
    r4 = r2 * r2
    low = (0.5 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0))
    middle = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0))
    high = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + r2 * (
        1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    )
    q = r + r2 * (low + r4 * (middle + r4 * high))
    s = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return s, q


@_compile()
def _exp(z: Any) -> Any:
    """Return exp(z), for z up to 700; no caller goes beyond."""
    s, q = _expm1_parts(z)
    return s + s * q


@_compile()
def _tanh(z: Any) -> Any:
    s, q = _expm1_parts(2.0 * abs(z))
    e = s * q + (s - 1.0)  # exp(2 |z|) - 1
    t = e / (e + 2.0)
    return -t if z < 0.0 else t


@_compile()
def _clamp(z: Any, limit: Any) -> Any:
    """Return neat-python's ``max(-limit, min(limit, z))``, in which NaN becomes the limit."""
    return max(-limit, min(limit, z))


@_compile()
def _negative(z: Any) -> Any:
    return min(z, 0.0)  # so that exp does not overflow where it is not used


@_compile()
def _sign(z: Any) -> Any:
    return 1.0 if z > 0.0 else (-1.0 if z < 0.0 else z)


@_compile()
def _bell(z: Any) -> Any:
    """Return exp(z) / (1 + exp(z))^2, an even function."""
    tail = _exp(-abs(z))
    return tail / ((1.0 + tail) * (1.0 + tail))


# By function of neat-python: its value and its slope at x.
FORMULAS: Final = {
    "sigmoid": (
        lambda x: 1.0 / (1.0 + _exp(-_clamp(5.0 * x, 60.0))),
        lambda x: 5.0 * _bell(5.0 * x) if abs(5.0 * x) <= 60.0 else 0.0,
    ),
    "tanh": (
        lambda x: _tanh(_clamp(2.5 * x, 60.0)),
        lambda x: 10.0 * _bell(5.0 * x) if abs(2.5 * x) <= 60.0 else 0.0,
    ),
    "sin": (
        lambda x: math.sin(_clamp(5.0 * x, 60.0)),
        lambda x: 5.0 * math.cos(5.0 * x) if abs(5.0 * x) <= 60.0 else 0.0,
    ),
    "gauss": (
        lambda x: _exp(-5.0 * (_clamp(x, 3.4) * _clamp(x, 3.4))),
        lambda x: -10.0 * x * _exp(-5.0 * (x * x)) if abs(x) <= 3.4 else 0.0,
    ),
    "relu": (lambda x: max(0.0, x), lambda x: 1.0 if x > 0.0 else 0.0),
    "elu": (
        lambda x: x if x > 0.0 else _exp(_negative(x)) - 1.0,
        lambda x: 1.0 if x > 0.0 else _exp(_negative(x)),
    ),
    "lelu": (lambda x: x if x > 0.0 else 0.005 * x, lambda x: 1.0 if x > 0.0 else 0.005),
    "selu": (
        lambda x: SELU * x if x > 0.0 else SELU_ALPHA * (_exp(_negative(x)) - 1.0),
        lambda x: SELU if x > 0.0 else SELU_ALPHA * _exp(_negative(x)),
    ),
    "softplus": (
        lambda x: 0.2 * math.log(1.0 + _exp(_clamp(5.0 * x, 60.0))),
        lambda x: 1.0 / (1.0 + _exp(-5.0 * x)) if abs(5.0 * x) <= 60.0 else 0.0,
    ),
    "identity": (lambda x: x, lambda x: 1.0),
    "clamped": (lambda x: _clamp(x, 1.0), lambda x: 1.0 if abs(x) <= 1.0 else 0.0),
    "inv": (lambda x: 0.0 if x == 0.0 else 1.0 / x, lambda x: 0.0 if x == 0.0 else -1.0 / (x * x)),
    "log": (lambda x: math.log(max(1e-7, x)), lambda x: 1.0 / x if x >= 1e-7 else 0.0),
    "exp": (lambda x: _exp(_clamp(x, 60.0)), lambda x: _exp(x) if abs(x) <= 60.0 else 0.0),
    "abs": (lambda x: abs(x), lambda x: _sign(x)),
    "hat": (
        lambda x: 1.0 - abs(x) if abs(x) < 1.0 else 0.0,
        lambda x: -_sign(x) if abs(x) < 1.0 else 0.0,
    ),
    "square": (lambda x: x * x, lambda x: 2.0 * x),
    "cube": (lambda x: x * x * x, lambda x: 3.0 * (x * x)),
}


# --- loops over elements -------------------------------------------------------------------------


_formula: Any = None  # the function of one element; each loop has its own in its scope


@_compile()
def _step(steps: Any) -> int:
    """Return 0 for a gradient that is the same for all samples, such as that of a sum, else 1."""
    return 1 if steps[0] else 0


def _each(args: Any, sizes: Any, steps: Any, data: Any) -> None:
    """Apply a function. Arguments: numbers, result."""
    z, out = args[0], args[1]
    for i in range(sizes[0]):
        out[i] = _formula(np.float64(z[i]))


def _slope(args: Any, sizes: Any, steps: Any, data: Any) -> None:
    """Multiply a gradient by a slope. Arguments: gradient, numbers, result."""
    g, z, out, step = args[0], args[1], args[2], _step(steps)
    for i in range(sizes[0]):
        out[i] = g[i * step] * _formula(np.float64(z[i]))


def _of(loop: FunctionType, formula: Any, name: str) -> FunctionType:
    """Return the loop with this formula.

    It has a name and a scope of its own, since numba finds on disk what has the name and the line of a
    function. With the formula in a closure it would be compiled again in every process.
    """
    scope = {**globals(), "_formula": _compile()(formula)}
    made = FunctionType(loop.__code__, scope, name)
    made.__qualname__ = name
    return made


def _weigh(args: Any, sizes: Any, steps: Any, count: int) -> None:
    """Compute what a neuron takes in. Arguments: sources, genes, result."""
    size, genes, out = sizes[0], args[count], args[count + 1]
    bias, response = genes[0], genes[1]
    if size == 1:
        # A zero of the genes' dtype.
        total = bias - bias
        for k in range(count):
            total += args[k][0] * genes[k + 2]
        out[0] = bias + response * total
        return
    for begin in range(0, size, BLOCK):
        end = min(begin + BLOCK, size)
        for i in range(begin, end):
            out[i] = 0.0
        for k in range(count):
            source, weight = args[k], genes[k + 2]
            if steps[k]:
                for i in range(begin, end):
                    out[i] += source[i] * weight
            else:
                term = source[0] * weight
                for i in range(begin, end):
                    out[i] += term
        for i in range(begin, end):
            out[i] = bias + response * out[i]


@_compile(fastmath={"reassoc", "contract"})
def _sum(g: Any, size: int) -> Any:
    total = g[0] - g[0]
    for i in range(size):
        total += g[i]
    return total


@_compile(fastmath={"reassoc", "contract"})
def _dot(g: Any, source: Any, size: int) -> Any:
    total = g[0] - g[0]
    for i in range(size):
        total += g[i] * source[i]
    return total


def _weigh_genes(args: Any, sizes: Any, steps: Any, count: int) -> None:
    """Compute the gradient for genes. Arguments: gradient, sources, genes, result."""
    size, g, genes, out = sizes[0], args[0], args[count + 1], args[count + 2]
    out[0] = _sum(g, size)
    out[1] = 0.0
    for k in range(count):
        source = args[k + 1]
        one = _dot(g, source, size) if steps[k + 1] or size == 1 else out[0] * source[0]
        out[k + 2] = genes[1] * one
        out[1] += genes[k + 2] * one


def _weigh_source(args: Any, sizes: Any, steps: Any, i: int) -> None:
    """Compute the gradient for source `i`. Arguments: gradient, genes, result."""
    g, genes, out = args[0], args[1], args[2]
    factor = genes[1] * genes[i + 2]
    for j in range(sizes[0]):
        out[j] = g[j] * factor


LOOPS: Final[dict[str, Any]] = {
    "neat_weigh": _weigh,
    "neat_weigh_genes": _weigh_genes,
    "neat_weigh_source": _weigh_source,
    **{name: _of(_each, each, name) for name, (each, _) in FORMULAS.items()},
    **{
        f"{name} slope": _of(_slope, slope, f"{name}_slope")
        for name, (_, slope) in FORMULAS.items()
    },
}


@cache
def address(name: str, dtype: str) -> int | None:
    """Return the address of the compiled loop of this name for a dtype; ``None`` if there is none."""
    of = {"d": types.float64, "f": types.float32}.get(dtype)
    if of is None:
        return None
    numbers = types.CPointer(types.intp)
    form = types.void(types.CPointer(types.CPointer(of)), numbers, numbers, types.intp)
    return cfunc(form, cache=True, error_model="numpy")(LOOPS[name]).address
