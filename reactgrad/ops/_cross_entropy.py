"""Cross entropy of scores and labels: of numbers of classes one kernel, and one for its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.ops._apply import Handle, apply, stacked
from reactgrad.ops._layout import ALIAS, expand_dims, known_shape
from reactgrad.ops._op import LINEAR, Attrs, Op
from reactgrad.ops._pick import agree, infer_pick, pick
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops._softmax import float_dtype, log_softmax, softmax, softmax_grad


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x = specs[0]
    costs = infer_pick("cross_entropy", specs, attrs)
    if x.shape[attrs[0]] == 0:
        raise ShapeError(f"cross_entropy of {x!r} along axis {attrs[0]}: there are no classes.")
    return spec(costs.shape, float_dtype("cross_entropy", x.weak or x.dtype), costs.device)


def _infer_grad(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    _, x, _ = specs
    return spec(x.shape, promote(specs[:2]), common_device("cross_entropy_grad", specs))


def _grad(g: Any, x: Any, labels: Any, axis: int) -> Any:
    """``g * (softmax(x) - 1)`` at the label of each row of `x`, ``g * softmax(x)`` elsewhere."""
    return apply(CROSS_ENTROPY_GRAD, (g, x, labels), (axis,))


def _along(t: Any, x: Any, labels: Any, axis: int) -> Any:
    """The reverse: what a direction `t` in `x` changes of the cost of each row."""
    return sum(t * softmax(x, axis), axis) - pick(t, labels, axis)


CROSS_ENTROPY_GRAD = Op(
    "cross_entropy_grad",
    _infer_grad,
    (
        lambda h, ans, g, x, labels, axis: _along(h, x, labels, axis),
        lambda h, ans, g, x, labels, axis: softmax_grad(
            h * expand_dims(g, axis), softmax(x, axis), axis
        ),
        None,
    ),
    (
        LINEAR,
        lambda t, ans, g, x, labels, axis: (
            expand_dims(g, axis) * softmax_grad(t, softmax(x, axis), axis)
        ),
        None,
    ),
    loop_dtypes=lambda specs: (*[promote(specs[:2])] * 2, np.dtype(np.intp)),
)

CROSS_ENTROPY = Op(
    "cross_entropy",
    _infer,
    (lambda g, ans, x, labels, axis: _grad(g, x, labels, axis), None),
    (lambda t, ans, x, labels, axis: _along(t, x, labels, axis), None),
    loop_dtypes=lambda specs: (
        float_dtype("cross_entropy", specs[0].weak or specs[0].dtype),
        np.dtype(np.intp),
    ),
)


def cross_entropy(logits: Any, labels: Any, /, axis: int = -1) -> Any:
    """What each sample's label costs under the softmax of its scores: ``-log(softmax(logits))`` there.

    Parameters
    ----------
    logits : Var or array_like
        Scores of the classes along `axis`; real numbers, of any shape.
    labels : Var or array_like
        Integers: the number of each sample's class, in the shape of `logits` without `axis`. Else the
        probability of each class, in the shape of `logits`: the costs are summed with these as weights,
        and gradients reach them, too.
    axis : int
        Along which the classes lie.

    Returns
    -------
    Var
        One number a sample, in the shape of `logits` without `axis`: take the ``mean()``. A class whose
        score is minus infinity costs nothing as long as no label is there; among probabilities even 0 of
        it gives NaN.

    Raises
    ------
    ShapeError
        If the labels do not fit the scores, or there are no classes.
    AxisError
        If `logits` has no such axis.
    DTypeError
        For complex numbers.
    IndexingError
        When it is computed, if no class has a label's number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cross_entropy([[2.0, 0.0], [0.0, 0.0]], [0, 1])
    >>> y.value
    array([0.12692801, 0.69314718])
    """
    try:
        axis = int(axis.__index__())
    except AttributeError:
        raise DTypeError(
            f"cross_entropy: axis={axis!r}; classes lie along one axis, an integer."
        ) from None
    wanted: Any = stacked(labels)
    graph = _graph_of(wanted)
    if graph is None:
        wanted = np.asarray(wanted)
    elif _graph_of(logits) is None:
        logits = graph._apply(ALIAS, (stacked(logits),), ())
    if wanted.dtype.kind in "iu":
        return apply(CROSS_ENTROPY, (stacked(logits), wanted), (axis,))
    log_probabilities = log_softmax(logits, axis)
    scores, given = known_shape(log_probabilities), wanted.shape
    if scores is not None and not agree(scores, given):
        raise ShapeError(
            f"cross_entropy of scores of shape {scores} with labels of shape {given} and dtype "
            f"{wanted.dtype}: labels that are not integers are the probability of each class, in the shape "
            "of the scores. The numbers of classes are integers: labels.astype(int)."
        )
    return -sum(wanted * log_probabilities, axis)


def _graph_of(x: Any) -> Any:
    return x._graph if isinstance(x, Handle) else None
