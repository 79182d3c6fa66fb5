"""Losses of regression and classification, with PyTorch's names, arguments and kinks.

They are built of other ops: each has its mean, or its sum, as one node behind a few elementwise ones.
"""

from __future__ import annotations

import math
from typing import Any, Final

from reactgrad import ops
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import add_kernels
from reactgrad.backend.numpy import _losses
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import over, times
from reactgrad.ops._deferred import deferred, deferred_each
from reactgrad.ops._elementwise import (
    absolute,
    exp,
    less,
    log,
    log1p,
    maximum,
    relu,
    square,
)
from reactgrad.ops._layout import spread_like
from reactgrad.ops._operand import node
from reactgrad.ops._pick import agree, pick
from reactgrad.ops._reduce import mean, sum
from reactgrad.ops._softmax import alike
from reactgrad.ops._where import where
from reactgrad.scheduler import safe_repr

_REDUCTIONS = {"mean": mean, "sum": sum}


def reduced(name: str, costs: Any, reduction: str) -> Any:
    """Return costs as a loss: their mean, their sum, or one by one.

    Raises
    ------
    DTypeError
        If the reduction is none of these.
    """
    if reduction == "none":
        return costs
    try:
        return _REDUCTIONS[reduction](costs)
    except (KeyError, TypeError):
        raise ParameterError(
            f"rg.{name}(reduction={safe_repr(reduction):.40}): it is 'mean', 'sum' or 'none'."
        ) from None


def _pair(name: str, input: Any, target: Any, *others: Any) -> tuple[Any, Any]:
    """Return prediction and target as nodes of one shape, in the graph of the first node among all operands.

    Raises
    ------
    ShapeError
        If they have different shapes: they would broadcast, and the mean be that of all pairs.
    """
    one, other = node(input, target, *others), node(target, input, *others)
    if not agree(one.shape, other.shape):
        raise ShapeError(
            f"rg.{name} of a prediction of shape {one.shape} and a target of shape {other.shape}: they have one "
            "shape. Reshape one of them, as in target[:, None] or target.reshape(-1)."
        )
    return one, other


