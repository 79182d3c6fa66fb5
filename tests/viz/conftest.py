"""One Chromium for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.browser import browser


@pytest.fixture(scope="module")
def chromium_page() -> Iterator[Any]:
    """A Chromium without a screen."""
    with browser() as started:
        yield started
