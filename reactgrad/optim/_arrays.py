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
    numbers : tuple of float
        What a ``RememberingRule`` has left at the step before.
    """

    __slots__ = ("_addresses", "a", "b", "g", "new", "numbers", "old", "out", "p")

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
        self.numbers: tuple[float, ...] = ()
        self._addresses: Any = None

    def row(self) -> int:
        """Return the address of the addresses of all but the scratch memory, as compiled rules take them."""
        if self._addresses is None:
            moments = [one for pair in zip(self.old, self.new, strict=True) for one in pair]
            addresses = [*map(address_of, (self.p, self.g, self.out, *moments))]
            self._addresses = np.array(addresses, np.int64)
        return address_of(self._addresses)


Rule = Callable[[int, Arrays], None]


class RememberingRule:
    """A rule that leaves some numbers for each param, such as the rate of its next step.

    Parameters
    ----------
    rule : callable
        ``rule(step, arrays)``; ``arrays.numbers`` are those that the step before has left, ones at the first step.
    after : callable
        ``after(step, numbers)`` returns the ones that this step leaves.
    """

    __slots__ = ("after", "rule")

    def __init__(
        self, rule: Rule, after: Callable[[int, tuple[float, ...]], tuple[float, ...]]
    ) -> None:
        self.rule, self.after = rule, after

    def __call__(self, step: int, at: Arrays) -> None:
        """Apply the rule."""
        self.rule(step, at)
