"""A step for several small batches, as if they were one large batch."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.optim._clip import scale_grads
from reactgrad.optim._optimizer import Optimizer


class MicroBatches:
    """Add up the gradients of `accumulate` batches, and make one step for them.

    The step takes the mean of their gradients; until then ``.grad`` is the plain sum. So with losses that are
    means, four batches of 32 make the step of one batch of 128. Hooks of the optimiser are called at that
    step only. If the step fails, ``flush`` makes it again, and ``backward`` begins anew.

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
            raise DTypeError(
                f"MicroBatches(accumulate={accumulate!r}) is an integer of at least 1."
            )
        if reduction not in ("mean", "sum"):
            raise DTypeError(f"MicroBatches(reduction={reduction!r}): 'mean' or 'sum'.")
        self.optimizer, self.accumulate, self.pending = optimizer, accumulate, 0
        # Gradients are scaled once, at the step: so `backward` has no argument, and repeats at less cost.
        self._mean = reduction == "mean"
        self._scaled = False

    def backward(self, loss: Any) -> bool:
        """Add the gradient of the loss of one batch. Return whether that was the last one, with its step."""
        if self.pending == 0 or self._scaled:
            self.optimizer.zero_grad()
            self.pending, self._scaled = 0, False
        loss.backward()
        self.pending += 1
        if self.pending < self.accumulate:
            return False
        return self.flush()

    def flush(self) -> bool:
        """Make the step for the batches that wait, fewer than usual. Return whether there were any.

        It takes the mean of as many gradients as there are.
        """
        if not self.pending:
            return False
        if not self._scaled and self._mean and self.pending > 1:
            scale_grads(self.optimizer.params, 1.0 / self.pending)
        self._scaled = True  # a step that fails and is made again scales no second time
        self.optimizer.step()
        self.pending, self._scaled = 0, False
        return True
