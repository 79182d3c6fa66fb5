"""Steps over the root of sums or means of squared gradients: RMSprop, Adagrad and Adadelta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.optim._arrays import Arrays
from reactgrad.optim._bucket import Bucket
from reactgrad.optim._decay import coupled
from reactgrad.optim._optimizer import Group, Optimizer
from reactgrad.scheduler import safe_repr


class RMSprop(Optimizer):
    """Steps over the root of the mean squared gradient (Hinton, 2012), as ``torch.optim.RMSprop``.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts of groups; see ``Optimizer``.
    lr : float
        The learning rate.
    alpha : float
        The factor of the running mean.
    eps : float
        Added to the root.
    weight_decay : float
        This much of the param is added to its gradient.
    momentum : float
        The factor of the former direction.
    centered : bool
        Whether to divide by the root of the variance instead.
    maximize : bool
        ``True`` to climb.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.RMSprop([w], lr=0.01)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.9, 1.9])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            maximize=maximize,
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        centered = ["grad_avg"] if group["centered"] else []
        return ["square_avg", *centered, *(["momentum_buffer"] if group["momentum"] else [])]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
        decay, momentum, maximize = group["weight_decay"], group["momentum"], group["maximize"]
        centered = group["centered"]

        def rule(step: int, at: Arrays) -> None:
            g, b = coupled(at, decay, maximize), at.b
            mean = at.new[0]
            np.multiply(np.multiply(g, g, b), 1.0 - alpha, b)
            np.add(np.multiply(at.old[0], alpha, mean), b, mean)
            if centered:
                first = np.multiply(at.old[1], alpha, at.new[1])
                np.add(first, np.multiply(g, 1.0 - alpha, b), first)
                np.subtract(mean, np.multiply(first, first, b), b)
                np.sqrt(b, b)
            else:
                np.sqrt(mean, b)
            np.divide(g, np.add(b, eps, b), b)
            if momentum:
                b = np.add(np.multiply(at.old[-1], momentum, at.new[-1]), b, at.new[-1])
            np.subtract(at.p, np.multiply(b, lr, at.b), at.out)

        return rule


class Adagrad(Optimizer):
    """Steps over the root of the sum of squared gradients (Duchi et al., 2011), as ``torch.optim.Adagrad``.

    Parameters
    ----------
    params, weight_decay, maximize
        As for ``RMSprop``.
    lr, lr_decay : float
        The learning rate; step ``t`` has ``lr / (1 + (t - 1) * lr_decay)``.
    initial_accumulator_value : float
        What the sums begin with.
    eps : float
        Added to the root.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.Adagrad([w], lr=0.5)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.5, 1.5])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
            maximize=maximize,
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        super().check_options(options)
        first = options["initial_accumulator_value"]
        if not first >= 0.0:
            raise ParameterError(
                f"Adagrad(initial_accumulator_value={safe_repr(first)}) must be at least 0."
            )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["sum"]

    def start(self, group: Group, bucket: Bucket) -> None:
        """Fill the sums with what they begin with."""
        bucket.now[0].fill(group["initial_accumulator_value"])

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, lr_decay, eps = group["lr"], group["lr_decay"], group["eps"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g, b = coupled(at, decay, maximize), at.b
            total = at.new[0]
            np.add(at.old[0], np.multiply(g, g, b), total)
            np.add(np.sqrt(total, b), eps, b)
            np.multiply(np.divide(g, b, b), lr / (1.0 + (step - 1) * lr_decay), b)
            np.subtract(at.p, b, at.out)

        return rule


class Adadelta(Optimizer):
    """Steps in proportion to the root mean square of former steps (Zeiler, 2012), as ``torch.optim.Adadelta``.

    Parameters
    ----------
    params, weight_decay, maximize
        As for ``RMSprop``.
    lr : float
        The factor of each step.
    rho : float
        The factor of the running means.
    eps : float
        Added below the roots.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.Adadelta([w])
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(4)
    array([0.9968, 1.9968])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["square_avg", "acc_delta"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, rho, eps = group["lr"], group["rho"], group["eps"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g, b = coupled(at, decay, maximize), at.b
            mean, moved = at.new
            np.multiply(np.multiply(g, g, b), 1.0 - rho, b)
            np.add(np.multiply(at.old[0], rho, mean), b, mean)
            np.add(at.old[1], eps, b)
            np.divide(b, np.add(mean, eps, moved), b)
            np.multiply(np.sqrt(b, b), g, at.a)
            np.multiply(np.multiply(at.a, at.a, b), 1.0 - rho, b)
            np.add(np.multiply(at.old[1], rho, moved), b, moved)
            np.subtract(at.p, np.multiply(at.a, lr, at.a), at.out)

        return rule
