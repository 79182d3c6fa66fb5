"""NumPy's functions called on Vars: ``np.tanh(var)``, ``np.concatenate([var, ...])`` build nodes."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._calls import misfit
from reactgrad._errors import DTypeError, ImplicitValueError, ParameterError
from reactgrad.ops import UFUNCS
from reactgrad.ops._families import for_numpy
from reactgrad.ops._join import converted
from reactgrad.ops._shapes import normal_axes


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """Return the node of a ufunc of NumPy called on Vars (``__array_ufunc__``).

    Raises
    ------
    DTypeError
        If no op computes it, or an argument such as ``out`` or ``where`` is given.
    """
    out = kwargs.pop("out", None)
    if out is not None:
        raise ImplicitValueError(
            f"np.{ufunc.__name__}(..., out=...), also as in `array += x`, would write a value that no "
            "version knows. Use the result as a node, `y = array + x`, and .set(...) to change a leaf."
        )
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if method != "__call__":  # imported late: few programs call them
        from reactgrad.ops._ufunc_methods import call_method, outer
    if method not in ("__call__", "outer"):
        options = {key: value for key, value in kwargs.items() if not _is_default(key, value)}
        found = call_method(ufunc, method, inputs, options)
        if found is None:
            raise _unknown(name)
        return found
    function = UFUNCS.get(ufunc) or _of_library(ufunc)
    if function is None:
        raise _unknown(f"{_library(ufunc)}{name[2:]}")
    # The axis of a function of vectors, such as np.vecdot.
    options = {"axis": kwargs.pop("axis")} if ufunc.signature and "axis" in kwargs else {}
    _refuse(name, kwargs)
    return function(*inputs, **options) if method == "__call__" else outer(function, *inputs)


# Names of scipy.special, and what those functions are called here.
_OF_SCIPY = {
    **{name: name for name in ("erf", "erfc", "exp2", "expm1", "log1p")},
    "expit": "sigmoid",
    "log_expit": "log_sigmoid",
}
# Those that have no such name here, or another meaning: in a file that is loaded when one is called.
_APART = frozenset(("psi", "kl_div", "yn", "kn", "j0", "j1", "y0", "y1", "k0", "k1"))


def _library(ufunc: np.ufunc) -> str:
    """Return the library of a ufunc, as a program writes it."""
    special = sys.modules.get("scipy.special")
    if getattr(special, ufunc.__name__, None) is ufunc:
        return "scipy.special"
    return "np"


def _of_library(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return what builds the node of a ufunc of NumPy or of ``scipy.special``, by its name."""
    if getattr(np, ufunc.__name__, None) is ufunc:
        return for_numpy(ufunc)
    if _library(ufunc) == "np":  # one that somebody has made
        return None
    if ufunc.__name__ in _APART:
        from reactgrad.ops.special._of_scipy import OF_SCIPY

        return OF_SCIPY[ufunc.__name__]
    name = _OF_SCIPY.get(ufunc.__name__, ufunc.__name__)
    return getattr(ops, name) if name in ops.PLACES or ufunc.__name__ in _OF_SCIPY else None


def array_function(function: Any, args: Any, kwargs: Any) -> Any:
    """Return the node of a function of NumPy called on Vars (``__array_function__``).

    Raises
    ------
    DTypeError
        If no op computes it, or the op does not take these arguments.
    """
    adapter = _FUNCTIONS.get(function) or for_numpy(function)
    if adapter is None:
        module = function.__module__.replace("numpy", "np", 1)
        if function.__name__ in _WRITERS:
            raise DTypeError(
                f"{module}.{function.__name__} of a Var: files hold values. Pass x.value, or write the whole graph "
                "with g.save(path)."
            )
        raise _unknown(f"{module}.{function.__name__}")
    names = _before_out(function)
    if names is not None and len(args) > len(names):  # `out` by position, and what stands behind it
        behind = _names(function)[len(names) : len(args)]
        kwargs = {**kwargs, **dict(zip(behind, args[len(names) :], strict=True))}
        args = args[: len(names)]
    given = {name: value for name, value in kwargs.items() if not _is_default(name, value)}
    try:
        return adapter(*args, **given)
    except TypeError:
        # Only now, since it costs more than most nodes: were these arguments at fault?
        found = misfit(f"np.{function.__name__} on a Var", adapter, args, given)
        if found is None:
            raise
        try:
            raise found from None
        finally:
            del found  # its traceback holds this frame


