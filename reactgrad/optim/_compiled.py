"""Rules of steps that the compiled driver applies in one pass over the params."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend import get_num_threads
from reactgrad.backend.blocks._threads import for_each
from reactgrad.backend.machine._find import find_driver
from reactgrad.optim._arrays import Arrays, Rule

# Threads get so many elements each, at least: fewer are done sooner by one.
PART = 1 << 16


class CompiledRule:
    """A rule of a step, by NumPy and by a loop of the driver: both give the same bits.

    Parameters
    ----------
    loop : callable
        The function of the driver.
    plain : callable
        The rule by NumPy, ``plain(step, arrays)``.
    numbers : callable
        The numbers that the loop takes at a step.
    """

    __slots__ = ("_loop", "_numbers", "plain")

    def __init__(
        self,
        loop: Callable[..., object],
        plain: Rule,
        numbers: Callable[[int], tuple[float, ...]],
    ) -> None:
        self._loop, self.plain, self._numbers = loop, plain, numbers

    def __call__(self, step: int, at: Arrays) -> None:
        """Apply the rule by NumPy."""
        self.plain(step, at)

    def in_one_pass(self, step: int, row: int, width: int, size: int) -> None:
        """Apply the rule to all elements.

        Parameters
        ----------
        row : int
            The address of the addresses of all arrays: see ``Arrays.row``.
        width : int
            The bytes of an element: 8 or 4.
        """
        numbers = self._numbers(step)
        threads = get_num_threads() if size >= 2 * PART else 1
        if threads == 1:
            self._loop(row, width, 0, size, *numbers)
            return
        each = max(PART, -(-size // threads))
        for_each(
            partial(self._part, row, width, size, each, numbers), range(0, size, each), threads
        )

    def _part(
        self, row: int, width: int, size: int, each: int, numbers: Sequence[float], start: int
    ) -> None:
        self._loop(row, width, start, min(start + each, size), *numbers)


def compiled(
    name: str,
    plain: Rule,
    options: Sequence[Any],
    numbers: Callable[[int], tuple[float, ...]],
) -> Rule:
    """Return a rule with the loop of the driver that has this name; the rule by NumPy if it cannot be used.

    Parameters
    ----------
    options : sequence
        What the numbers are computed from. Others than Python's numbers may have a dtype, which NumPy heeds.
    """
    loop = getattr(find_driver(), name, None)
    if loop is None or not {float, int, bool}.issuperset(map(type, options)):
        return plain
    return CompiledRule(loop, plain, numbers)
