"""The arrays that the rule of a step works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.backend.machine._loops import address_of


class Arrays:
    """The arrays that a rule works on: parts of flat arrays of equal length.

    Attributes
    ----------
    p, g : numpy.ndarray
        Params and gradients, for reading.
    old : tuple of numpy.ndarray
        The moments before the step, for reading.
    new : tuple of numpy.ndarray
        The moments after it, to be written.
    out : numpy.ndarray
        The params after it, to be written.
    a, b : numpy.ndarray
        Scratch memory.
    """

    __slots__ = ("_addresses", "a", "b", "g", "new", "old", "out", "p")

    def __init__(
        self,
        p: Any,
        g: Any,
        old: tuple[Any, ...],
        new: tuple[Any, ...],
        out: Any,
        a: Any,
        b: Any,
    ) -> None:
        self.p, self.g, self.old, self.new, self.out, self.a, self.b = p, g, old, new, out, a, b
        self._addresses: Any = None

    def row(self) -> int:
        """Return the address of the addresses of all but the scratch memory, as compiled rules take them."""
        if self._addresses is None:
            moments = [one for pair in zip(self.old, self.new, strict=True) for one in pair]
            addresses = [*map(address_of, (self.p, self.g, self.out, *moments))]
            self._addresses = np.array(addresses, np.int64)
        return address_of(self._addresses)


Rule = Callable[[int, Arrays], None]
