"""Lengths, angles and distances of vectors, and the losses that are made of them, as in PyTorch."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad._calls import whole
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import maximum, minimum, relu
from reactgrad.ops._operand import node, nodes_of
from reactgrad.ops._reduce import sum
from reactgrad.ops._where import where
from reactgrad.ops.neural._losses import reduced


@deferred
def cosine_similarity(x1: Any, x2: Any, /, axis: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosine of the angle between vectors along an axis.

    Parameters
    ----------
    x1, x2 : Var or array_like
        Shapes that broadcast together.
    axis : int
        The axis of the vectors; ``dim`` in PyTorch.
    eps : float
        Lengths count as at least this.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cosine_similarity([[1.0, 1.0]], [[2.0, 0.0]])
    >>> y.value.round(6)
    array([0.707107])
    """
    one, other = nodes_of(x1, x2)
    axis = whole("cosine_similarity", "axis", axis)
    long = one.shape[axis:][:1]
    if one.ndim != other.ndim or long != other.shape[axis:][:1] or None in long:
        one, other = ops.broadcast_arrays(one, other)
    return sum(_direction(one, axis, eps) * _direction(other, axis, eps), axis)


def _length(x: Any, axis: int) -> Any:
    return ops.norm(x, axis=axis, keepdims=True)


def _direction(x: Any, axis: int, eps: float) -> Any:
    return x / maximum(_length(x, axis), eps)


def normalize(input: Any, /, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """Return vectors divided by their p-norm along an axis, which counts as at least `eps`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.normalize([[3.0, 4.0]])
    >>> y.value
    array([[0.6, 0.8]])
    """
    x = node(input)
    return x / maximum(ops.norm(x, p, axis, True), eps)


@deferred
def pairwise_distance(
    x1: Any, x2: Any, /, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False
) -> Any:
    """Return the p-norm of ``x1 - x2 + eps`` along the last axis, as PyTorch does.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.pairwise_distance([[3.0, 4.0]], [[0.0, 0.0]], eps=0.0)
    >>> y.value
    array([5.])
    """
    one, other = nodes_of(x1, x2)
    return ops.norm(one - other + eps, p, -1, keepdims)


@deferred
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, /, *, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """Return the mean of 1 less the cosine where the target is 1, else of the cosine above the margin.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cosine_embedding_loss([[1.0, 0.0]], [[0.0, 1.0]], [1])
    >>> y.value
    np.float64(1.0)
    """
    one, other, t = nodes_of(input1, input2, target)
    cosine = cosine_similarity(one, other, -1)
    costs = where(ops.equal(t, 1), 1.0 - cosine, relu(cosine - margin))
    return reduced("cosine_embedding_loss", costs, reduction)


@deferred
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    /,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """Return the mean of how much nearer than by a margin the positive should be to the anchor.

    With `swap` the distance of the positive to the negative counts where it is smaller.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.triplet_margin_loss([[0.0]], [[3.0]], [[1.0]], eps=0.0)
    >>> y.value
    np.float64(3.0)
    """
    anchor, positive, negative = nodes_of(anchor, positive, negative)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    return reduced("triplet_margin_loss", relu(near - far + margin), reduction)
