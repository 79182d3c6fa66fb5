"""Gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.optim._arrays import Arrays
from reactgrad.optim._compiled import compiled
from reactgrad.optim._decay import coupled
from reactgrad.optim._optimizer import Group, Optimizer


class SGD(Optimizer):
    """Gradient descent, with momentum, as ``torch.optim.SGD``.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts of groups; see ``Optimizer``.
    lr : float
        The learning rate.
    momentum, dampening : float
        The factor of the former direction, and how much of the gradient is left out.
    weight_decay : float
        This much of the param is added to its gradient.
    nesterov : bool
        Whether the step looks ahead (Nesterov, 1983; as in Sutskever et al., 2013).
    maximize : bool
        ``True`` to climb.

    Raises
    ------
    DTypeError, GradientError, GraphError
        If these are no params of one graph, or options make no sense.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> loss = (w * w).sum()
    >>> opt = rg.optim.SGD([w], lr=0.1)
    >>> for _ in range(3):
    ...     opt.zero_grad()
    ...     run = loss.backward()
    ...     opt.step()
    >>> w.value
    array([0.512, 1.024])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        super().check_options(options)
        if options["nesterov"] and (options["momentum"] <= 0.0 or options["dampening"] != 0.0):
            raise ParameterError(
                "SGD(nesterov=True) needs a momentum above 0 and dampening=0: it looks ahead along the former "
                "direction."
            )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["momentum_buffer"] if group["momentum"] else []

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, momentum = group["lr"], group["momentum"]
        share, nesterov = 1.0 - group["dampening"], group["nesterov"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, decay, maximize)
            if momentum:
                (old,), (new,) = at.old, at.new
                if step == 1:
                    np.copyto(new, g)
                else:
                    np.multiply(old, momentum, new)
                    if share == 1.0:
                        np.add(new, g, new)
                    else:
                        np.add(new, np.multiply(g, share, at.b), new)
                g = np.add(g, np.multiply(new, momentum, at.b), at.b) if nesterov else new
            np.subtract(at.p, np.multiply(g, lr, at.b), at.out)

        options = (decay, maximize, lr, momentum, share)
        return compiled("descend", rule, options, lambda step: (*options, step == 1, nesterov))
