"""Steps in proportion to the mean gradient over its root mean square: Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.optim._arrays import Arrays
from reactgrad.optim._compiled import compiled
from reactgrad.optim._decay import coupled, decoupled
from reactgrad.optim._optimizer import Group, Optimizer


def averages(at: Arrays, g: Any, b1: float, b2: float) -> tuple[Any, Any]:
    """Write and return the running means of the gradient and of its square."""
    m, v = at.new[0], at.new[1]
    np.multiply(at.old[0], b1, m)
    np.add(m, np.multiply(g, 1.0 - b1, at.b), m)
    np.multiply(at.old[1], b2, v)
    np.multiply(g, g, at.b)
    np.add(v, np.multiply(at.b, 1.0 - b2, at.b), v)
    return m, v


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), as ``torch.optim.Adam``.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts of groups; see ``Optimizer``.
    lr : float
        The learning rate.
    betas : tuple of float
        The factors of the running means of the gradient and of its square.
    eps : float
        Added to the root of the mean square.
    weight_decay : float
        This much of the param is added to its gradient.
    amsgrad : bool
        Whether to divide by the largest mean square so far (Reddi et al., 2018).
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
    >>> opt = rg.optim.Adam([w], lr=0.5)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.5, 1.5])
    """

    DECOUPLED = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
        )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        lr, (b1, b2), eps = group["lr"], group["betas"], group["eps"]
        decay, amsgrad, maximize = group["weight_decay"], group["amsgrad"], group["maximize"]
        apart = self.DECOUPLED

        def rule(step: int, at: Arrays) -> None:
            g = coupled(at, 0.0 if apart else decay, maximize)
            m, v = averages(at, g, b1, b2)
            if amsgrad:
                v = np.maximum(at.old[2], v, out=at.new[2])
            root = np.sqrt(v, at.a)
            np.multiply(root, (1.0 - b2**step) ** -0.5, root)
            np.add(root, eps, root)
            np.divide(m, root, root)
            np.multiply(root, lr / (1.0 - b1**step), root)
            np.subtract(decoupled(at, decay if apart else 0.0, lr), root, at.out)

        def numbers(step: int) -> tuple[float, ...]:
            scale, rate = (1.0 - b2**step) ** -0.5, lr / (1.0 - b1**step)
            means = b1, b2, 1.0 - b1, 1.0 - b2, scale, eps
            shrinks = apart and decay != 0.0
            return (
                0.0 if apart else decay,
                maximize,
                rate,
                *means,
                amsgrad,
                shrinks,
                1.0 - lr * decay,
            )

        return compiled("adapt", rule, (lr, b1, b2, eps, decay, amsgrad, maximize), numbers)


class AdamW(Adam):
    """Adam with weight decay of its own (Loshchilov and Hutter, 2019), as ``torch.optim.AdamW``.

    Parameters
    ----------
    params, lr, betas, eps, amsgrad, maximize
        As for ``Adam``.
    weight_decay : float
        Each step multiplies the params by ``1 - lr * weight_decay``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> opt = rg.optim.AdamW([w], lr=0.5, weight_decay=0.1)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value.round(6)
    array([0.45, 1.4 ])
    """

    DECOUPLED = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
