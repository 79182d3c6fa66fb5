"""Learning rates, by tables of numbers that PyTorch gave, and their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg

Make = Callable[[Any, Any], Any]

MAKES: dict[str, Make] = {
    "StepLR": lambda m, opt: m.StepLR(opt, 2, gamma=0.5),
    "MultiStepLR": lambda m, opt: m.MultiStepLR(opt, [2, 3, 5], gamma=0.5),
    "ExponentialLR": lambda m, opt: m.ExponentialLR(opt, gamma=0.9),
    "LinearLR": lambda m, opt: m.LinearLR(opt, start_factor=0.25, total_iters=4),
    "LambdaLR": lambda m, opt: m.LambdaLR(opt, lambda step: 1.0 / (1.0 + step)),
    "CosineAnnealingLR": lambda m, opt: m.CosineAnnealingLR(opt, T_max=6, eta_min=0.1),
    "CosineAnnealingWarmRestarts": lambda m, opt: m.CosineAnnealingWarmRestarts(
        opt, T_0=2, T_mult=2
    ),
    "OneCycleLR": lambda m, opt: m.OneCycleLR(opt, max_lr=2.0, total_steps=10),
    "OneCycleLR linear": lambda m, opt: m.OneCycleLR(
        opt, max_lr=2.0, epochs=2, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
    ),
    "ConstantLR": lambda m, opt: m.ConstantLR(opt, factor=0.25, total_iters=3),
    "ConstantLR for ever": lambda m, opt: m.ConstantLR(opt, factor=0.25, total_iters=0),
    "LinearLR of no steps": lambda m, opt: m.LinearLR(opt, start_factor=0.25, total_iters=0),
    "PolynomialLR": lambda m, opt: m.PolynomialLR(opt, total_iters=4, power=2.0),
    "MultiplicativeLR": lambda m, opt: m.MultiplicativeLR(opt, lambda step: 1.0 / step),
    "CyclicLR": lambda m, opt: m.CyclicLR(
        opt, base_lr=0.1, max_lr=0.5, step_size_up=2, step_size_down=1
    ),
    "CyclicLR halved": lambda m, opt: m.CyclicLR(
        opt, base_lr=0.1, max_lr=0.5, step_size_up=1, mode="triangular2"
    ),
    "CyclicLR lower at each step": lambda m, opt: m.CyclicLR(
        opt, base_lr=0.1, max_lr=0.5, step_size_up=2, mode="exp_range", gamma=0.9
    ),
    "ChainedScheduler": lambda m, opt: m.ChainedScheduler(
        [m.ConstantLR(opt, factor=0.1, total_iters=2), m.ExponentialLR(opt, gamma=0.9)]
    ),
    "SequentialLR": lambda m, opt: m.SequentialLR(
        opt, [m.LinearLR(opt, total_iters=3), m.ExponentialLR(opt, gamma=0.9)], milestones=[3]
    ),
}


def optimizer(module: Any, param: Any) -> Any:
    return module.SGD([param], lr=1.0, momentum=0.9)


def rates(opt: Any, schedule: Any, steps: int) -> list[float]:
    found = [opt.param_groups[0]["lr"]]
    for _ in range(steps):
        schedule.step()
        found.append(opt.param_groups[0]["lr"])
    return found


@pytest.mark.parametrize("name", MAKES)
def test_rates_equal_pytorchs(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    ours = optimizer(rg.optim, rg.Graph().param(1.0))
    theirs = optimizer(torch.optim, torch.ones(1, requires_grad=True))
    schedule, their = MAKES[name](rg.optim, ours), MAKES[name](torch.optim.lr_scheduler, theirs)
    theirs.step()
    for _ in range(9):
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-9)
        assert ours.param_groups[0]["momentum"] == pytest.approx(
            theirs.param_groups[0]["momentum"], rel=1e-9
        )
        schedule.step()
        their.step()


TABLE: dict[str, list[float]] = {
    "StepLR": [1.0, 1.0, 0.5, 0.5, 0.25, 0.25],
    "MultiStepLR": [1.0, 1.0, 0.5, 0.25, 0.25, 0.125],
    "ExponentialLR": [1.0, 0.9, 0.81, 0.729, 0.6561, 0.59049],
    "LinearLR": [0.25, 0.4375, 0.625, 0.8125, 1.0, 1.0],
    "ConstantLR": [0.25, 0.25, 0.25, 1.0, 1.0, 1.0],
    "ConstantLR for ever": [0.25] * 6,
    "LinearLR of no steps": [0.25] * 6,
    "PolynomialLR": [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0],
    "MultiplicativeLR": [1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120],
    "CyclicLR": [0.1, 0.3, 0.5, 0.1, 0.3, 0.5],
    "CyclicLR halved": [0.1, 0.5, 0.1, 0.3, 0.1, 0.2],
    "CyclicLR lower at each step": [0.1, 0.28, 0.424, 0.2458, 0.1, 0.218098],
    "ChainedScheduler": [0.1, 0.09, 0.81, 0.729, 0.6561, 0.59049],
    "LambdaLR": [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6],
    "CosineAnnealingWarmRestarts": [1.0, 0.5, 1.0, 0.85355339, 0.5, 0.14644661],
}


@pytest.mark.parametrize("name", TABLE)
def test_rates(name: str) -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    assert rates(opt, MAKES[name](rg.optim, opt), 5) == pytest.approx(TABLE[name])


@pytest.mark.parametrize("name", MAKES)
def test_a_schedule_goes_on_from_its_state(name: str) -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    schedule = MAKES[name](rg.optim, opt)
    rates(opt, schedule, 3)
    state = schedule.state_dict()
    whole = rates(opt, schedule, 4)
    other = optimizer(rg.optim, rg.Graph().param(1.0))
    again = MAKES[name](rg.optim, other)
    again.load_state_dict(state)
    assert rates(other, again, 4) == whole


# Schedules that take `last_epoch`, the others stand on what they are made of.
RESUMED: dict[str, Callable[[Any, Any, int], Any]] = {
    "StepLR": lambda m, opt, last: m.StepLR(opt, 2, 0.5, last),
    "MultiStepLR": lambda m, opt, last: m.MultiStepLR(opt, [2, 3, 5], 0.5, last),
    "ExponentialLR": lambda m, opt, last: m.ExponentialLR(opt, 0.9, last),
    "LinearLR": lambda m, opt, last: m.LinearLR(opt, 0.25, 1.0, 4, last),
    "LambdaLR": lambda m, opt, last: m.LambdaLR(opt, lambda step: 1.0 / (1.0 + step), last),
    "MultiplicativeLR": lambda m, opt, last: m.MultiplicativeLR(opt, lambda k: 1.0 / k, last),
    "ConstantLR": lambda m, opt, last: m.ConstantLR(opt, 0.25, 3, last),
    "PolynomialLR": lambda m, opt, last: m.PolynomialLR(opt, 4, 2.0, last),
    "CosineAnnealingLR": lambda m, opt, last: m.CosineAnnealingLR(opt, 6, 0.1, last),
    "CosineAnnealingWarmRestarts": lambda m, opt, last: m.CosineAnnealingWarmRestarts(
        opt, 3, 2, 0.0, last
    ),
    "CyclicLR": lambda m, opt, last: m.CyclicLR(opt, 0.1, 0.5, 2, last_epoch=last),
    "OneCycleLR": lambda m, opt, last: m.OneCycleLR(opt, 2.0, 12, last_epoch=last),
    "SequentialLR": lambda m, opt, last: m.SequentialLR(
        opt, [m.LinearLR(opt, total_iters=3), m.ExponentialLR(opt, gamma=0.9)], [3], last
    ),
}


@pytest.mark.parametrize("name", RESUMED)
def test_last_epoch_goes_on_where_another_schedule_was(name: str) -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    first = RESUMED[name](rg.optim, opt, -1)
    rates(opt, first, 5)
    state = opt.state_dict()
    whole = rates(opt, first, 5)
    again = optimizer(rg.optim, rg.Graph().param(1.0, name=opt.param_groups[0]["names"][0]))
    again.load_state_dict(state)
    resumed = RESUMED[name](rg.optim, again, 4)
    assert resumed.last_epoch == 5
    assert rates(again, resumed, 5) == whole
    momentum = [one.param_groups[0]["momentum"] for one in (opt, again)]
    assert momentum[0] == momentum[1]


# PyTorch's MultiStepLR would apply the factor of step 5 again to the rate that has it, and its SequentialLR goes back
# to the first rate.
@pytest.mark.parametrize("name", sorted({*RESUMED} - {"MultiStepLR", "SequentialLR"}))
def test_last_epoch_gives_pytorchs_rates(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    found = []
    for module, schedules, param in (
        (rg.optim, rg.optim, rg.Graph().param(1.0)),
        (torch.optim, torch.optim.lr_scheduler, torch.ones(1, requires_grad=True)),
    ):
        opt = optimizer(module, param)
        former = RESUMED[name](schedules, opt, -1)
        if module is torch.optim:
            opt.step()
        rates(opt, former, 5)
        resumed = RESUMED[name](schedules, opt, 4)
        found.append(rates(opt, resumed, 5))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_last_epoch_needs_the_rate_that_a_schedule_began_with() -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    with pytest.raises(
        rg.ParameterError, match=r"StepLR\(last_epoch=3\): group 0 has no 'initial_lr'"
    ):
        rg.optim.StepLR(opt, 2, last_epoch=3)
    with pytest.raises(rg.ParameterError, match=r"StepLR\(last_epoch=-2\)"):
        rg.optim.StepLR(opt, 2, last_epoch=-2)
    assert "initial_lr" not in opt.param_groups[0]
    opt.param_groups[0]["initial_lr"] = 8.0
    assert rates(opt, rg.optim.StepLR(opt, 2, 0.5, last_epoch=3), 1) == [2.0, 2.0]


def test_a_cycle_ends() -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    cycle = rg.optim.OneCycleLR(opt, max_lr=2.0, total_steps=4)
    found = rates(opt, cycle, 4)
    assert found[3:] == pytest.approx([8e-6] * 2)
    with pytest.raises(ValueError, match="step 5 of a cycle of 4"):
        cycle.step()
    assert cycle.last_epoch == 4  # and nothing has changed
    assert opt.param_groups[0]["lr"] == found[-1]


def test_plateau() -> None:
    losses = [1.0, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8]
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    schedule = rg.optim.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1)
    found = []
    for loss in losses:
        schedule.step(loss)
        found.append(opt.param_groups[0]["lr"])
    assert found == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]
    again = rg.optim.ReduceLROnPlateau(opt)
    again.load_state_dict(schedule.state_dict())
    assert again.state_dict() == schedule.state_dict()


def test_plateau_equals_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    ours = optimizer(rg.optim, rg.Graph().param(1.0))
    theirs = optimizer(torch.optim, torch.ones(1, requires_grad=True))
    options: dict[str, Any] = {"factor": 0.5, "patience": 1, "cooldown": 1, "mode": "max"}
    schedule = rg.optim.ReduceLROnPlateau(ours, **options)
    their = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for score in [0.1, 0.2, 0.2, 0.2, 0.1, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]:
        schedule.step(score)
        their.step(score)
        assert schedule.get_last_lr() == their.get_last_lr()


def test_misuse_is_told() -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    untyped: Any = rg.optim
    with pytest.raises(rg.DTypeError, match="the first argument is an optimiser"):
        untyped.StepLR(3.0, 2)
    with pytest.raises(rg.DTypeError, match="needs total_steps"):
        rg.optim.OneCycleLR(opt, 1.0)
    with pytest.raises(rg.DTypeError, match="1 schedules and 1 milestones"):
        rg.optim.SequentialLR(opt, [rg.optim.StepLR(opt, 1)], [3])
    with pytest.raises(rg.LoadError, match="gamma, step_size missing"):
        rg.optim.StepLR(opt, 1).load_state_dict({"base_lrs": [1.0], "last_epoch": 0})


def test_a_schedule_with_rates_of_its_own_is_not_chained() -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    cycle = rg.optim.CyclicLR(opt, 0.1, 0.5, 2)
    with pytest.raises(rg.DTypeError, match="a CyclicLR sets rates of its own"):
        rg.optim.ChainedScheduler([cycle])
    with pytest.raises(rg.DTypeError, match="Adagrad has no momentum. Write cycle_momentum=False"):
        rg.optim.CyclicLR(rg.optim.Adagrad([rg.Graph().param(1.0)]), 0.1, 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda m, opt: m.OneCycleLR(opt, [2.0, 0.5], 9, max_momentum=[0.9, 0.8], three_phase=True),
        lambda m, opt: m.CyclicLR(opt, [0.1, 0.2], [0.5, 0.9], 2, base_momentum=[0.5, 0.6]),
    ],
)
def test_groups_have_limits_of_their_own(make: Make) -> None:
    torch: Any = pytest.importorskip("torch")
    g = rg.Graph()
    ours, theirs = (
        module.SGD([{"params": [make()]} for _ in range(2)], lr=1.0, momentum=0.9)
        for module, make in (
            (rg.optim, lambda: g.param(1.0)),
            (torch.optim, lambda: torch.ones(1, requires_grad=True)),
        )
    )
    schedule, their = make(rg.optim, ours), make(torch.optim.lr_scheduler, theirs)
    theirs.step()
    for _ in range(8):
        for key in ("lr", "momentum"):
            found = [group[key] for group in ours.param_groups]
            assert found == pytest.approx([group[key] for group in theirs.param_groups], rel=1e-9)
        schedule.step()
        their.step()


def test_limits_for_another_number_of_groups_are_refused() -> None:
    opt = optimizer(rg.optim, rg.Graph().param(1.0))
    with pytest.raises(rg.DTypeError, match=r"OneCycleLR\(max_lr=\[1.0, 2.0\]\): .* a list of 1"):
        rg.optim.OneCycleLR(opt, [1.0, 2.0], 10)
