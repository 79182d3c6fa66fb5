"""Softmax and its logarithm: for each one op for the value and one for the gradient."""

from __future__ import annotations

from typing import Any, Never

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad._habits import unknown_keyword
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Infer, Op
from reactgrad.ops._elementwise import exp
from reactgrad.ops._reduce import Axis, axis_of, sum
from reactgrad.ops._shapes import broadcast, common_device, normal_axes, promote, resolve


def _float_dtype(name: str, dtype: Any) -> Any:
    """Return the dtype in which a function like exp computes; refuse complex numbers."""
    found = resolve(np.exp, (dtype,))[-1]
    if found.kind == "c":
        raise DTypeError(f"{name} of {dtype}: it takes real numbers only.")
    return found


def rowwise(name: str) -> Infer:
    """Return the shape rule of an op on rows, whose result has the shape of its only operand."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,) = specs
        normal_axes(name, attrs[0], len(one.shape))
        return spec(one.shape, _float_dtype(name, one.weak or one.dtype), one.device)

    return infer


def alike(name: str) -> Infer:
    """Return the shape rule of the gradient of such an op, whose operands have one shape."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        return spec(broadcast(name, specs), promote(specs), common_device(name, specs))

    return infer


def total(x: Any, axis: Axis) -> Any:
    """Return the sum of each row, in a shape that broadcasts with `x`."""
    return sum(x, axis, keepdims=True)


def centred(g: Any, y: Any, axis: Axis) -> Any:
    """Return `g` less its mean in each row, with weights `y` that add up to 1.

    Where one weight is nearly 1, the first difference is a small one of two large numbers. The mean of
    what is left corrects it.
    """
    apart = g - total(g * y, axis)
    return apart - total(apart * y, axis)


# The Jacobian of softmax is symmetric: one op for both modes, and linear in its first operand. The
# gradient at y goes to a softmax only, which ignores what is the same for a whole row. So that part is
# left out, and with it a large number in which digits would be lost; tangents of y add up to 0.
SOFTMAX_GRAD = Op(
    "softmax_grad",
    alike("softmax_grad"),
    (
        lambda h, ans, g, y, axis: softmax_grad(h, y, axis),
        lambda h, ans, g, y, axis: centred(h, y, axis) * centred(g, y, axis),
    ),
    (
        LINEAR,
        lambda t, ans, g, y, axis: _along(t, centred(g, y, axis), y, axis),
    ),
)


def _along(t: Any, g: Any, y: Any, axis: Axis) -> Any:
    return t * g - y * total(g * t, axis)


def softmax_grad(g: Any, y: Any, axis: Axis) -> Any:
    """Return ``y * (g - sum(g * y))`` for the rows of a softmax `y`."""
    return apply(SOFTMAX_GRAD, (g, y), (axis,))


SOFTMAX = Op(
    "softmax",
    rowwise("softmax"),
    (lambda g, ans, x, axis: softmax_grad(g, ans, axis),),
    (lambda t, ans, x, axis: softmax_grad(t, ans, axis),),
)


LOG_SOFTMAX_GRAD = Op(
    "log_softmax_grad",
    alike("log_softmax_grad"),
    (
        lambda h, ans, g, y, axis: centred(h, exp(y), axis),
        lambda h, ans, g, y, axis: -(h * exp(y) * total(g, axis)),
    ),
    (LINEAR, lambda t, ans, g, y, axis: -(t * exp(y) * total(g, axis))),
)

LOG_SOFTMAX = Op(
    "log_softmax",
    rowwise("log_softmax"),
    (lambda g, ans, x, axis: apply(LOG_SOFTMAX_GRAD, (g, ans), (axis,)),),
    (lambda t, ans, x, axis: centred(t, exp(ans), axis),),
)


def softmax(x: Any, /, axis: Axis = -1, **unknown: Never) -> Any:
    """Return exp(x) divided by its sum along an axis; no exponential overflows.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    axis : int, tuple of int or None
        The axes along which the results sum to 1; ``None`` for all.

    Returns
    -------
    Var
        In the shape of `x`. NaN in a row whose elements are all minus infinity, or of which one is
        plus infinity.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.softmax([[0.0, 0.0], [1000.0, 0.0]])
    >>> y.value
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    if unknown:
        raise unknown_keyword("rg.softmax", unknown, ("axis",))
    return apply(SOFTMAX, (x,), (axis_of(axis),))


def log_softmax(x: Any, /, axis: Axis = -1, **unknown: Never) -> Any:
    """Return the logarithm of ``softmax``, without loss of digits where that is near 0 or 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    axis : int, tuple of int or None
        The axes along which the exponentials of the results sum to 1; ``None`` for all.

    Returns
    -------
    Var
        In the shape of `x`. NaN where ``softmax`` is.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.log_softmax([[0.0, 0.0], [1000.0, 0.0]])
    >>> y.value
    array([[-6.93147181e-01, -6.93147181e-01],
           [ 0.00000000e+00, -1.00000000e+03]])
    """
    if unknown:
        raise unknown_keyword("rg.log_softmax", unknown, ("axis",))
    return apply(LOG_SOFTMAX, (x,), (axis_of(axis),))