_WRITERS = frozenset(("save", "savez", "savez_compressed", "savetxt"))
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@lru_cache(maxsize=1024)
def _names(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments by position of a function of NumPy; none if it does not tell them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple([one.name for one in parameters if one.kind in _BY_POSITION])


@lru_cache(maxsize=1024)
def _before_out(function: Any) -> tuple[str, ...] | None:
    """Return the names of the arguments before ``out``; ``None`` if it has no such argument."""
    names = _names(function)
    return names[: names.index("out")] if "out" in names else None


_DEFAULTS = {"out": None, "dtype": None, "initial": None, "order": "C", "casting": "same_kind"}


def _is_default(name: str, value: Any) -> bool:
    """Return whether an argument has NumPy's default value and so may be left out."""
    if value is np._NoValue or (name == "where" and value is True):
        return True
    if name == "overwrite_input":  # a permission that nobody has to use
        return True
    return name in _DEFAULTS and isinstance(value, str | None) and value == _DEFAULTS[name]


def _refuse(name: str, kwargs: Any) -> None:
    left = {name: value for name, value in kwargs.items() if not _is_default(name, value)}
    if left:
        raise ParameterError(
            f"{name} on a Var does not take {', '.join(left)}: use rg.where and .astype instead."
        )


def _unknown(name: str) -> DTypeError:
    return DTypeError(
        f"{name} has no op here, so it cannot build a node. Wrap it to call it on the values (without "
        f"a gradient, or with vjp=), all arguments as they were: rg.lift({name})(x, ...), or, where it "
        f"takes a list, rg.lift(lambda *xs: {name}(xs))(x, y); or take the value now: x.value."
    )


# Adapters with NumPy's parameter names and order, so that calls written for NumPy bind the same way.
def _sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    return ops.sum(a, axis, keepdims=keepdims, dtype=dtype, initial=initial, where=where)


def _mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, where: Any = True
) -> Any:
    return ops.mean(a, axis, keepdims=keepdims, dtype=dtype, where=where)


def _max(
    a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return ops.max(a, axis, keepdims=keepdims, initial=initial, where=where)


def _min(
    a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return ops.min(a, axis, keepdims=keepdims, initial=initial, where=where)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return ops.clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


def _concatenate(
    arrays: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    return ops.concatenate(arrays, axis, dtype=dtype, casting=casting)


def _stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return converted("stack", ops.stack(arrays, axis), dtype, casting)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return list(ops.split(ary, indices_or_sections, axis))


def _transpose(a: Any, axes: Any = None) -> Any:
    return ops.transpose(a, axes)


def _reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    return ops.reshape(a, shape, order, copy=copy)


def _broadcast_to(array: Any, shape: Any) -> Any:
    return ops.broadcast_to(array, shape)


def _expand_dims(a: Any, axis: Any) -> Any:
    return ops.expand_dims(a, axis)


def _squeeze(a: Any, axis: Any = None) -> Any:
    return ops.squeeze(a, axis)


def _where(condition: Any, *values: Any) -> Any:
    return ops.where(condition, *values)


def _shape(a: Any) -> Any:
    return a.shape


def _ndim(a: Any) -> int:
    return a.ndim


def _size(a: Any, axis: Any = None) -> int:
    if axis is None:
        return a.size
    shape = a.shape
    return math.prod([shape[one] for one in normal_axes("size", axis, len(shape))])


def _real(val: Any) -> Any:
    return ops.real(val)


def _imag(val: Any) -> Any:
    return ops.imag(val)


def _angle(z: Any, deg: bool = False) -> Any:
    return ops.angle(z) * (180.0 / np.pi) if deg else ops.angle(z)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _max,
    np.min: _min,
    np.amax: _max,
    np.amin: _min,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.split: _split,
    np.transpose: _transpose,
    np.reshape: _reshape,
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.where: _where,
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
    np.real: _real,
    np.imag: _imag,
    np.angle: _angle,
}


def mirror(function: Any, build: Callable[..., Any]) -> None:
    """Register `build` as the call that makes the node where a function of NumPy gets a Var.

    Raises
    ------
    DTypeError
        If the function builds another op already.
    """
    table: dict[Any, Any] = UFUNCS if isinstance(function, np.ufunc) else _FUNCTIONS  # type: ignore[assignment]
    former = table.get(function)
    if former is not None and former.__name__ != build.__name__:
        raise DTypeError(
            f"np.{function.__name__} builds the op {former.__name__!r} on Vars already; give this op "
            "another function, or none."
        )
    table[function] = build
