"""The kernels of NumPy that compute large arrays by blocks, with the cost of one element.

On import this module replaces the binders of ``numpy._numpy`` by binders that give large arrays an
``Elementwise`` or ``Reduction`` step, and small ones the step that they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from reactgrad.backend._registry import (
    Binder,
    Direct,
    Fits,
    Kernel,
    find_binder,
    register_binder,
    register_overwriting,
)
from reactgrad.backend.blocks import _strips
from reactgrad.backend.blocks._strips import Elementwise, Reduction, is_large
from reactgrad.backend.numpy import _chain
from reactgrad.backend.numpy import _numpy as _numpy
from reactgrad.backend.numpy._stretched import stretched
from reactgrad.backend.numpy._sums import axes_of, is_short

Attrs = tuple[Any, ...]

_CHEAP = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_not", "isnan", "isfinite"),
    *("add", "subtract", "multiply", "divide", "negative", "absolute", "sign", "floor", "ceil"),
    *("sqrt", "square", "reciprocal", "clip", "where", "astype", "relu"),
    *("relu_grad", "unit", "angle_slope", "one_minus_square", "real", "imag", "conj"),
)
# For these NumPy has loops made for AVX-512, which cost a third.
_VECTORIZED = (
    *("power", "arctan2", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid"),
    *(
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "tanh_backward",
        "sigmoid_backward",
    ),
)
_DEAR = ("floor_divide", "remainder", "hypot", "logaddexp", "sin", "cos", "gaussian")
_DEAREST = ("erf", "erfc", "norm_cdf")  # many passes over blocks in the cache

# By op: the operands over which the result may be written, since their elements are not read after the
# element of the result at the same place has been written.
_OVERWRITTEN = {
    **dict.fromkeys({*_numpy.UFUNCS, "maximum", "minimum", "relu_grad"}, (0, 1)),
    **dict.fromkeys(("astype", "clip", "relu", "sigmoid"), (0,)),
    "tanh_backward": (0, 1, 2),
    "sigmoid_backward": (2,),
    "where": (2,),
}


def _always(attrs: Attrs) -> bool:
    return True


@cache
def _vectorized() -> float:
    """Return the cost of an element in the ``_VECTORIZED`` loops that NumPy uses on this processor."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # NumPy 2.0
        return 8.0
    found = opt_func_info(
        func_name="^tanh$", signature="float64"
    )  # empty if there is only one loop
    loops = [loop["current"] for each in found.values() for loop in each.values()]
    return 3.0 if {"X86_V4", "AVX512_SKX"}.intersection(loops) else 8.0


def _elementwise(
    bind: Binder,
    cost: float | None = 1.0,
    fits: Fits = _always,
    kernel: Kernel | None = None,
    *,
    broadcasts: bool = True,
) -> Binder:
    """Return a binder of an elementwise kernel that gives large results an ``Elementwise`` step.

    A cost of ``None`` stands for that of ``_VECTORIZED``. `broadcasts` is true if all operands
    broadcast to the result.
    """
    direct = bind.kernel if type(bind) is Direct else None
    kernel = direct or kernel

    def bound(inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], object]:
        # Every node is bound here, and most results are numbers, or small with operands of one shape:
        # these are recognised without a call of a Python function.
        size = out.size
        if broadcasts and (size > 1 or (size and out.ndim > 1)):
            shape = out.shape
            for one in inputs:
                if type(one) is not np.ndarray:
                    continue
                if one.shape != shape:
                    apart = one.size == size or (one.size == 1 and one.ndim)
                else:
                    apart = not one.strides[-1]
                if apart:
                    inputs = stretched(inputs, out)
                    break
        small = size < _strips.settings.threshold
        if small and direct is not None:
            return partial(direct, *inputs, out, *attrs)
        if small or not is_large(out) or any(map(depends_on_place, inputs)) or not fits(attrs):
            return bind(inputs, out, attrs)
        price = _vectorized() if cost is None else cost
        if kernel is not None and not attrs:
            return Elementwise(kernel, [*inputs, out], price)
        prepared = partial(_compute, bind, attrs)
        return Elementwise(prepared, [*inputs, out], price, one_pass=kernel is not None)

    return bound


