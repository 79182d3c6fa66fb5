"""Gradient descent that also keeps a mean of the params: ASGD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.optim._arrays import Arrays, RememberingRule
from reactgrad.optim._decay import coupled
from reactgrad.optim._optimizer import Group, Optimizer


class ASGD(Optimizer):
    """Averaged gradient descent (Polyak and Juditsky, 1992), as ``torch.optim.ASGD``.

    The mean of the params from step `t0` on is ``opt.state_dict()["state"][name]["ax"]``.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts of groups; see ``Optimizer``.
    lr : float
        The learning rate at the first step.
    lambd : float
        The decay of params, and of the rate.
    alpha : float
        The power by which the rate falls.
    t0 : float
        The number of steps before the mean begins.
    weight_decay : float
        This much of the param is added to its gradient.
    maximize : bool
        ``True`` to climb.

    Notes
    -----
    A step leaves the rate of the next one, as in PyTorch: one that a schedule changes counts from the step after it.

    Raises
    ------
    DTypeError, GradientError, GraphError
        If these are no params of one graph, or options make no sense.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.ASGD([w], lr=0.1, lambd=0.0)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value
    array([0.8, 1.6])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            maximize=maximize,
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["ax"]

    def numbers(self, group: Group) -> list[str]:
        """Return the names of the rate and of the share of the mean that a step has left for the next one."""
        return ["eta", "mu"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, lambd, alpha, t0 = group["lr"], group["lambd"], group["alpha"], group["t0"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, decay, maximize)
            eta, share = at.numbers if step > 1 else (lr, 1.0)
            (mean,) = at.new
            moved = np.multiply(g, eta, at.b)
            np.subtract(np.multiply(at.p, 1.0 - lambd * eta, at.out), moved, at.out)
            if share == 1.0:
                np.copyto(mean, at.out)
            else:
                np.subtract(at.out, at.old[0], mean)
                np.add(np.multiply(mean, share, mean), at.old[0], mean)

        def after(step: int, numbers: tuple[float, ...]) -> tuple[float, ...]:
            return lr / (1.0 + lambd * lr * step) ** alpha, 1.0 / max(1.0, step - t0)

        return RememberingRule(rule, after)
