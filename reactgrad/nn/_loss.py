"""``Loss``, the base of criteria: one loss node for one output."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.graph._var import Var
from reactgrad.nn._module import Module
from reactgrad.ops.neural._losses import reduced
from reactgrad.scheduler import safe_repr
from reactgrad.subgraphs._sharing import Sharing


class Loss(Module):
    """A criterion: called with an output and its target, it returns the cost as a node.

    For one output there is one node: another target for it, of the same kind, is fed to the node that is
    there, so a loss that you hold shows the cost of the latest target. Another output has another node. Costs
    of two targets for one output are those of two criteria; an expression that takes one node for both raises
    ``GraphError``.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Over the costs of all samples.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x, y = g.input([1.0, 2.0]), g.input([3.0, 4.0])
    >>> loss = rg.nn.MSELoss()
    >>> first = loss(x, [0.0, 0.0])
    >>> first is loss(x, [1.0, 2.0]), first.value, loss(y, [0.0, 0.0]) is first
    (True, np.float64(0.0), False)
    """

    _sharing = Sharing.FIRST
    _settings: tuple[str, ...] = ("reduction",)
    _reductions: tuple[str, ...] = ("mean", "sum", "none")
    _arrays = ("weight", "pos_weight")

    def __init__(self, *, reduction: str = "mean") -> None:
        if reduction not in self._reductions:
            raise ParameterError(
                f"{type(self).__name__}(reduction={safe_repr(reduction):.40}): it is one of "
                f"{', '.join(self._reductions)}."
            )
        self.reduction = reduction

    def _reduced(self, costs: Any) -> Any:
        return reduced(type(self).__name__, costs, self.reduction)


def factors(weight: Any) -> Any:
    """Return a weight of classes or elements: a Var, or an array of its own; ``None`` for none."""
    if weight is None or isinstance(weight, Var):
        return weight
    found = np.array(weight)
    return found.astype(np.float64) if found.dtype.kind in "biu" else found
