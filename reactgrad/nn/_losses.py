"""Criteria for numbers, probabilities and classes."""

from __future__ import annotations

from typing import Any

from reactgrad.nn._loss import Loss, factors
from reactgrad.ops import neural
from reactgrad.ops.neural._ctc import ctc_loss


class MSELoss(Loss):
    """The mean of squared differences; see ``rg.mse_loss``."""

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """The mean of absolute differences; see ``rg.l1_loss``."""

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.l1_loss(input, target, reduction=self.reduction)


class HuberLoss(Loss):
    """See ``rg.huber_loss``."""

    _settings = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(Loss):
    """See ``rg.smooth_l1_loss``."""

    _settings = ("reduction", "beta")

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class BCELoss(Loss):
    """The cost of probabilities of a yes; see ``rg.binary_cross_entropy``.

    Parameters
    ----------
    weight : Var or array_like, optional
        A factor for each element.
    """

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = factors(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """The cost of scores whose sigmoid is the probability of a yes.

    See ``rg.binary_cross_entropy_with_logits``.

    Parameters
    ----------
    weight : Var or array_like, optional
        A factor for each element.
    pos_weight : Var or array_like, optional
        A factor for the cost of a yes.
    """

    def __init__(
        self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
    ) -> None:
        super().__init__(reduction=reduction)
        self.weight, self.pos_weight = factors(weight), factors(pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class CrossEntropyLoss(Loss):
    """The cost of scores, given the number or the probabilities of each sample's class.

    See ``rg.cross_entropy``. As in PyTorch classes lie along axis 1, or 0 if there is one axis only.

    Parameters
    ----------
    weight : Var or array_like, optional
        A factor for each class; with numbers of classes the mean is then the weighted mean.
    ignore_index : int
        Samples of this number cost nothing, and do not count for the mean.
    label_smoothing : float
        This part of each label goes to all classes alike.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.CrossEntropyLoss()([[2.0, 0.0], [0.0, 0.0]], [0, 1])
    >>> y.value.round(6)
    np.float64(0.410038)
    """

    _settings = ("reduction", "label_smoothing")

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction=reduction)
        self.weight, self.ignore_index = factors(weight), ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        # An array of another library has a dtype without a kind; the op says what to write.
        numbers = getattr(target.dtype, "kind", None) in ("i", "u")
        return neural.cross_entropy(
            input,
            target,
            min(1, input.ndim - 1),
            weight=self.weight,
            ignore_index=self.ignore_index if numbers else None,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
        )


class NLLLoss(Loss):
    """The cost of log probabilities, given the number of each sample's class; see ``rg.nll_loss``.

    Parameters
    ----------
    weight, ignore_index
        As for ``CrossEntropyLoss``.
    """

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.weight, self.ignore_index = factors(weight), ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CTCLoss(Loss):
    """The cost of sequences whose labels are not aligned (Graves and others, 2006).

    Parameters
    ----------
    blank : int
        The class that stands for none.
    zero_infinity : bool
        Whether a label that is too long for its steps costs 0 in place of infinity.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.CTCLoss()(
    ...         np.full((3, 1, 2), np.log(0.5)), np.array([[1]]), np.array([3]), np.array([1])
    ...     )
    >>> y.value.round(6)
    np.float64(0.287682)
    """

    _settings = ("reduction", "blank")

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """Return the cost of log probabilities of shape (steps, samples, classes); see ``functional.ctc_loss``."""
        return ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class KLDivLoss(Loss):
    """See ``rg.kl_div``; ``reduction="batchmean"`` is the divergence."""

    _settings = ("reduction", "log_target")
    _reductions = ("mean", "batchmean", "sum", "none")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(Loss):
    """See ``rg.poisson_nll_loss``."""

    _settings = ("reduction", "log_input", "full")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Any, target: Any) -> Any:
        """Return the cost."""
        return neural.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(Loss):
    """See ``rg.gaussian_nll_loss``."""

    _settings = ("reduction", "full")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        """Return the cost."""
        return neural.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )
