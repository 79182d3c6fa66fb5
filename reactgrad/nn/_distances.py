"""Distances between vectors, and criteria made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ShapeError
from reactgrad.nn._loss import Loss
from reactgrad.nn._module import Module
from reactgrad.ops import neural
from reactgrad.ops._operand import node
from reactgrad.ops.neural._losses import reduced


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along an axis; see ``rg.cosine_similarity``."""

    _settings = ("dim", "eps")

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """Return the cosines."""
        return neural.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of differences along the last axis; see ``rg.pairwise_distance``."""

    _settings = ("p", "eps", "keepdim")

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """Return the distances."""
        return neural.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


class CosineEmbeddingLoss(Loss):
    """See ``rg.cosine_embedding_loss``."""

    _settings = ("margin", "reduction")

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(Loss):
    """See ``rg.margin_ranking_loss``."""

    _settings = ("margin", "reduction")

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class TripletMarginLoss(Loss):
    """See ``rg.triplet_margin_loss``."""

    _settings = ("margin", "p", "swap", "reduction")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Return the cost."""
        return neural.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """Return the cost of ``TripletMarginWithDistanceLoss``."""
    distance = distance_function or neural.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    costs = ops.relu(near - far + margin)
    return reduced("triplet_margin_with_distance_loss", costs, reduction)


def pdist(input: Any, p: float = 2.0) -> Any:
    """Return the p-norm of the difference of each two rows: of the first and the second, the first and the third, ...

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> y.value.round(4)
    array([5.    , 1.    , 4.2426])
    """
    x = node(input)
    if x.ndim != 2 or x.shape[0] is None:
        raise ShapeError(
            f"pdist of shape {x.shape}: it takes rows, shape (rows, features), of a known number."
        )
    one, other = np.triu_indices(x.shape[0], 1)
    return neural.pairwise_distance(x[one], x[other], p, 0.0)


class TripletMarginWithDistanceLoss(Loss):
    """``TripletMarginLoss`` with a distance of your own.

    Parameters
    ----------
    distance_function : callable, optional
        Returns a node of the distances between two; by default ``rg.pairwise_distance``.
    margin : float
    swap : bool
        Whether the negative may be compared with the positive, if that is nearer.
    """

    _settings = ("margin", "swap", "reduction")

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = distance_function or neural.pairwise_distance
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Return the cost."""
        return triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
