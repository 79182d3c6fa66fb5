"""Whether nodes that are built are differentiable: a switch of each thread."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Self


class _Mode(threading.local):
    enabled = True


_mode = _Mode()


class GradMode(ContextDecorator):
    """A switch for a ``with`` block or a decorated function; may be nested and used again."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> Self:
        self._before.append(_mode.enabled)
        _mode.enabled = self._enabled
        return self

    def __exit__(self, *exc: object) -> None:
        _mode.enabled = self._before.pop()

    def _recreate_cm(self) -> Self:
        # A decorated function may run in several threads at once: each call gets its own switch.
        return type(self)(self._enabled)


def is_grad_enabled() -> bool:
    """Whether nodes built now, in this thread, are differentiable.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad():
    ...     rg.is_grad_enabled()
    False
    """
    return _mode.enabled


def no_grad() -> GradMode:
    """Build nodes that gradients do not pass, in a ``with`` block or a decorated function.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(2.0)
    >>> with rg.no_grad():
    ...     y = w * w
    >>> y.requires_grad
    False
    """
    return GradMode(False)


def enable_grad() -> GradMode:
    """Build differentiable nodes inside a ``no_grad`` block.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad(), rg.enable_grad():
    ...     rg.is_grad_enabled()
    True
    """
    return GradMode(True)
