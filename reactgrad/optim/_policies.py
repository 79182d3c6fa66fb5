"""Schedules of learning rates that are made of others, follow a measure, or go up and down once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import LoadError, ParameterError
from reactgrad.optim._cyclic import CyclicLR, for_groups
from reactgrad.optim._optimizer import Optimizer
from reactgrad.optim._schedules import LRScheduler
from reactgrad.scheduler import safe_repr


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to nearly nothing (Smith and Topin, 2018), the momentum the other way round.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    max_lr : float or list of float
        The highest rate, one for all groups or one for each.
    total_steps : int, optional
        The number of steps of the cycle; or `epochs` and `steps_per_epoch`.
    pct_start : float
        The share of steps that go up.
    anneal_strategy : {"cos", "linear"}
        The form of the way.
    cycle_momentum : bool
        Whether the momentum, or the first of ``betas``, goes from `max_momentum` to `base_momentum` and back.
    base_momentum, max_momentum : float or list of float
        The lowest and the highest momentum, one for all groups or one for each.
    div_factor, final_div_factor : float
        The first rate is ``max_lr / div_factor``, the last one that over ``final_div_factor``.
    three_phase : bool
        Whether to go down as fast as up, and then to the last rate.
    last_epoch : int
        See ``LRScheduler``.

    Raises
    ------
    ParameterError
        By ``step()`` after the end of the cycle.

    Notes
    -----
    A loop that calls ``step()`` after each of ``total_steps`` batches ends at the last rate. PyTorch's formula goes on
    by one step there, which no batch uses: up again, or below 0 along a line.
    """

    KEYS = ("total_steps",)

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ParameterError(
                    "OneCycleLR needs total_steps, or epochs and steps_per_epoch, to know when the cycle ends."
                )
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ParameterError(
                f"OneCycleLR(anneal_strategy={safe_repr(anneal_strategy)}): 'cos' or 'linear'."
            )
        self.total_steps = int(total_steps)
        if not isinstance(optimizer, Optimizer):
            super().__init__(optimizer)  # says so
        groups = len(optimizer.param_groups)
        tops = for_groups("OneCycleLR", "max_lr", max_lr, groups)
        lows = for_groups("OneCycleLR", "base_momentum", base_momentum, groups)
        highs = for_groups("OneCycleLR", "max_momentum", max_momentum, groups)
        top = float(pct_start * self.total_steps) - 1.0
        end = float(self.total_steps - 1)
        # By group and phase: the step at which it ends, with the rates and momenta at its start and end.
        self._phases: list[list[tuple[float, ...]]] = []
        for most, low, high in zip(tops, lows, highs, strict=True):
            first = most / div_factor
            last = first / final_div_factor
            if three_phase:
                back = 2.0 * pct_start * self.total_steps - 2.0
                phases = [
                    (top, first, most, high, low),
                    (back, most, first, low, high),
                    (end, first, last, high, high),
                ]
            else:
                phases = [(top, first, most, high, low), (end, most, last, low, high)]
            self._phases.append(phases)
        self._linear, self._cycles = anneal_strategy == "linear", cycle_momentum
        super().__init__(optimizer, last_epoch)

    def _at(self, step: int, group: int) -> tuple[float, float]:
        """Return the rate and the momentum after so many steps."""
        start, phases = 0.0, self._phases[group % len(self._phases)]
        for end, lr, lr_end, momentum, momentum_end in phases:
            if step <= end or end == phases[-1][0]:
                share = min((step - start) / (end - start), 1.0) if end > start else 1.0
                if not self._linear:
                    share = (1.0 - math.cos(math.pi * share)) / 2.0
                return lr + (lr_end - lr) * share, momentum + (momentum_end - momentum) * share
            start = end
        raise AssertionError("the last phase takes all steps")

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        if step > self.total_steps:
            raise ParameterError(
                f"OneCycleLR: step {step} of a cycle of {self.total_steps}. Make it with total_steps={step} or more, "
                "or let another schedule follow: rg.optim.SequentialLR(opt, [cycle, after], milestones=[...])."
            )
        rate, momentum = self._at(step, group)
        options = self.optimizer.param_groups[group]
        if self._cycles and "betas" in options:
            options["betas"] = (momentum, *options["betas"][1:])
        elif self._cycles and options.get("momentum"):
            options["momentum"] = momentum
        return rate


