"""Fixtures of tests about runs in several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from reactgrad_scheduler.executors import costs


@pytest.fixture
def nothing_left_behind() -> Iterator[None]:
    """No thread outlives the read that began it, but those that compute blocks of large arrays."""
    before = alive()
    yield
    until = time.monotonic() + 10
    while alive() > before and time.monotonic() < until:
        time.sleep(0.001)  # those that a test began itself
    assert alive() == before


def alive() -> set[threading.Thread]:
    """All threads but those of the pool of ``reactgrad.backend``, which stay for the next array."""
    return {one for one in threading.enumerate() if not one.name.startswith("reactgrad_")}


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node counts as one that takes long."""
    monkeypatch.setattr(costs, "LONG", 0.0)
