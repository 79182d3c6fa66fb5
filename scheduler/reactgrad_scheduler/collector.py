"""Python's cyclic garbage collector, paused while very many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


class _Resuming:
    """The end of a pause: the collector runs again when it is dropped; to call it does nothing.

    A ``with`` statement drops it in any case. Both methods are compiled functions, which Python calls without
    a frame. In a method written in Python, Ctrl-C or an end of memory could come before its first line, and
    the collector would stay off for the rest of the process.
    """

    __slots__ = ()
    __del__ = gc.enable
    __call__ = "".format


class CollectorPause:
    """A block in which the cyclic collector does not run.

    While hundreds of thousands of objects are made, it would take half of the time to find no garbage. Where it is off
    already, the block leaves it alone: by whoever it was stopped, it may run again at any time.
    """

    __slots__ = ("__enter__", "__exit__")
    __enter__: Callable[[], None]
    __exit__: Callable[..., Any]

    def __init__(self) -> None:
        if gc.isenabled():
            self.__enter__ = gc.disable  # compiled as well: no error comes between it and the block
            self.__exit__ = _Resuming()
        else:
            self.__enter__ = self.__exit__ = "".format  # type: ignore[assignment]