class SequentialLR(LRScheduler):
    """One schedule after the other.

    Parameters
    ----------
    optimizer : Optimizer
        What they set.
    schedulers : sequence of LRScheduler
        Schedules of this optimiser.
    milestones : sequence of int
        The steps at which the next one begins, one fewer than there are schedules.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> up = rg.optim.LinearLR(opt, start_factor=0.5, total_iters=2)
    >>> down = rg.optim.ExponentialLR(opt, gamma=0.1)
    >>> schedule = rg.optim.SequentialLR(opt, [up, down], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ParameterError(
                f"SequentialLR: {len(schedulers)} schedules and {len(milestones)} milestones. Between two schedules "
                "stands one milestone."
            )
        if any(one.optimizer is not optimizer for one in schedulers):
            raise ParameterError("SequentialLR: all schedules belong to the same optimiser.")
        self._schedules, self.milestones = list(schedulers), list(map(int, milestones))
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        passed = sum(step >= milestone for milestone in self.milestones)
        start = self.milestones[passed - 1] if passed else 0
        schedule = self._schedules[passed]
        schedule.last_epoch = step - start
        return schedule.lr_at(step - start, schedule.base_lrs[group], group)

    def state_dict(self) -> dict[str, Any]:
        """Return the count of steps, and the states of all schedules."""
        return {**super().state_dict(), "schedulers": [one.state_dict() for one in self._schedules]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned, and set the rates."""
        _load_inner(self, self._schedules, state)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: the first rate times the factors of all.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Schedules of one optimiser. Each step is one of all of them.
    optimizer : Optimizer, optional
        What they set; it follows from them.

    Notes
    -----
    A factor is the rate that a schedule would set alone over the first rate, so a schedule that sets rates of its own
    (``OneCycleLR``, ``CyclicLR``) is refused.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> warm = rg.optim.ConstantLR(opt, factor=0.5, total_iters=1)
    >>> down = rg.optim.ExponentialLR(opt, gamma=0.5)
    >>> schedule = rg.optim.ChainedScheduler([warm, down])
    >>> schedule.get_last_lr(), schedule.step(), schedule.get_last_lr()
    ([0.5], None, [0.5])
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        schedules = list(schedulers)
        if not schedules:
            raise ParameterError("ChainedScheduler([]): it needs at least one schedule.")
        first = schedules[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not first for one in schedules):
            raise ParameterError("ChainedScheduler: all schedules belong to the same optimiser.")
        own = next((one for one in schedules if isinstance(one, OneCycleLR | CyclicLR)), None)
        if own is not None:
            raise ParameterError(
                f"ChainedScheduler: a {type(own).__name__} sets rates of its own, and has no factor of the first rate. "
                "Write rg.optim.SequentialLR for one after the other."
            )
        self._schedules = schedules
        super().__init__(first)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        rate = base
        for one in self._schedules:
            one.last_epoch = step
            rate *= one.lr_at(step, base, group) / base if base else 1.0
        return rate

    def state_dict(self) -> dict[str, Any]:
        """Return the count of steps, and the states of all schedules."""
        return {**super().state_dict(), "schedulers": [one.state_dict() for one in self._schedules]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned, and set the rates."""
        _load_inner(self, self._schedules, state)


def _load_inner(schedule: Any, schedules: list[LRScheduler], state: Mapping[str, Any]) -> None:
    """Take over the state of a schedule of others."""
    inner = state.get("schedulers", ())
    if len(inner) != len(schedules):
        raise LoadError(
            f"{type(schedule).__name__}.load_state_dict: {len(inner)} schedules were saved, and there are "
            f"{len(schedules)}."
        )
    for one, saved in zip(schedules, inner, strict=True):
        one.load_state_dict(saved)
    schedule.base_lrs = list(state["base_lrs"])
    schedule._set(state["last_epoch"])


class ReduceLROnPlateau(OwnAttributes):
    """Lower the rate when a measure gets no better.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    mode : {"min", "max"}
        Whether less or more is better.
    factor : float
        The factor of the rate.
    patience : int
        The number of steps without a better measure that it waits.
    threshold : float
        The least change that counts.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is a share of the best measure.
    cooldown : int
        The number of steps after a change that do not count.
    min_lr : float
        The lowest rate.
    eps : float
        A smaller change of the rate is left out.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> schedule = rg.optim.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    _STATE = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ParameterError(
                f"ReduceLROnPlateau(mode={safe_repr(mode)}, "
                f"threshold_mode={safe_repr(threshold_mode)}): 'min' or 'max', 'rel' or "
                "'abs'."
            )
        if not factor < 1.0:
            raise ParameterError(f"ReduceLROnPlateau(factor={safe_repr(factor)}) must be below 1.")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _better(self, measure: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "rel":
            if math.isinf(self.best):
                return sign * measure < sign * self.best
            return sign * measure < sign * self.best * (1.0 - sign * self.threshold)
        return sign * measure < sign * self.best - self.threshold

    def step(self, metrics: Any) -> None:
        """Go on by a measure, such as the loss of an epoch.

        Parameters
        ----------
        metrics : float or Var
            One number.
        """
        measure = float(metrics.item()) if hasattr(metrics, "item") else float(metrics)
        self.last_epoch += 1
        if self._better(measure):
            self.best, self.num_bad_epochs = measure, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                new = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """Return the present rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the counts and the best measure, for a checkpoint."""
        return {key: getattr(self, key) for key in self._STATE}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        missing = [key for key in self._STATE if key not in state]
        if missing:
            raise LoadError(f"ReduceLROnPlateau.load_state_dict: {', '.join(missing)} missing.")
        for key in self._STATE:
            setattr(self, key, state[key])
