"""Fixtures of tests about gradients."""

from __future__ import annotations

import pytest

from tests.autodiff.functions import CALLS


@pytest.fixture
def fresh_counts() -> None:
    """What functions have noted of their calls is forgotten."""
    CALLS.clear()
