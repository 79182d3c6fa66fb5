"""Steps equal PyTorch's: 25 of each optimiser, on two layers and on a convolution, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import cnn, mlp

torch: Any = pytest.importorskip("torch")

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.001, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.8, "momentum": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {"lr": 0.01}),
    ("Rprop", {"lr": 0.01, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.3), "maximize": True}),
    ("ASGD", {"lr": 0.05}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
    ("LBFGS", {"lr": 0.3, "max_iter": 4, "history_size": 5}),
    ("LBFGS", {"max_iter": 3, "line_search_fn": "strong_wolfe"}),
]


@pytest.fixture(autouse=True)
def numbers_of_params_in_float64() -> Iterator[None]:
    """PyTorch keeps the rate of ASGD and the momenta of NAdam in its default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def in_torch(kind: str, start: list[Any], x: Any, y: Any) -> tuple[list[Any], Any]:
    """Return tensors like the params, and a function that returns their loss."""
    params = [torch.tensor(one, requires_grad=True) for one in start]
    tx, ty = torch.tensor(x), torch.tensor(y)

    def loss() -> Any:
        if kind == "mlp":
            w1, b1, w2, b2 = params
            out = torch.tanh(tx @ w1 + b1) @ w2 + b2
        else:
            kernel, bias, w, b = params
            hidden = torch.relu(torch.nn.functional.conv2d(tx, kernel, bias))
            out = torch.nn.functional.max_pool2d(hidden, 2).reshape(3, 8) @ w + b
        return ((out - ty) ** 2).mean()

    return params, loss


def step(opt: Any, loss: Any) -> None:
    """Make a step by a function that returns a loss with ``backward``."""

    def closure() -> Any:
        opt.zero_grad()
        found = loss()
        found.backward()
        return found

    opt.step(closure)


def close(params: list[Any], theirs: list[Any]) -> None:
    for one, their in zip(params, theirs, strict=True):
        np.testing.assert_allclose(one.value, their.detach().numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda one: str(one))
def test_25_steps_equal_pytorchs(name: str, options: dict[str, Any], kind: str) -> None:
    g, params, loss = mlp() if kind == "mlp" else cnn()
    theirs, their_loss = in_torch(kind, [one.value for one in params], g["x"].value, g["y"].value)
    opt, their_opt = (
        getattr(rg.optim, name)(params, **options),
        getattr(torch.optim, name)(theirs, **options),
    )
    sizes = []
    for _ in range(25):
        step(opt, lambda: loss)
        step(their_opt, their_loss)
        sizes.append(len(g))
        close(params, theirs)
    if name != "LBFGS":  # of which a step tries several values
        assert [one.value_version for one in params] == [26] * len(params)
    assert len({*sizes[3:]}) == 1


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        ("Adam", {"weight_decay": 0.01}),
        ("AdamW", {}),
    ],
)
def test_50_steps_with_groups_hooks_and_a_schedule_equal_pytorchs(
    name: str, options: dict[str, Any], kind: str
) -> None:
    """All that row 4.3 of the list names in one loop: clipping as a hook, hooks on both sides, StepLR."""
    g, params, loss = mlp() if kind == "mlp" else cnn()
    theirs, their_loss = in_torch(kind, [one.value for one in params], g["x"].value, g["y"].value)
    norms: list[list[float]] = [[], []]
    called: list[list[int]] = [[], []]
    loops = []
    for i, (module, schedules, clip, leaves) in enumerate(
        (
            (rg.optim, rg.optim, rg.optim.clip_grad_norm_, params),
            (torch.optim, torch.optim.lr_scheduler, torch.nn.utils.clip_grad_norm_, theirs),
        )
    ):
        groups = [{"params": leaves[:2]}, {"params": leaves[2:], "lr": 0.02}]
        opt = getattr(module, name)(groups, lr=0.05, **options)

        def before(*given: Any, i: int = i, clip: Any = clip, leaves: Any = leaves) -> None:
            norms[i].append(float(clip(leaves, 0.5)))

        opt.register_step_pre_hook(before)
        opt.register_step_post_hook(lambda *given, i=i: called[i].append(len(norms[i])))
        loops.append((opt, schedules.StepLR(opt, 20, gamma=0.5)))
    sizes = []
    for _ in range(50):
        for (opt, schedule), cost in zip(loops, (lambda: loss, their_loss), strict=True):
            opt.zero_grad()
            cost().backward()
            opt.step()
            schedule.step()
        sizes.append(len(g))
        close(params, theirs)
    np.testing.assert_allclose(norms[0], norms[1], rtol=1e-8)
    assert max(norms[0]) > 0.5  # something was clipped
    assert called[0] == called[1] == [*range(1, 51)]
    assert loops[0][1].get_last_lr() == pytest.approx([0.0125, 0.005])
    assert len({*sizes[3:]}) == 1
