"""Relatives of Adam: Adamax, NAdam and RAdam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.optim._adam import averages
from reactgrad.optim._arrays import Arrays, RememberingRule
from reactgrad.optim._decay import coupled, decoupled
from reactgrad.optim._optimizer import Group, Optimizer


class Adamax(Optimizer):
    """Adam by the largest gradient in place of the mean square (Kingma and Ba, 2015), as ``torch.optim.Adamax``.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, maximize
        As for ``Adam``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.Adamax([w], lr=0.5)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.5, 1.5])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["exp_avg", "exp_inf"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, (b1, b2), eps = group["lr"], group["betas"], group["eps"]
        decay, maximize = group["weight_decay"], group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, decay, maximize)
            m, top = at.new
            np.multiply(at.old[0], b1, m)
            np.add(m, np.multiply(g, 1.0 - b1, at.b), m)
            np.add(np.abs(g, at.a), eps, at.a)
            np.maximum(np.multiply(at.old[1], b2, top), at.a, out=top)
            np.divide(m, top, at.a)
            np.multiply(at.a, lr / (1.0 - b1**step), at.a)
            np.subtract(at.p, at.a, at.out)

        return rule


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016), as ``torch.optim.NAdam``.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, maximize
        As for ``Adam``.
    momentum_decay : float
        The speed at which the momentum reaches its full size.
    decoupled_weight_decay : bool
        ``True`` for weight decay as in ``AdamW``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.NAdam([w], lr=0.5)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(3)
    array([0.472, 1.472])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        super().check_options(options)
        if not options["momentum_decay"] >= 0.0:
            raise ParameterError(
                f"NAdam(momentum_decay={options['momentum_decay']!r}) must be at least 0."
            )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["exp_avg", "exp_avg_sq"]

    def numbers(self, group: Group) -> list[str]:
        """Return the name of the product of the momenta of all steps so far."""
        return ["mu_product"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, (b1, b2), eps = group["lr"], group["betas"], group["eps"]
        decay, psi, maximize = group["weight_decay"], group["momentum_decay"], group["maximize"]
        apart = group["decoupled_weight_decay"]

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, 0.0 if apart else decay, maximize)
            m, v = averages(at, g, b1, b2)
            now, after = _momentum(step, b1, psi), _momentum(step + 1, b1, psi)
            product = at.numbers[0] * now
            step_g, step_m = (
                lr * (1.0 - now) / (1.0 - product),
                lr * after / (1.0 - product * after),
            )
            np.multiply(g, step_g, at.a)
            np.add(at.a, np.multiply(m, step_m, at.b), at.a)
            root = np.sqrt(v, at.b)
            np.multiply(root, (1.0 - b2**step) ** -0.5, root)
            np.add(root, eps, root)
            np.divide(at.a, root, at.a)
            np.subtract(decoupled(at, decay if apart else 0.0, lr), at.a, at.out)

        def after(step: int, numbers: tuple[float, ...]) -> tuple[float, ...]:
            return (numbers[0] * _momentum(step, b1, psi),)

        return RememberingRule(rule, after)


def _momentum(step: int, b1: float, psi: float) -> float:
    """Return the momentum of one step of ``NAdam``."""
    return b1 * (1.0 - 0.5 * 0.96 ** (step * psi))


class RAdam(Optimizer):
    """Adam that begins without the mean square, until it is known well (Liu et al., 2020), as ``torch.optim.RAdam``.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, maximize
        As for ``Adam``.
    decoupled_weight_decay : bool
        ``True`` for weight decay as in ``AdamW``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.RAdam([w], lr=0.125)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.75, 1.5 ])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["exp_avg", "exp_avg_sq"]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, (b1, b2), eps = group["lr"], group["betas"], group["eps"]
        decay, maximize = group["weight_decay"], group["maximize"]
        apart = group["decoupled_weight_decay"]
        longest = 2.0 / (1.0 - b2) - 1.0

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, 0.0 if apart else decay, maximize)
            m, v = averages(at, g, b1, b2)
            size = lr / (1.0 - b1**step)
            length = longest - 2.0 * step * b2**step / (1.0 - b2**step)
            if length > 5.0:
                share = (length - 4.0) * (length - 2.0) * longest
                share /= (longest - 4.0) * (longest - 2.0) * length
                root = np.add(np.sqrt(v, at.a), eps, at.a)
                np.divide(m, root, at.a)
                np.multiply(at.a, size * (share * (1.0 - b2**step)) ** 0.5, at.a)
            else:
                np.multiply(m, size, at.a)
            np.subtract(decoupled(at, decay if apart else 0.0, lr), at.a, at.out)

        return rule
