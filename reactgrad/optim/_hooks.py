"""Functions that are called before or after each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Hook:
    """One registered function; ``remove()`` ends it."""

    def __init__(self, hooks: Hooks, call: Callable[[Any], object]) -> None:
        self._hooks, self.call = hooks, call

    def remove(self) -> None:
        """Call the function no more."""
        self._hooks.drop(self)


class Hooks:
    """The functions that wait for one event."""

    def __init__(self) -> None:
        self._all: tuple[Hook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, call: Callable[[Any], object]) -> Hook:
        """Add a function."""
        hook = Hook(self, call)
        self._all = (*self._all, hook)
        return hook

    def drop(self, hook: Hook) -> None:
        """Remove a function, if it is still there."""
        self._all = tuple([one for one in self._all if one is not hook])

    def call(self, what: Any) -> None:
        """Call all functions in the order in which they were added."""
        for hook in self._all:
            hook.call(what)
