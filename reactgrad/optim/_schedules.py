"""Learning rates that follow the number of steps: the shared part, and schedules by a formula."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from reactgrad._attributes import OwnAttributes
from reactgrad._calls import check_names
from reactgrad._errors import DTypeError, LoadError, ParameterError
from reactgrad.optim._optimizer import Optimizer
from reactgrad.scheduler import safe_repr


class LRScheduler(OwnAttributes):
    """Set the learning rates of an optimiser's groups; ``step()`` after each epoch, or after each step.

    A schedule is a formula of the number of steps: rates do not depend on how that number was reached.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups' present rates are the ones that a schedule begins with.
    last_epoch : int
        The steps that were made before, less one, to go on from: groups then have an ``"initial_lr"``, as after
        ``opt.load_state_dict``. By default none were.

    Raises
    ------
    DTypeError, ParameterError
        If the first argument is no optimiser, or a group does not say what rate it began with.

    Attributes
    ----------
    base_lrs : list of float
        The rates of the groups that it began with.
    last_epoch : int
        The number of steps so far.
    """

    KEYS: ClassVar[tuple[str, ...]] = ()  # options that are saved

    _INSTEAD: ClassVar[Mapping[str, str]] = {
        "lr": "group['lr'] = {value} for each group of opt.param_groups"
    }

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_names(cls, cls.__qualname__, args, kwargs)
        return super().__new__(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise DTypeError(
                f"{type(self).__name__}({safe_repr(optimizer):.60}): the first argument is an optimiser, such as "
                "rg.optim.SGD(params, lr=0.1)."
            )
        self.optimizer = optimizer
        self.last_epoch = _first_step(type(self).__name__, optimizer, last_epoch)
        self.base_lrs: list[float] = [
            group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups
        ]
        self._set(self.last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps, where `base` is the one that it began with."""
        raise NotImplementedError

    def _set(self, step: int) -> None:
        """Set the rates after so many steps: those of all groups, or none after an error."""
        bases = self.base_lrs
        groups = self.optimizer.param_groups
        rates = [
            self.lr_at(step, bases[i] if i < len(bases) else group["lr"], i)
            for i, group in enumerate(groups)
        ]
        self.last_epoch = step
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """Return the present rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Go on to the next rates."""
        self._set(self.last_epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the count of steps and the options, for a checkpoint."""
        state = {key: getattr(self, key) for key in self.KEYS}
        return {**state, "base_lrs": list(self.base_lrs), "last_epoch": self.last_epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned, and set the rates.

        Raises
        ------
        LoadError
            If something is missing; nothing has changed then.
        """
        keys = self.state_dict().keys()
        if not isinstance(state, Mapping):
            raise LoadError(
                f"{type(self).__name__}.load_state_dict takes what state_dict() returned, not {type(state).__name__}."
            )
        missing = sorted(keys - state.keys())
        if missing:
            raise LoadError(
                f"{type(self).__name__}.load_state_dict: {', '.join(missing)} missing. Was it saved by another "
                "kind of schedule?"
            )
        for key in keys:
            setattr(self, key, state[key])
        self._set(self.last_epoch)


def _first_step(name: str, optimizer: Optimizer, last_epoch: int) -> int:
    """Return the number of steps that a schedule begins with."""
    if operator.index(last_epoch) < -1:
        raise ParameterError(
            f"{name}(last_epoch={last_epoch}): the steps that were made before, less one, or -1 for none."
        )
    if last_epoch == -1:
        return 0
    for i, group in enumerate(optimizer.param_groups):
        if "initial_lr" not in group:
            raise ParameterError(
                f"{name}(last_epoch={last_epoch}): group {i} has no 'initial_lr', the rate that its schedule began "
                "with. Load the optimiser's state first, opt.load_state_dict(state), or leave last_epoch out to begin "
                "at the first step."
            )
    return last_epoch + 1


def _by_group(
    name: str,
    optimizer: Optimizer,
    given: Callable[[int], float] | Sequence[Callable[[int], float]],
) -> list[Callable[[int], float]]:
    """Return the functions of a schedule: one for all groups, or one for each."""
    found = [given] if callable(given) else list(given)
    groups = len(optimizer.param_groups)
    if len(found) not in (1, groups):
        raise ParameterError(
            f"{name}: {len(found)} functions for {groups} groups. Give one for all, or one for each."
        )
    return found


class LambdaLR(LRScheduler):
    """The first rate times a function of the number of steps.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    lr_lambda : callable or sequence of callable
        ``lr_lambda(step)`` returns the factor; one for all groups, or one for each.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=0.5)
    >>> schedule = rg.optim.LambdaLR(opt, lambda step: 0.5**step)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self._lambdas = _by_group("LambdaLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base * self._lambdas[group if len(self._lambdas) > 1 else 0](step)


class MultiplicativeLR(LRScheduler):
    """The rate times a function of the number of steps, at each step.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    lr_lambda : callable or sequence of callable
        ``lr_lambda(step)`` returns the factor of that step, the first one being 1; one for all groups, or one
        for each.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> schedule = rg.optim.MultiplicativeLR(opt, lambda step: 0.5)
    >>> schedule.step(), schedule.step()
    (None, None)
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self._lambdas = _by_group("MultiplicativeLR", optimizer, lr_lambda)
        # By the function's place: the last step that was asked for, and the product up to it.
        self._products = [(0, 1.0)] * len(self._lambdas)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        which = group if len(self._lambdas) > 1 else 0
        start, product = self._products[which]
        if step < start:
            start, product = 0, 1.0
        for one in range(start + 1, step + 1):
            product *= self._lambdas[which](one)
        self._products[which] = step, product
        return base * product


class ConstantLR(LRScheduler):
    """The rate times a factor, for some steps.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    factor : float
        The factor, before `total_iters` steps have been made.
    total_iters : int
        The number of steps that it holds for; 0 to hold for ever.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> schedule = rg.optim.ConstantLR(opt, factor=0.5, total_iters=2)
    >>> schedule.get_last_lr(), schedule.step(), schedule.step(), schedule.get_last_lr()
    ([0.5], None, None, [1.0])
    """

    KEYS = ("factor", "total_iters")

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 <= factor <= 1.0:
            raise ParameterError(f"ConstantLR(factor={safe_repr(factor)}): it is from 0 to 1.")
        self.factor, self.total_iters = float(factor), int(total_iters)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base if 0 < self.total_iters <= step else base * self.factor


class PolynomialLR(LRScheduler):
    """The rate along a power of what is left of the way, down to 0.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    total_iters : int
        The number of steps of the way.
    power : float
        The power.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> schedule = rg.optim.PolynomialLR(opt, total_iters=2, power=2.0)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    KEYS = ("total_iters", "power")

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        if total_iters < 1:
            raise ParameterError(
                f"PolynomialLR(total_iters={safe_repr(total_iters)}) must be at least 1."
            )
        self.total_iters, self.power = int(total_iters), float(power)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base * (1.0 - min(step, self.total_iters) / self.total_iters) ** self.power


class StepLR(LRScheduler):
    """The rate times `gamma` after each `step_size` steps.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    step_size : int
        The number of steps of one rate.
    gamma : float
        The factor.
    last_epoch : int
        See ``LRScheduler``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> opt = rg.optim.SGD([rg.Graph().param(1.0)], lr=1.0)
    >>> schedule = rg.optim.StepLR(opt, 2, gamma=0.5)
    >>> for _ in range(3):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    KEYS = ("step_size", "gamma")

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if step_size < 1:
            raise ParameterError(f"StepLR(step_size={safe_repr(step_size)}) must be at least 1.")
        self.step_size, self.gamma = int(step_size), float(gamma)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each milestone.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    milestones : iterable of int
        Numbers of steps.
    gamma : float
        The factor.
    last_epoch : int
        See ``LRScheduler``.
    """

    KEYS = ("milestones", "gamma")

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(map(int, milestones)), float(gamma)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base * self.gamma ** bisect_right(self.milestones, step)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` at each step.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    gamma : float
        The factor.
    last_epoch : int
        See ``LRScheduler``.
    """

    KEYS = ("gamma",)

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = float(gamma)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return base * self.gamma**step


class LinearLR(LRScheduler):
    """The rate times a factor that goes from one number to another along a line.

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    start_factor, end_factor : float
        The factor at the start, and after `total_iters` steps.
    total_iters : int
        The number of steps of the way; 0 to stay at the start.
    last_epoch : int
        See ``LRScheduler``.
    """

    KEYS = ("start_factor", "end_factor", "total_iters")

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise ParameterError(
                f"LinearLR(start_factor={safe_repr(start_factor)}, "
                f"end_factor={safe_repr(end_factor)}): the first is above 0, both "
                "are at most 1."
            )
        self.start_factor, self.end_factor = float(start_factor), float(end_factor)
        self.total_iters = int(total_iters)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        share = min(step, self.total_iters) / self.total_iters if self.total_iters > 0 else 0.0
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class CosineAnnealingLR(LRScheduler):
    """The rate along half a cosine, from the first rate to `eta_min` (Loshchilov and Hutter, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    T_max : int
        The number of steps of the way.
    eta_min : float
        The last rate.
    last_epoch : int
        See ``LRScheduler``.
    """

    KEYS = ("T_max", "eta_min")

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_max < 1:
            raise ParameterError(f"CosineAnnealingLR(T_max={safe_repr(T_max)}) must be at least 1.")
        self.T_max, self.eta_min = int(T_max), float(eta_min)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        return _cosine(self.eta_min, base, step / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine, again and again (Loshchilov and Hutter, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        What it sets.
    T_0 : int
        The number of steps before the first restart.
    T_mult : int
        The factor of that number at each restart.
    eta_min : float
        The lowest rate.
    last_epoch : int
        See ``LRScheduler``.
    """

    KEYS = ("T_0", "T_mult", "eta_min")

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ParameterError(
                f"CosineAnnealingWarmRestarts(T_0={safe_repr(T_0)}, T_mult={safe_repr(T_mult)}): both are at least 1."
            )
        self.T_0, self.T_mult, self.eta_min = int(T_0), int(T_mult), float(eta_min)
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step: int, base: float, group: int) -> float:
        """Return the rate of a group after so many steps."""
        length, at = self.T_0, step
        while at >= length:
            at -= length
            length *= self.T_mult
            if self.T_mult == 1:
                at %= length
        return _cosine(self.eta_min, base, at / length)


def _cosine(low: float, high: float, share: float) -> float:
    return low + (high - low) * (1.0 + math.cos(math.pi * share)) / 2.0
