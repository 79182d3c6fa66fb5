"""Cross entropy of scores and labels.

It is built of ``log_softmax`` and ``pick``, or a weighted sum. One kernel for both, with one for the gradient,
would have to find the largest score of each row twice: measured with NumPy's calls, it took 7% less time on rows of
1,000 scores, and a third more on rows of ten. With the loops of ``machine._row_loops`` it would save a write and two
reads of the log probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import real_number, whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nodes._handle import Handle, stacked
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._elementwise import not_equal
from reactgrad.ops._layout import known_shape, spread_like
from reactgrad.ops._operand import node
from reactgrad.ops._pick import agree, pick
from reactgrad.ops._reduce import mean, sum
from reactgrad.ops._softmax import log_softmax
from reactgrad.ops._where import where
from reactgrad.ops.neural._losses import counted, picked_loss, reduced
from reactgrad.scheduler import safe_repr


@deferred_each(without=("target",))
def cross_entropy(
    logits: Any,
    labels: Any,
    /,
    axis: int = -1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "none",
) -> Any:
    """Return the cost of each sample's label: ``-log(softmax(logits))`` at the label's class.

    Parameters
    ----------
    logits : Var or array_like
        Scores of the classes along `axis`; real numbers, of any shape.
    labels : Var or array_like
        Integers: the number of each sample's class, in the shape of `logits` without `axis`. Or other
        numbers: the probability of each class, in the shape of `logits`; the costs are summed with
        these as weights, and gradients reach them, too.
    axis : int
        The axis along which the classes lie.
    weight : Var or array_like, optional
        A factor for each class; the mean is then the weighted mean.
    ignore_index : int, optional
        Samples with this label cost nothing, and do not count for the mean.
    label_smoothing : float
        This part of each label's weight goes to all classes alike (Szegedy and others, 2016).
    reduction : {"none", "mean", "sum"}

    Returns
    -------
    Var
        One number a sample, in the shape of `logits` without `axis`, or one for all.
        A class whose score is minus infinity does no harm as long as it is the label of no sample; with
        probabilities as labels, even a probability of 0 for it gives NaN.

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

    Notes
    -----
    PyTorch's function takes the mean by default, and has the classes along axis 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cross_entropy([[2.0, 0.0], [0.0, 0.0]], [0, 1])
    >>> y.value
    array([0.12692801, 0.69314718])
    """
    axis = whole("cross_entropy", "axis", axis)
    wanted: Any = stacked(labels)
    wanted = wanted if isinstance(wanted, Handle) else np.asarray(wanted)
    logits = node(logits, wanted, weight)
    label_smoothing = real_number("cross_entropy", "label_smoothing", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ParameterError(
            f"cross_entropy: label_smoothing={safe_repr(label_smoothing):.40}; it is a part, from 0 to 1."
        )
    log_probabilities: Any = log_softmax(logits, axis)
    if wanted.dtype.kind in "iu":
        _check_numbers(log_probabilities, wanted, axis)
        return _of_numbers(
            log_probabilities, wanted, axis, weight, ignore_index, label_smoothing, reduction
        )
    scores, given = known_shape(log_probabilities), wanted.shape
    if scores is not None and not agree(scores, given):
        raise ShapeError(
            f"cross_entropy of scores of shape {scores} with labels of shape {given} and dtype "
            f"{wanted.dtype}: labels that are not integers are the probability of each class, in the shape "
            "of the scores. The numbers of classes are integers: labels.astype(int)."
        )
    if ignore_index is not None:
        raise ParameterError(
            "cross_entropy: ignore_index is a label, and the labels are probabilities here; give samples that should "
            "not count probabilities of 0."
        )
    if label_smoothing:
        one = log_probabilities._graph.const(np.ones((), log_probabilities.dtype))
        share = label_smoothing / sum(spread_like(one, log_probabilities), axis, keepdims=True)
        wanted = wanted * (1.0 - label_smoothing) + share
    if weight is not None:
        wanted = wanted * _along(weight, log_probabilities, axis)
    return reduced("cross_entropy", -sum(wanted * log_probabilities, axis), reduction)


def _check_numbers(scores: Any, labels: Any, axis: int) -> None:
    """Raise ``ShapeError`` for integers in a shape of something else than the numbers of classes."""
    shape, given = known_shape(scores), labels.shape
    if shape is None or len(given) != len(shape):
        return
    axis %= len(shape)
    short = (*shape[:axis], 1, *shape[axis + 1 :])
    written = f"cross_entropy of scores of shape {shape} with labels of shape {given} and dtype {labels.dtype}"
    if agree(short, given) and shape[axis] != 1:
        raise ShapeError(
            f"{written}: labels that are integers are the number of each sample's class, in the shape of the scores "
            f"without axis {axis}. Write labels.squeeze({axis})."
        )
    if agree(shape, given):
        raise ShapeError(
            f"{written}: labels that are integers are the number of each sample's class, and not a row for each. For "
            f"rows of zeros and ones write labels.argmax({axis}); for probabilities labels.astype(float)."
        )


def _along(weight: Any, like: Any, axis: int) -> Any:
    """Return the factors of the classes in a shape that broadcasts with the scores."""
    node: Any = weight if isinstance(weight, Handle) else like._graph.const(np.asarray(weight))
    after = like.ndim - 1 - axis % like.ndim
    return node if not after else node.reshape(-1, *(1,) * after)


def _of_numbers(
    log_probabilities: Any,
    labels: Any,
    axis: int,
    weight: Any,
    ignore_index: int | None,
    label_smoothing: float,
    reduction: str,
) -> Any:
    """Return the cost of labels that are numbers of classes."""
    if weight is None and ignore_index is None and not label_smoothing:
        return reduced("cross_entropy", -pick(log_probabilities, labels, axis), reduction)
    labels = labels if isinstance(labels, Handle) else log_probabilities._graph.const(labels)
    hard = picked_loss(
        "cross_entropy", log_probabilities, labels, weight, ignore_index, reduction, axis
    )
    if not label_smoothing:
        return hard
    by_class = log_probabilities
    if weight is not None:
        by_class = by_class * _along(weight, log_probabilities, axis)
    even = -mean(by_class, axis)
    factor = counted(labels, weight, ignore_index, log_probabilities.dtype)
    if ignore_index is not None:
        even = where(not_equal(labels, ignore_index), even, 0.0)
    if reduction == "mean":
        even = sum(even) / sum(factor) if factor is not None else mean(even)
    else:
        even = reduced("cross_entropy", even, reduction)
    return (1.0 - label_smoothing) * hard + label_smoothing * even
