"""Two stand-ins for GPUs, ``fake:0`` and ``fake:1``, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reactgrad.backend.cupy._cupy import register_cupy

from . import stand_in

register_cupy(stand_in.namespace, stand_in.special, stand_in.KIND)


@pytest.fixture(autouse=True)
def counts() -> Iterator[stand_in.Counts]:
    """Count from the beginning, and leave the current device as it was."""
    stand_in.counts.clear()
    yield stand_in.counts
    assert stand_in.namespace.cuda.runtime.getDevice() == 0
