"""A step for several small batches, as if they were one large batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import ParameterError
from reactgrad.optim._clip import scale_grads
from reactgrad.optim._optimizer import Optimizer
from reactgrad.scheduler import safe_repr


class MicroBatches(OwnAttributes):
    """Add up the gradients of `accumulate` batches, and make one step for them.

    The step takes the mean of their gradients; until then ``.grad`` is their sum. So with losses that are
    means, four batches of 32 make the step of one batch of 128. Where they have different lengths, as at the end
    of an epoch, say how many samples each has: ``micro.backward(loss, len(rows))``. Hooks of the optimiser are
    called at that step only. If the step fails, ``flush`` makes it again, and ``backward`` begins anew.

    Parameters
    ----------
    optimizer : Optimizer
        What makes the step.
    accumulate : int
        The number of batches.
    reduction : {"mean", "sum"}
        ``"sum"`` for losses that are sums: each counts 1.

    Attributes
    ----------
    pending : int
        The number of batches that wait for the step.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w, x = g.param([1.0, 2.0]), g.input(1.0)
    >>> loss = (w * x).sum()
    >>> micro = rg.optim.MicroBatches(rg.optim.SGD([w], lr=1.0), accumulate=2)
    >>> for batch in (1.0, 3.0, 5.0):
    ...     x.set(batch)
    ...     print(micro.backward(loss), w.value)
    False [1. 2.]
    True [-1.  0.]
    False [-1.  0.]
    """

    def __init__(self, optimizer: Optimizer, accumulate: int, reduction: str = "mean") -> None:
        if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
            raise ParameterError(
                f"MicroBatches(accumulate={safe_repr(accumulate)}) is an integer of at least 1."
            )
        if reduction not in ("mean", "sum"):
            raise ParameterError(
                f"MicroBatches(reduction={safe_repr(reduction)}): 'mean' or 'sum'."
            )
        self.optimizer, self.accumulate, self.pending = optimizer, accumulate, 0
        # Gradients are scaled once, at the step: so `backward` has no argument, and repeats at less cost.
        self._mean = reduction == "mean"
        self._scaled = False
        # The length of the first batch, None where none was given; and how many of these there are by now.
        self._length: float | None = None
        self._lengths = 0.0

    def backward(self, loss: Any, samples: float | None = None) -> bool:
        """Add the gradient of the loss of one batch. Return whether that was the last one, with its step.

        Parameters
        ----------
        loss : Var
            The cost of this batch: the mean of those of its samples, or with ``reduction="sum"`` their sum.
        samples : float, optional
            How many samples it has, if batches have different lengths: its weight in the mean. For all batches
            of a step or for none.

        Raises
        ------
        DTypeError
            If it is no positive number, or some batches of a step have one and others none.
        """
        first = self.pending == 0 or self._scaled
        weight = self._weight(samples, first)
        if first:
            self.optimizer.zero_grad()
            self.pending, self._scaled, self._lengths = 0, False, 0.0
        # Without an argument where the lengths are equal: such a call repeats at less cost.
        loss.backward() if weight == 1.0 else loss.backward(
            gradient=np.full((), weight, loss.dtype)
        )
        if first:
            self._length = samples
        self.pending += 1
        self._lengths += weight
        if self.pending < self.accumulate:
            return False
        return self.flush()

    def _weight(self, samples: float | None, first: bool) -> float:
        """Return how much a batch counts beside the first one."""
        if samples is not None and not (
            isinstance(samples, int | float | np.integer | np.floating) and 0 < samples < math.inf
        ):
            raise ParameterError(
                f"MicroBatches.backward(loss, {safe_repr(samples):.40}): the number of samples is "
                "positive, as in len(rows)."
            )
        if not self._mean or first:
            return 1.0
        if (samples is None) is not (self._length is None):
            raise ParameterError(
                "MicroBatches.backward: some batches of this step were given with the number of their samples and "
                "some without. Write micro.backward(loss, len(rows)) for each of them."
            )
        return 1.0 if samples is None or self._length is None else samples / self._length

    def flush(self) -> bool:
        """Make the step for the batches that wait, fewer than usual. Return whether there were any.

        It takes the mean of as many gradients as there are.
        """
        if not self.pending:
            return False
        if not self._scaled and self._mean and self.pending > 1:
            scale_grads(self.optimizer.params, 1.0 / self._lengths)
        self._scaled = True  # a step that fails and is made again scales no second time
        self.optimizer.step()
        self.pending, self._scaled = 0, False
        return True
