"""Steps by the signs of gradients alone: Rprop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.optim._arrays import Arrays
from reactgrad.optim._bucket import Bucket
from reactgrad.optim._optimizer import Group, Optimizer


class Rprop(Optimizer):
    """Steps whose lengths grow while a gradient keeps its sign (Riedmiller and Braun, 1993), as ``torch.optim.Rprop``.

    For gradients of all samples at once: those of batches change their sign by chance.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts of groups; see ``Optimizer``.
    lr : float
        The length of the first step.
    etas : tuple of float
        The factors of a length where the sign has changed, below 1, and where it has not, above 1.
    step_sizes : tuple of float
        The least and the largest length.
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
    >>> opt = rg.optim.Rprop([w], lr=0.1)
    >>> run = (w * w).sum().backward()
    >>> opt.step()
    >>> w.value
    array([0.9, 1.9])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        super().check_options(options)
        less, more = options["etas"]
        if not 0.0 < less < 1.0 < more:
            raise ParameterError(
                f"Rprop(etas={options['etas']!r}): the first is between 0 and 1, the second above 1."
            )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return ["prev", "step_size"]

    def start(self, group: Group, bucket: Bucket) -> None:
        """Fill the lengths with what they begin with."""
        bucket.now[1].fill(group["lr"])

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step."""
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        maximize = group["maximize"]

        def rule(step: int, at: Arrays) -> None:
            g = np.negative(at.g, at.a) if maximize else at.g
            former, length = at.new
            turn = np.multiply(g, at.old[0], at.b)
            turned = turn < 0.0
            np.copyto(former, g)
            former[turned] = 0.0
            factor = np.where(turned, less, np.where(turn > 0.0, more, 1.0)).astype(g.dtype)
            np.clip(np.multiply(at.old[1], factor, length), least, most, out=length)
            np.subtract(at.p, np.multiply(np.sign(former), length, at.b), at.out)

        return rule
