"""Logarithms of sums of exponentials, over axes and running."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.machine._row_loops import use_row_loops
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import equal, exp, isfinite, log, minimum
from reactgrad.ops._layout import squeeze
from reactgrad.ops._operand import nodes_of
from reactgrad.ops._reduce import Axis, attrs_of, axis_in_rule, max, put_back, reduction, sum
from reactgrad.ops._shapes import normal_axis, resolve
from reactgrad.ops._softmax import softmax
from reactgrad.ops._where import where
from reactgrad.ops.reductions._scan import recurrence, row, shifted

add_kernels(_reductions.register, on_host(_reductions.NAMES))
use_row_loops(("logsumexp",))


def _float(name: str, dtype: Any) -> Any:
    found = resolve(np.exp, (dtype,))[-1]
    if found.kind == "c":
        raise DTypeError(f"{name} of {dtype}: it takes real numbers only.")
    return found


def _rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    return times(put_back(g, x, axis, keepdims), softmax(x, axis_in_rule(x, axis)))


def _jvp(t: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    return sum(times(t, softmax(x, axis_in_rule(x, axis))), axis, keepdims=keepdims)


LOGSUMEXP = Op(
    "logsumexp",
    reduction("logsumexp", lambda dtype: _float("logsumexp", dtype), identity=True),
    (_rule,),
    (_jvp,),
)


def _weighted(a: Any, axis: Axis, keepdims: bool, weights: Any) -> Any:
    x, b = nodes_of(a, weights)
    counted = where(equal(b, 0.0), -np.inf, x)
    top = max(counted, axis, keepdims=True).detach()
    top = where(isfinite(top), top, 0.0)
    # What does not count may be larger than all that does, and must not become 0 * inf.
    most = np.log(np.finfo(_float("logsumexp", x.dtype)).max)
    parts = b * exp(minimum(x - top, float(np.floor(most))))
    found = log(sum(parts, axis, keepdims=True)) + top
    return found if keepdims else squeeze(found, axis)


def logsumexp(a: Any, axis: Axis = None, *, keepdims: bool = False, b: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials over axes; nothing overflows.

    Parameters
    ----------
    a : Var or array_like
        Any shape; real numbers, integers give floats.
    axis : int, tuple of int or None
        The axes to sum over; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    b : Var or array_like, optional
        Factors of the exponentials, as in SciPy, of a shape that broadcasts with `a`.

    Returns
    -------
    Var
        NaN where a sum with factors is negative; minus infinity where all elements are, or there are none.

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.logsumexp([1000.0, 1000.0])
    >>> y.item()
    1000.6931471805599
    """
    if b is not None:
        return _weighted(a, axis, keepdims, b)
    return apply(LOGSUMEXP, (a,), attrs_of(axis, keepdims))


def _infer_running(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    one = specs[0]
    normal_axis("logcumsumexp", attrs[0], len(one.shape))
    return spec(one.shape, _float("logcumsumexp", one.dtype), one.device)


def _slope(x: Any, y: Any) -> Any:
    """Return ``exp(x - y)``, and 0 where the sums so far are 0 or infinite."""
    fine = isfinite(y)
    return exp(where(fine, x - where(fine, y, 0.0), -np.inf))


# The sum of all results behind an element, each with its slope: weights that are at most 1, in a recurrence.
def _running_rule(g: Any, ans: Any, x: Any, axis: int) -> Any:
    before = shifted(ans, axis, -np.inf)
    behind = recurrence(
        shifted(_slope(before, ans), axis, 0.0, reverse=True), g, axis, reverse=True
    )
    return times(behind, _slope(x, ans))


def _running_jvp(t: Any, ans: Any, x: Any, axis: int) -> Any:
    before = shifted(ans, axis, -np.inf)
    return recurrence(_slope(before, ans), times(t, _slope(x, ans)), axis)


LOGCUMSUMEXP = Op("logcumsumexp", _infer_running, (_running_rule,), (_running_jvp,))


def logcumsumexp(a: Any, axis: int | None = None) -> Any:
    """Return the logarithm of the running sum of exponentials along an axis; nothing overflows.

    Parameters
    ----------
    a : Var or array_like
        Any shape; real numbers, integers give floats.
    axis : int, optional
        By default all elements are taken as one row.

    Returns
    -------
    Var
        In the shape of `a`, or one row.

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.logcumsumexp([0.0, 0.0, 1000.0])
    >>> print(y.value)
    [0.00000000e+00 6.93147181e-01 1.00000000e+03]
    """
    a, axis = row(a, axis)
    return apply(LOGCUMSUMEXP, (a,), (axis,))
