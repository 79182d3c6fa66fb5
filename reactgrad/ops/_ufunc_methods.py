"""Methods of NumPy's ufuncs called on Vars: ``np.add.reduce(x)``, ``np.multiply.accumulate(x)``, ``np.add.outer(x, y)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError
from reactgrad.ops import UFUNCS
from reactgrad.ops._layout import expand_dims, known_shape
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import started

# By ufunc: the function that reduces with it, and the one that accumulates.
_REDUCE: Final = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.fmax: "nanmax",
    np.fmin: "nanmin",
    np.logical_and: "all",
    np.logical_or: "any",
    np.logaddexp: "logsumexp",
}
_ACCUMULATE: Final = {
    np.add: "cumsum",
    np.multiply: "cumprod",
    np.maximum: "cummax",
    np.minimum: "cummin",
    np.logical_and: "cummin",
    np.logical_or: "cummax",
    np.logaddexp: "logcumsumexp",
}
_ON_TRUTH: Final = (np.logical_and, np.logical_or)

_INSTEAD: Final = {
    "reduceat": (
        "it reduces parts of an axis. Reduce each part and stack the results, "
        "rg.stack([rg.{name}(x[i:j], axis=0), ...])"
    ),
    "at": (
        "it writes into its first operand, and values are never written in place. "
        "rg.index_add and rg.scatter_add return a new value with parts added"
    ),
}


def call_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Any) -> Any:
    """Return the node of a method of a ufunc; ``None`` if no op computes it.

    Raises
    ------
    DTypeError
        For a method that has no node, with what to write; or for an option that no op takes.
    """
    if method in _INSTEAD:
        name = _REDUCE.get(ufunc, "sum")
        raise DTypeError(
            f"np.{ufunc.__name__}.{method} on a Var: {_INSTEAD[method].format(name=name)}; or wrap it, "
            f"rg.lift(lambda x: np.{ufunc.__name__}.{method}(x, ...))(x)."
        )
    if method == "reduce" and ufunc in _REDUCE and len(inputs) == 1:
        return _reduced(ufunc, inputs[0], **options)
    if method == "accumulate" and ufunc in _ACCUMULATE:
        return _accumulated(ufunc, inputs[0], **options)
    return None


def _reduced(
    ufunc: np.ufunc,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    name = _REDUCE[ufunc]
    function: Callable[..., Any] = getattr(ops, name)
    x = node(x, where, initial)
    if axis == 0 and known_shape(x) == ():
        axis = None
    if name in ("sum", "prod"):
        return function(x, axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    if name in ("all", "any"):
        y = function(x, axis, keepdims=keepdims, where=where)
        y = y if initial is None else UFUNCS[ufunc](y, initial)
        return in_dtype(y, dtype)
    x = in_dtype(x, dtype)
    if name != "logsumexp":
        return function(x, axis, keepdims=keepdims, initial=initial, where=where)
    if where is not True:
        x = ops.where(where, x, -np.inf)
    y = function(x, axis, keepdims=keepdims)
    return y if initial is None else ops.logaddexp(y, started(y, initial))


def _accumulated(ufunc: np.ufunc, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
    x = in_dtype(node(x), bool if ufunc in _ON_TRUTH else dtype)
    name = _ACCUMULATE[ufunc]
    if name in ("cumsum", "cumprod"):
        return getattr(ops, name)(x, axis, dtype)
    return in_dtype(getattr(ops, name)(x, axis), dtype)


def outer(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return a function of two operands of each pair of their elements."""
    x, y = node(x, y), node(y, x)
    behind = tuple(range(x.ndim, x.ndim + y.ndim))
    return function(expand_dims(x, behind) if behind else x, y)
