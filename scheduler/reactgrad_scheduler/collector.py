"""The cyclic garbage collector, paused where very many objects are made that all stay."""

from __future__ import annotations

import gc


class CollectorPause:
    """A block in which the cyclic collector waits.

    Where 100,000s of objects are made, it would take half of the time to find that none is garbage.
    """

    __slots__ = ("_collecting",)

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._collecting:
            gc.enable()