def _reaches(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Return whether a shape broadcasts to the other one, as far as they are known."""
    last = other[len(other) - len(one) :]
    return len(one) <= len(other) and all(
        m in (1, None, n) or n is None for m, n in zip(one, last, strict=True)
    )


def _weighted(costs: Any, weight: Any) -> Any:
    return costs if weight is None else costs * weight


@deferred
def mse_loss(input: Any, target: Any, /, *, reduction: str = "mean", weight: Any = None) -> Any:
    """Return the mean of squared differences.

    Parameters
    ----------
    input, target : Var or array_like
        Predictions and what they should be, of one shape.
    reduction : {"mean", "sum", "none"}
        What becomes of the costs of the elements.
    weight : Var or array_like, optional
        A factor for the cost of each element; the mean is then the weighted mean.

    Returns
    -------
    Var
        Of shape (), or the shape of the operands for "none".

    Raises
    ------
    ShapeError
        If the shapes differ.
    DTypeError
        If the reduction is unknown.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.mse_loss([1.0, 2.0], [0.0, 4.0])
    >>> y.value
    np.float64(2.5)
    """
    one, other = _pair("mse_loss", input, target, weight)
    costs = square(one - other)
    if weight is None:
        return reduced("mse_loss", costs, reduction)
    return _weighted_mean("mse_loss", costs, weight, reduction)


def _weighted_mean(name: str, costs: Any, weight: Any, reduction: str) -> Any:
    weighted = costs * weight
    if reduction != "mean":
        return reduced(name, weighted, reduction)
    return sum(weighted) / sum(spread_like(node(weight, costs), costs))


@deferred
def l1_loss(input: Any, target: Any, /, *, reduction: str = "mean") -> Any:
    """Return the mean of absolute differences; the gradient where they are 0 is 0. See ``mse_loss``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.l1_loss([1.0, 2.0], [0.0, 4.0])
    >>> y.value
    np.float64(1.5)
    """
    one, other = _pair("l1_loss", input, target)
    return reduced("l1_loss", absolute(one - other), reduction)


@deferred
def huber_loss(input: Any, target: Any, /, *, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Return the mean of half squares up to `delta`, and beyond it of a line with the same slope.

    See ``mse_loss`` for the other arguments (Huber, 1964).

    Raises
    ------
    DTypeError
        If `delta` is not greater than 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.huber_loss([1.0, 4.0], [0.0, 0.0], reduction="none")
    >>> y.value
    array([0.5, 3.5])
    """
    _positive("huber_loss", "delta", delta)
    one, other = _pair("huber_loss", input, target)
    apart = one - other
    near = ops.clip(apart, -delta, delta)
    return reduced("huber_loss", near * (apart - 0.5 * near), reduction)


@deferred
def smooth_l1_loss(
    input: Any, target: Any, /, *, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """Return ``huber_loss`` divided by its `beta`; with `beta` 0 the ``l1_loss``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.smooth_l1_loss([1.0, 4.0], [0.0, 0.0], beta=2.0, reduction="none")
    >>> y.value
    array([0.25, 3.  ])
    """
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    _positive("smooth_l1_loss", "beta", beta)
    one, other = _pair("smooth_l1_loss", input, target)
    apart = one - other
    near = ops.clip(apart, -beta, beta)
    return reduced("smooth_l1_loss", near * (apart - 0.5 * near) / beta, reduction)


def _positive(name: str, parameter: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0.0:
        raise ParameterError(
            f"rg.{name}({parameter}={safe_repr(value):.40}): it is a number greater than 0."
        )


# --- probabilities -----------------------------------------------------------------------------

add_kernels(_losses.register)


def _by_probability(g: Any, ans: Any, p: Any, t: Any) -> Any:
    # Where the probability is 0 or 1 the slope is that at a distance of 1e-12: a certain error can be learnt from.
    return times(g, over(p - t, maximum(p * (1.0 - p), 1e-12)))


def _by_target(g: Any, ans: Any, p: Any, t: Any) -> Any:
    return times(g, maximum(log1p(-p), _losses.LEAST_LOG) - maximum(log(p), _losses.LEAST_LOG))


BINARY_CROSS_ENTROPY: Final = Op(
    "binary_cross_entropy",
    alike("binary_cross_entropy"),
    (_by_probability, _by_target),
    (_by_probability, _by_target),
    elementwise=True,
    broadcasts=True,
)


@deferred
def binary_cross_entropy(
    input: Any, target: Any, /, weight: Any = None, *, reduction: str = "mean"
) -> Any:
    """Return the mean cost of probabilities of a yes, given what happened.

    Parameters
    ----------
    input : Var or array_like
        Probabilities. Their logarithms count as -100 at least, and the slope is that at a distance of 1e-12 from
        0 and 1, as in PyTorch. For scores use ``binary_cross_entropy_with_logits``, which loses no digits.
    target : Var or array_like
        1 for yes and 0 for no, or a probability.
    weight : Var or array_like, optional
        A factor for each element; the mean divides by the number of elements.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.binary_cross_entropy([0.5, 1.0], [1.0, 1.0])
    >>> y.value.round(6)
    np.float64(0.346574)
    """
    p, t = _pair("binary_cross_entropy", input, target, weight)
    costs = apply(BINARY_CROSS_ENTROPY, (p, t))
    return reduced("binary_cross_entropy", _weighted(costs, weight), reduction)


@deferred
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    /,
    weight: Any = None,
    *,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Return the mean cost of scores whose sigmoid is the probability of a yes.

    Parameters
    ----------
    input : Var or array_like
        Scores, of any size: no exponential overflows.
    target, weight, reduction
        See ``binary_cross_entropy``.
    pos_weight : Var or array_like, optional
        A factor for the cost of a missed yes; it broadcasts with the scores.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.binary_cross_entropy_with_logits([0.0, 1000.0], [1.0, 0.0], reduction="none")
    >>> y.value.round(6)
    array([6.93147e-01, 1.00000e+03])
    """
    x, t = _pair("binary_cross_entropy_with_logits", input, target, weight, pos_weight)
    least = ops.softplus(-x)  # -log of the probability of a yes
    if pos_weight is not None:
        least = (1.0 + (node(pos_weight, x) - 1.0) * t) * least
    costs = (1.0 - t) * x + least
    return reduced("binary_cross_entropy_with_logits", _weighted(costs, weight), reduction)


@deferred_each(without=("target",))
def nll_loss(
    input: Any,
    target: Any,
    /,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    axis: int | None = None,
) -> Any:
    """Return the mean of minus the log probabilities of each sample's class.

    Parameters
    ----------
    input : Var or array_like
        Log probabilities, with the classes along `axis`.
    target : Var or array_like of int
        The number of each sample's class, in the shape of `input` without `axis`.
    weight : Var or array_like, optional
        A factor for each class; the mean is then the weighted mean.
    ignore_index : int
        Samples with this number cost nothing, and do not count for the mean.
    reduction : {"mean", "sum", "none"}
    axis : int, optional
        By default 1, or 0 if there is one axis only, as in PyTorch.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nll_loss([[-0.5, -1.0], [-2.0, -0.1]], [0, -100])
    >>> y.value
    np.float64(0.5)
    """
    x = node(input, target, weight)
    labels = node(target, x)
    if labels.dtype.kind not in "iu":
        raise DTypeError(
            f"rg.nll_loss: the target is of {labels.dtype}; classes are numbered by integers."
        )
    axis = min(1, x.ndim - 1) if axis is None else axis
    return picked_loss("nll_loss", x, labels, weight, ignore_index, reduction, axis)


def picked_loss(
    name: str, x: Any, labels: Any, weight: Any, ignore_index: int | None, reduction: str, axis: int
) -> Any:
    """Return minus the elements of the labels, weighted, without those that are ignored."""
    kept = None if ignore_index is None else ops.not_equal(labels, ignore_index)
    chosen = labels if kept is None else where(kept, labels, 0)
    costs = -pick(x, chosen, axis)
    if weight is not None:
        costs = costs * ops.take(node(weight, x), chosen)
    if kept is not None:
        costs = where(kept, costs, 0.0)
    if reduction != "mean":
        return reduced(name, costs, reduction)
    factor = counted(labels, weight, ignore_index, x.dtype)
    return mean(costs) if factor is None else sum(costs) / sum(factor)


def counted(labels: Any, weight: Any, ignore_index: int | None, dtype: Any) -> Any:
    """Return for how much each sample counts in a mean; ``None`` if all count for 1."""
    kept = None if ignore_index is None else ops.not_equal(labels, ignore_index)
    if weight is None:
        return None if kept is None else ops.astype(kept, dtype)
    if kept is None:
        return ops.take(node(weight, labels), labels)
    return where(kept, ops.take(node(weight, labels), where(kept, labels, 0)), 0.0)


@deferred
def kl_div(input: Any, target: Any, /, *, reduction: str = "mean", log_target: bool = False) -> Any:
    """Return the divergence of a distribution from one given by its logarithms.

    Parameters
    ----------
    input : Var or array_like
        Logarithms of probabilities.
    target : Var or array_like
        Probabilities, or their logarithms if `log_target`, in the shape of `input`. A probability of 0 costs
        nothing.
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean" divides the sum by the first length, which is the divergence; "mean" divides it by the
        number of elements, as in PyTorch.
    log_target : bool

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.kl_div(rg.log([[0.5, 0.5]]), [[1.0, 0.0]], reduction="batchmean")
    >>> y.value.round(6)
    np.float64(0.693147)
    """
    x, t = _pair("kl_div", input, target)
    costs = exp(t) * (t - x) if log_target else ops.xlogy(t, t) - t * x
    if reduction != "batchmean":
        return reduced("kl_div", costs, reduction)
    if not x.ndim:
        return sum(costs)
    return sum(mean(costs, 0))


# --- distances and margins ---------------------------------------------------------------------


@deferred
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, /, *, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """Return the mean of ``max(0, -target * (input1 - input2) + margin)``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.margin_ranking_loss([1.0], [3.0], [1.0], margin=0.5)
    >>> y.value
    np.float64(2.5)
    """
    one, other = node(input1, input2, target), node(input2, input1, target)
    return reduced("margin_ranking_loss", relu(-(target * (one - other)) + margin), reduction)


@deferred
def hinge_embedding_loss(
    input: Any, target: Any, /, *, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    """Return the mean of the input where the target is 1, and of ``max(0, margin - input)`` where it is -1.

    Other targets count both, as in PyTorch.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.hinge_embedding_loss([2.0, 0.25], [1.0, -1.0], reduction="none")
    >>> y.value
    array([2.  , 0.75])
    """
    x, t = _pair("hinge_embedding_loss", input, target)
    apart = relu(margin - x)
    costs = where(ops.equal(t, 1), x, where(ops.equal(t, -1), apart, x + apart))
    return reduced("hinge_embedding_loss", costs, reduction)


@deferred
def soft_margin_loss(input: Any, target: Any, /, *, reduction: str = "mean") -> Any:
    """Return the mean of ``log(1 + exp(-target * input))`` for targets 1 and -1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.soft_margin_loss([0.0, 100.0], [1.0, 1.0], reduction="none")
    >>> y.value
    array([6.93147181e-01, 3.72007598e-44])
    """
    x, t = _pair("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", ops.softplus(-(t * x)), reduction)


@deferred
def poisson_nll_loss(
    input: Any,
    target: Any,
    /,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Any:
    """Return the mean cost of counts with expectation ``exp(input)``, or `input` itself.

    With `full` Stirling's approximation of the term that does not depend on the input is added.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.poisson_nll_loss([0.0], [2.0])
    >>> y.value
    np.float64(1.0)
    """
    x, t = _pair("poisson_nll_loss", input, target)
    costs = exp(x) - t * x if log_input else x - t * log(x + eps)
    if full:
        above = maximum(t, 1.0)
        term = above * log(above) - above + 0.5 * log(2.0 * math.pi * above)
        costs = costs + where(less(1.0, t), term, 0.0)
    return reduced("poisson_nll_loss", costs, reduction)


@deferred
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    /,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Return the mean cost of values with a normal distribution around `input`, of variance `var`.

    The variance counts as at least `eps`; gradients reach it as if it did not. The target may have axes of length 1,
    or fewer axes, where the input has more.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.gaussian_nll_loss([1.0], [3.0], [1.0])
    >>> y.value
    np.float64(2.0)
    """
    x, t = node(input, target, var), node(target, input, var)
    if not _reaches(t.shape, x.shape):
        x, t = _pair("gaussian_nll_loss", x, t)
    variance = node(var, x)
    if variance.ndim < x.ndim:
        variance = ops.expand_dims(variance, -1)
    bounded = variance + maximum(eps - variance, 0.0).detach()
    costs = 0.5 * (log(bounded) + square(x - t) / bounded)
    if full:
        costs = costs + 0.5 * math.log(2.0 * math.pi)
    return reduced("gaussian_nll_loss", costs, reduction)
