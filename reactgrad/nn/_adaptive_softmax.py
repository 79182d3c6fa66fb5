"""A softmax over many classes, of which the rare ones share small parts of the weights (Grave and others, 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nn._containers import ModuleList, Sequential
from reactgrad.nn._linear import Linear
from reactgrad.nn._module import Module
from reactgrad.ops import ordering
from reactgrad.ops.reductions import argmax


class ASMoutput(NamedTuple):
    """The result of ``AdaptiveLogSoftmaxWithLoss``.

    Attributes
    ----------
    output : Var, shape (batch,)
        The logarithm of the probability of each sample's class.
    loss : Var
        Minus its mean.
    """

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The cost of one of many classes that are sorted by how frequent they are, the most frequent first.

    The frequent classes have scores of their own. The others lie in clusters, which have a score each; a later
    cluster is computed from fewer features.

    Parameters
    ----------
    in_features, n_classes : int
    cutoffs : sequence of int
        Where each cluster begins, growing; the first is the number of frequent classes.
    div_value : float
        Each cluster has so many times fewer features than the one before.
    head_bias : bool
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    head : Linear
        The scores of frequent classes, and of the clusters.
    tail : ModuleList
        Two layers for each cluster.

    Raises
    ------
    DTypeError
        If the cutoffs do not grow from 1 to below the number of classes.
    ShapeError
        If a call is given other than rows of features, and the number of a class for each.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], rng=0)
    >>> rows = np.ones((3, 16))
    >>> layer(rows, np.array([0, 5, 19])).output.shape, layer.log_prob(rows).shape
    ((3,), (3, 20))
    """

    _settings = ("in_features", "n_classes", "cutoffs", "div_value")

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        bounds = [0, *cutoffs, n_classes]
        if len(bounds) < 3 or any(one >= other for one, other in pairwise(bounds)):
            raise ParameterError(
                f"AdaptiveLogSoftmaxWithLoss(n_classes={n_classes}, cutoffs={list(cutoffs)!r:.60}): cutoffs grow, from "
                f"1 to below the number of classes, as in [{max(n_classes // 10, 1)}]."
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value = [*cutoffs, n_classes], div_value
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        seeds = np.random.default_rng(rng) if rng is not None else None
        options: dict[str, Any] = {"rng": seeds, "dtype": dtype}
        self.head = Linear(
            in_features, self.shortlist_size + self.n_clusters, bias=head_bias, **options
        )
        self.tail = ModuleList()
        for i, (first, last) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            if width < 1:
                raise ParameterError(
                    f"AdaptiveLogSoftmaxWithLoss(in_features={in_features}, div_value={div_value}): cluster {i + 1} "
                    "would have no feature. Use fewer clusters, or a smaller div_value."
                )
            layers = [
                Linear(in_features, width, bias=False, **options),
                Linear(width, last - first, bias=False, **options),
            ]
            self.tail.append(Sequential(*layers))

    def forward(self, input: Any, target: Any) -> ASMoutput:
        """Return the logarithms of the probabilities of the targets, and the cost.

        Parameters
        ----------
        input : Var or array_like, shape (batch, in_features) or (in_features,)
        target : Var or array_like of int, shape (batch,) or ()
        """
        if input.ndim != target.ndim + 1 or input.ndim > 2:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss of shape {input.shape} with targets of shape {target.shape}: rows of "
                "features, and the number of a class for each."
            )
        labels = ops.expand_dims(target, -1)
        found = ordering.take_along_axis(self.log_prob(input), labels, -1)[..., 0]
        return ASMoutput(found, -ops.mean(found))

    def log_prob(self, input: Any) -> Any:
        """Return the logarithms of the probabilities of all classes, shape (batch, n_classes)."""
        head = ops.log_softmax(self.head(input), -1)
        parts = [head[..., : self.shortlist_size]]
        for i, layers in enumerate(self.tail):
            share = head[..., self.shortlist_size + i : self.shortlist_size + i + 1]
            parts.append(ops.log_softmax(layers(input), -1) + share)
        return ops.concatenate(parts, -1)

    def predict(self, input: Any) -> Any:
        """Return the number of the likeliest class of each sample."""
        return argmax(self.log_prob(input), -1)
