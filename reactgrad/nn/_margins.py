"""Criteria with margins, and for several labels of one sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError
from reactgrad.nn._loss import Loss, factors
from reactgrad.ops import neural, ordering, reductions, special
from reactgrad.ops._operand import node
from reactgrad.ops.neural._losses import reduced


class HingeEmbeddingLoss(Loss):
    """See ``rg.hinge_embedding_loss``."""

    _settings = ("margin", "reduction")

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.hinge_embedding_loss(
            input, target, margin=self.margin, reduction=self.reduction
        )


class SoftMarginLoss(Loss):
    """See ``rg.soft_margin_loss``."""

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.soft_margin_loss(input, target, reduction=self.reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Any:
    """Return the cost of ``MultiLabelSoftMarginLoss``."""
    x = node(input, target, weight)
    costs = -(target * special.log_sigmoid(x) + (1.0 - target) * special.log_sigmoid(-x))
    if weight is not None:
        costs = costs * weight
    return reduced("multilabel_soft_margin_loss", ops.mean(costs, -1), reduction)


class MultiLabelSoftMarginLoss(Loss):
    """The mean over classes of ``rg.binary_cross_entropy_with_logits``: a sample may have several.

    Parameters
    ----------
    weight : Var or array_like, optional
        A factor for each class.
    """

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = factors(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    *,
    reduction: str = "mean",
) -> Any:
    """Return the cost of ``MultiMarginLoss``."""
    if p not in (1, 2):
        raise ParameterError(f"MultiMarginLoss(p={p!r}): the power is 1 or 2.")
    x = node(input, target, weight)
    labels = ops.expand_dims(node(target, x), -1)
    right = ordering.take_along_axis(x, labels, -1)
    costs = ops.relu(margin - right + x) ** p
    if weight is not None:
        costs = costs * ops.expand_dims(ordering.take(weight, target), -1)
    # The label itself costs margin ** p, which does not count.
    other = ops.not_equal(labels, np.arange(x.shape[-1]))
    return reduced("multi_margin_loss", ops.mean(ops.where(other, costs, 0.0), -1), reduction)


class MultiMarginLoss(Loss):
    """The mean over other classes of ``max(0, margin - x[label] + x) ** p``.

    Parameters
    ----------
    p : int
        1 or 2.
    margin : float
    weight : Var or array_like, optional
        A factor for each class, by the label.
    """

    _settings = ("p", "margin", "reduction")

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        if p not in (1, 2):
            raise ParameterError(f"MultiMarginLoss(p={p!r}): the power is 1 or 2.")
        self.p, self.margin, self.weight = p, margin, factors(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


def multilabel_margin_loss(input: Any, target: Any, *, reduction: str = "mean") -> Any:
    """Return the cost of ``MultiLabelMarginLoss``."""
    x = node(input, target)
    target = node(target, x)
    counts = reductions.cumprod(ops.astype(ops.greater_equal(target, 0), x.dtype), -1)
    labels = ops.maximum(target, 0)
    is_label = ordering.scatter_add(x.detach() * 0.0, -1, labels, counts)
    right = ordering.take_along_axis(x, labels, -1)
    pairs = ops.relu(1.0 - (ops.expand_dims(right, -1) - ops.expand_dims(x, -2)))
    other = ops.expand_dims(ops.astype(ops.less_equal(is_label, 0.0), x.dtype), -2)
    costs = ops.sum(pairs * ops.expand_dims(counts, -1) * other, (-1, -2))
    return reduced("multilabel_margin_loss", costs / x.shape[-1], reduction)


class MultiLabelMarginLoss(Loss):
    """The sum over labels and other classes of ``max(0, 1 - (x[label] - x[other]))``, by their number.

    A row of the target has the labels of a sample first, then -1.
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return multilabel_margin_loss(input, target, reduction=self.reduction)
