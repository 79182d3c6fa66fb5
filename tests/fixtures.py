"""Fixtures that tests of several folders ask for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from reactgrad.backend import device_of_kind
from tests.autodiff.functions import CALLS
from tests.reactive.buffers import Buffers


@pytest.fixture
def impatience() -> Iterator[None]:
    """Threads change places often, so that they meet."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def buffers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Buffers]:
    """Counts the buffers that the CPU gives out."""
    found, cpu = Buffers(), device_of_kind("cpu")
    empty = cpu.empty

    def counted(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = empty(shape, dtype)
        found.add(array)
        return array

    monkeypatch.setattr(cpu, "empty", counted)
    yield found
    gc.collect()


@pytest.fixture
def fresh_counts() -> None:
    """What functions have noted of their calls is forgotten."""
    CALLS.clear()
