"""Fixtures of tests about what reads and changes do."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def impatience() -> Iterator[None]:
    """Threads change places often, so that they meet."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)
