"""Learning rates that go up and down again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.optim._optimizer import Optimizer
from reactgrad.optim._schedules import LRScheduler
from reactgrad.scheduler import safe_repr


class CyclicLR(LRScheduler):
    """Up from one rate to another and back, again and again (Smith, 2015), the momentum the other way round.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    base_lr, max_lr : float or list of float
        The lowest and the highest rate, one for all groups or one for each.
    step_size_up, step_size_down : int
        The number of steps up, and down; by default as many down as up.
    mode : {"triangular", "triangular2", "exp_range"}
        Whether cycles are of one height, half as high each time, or lower by ``gamma`` at each step.
    gamma : float
        See ``mode``.
    scale_fn : callable, optional
        A function of its own in place of `mode`, which returns the part of the height.
    scale_mode : {"cycle", "iterations"}
        Whether `scale_fn` is given the number of the cycle, from 1, or that of steps.
    cycle_momentum : bool
        Whether the momentum, or the first of ``betas``, goes from `max_momentum` to `base_momentum` and back.
    base_momentum, max_momentum : float or list of float
        The lowest and the highest momentum, one for all groups or one for each.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0, momentum=0.9)
    >>> schedule = rg.optim.CyclicLR(opt, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[int], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        modes: dict[str, tuple[Callable[[int], float], str]] = {
            "triangular": (lambda cycle: 1.0, "cycle"),
            "triangular2": (lambda cycle: 0.5 ** (cycle - 1), "cycle"),
            "exp_range": (lambda step: gamma**step, "iterations"),
        }
        if mode not in modes or scale_mode not in ("cycle", "iterations"):
            raise ParameterError(
                f"CyclicLR(mode={safe_repr(mode)}, scale_mode={safe_repr(scale_mode)}): 'triangular', "
                "'triangular2' or 'exp_range', and "
                "'cycle' or 'iterations'."
            )
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up < 1 or down < 1:
            raise ParameterError(
                f"CyclicLR(step_size_up={safe_repr(step_size_up)}, "
                f"step_size_down={safe_repr(step_size_down)}): both are at least 1."
            )
        if not isinstance(optimizer, Optimizer):
            super().__init__(optimizer)  # says so
        groups = len(optimizer.param_groups)
        self._low = for_groups("CyclicLR", "base_lr", base_lr, groups)
        self._high = for_groups("CyclicLR", "max_lr", max_lr, groups)
        self._up, self._length = int(step_size_up), int(step_size_up + down)
        self._scale, self._by = (scale_fn, scale_mode) if scale_fn is not None else modes[mode]
        self._cycles = cycle_momentum
        self._least = for_groups("CyclicLR", "base_momentum", base_momentum, groups)
        self._most = for_groups("CyclicLR", "max_momentum", max_momentum, groups)
        some: Any = optimizer.param_groups[0]
        if cycle_momentum and "momentum" not in some and "betas" not in some:
            raise ParameterError(
                f"CyclicLR: {type(optimizer).__name__} has no momentum. Write cycle_momentum=False."
            )
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        cycle = step // self._length + 1
        at, up = step % self._length, self._up
        share = at / up if at <= up else (self._length - at) / (self._length - up)
        share *= self._scale(cycle if self._by == "cycle" else step)
        options, which = self.optimizer.param_groups[group], group % len(self._low)
        least, most = self._least[which], self._most[which]
        momentum = most - (most - least) * share
        if self._cycles and "betas" in options:
            options["betas"] = (momentum, *options["betas"][1:])
        elif self._cycles:
            options["momentum"] = momentum
        low, high = self._low[which], self._high[which]
        return low + (high - low) * share


def for_groups(kind: str, name: str, rate: float | list[float], groups: int) -> list[float]:
    """Return a number for each group, of one for all or a list."""
    rates = list(rate) if isinstance(rate, list | tuple) else [rate] * groups
    if len(rates) != groups or not all(math.isfinite(one) for one in rates):
        raise ParameterError(
            f"{kind}({name}={safe_repr(rate):.60}): one number for all groups, or a list of {groups}."
        )
    return [float(one) for one in rates]
