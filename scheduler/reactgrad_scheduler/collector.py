"""Python's cyclic garbage collector, paused while very many objects are made that all stay."""

from __future__ import annotations

import gc


class CollectorPause:
    """A block in which the cyclic collector does not run.

    While hundreds of thousands of objects are made, it would take half of the time to find no garbage.
    """

    __slots__ = ("_collecting",)

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._collecting:
            gc.enable()
