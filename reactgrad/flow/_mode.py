"""Whether nodes that are built are differentiable: a switch of each thread, and of each task."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Self

# What the open switches of this thread or task say, innermost last.
_modes: ContextVar[tuple[bool, ...]] = ContextVar("reactgrad_grad_modes", default=(True,))


class GradMode(ContextDecorator):
    """A switch for a ``with`` block or a decorated function; may be nested and used again."""

    __slots__ = ("_enabled",)

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> Self:
        _modes.set((*_modes.get(), self._enabled))
        return self

    def __exit__(self, *exc: object) -> None:
        _modes.set(_modes.get()[:-1])


def is_grad_enabled() -> bool:
    """Whether nodes built now, in this thread, are differentiable.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad():
    ...     rg.is_grad_enabled()
    False
    """
    return _modes.get()[-1]


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
