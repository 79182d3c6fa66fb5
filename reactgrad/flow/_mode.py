"""Whether nodes that are built are differentiable: a switch of each thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Mode(threading.local):
    enabled = True


_mode = _Mode()


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


@contextmanager
def _switched(enabled: bool) -> Iterator[None]:
    before = _mode.enabled
    _mode.enabled = enabled
    try:
        yield
    finally:
        _mode.enabled = before


def no_grad() -> object:
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
    return _switched(False)


def enable_grad() -> object:
    """Build differentiable nodes inside a ``no_grad`` block.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad(), rg.enable_grad():
    ...     rg.is_grad_enabled()
    True
    """
    return _switched(True)
