"""Rprop and ASGD beside numbers of PyTorch 2.13 that were written down: 25 steps on a sum of squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# The options, and the params after the steps. PyTorch keeps the rate of ASGD in float32.
FOUND: list[tuple[str, dict[str, Any], list[float]]] = [
    ("Rprop", {}, [1.487819179038802, -0.8020312524585043, 1.4784186901036398]),
    (
        "Rprop",
        {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.3)},
        [1.6975000000000002, -0.90837888, 1.7012208000000004],
    ),
    ("ASGD", {"lr": 0.05}, [1.1291354979039927, -0.6983024190680561, 1.0669484426548865]),
    (
        "ASGD",
        {"lr": 0.05, "t0": 3, "lambd": 0.1, "weight_decay": 0.1, "alpha": 0.5},
        [0.8848771287790671, -0.5511080908961873, 0.8336087315440842],
    ),
]


def trained(name: str, options: dict[str, Any], factor: float = 1.0) -> tuple[rg.Var, Any]:
    matrix = (0.9 * np.cos(1.3 * np.arange(9) + 2)).reshape(3, 3)
    w = rg.Graph().param([1.0, -2.0, 0.5], name="w")
    opt = getattr(rg.optim, name)([w], **options)
    loss = ((matrix @ w) ** 2).sum() * factor
    for _ in range(25):
        opt.zero_grad()
        loss.backward()
        opt.step()
    return w, opt


@pytest.mark.parametrize(("name", "options", "found"), FOUND)
def test_25_steps_have_the_numbers_of_torch(
    name: str, options: dict[str, Any], found: list[float]
) -> None:
    w, _ = trained(name, options)
    np.testing.assert_allclose(w.value, found, rtol=1e-8)
    climbed, _ = trained(name, {**options, "maximize": True}, -1.0)
    np.testing.assert_array_equal(climbed.value, w.value)


def test_the_mean_of_params_is_a_part_of_the_state() -> None:
    w, opt = trained("ASGD", FOUND[-1][1])
    mean = opt.state_dict()["state"]["w"]["ax"]
    np.testing.assert_allclose(
        mean, [0.9811489845227428, -0.8213867989875473, 0.8001762828292143], rtol=1e-7
    )
    again = rg.optim.ASGD([("w", w)], **FOUND[-1][1])
    again.load_state_dict(opt.state_dict())
    np.testing.assert_array_equal(again.state_dict()["state"]["w"]["ax"], mean)
