"""Steps of one size, by the sign of the mean gradient: Lion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.optim._arrays import Arrays
from reactgrad.optim._decay import coupled, decoupled
from reactgrad.optim._optimizer import Group, Optimizer


class Lion(Optimizer):
    """Steps of one size by the sign of the mean gradient (Chen et al., 2023).

    Parameters
    ----------
    params, maximize
        As for ``Adam``.
    lr : float
        The size of each step.
    betas : tuple of float
        The factors of the running mean: for the sign, and for what is remembered.
    weight_decay : float
        Each step multiplies the params by ``1 - lr * weight_decay``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, -2.0])
    >>> opt = rg.optim.Lion([w], lr=0.5)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value
    array([ 0.5, -1.5])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize)

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["exp_avg"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, (b1, b2) = group["lr"], group["betas"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, 0.0, maximize)
            (old,), (new,) = at.old, at.new
            np.multiply(old, b1, new)
            np.add(new, np.multiply(g, 1.0 - b1, at.b), at.b)
            np.multiply(old, b2, new)
            sign = np.multiply(np.sign(at.b, at.b), lr, at.b)
            np.subtract(decoupled(at, decay, lr), sign, at.out)
            np.add(new, np.multiply(g, 1.0 - b2, at.b), new)

        return rule
