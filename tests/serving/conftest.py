"""The packages that a server needs, and a client."""

from __future__ import annotations

import pytest

from tests.viz.browser import need


@pytest.fixture(autouse=True, scope="session")
def _packages() -> None:
    for package in ("httpx", "pygraphviz", "starlette", "uvicorn", "websockets"):
        need(package)
