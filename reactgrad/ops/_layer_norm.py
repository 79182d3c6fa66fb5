"""Layer normalisation (Ba, Kiros and Hinton, 2016): one kernel for the rows and their deviations.

The kernel writes the standardised rows, and behind them the deviation of each row, in one array; the two are
views of it, nodes with versions and rules of their own. So the gradient does not look at `x` again. Of the
result of a Python function, whose number of axes is not known, it does: ``STANDARDIZE``, also of files of 0.1.
"""

from __future__ import annotations

from math import prod
from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, add_kernels, register_kernel, spec
from reactgrad.backend._spec import Shape
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._chain import over
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import Axis, axis_of, mean, sum
from reactgrad.ops._shapes import normal_axes
from reactgrad.ops._softmax import alike, rowwise
from reactgrad.scheduler import safe_repr


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


# --- with the deviations kept -------------------------------------------------------------------


def _rows_of(shape: Shape, axis: Axis) -> Shape:
    axes = normal_axes("layer_norm", axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def _size(shape: Shape) -> int | None:
    return None if None in shape else prod(shape)  # type: ignore[arg-type]


def _infer_kept(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    found = rowwise("layer_norm")(specs, attrs)
    size, rows = _size(found.shape), _size(_rows_of(found.shape, attrs[0]))
    length = None if size is None or rows is None else size + rows
    return spec((length,), found.dtype, found.device)


KEPT = Op("standardize_kept", _infer_kept, (None,), (None,))


def _back(g: Any, y: Any, std: Any, axis: Axis) -> Any:
    """Return ``(g - mean(g) - y * mean(g * y)) / std`` for the standardised rows `y`."""
    return apply(BACK, (g, y, std), (axis,))


def _back_by_y(h: Any, ans: Any, g: Any, y: Any, std: Any, axis: Axis) -> Any:
    return -over(h * _average(g * y, axis) + g * _average(h * y, axis), std)


def _back_jvp_y(t: Any, ans: Any, g: Any, y: Any, std: Any, axis: Axis) -> Any:
    return -over(t * _average(g * y, axis) + y * _average(g * t, axis), std)


BACK = Op(
    "standardize_back",
    alike("standardize_back"),
    (
        lambda h, ans, g, y, std, axis: _back(h, y, std, axis),
        _back_by_y,
        lambda h, ans, g, y, std, axis: -over(sum(h * ans, axis, keepdims=True), std),
    ),
    (LINEAR, _back_jvp_y, lambda t, ans, g, y, std, axis: -over(ans * t, std)),
)


def _view_rows(kept: Any, shape: tuple[int, ...], axis: Axis, eps: float) -> Any:
    return kept[: prod(shape)].reshape(shape)


def _view_std(kept: Any, shape: tuple[int, ...], axis: Axis, eps: float) -> Any:
    return kept[prod(shape) :].reshape(_rows_of(shape, axis))


def _infer_rows(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[0].dtype, specs[0].device)


def _infer_std(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(_rows_of(specs[1].shape, attrs[0]), specs[0].dtype, specs[0].device)


def _rows_rule(g: Any, ans: Any, kept: Any, x: Any, *attrs: Any) -> Any:
    return _back(g, ans, apply(STD, (kept, x), attrs), attrs[0])


# The Jacobian is symmetric: one rule for both modes.
ROWS = Op("standardized_rows", _infer_rows, (None, _rows_rule), (None, _rows_rule), view=_view_rows)


def _slope(kept: Any, x: Any, *attrs: Any) -> Any:
    """Return the derivative of a row's deviation by each element: ``y / n``."""
    y = apply(ROWS, (kept, x), attrs)
    size, rows = _size(y.shape), _size(_rows_of(y.shape, attrs[0]))
    if size and rows:
        return y / float(size // rows)
    return y / sum(y * 0.0 + 1.0, attrs[0], keepdims=True)


STD = Op(
    "row_deviations",
    _infer_std,
    (None, lambda g, ans, *rest: g * _slope(*rest)),
    (None, lambda t, ans, *rest: sum(t * _slope(*rest), rest[2], keepdims=True)),
    view=_view_std,
)


def _register(xp: Any, kind: str) -> None:
    def rows(kept: Any, x: Any, out: Any, *attrs: Any) -> None:
        out[...] = xp.reshape(kept[: prod(x.shape)], x.shape)

    def std(kept: Any, x: Any, out: Any, axis: Axis, eps: float) -> None:
        out[...] = xp.reshape(kept[prod(x.shape) :], _rows_of(x.shape, axis))

    register_kernel(ROWS.name, kind, rows)
    register_kernel(STD.name, kind, std)


add_kernels(_register, lambda device: _register(device.xp, device.kind))


def _standardized(x: Any, axis: Axis, eps: float) -> Any:
    """Return rows moved to mean 0 and scaled to variance 1."""
    x = node(x)
    found = x._graph._host.specs[x._slot]
    if found is None:  # a Python function's result, whose number of axes is not known
        return apply(STANDARDIZE, (x,), (axis, eps))
    return apply(ROWS, (apply(KEPT, (x,), (axis, eps)), x), (axis, eps))


def refuse_lengths(name: str, weight: Any) -> None:
    """Refuse the lengths of the normalised axes, which PyTorch takes in the place of weights."""
    if isinstance(weight, list | tuple) and all(type(n) is int for n in weight):
        raise DTypeError(
            f"{name}: weight={safe_repr(weight):.60}. To normalise over the last axes write axis=, as axis=-1 or "
            "axis=(-2, -1); weights are a Var or an array."
        )


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
            f"layer_norm: eps={safe_repr(eps):.60}; it is a number, fixed when the node is built."
        )
    refuse_lengths("layer_norm", weight)
    y = _standardized(node(x, weight, bias), axis_of(axis), float(eps))
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias
