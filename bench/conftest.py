"""``pytest bench/b04_grid.py``: each side of each contest through pytest-benchmark, grouped by
contest.

Use it for one side's distribution, or for one machine over time (``--benchmark-compare``). Ratios
are better taken from ``python -m bench``, which measures in turns. ``--small`` takes small sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench._case import Contest, Setting, Side, Workload
from bench._machine import fix_threads
from bench._measure import Here, check
from bench._peers import installed

fix_threads()

ROUNDS = 21


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for small sizes."""
    parser.addoption("--small", action="store_true", help="benchmarks at small sizes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each side of each contest of a workload."""
    if "race" not in metafunc.fixturenames:
        return
    workload: Workload = vars(metafunc.module)["WORKLOAD"]
    found = workload.cases(Setting(small=bool(metafunc.config.getoption("--small"))))
    races = [
        pytest.param((contest, at), id=f"{contest.name}-{side.name}")
        for contest in found
        if isinstance(contest, Contest)
        for at, side in enumerate(contest.sides)
    ]
    metafunc.parametrize("race", races, indirect=True)


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Callable[[Any], None]:
    """Return a function that checks one side against ours, then times it."""
    contest: Contest
    contest, at = request.param
    side: Side = contest.sides[at]
    if side.needs is not None and not installed(side.needs):
        pytest.skip(f"{side.needs} is not installed: pip install .[bench]")
    if side.reports:
        pytest.skip("reports its time itself, to python -m bench")

    def play(benchmark: Any) -> None:
        if at and contest.alike:
            check(
                contest,
                [("reactgrad", Here(contest, contest.ours)), (side.name, Here(contest, side))],
            )
        step = side.build()
        rng = np.random.default_rng(1)
        benchmark.group = f"{request.module.WORKLOAD.number} {contest.name}"
        benchmark.name = side.name
        benchmark.pedantic(
            step,
            setup=lambda: ((side.take(contest.draw(rng)),), {}),
            rounds=ROUNDS,
            warmup_rounds=4,
        )

    return play