def _compute(bind: Binder, attrs: Attrs, *arrays: Any) -> None:
    *inputs, out = arrays
    bind(inputs, out, attrs)()


def _maximum(x: Any, y: Any, out: Any) -> None:
    np.maximum(x, y, out=out)


def _minimum(x: Any, y: Any, out: Any) -> None:
    np.minimum(x, y, out=out)


def depends_on_place(x: Any) -> bool:
    """Return whether the bits of a result may depend on its place, so that blocks would change them.

    Products of complex numbers are fused or not, depending on the place. With AVX-512, NumPy uses
    different loops for one row that is read backwards and for several. Half floats that are not
    contiguous get another sign of NaN.
    """
    if not isinstance(x, np.ndarray):
        return False
    return (
        x.dtype.kind == "c"
        or min(x.strides, default=0) < 0
        or (x.dtype.char == "e" and not x.flags.c_contiguous)
    )


def _everywhere(attrs: Attrs) -> bool:
    """Return whether an ``accumulate`` with these attributes adds whole arrays only."""
    return all(place is None for place in attrs[1])


def _summable(x: Any) -> bool:
    # Half floats are summed in float32 and rounded once.
    return is_large(x) and x.dtype.char != "e"


def _kept(x: Any, out: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """Return `out` with the reduced axes kept at length 1, and these axes, not negative."""
    axes = axes_of(axis, x.ndim)
    return out.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]), axes


def _reduction(ufunc: np.ufunc, bind: Binder, *, average: bool = False) -> Binder:
    """Return a binder of a reduction that gives large operands a ``Reduction`` step."""

    def bound(inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], object]:
        (x,) = inputs
        if not _summable(x) or (ufunc is np.add and not average and is_short(x, attrs[0], out)):
            return bind(inputs, out, attrs)
        kept, axes = _kept(x, out, attrs[0])
        last = None
        if average:
            count = x.size // kept.size
            last = partial(np.true_divide, kept, count, kept, casting="unsafe")
        return Reduction(ufunc, x, kept, axes, last)

    return bound


def _sum_to(bind: Binder) -> Binder:
    def bound(inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], object]:
        x = inputs[0]
        zero = len(inputs) > 1 and inputs[1].dtype.kind not in "fc"
        if zero or not _summable(x) or x.size == out.size:
            return bind(inputs, out, attrs)
        shape = (1,) * (x.ndim - out.ndim) + out.shape
        axes = [i for i, n in enumerate(shape) if n == 1]
        return Reduction(np.add, x, out.reshape(shape), axes)

    return bound


def in_blocks(names: Iterable[str], cost: float) -> None:
    """Compute large results of these elementwise ops by blocks, with this cost of an element."""
    for name in names:
        register_binder(name, "cpu", _elementwise(find_binder(name, "cpu"), cost))


def _register() -> None:
    prices = ((1.0, _CHEAP), (None, _VECTORIZED), (25.0, _DEAR), (50.0, _DEAREST))
    for cost, names in prices:
        for name in names:
            register_binder(name, "cpu", _elementwise(find_binder(name, "cpu"), cost))
    plain = partial(find_binder, device="cpu")
    for name, kernel in (("maximum", _maximum), ("minimum", _minimum)):
        register_binder(name, "cpu", _elementwise(plain(name), kernel=kernel))
    for name, kernel in (("chain_times", _chain.times), ("chain_over", _chain.over)):
        register_binder(name, "cpu", _elementwise(plain(name), kernel=kernel))
    register_binder(
        "accumulate", "cpu", _elementwise(plain("accumulate"), fits=_everywhere, broadcasts=False)
    )
    register_binder("sum", "cpu", _reduction(np.add, plain("sum")))
    register_binder("mean", "cpu", _reduction(np.add, plain("mean"), average=True))
    register_binder("max", "cpu", _reduction(np.maximum, plain("max")))
    register_binder("min", "cpu", _reduction(np.minimum, plain("min")))
    register_binder("sum_to", "cpu", _sum_to(plain("sum_to")))
    register_binder("sum_like", "cpu", _sum_to(plain("sum_like")))
    for name, operands in _OVERWRITTEN.items():
        register_overwriting(name, "cpu", operands, _always)
    register_overwriting("accumulate", "cpu", (0, 1), _everywhere)


_register()
