"""The same random numbers for each test, whichever run before it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

_states: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _same_draws(request: pytest.FixtureRequest) -> None:
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        state = _states.setdefault(request.module.__name__, copy.deepcopy(rng.bit_generator.state))
        rng.bit_generator.state = copy.deepcopy(state)
