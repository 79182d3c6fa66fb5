"""Counts the calls of functions; what is timed counts nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Calls:
    """Wraps functions, and knows how often all of them were called.

    Examples
    --------
    >>> calls = Calls()
    >>> _ = calls(abs)(-1.0)
    >>> calls.count
    1
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*values: Any) -> Any:
            self.count += 1
            return function(*values)

        return counted


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """In place of ``Calls`` where time is measured."""
    return function
