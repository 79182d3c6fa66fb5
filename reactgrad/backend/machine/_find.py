"""The register machine that this installation has: compiled with the package, or by numba."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol


class Machine(Protocol):
    """The type of the modules ``_driver`` and ``_machine``."""

    def play(self, row: int, end: int, /) -> None: ...
    def play_part(self, row: int, end: int, first: int, last: int, /) -> None: ...


@cache
def find_driver() -> Any:
    """Return the module ``_driver``, or ``None`` if there was no compiler when the package was built."""
    try:
        from reactgrad.backend.machine import _driver  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        return None
    return _driver


@cache
def find_machine() -> Machine | None:
    """Return the machine, or ``None`` if there is no driver, and numba is not installed."""
    machine = find_driver()
    if machine is None:
        try:
            from reactgrad.backend.machine import _machine as machine
        except ImportError:
            return None
    return machine
