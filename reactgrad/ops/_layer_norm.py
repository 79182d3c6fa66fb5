"""Layer normalisation (Ba, Kiros and Hinton, 2016): one op for the value, one for its gradient."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Op
from reactgrad.ops._reduce import Axis, axis_of, mean
from reactgrad.ops._softmax import alike, rowwise


def _average(x: Any, axis: Axis) -> Any:
    return mean(x, axis, keepdims=True)


def _grad(g: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    """Return ``(g - mean(g) - y * mean(g * y)) / std(x)`` for the standardized rows `y` of `x`."""
    return apply(STANDARDIZE_GRAD, (g, y, x), (axis, eps))


def _over_std(h: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    """Return ``h / std(x)`` for the standardized rows `y` of `x`."""
    return apply(OVER_STD, (h, y, x), (axis, eps))


def _std_slope(h: Any, ans: Any, g: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    """Return the gradient by `x` of what is divided by std(x), in which `y` stays as it is."""
    return _over_std(-y * _average(h * ans, axis), y, x, axis, eps)


def _std_jvp(t: Any, ans: Any, g: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    return _over_std(-ans * _average(t * y, axis), y, x, axis, eps)


# The standard deviation as an op of its own: its square could leave the dtype. The derivative by x
# counts that y follows from it.
OVER_STD = Op(
    "over_std",
    alike("over_std"),
    (lambda h, ans, g, y, x, axis, eps: _over_std(h, y, x, axis, eps), None, _std_slope),
    (LINEAR, None, _std_jvp),
)


def _by_y(h: Any, ans: Any, g: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    both = h * _average(g * y, axis) + g * _average(h * y, axis)
    return _over_std(-both, y, x, axis, eps)


def _jvp_y(t: Any, ans: Any, g: Any, y: Any, x: Any, axis: Axis, eps: float) -> Any:
    both = t * _average(g * y, axis) + y * _average(g * t, axis)
    return _over_std(-both, y, x, axis, eps)


STANDARDIZE_GRAD = Op(
    "standardize_grad",
    alike("standardize_grad"),
    (lambda h, ans, g, y, x, axis, eps: _grad(h, y, x, axis, eps), _by_y, _std_slope),
    (LINEAR, _jvp_y, _std_jvp),
)

# The Jacobian is symmetric: one rule for both modes.
_RULES = (lambda g, ans, x, axis, eps: _grad(g, ans, x, axis, eps),)

STANDARDIZE = Op("standardize", rowwise("layer_norm"), _RULES, _RULES)


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, /, *, axis: Axis = -1, eps: float = 1e-5
) -> Any:
    """Return `x` with rows moved to mean 0 and scaled to variance 1, then ``* weight + bias``.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.
    weight, bias : Var, array_like or None
        Of a shape that broadcasts with `x`; ``None`` for none.
    axis : int, tuple of int or None
        The axes of a row; ``None`` for all of `x`.
    eps : float
        Added to the variance, which is the mean of the squared deviations in the row, without a
        correction for samples.

    Returns
    -------
    Var
        ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    DTypeError
        For complex numbers, or an `eps` that is no number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.layer_norm([[1.0, 3.0]], [1.0, 2.0], 10.0, eps=0.0)
    >>> y.value
    array([[ 9., 12.]])
    """
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        raise DTypeError(
            f"layer_norm: eps={eps!r:.60}; it is a number, fixed when the node is built."
        )
    if isinstance(weight, list | tuple) and all(type(n) is int for n in weight):
        raise DTypeError(
            f"layer_norm: weight={weight!r:.60}. To normalise over the last axes write axis=, as axis=-1 or "
            "axis=(-2, -1); weights are a Var or an array."
        )
    y = apply(STANDARDIZE, (x,), (axis_of(axis), float(eps)))
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias
