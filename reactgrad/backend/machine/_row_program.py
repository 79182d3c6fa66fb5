"""Programs of the register machine for some rows of arrays, at any place.

Steps are bound to the first rows of their arrays. Their instructions at other rows differ in addresses only, and an
address moves by one row of its array for each row: ``code(begin) = base + begin * step``. So one multiplication
and one addition move a whole program, and nothing is bound again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from reactgrad.backend.machine._code import HEAD, rows
from reactgrad.backend.machine._find import Machine
from reactgrad.backend.machine._instructions import instructions
from reactgrad.backend.machine._loops import address_of

Step = Callable[[], object]


class Part(NamedTuple):
    """A step of a program.

    Attributes
    ----------
    step
        The step, bound to the first rows of ``cut``.
    cut
        The arrays of which it takes rows, as a whole; none for a step that takes no rows. Where two of them share
        memory, their rows are equally far apart; no other operand shares memory with them.
    """

    step: Step
    cut: Sequence[Any] = ()


class RowProgram:
    """Steps as instructions in one block of memory, which is moved as a whole.

    Invariant: the code is that of the rows from ``at`` on.
    """

    __slots__ = ("_base", "_code", "_offset", "_parts", "_step", "at")

    def __init__(self) -> None:
        self._base: list[int] = []
        self._step: list[int] = []
        self._parts: list[Part] = []  # they keep the arrays at the addresses alive
        self._code: Any = None
        self._offset: Any = None
        self.at = 0

    def add(self, part: Part) -> tuple[int, int] | None:
        """Add a step. Return the numbers of its first and last instruction word, ``None`` if no loop does it."""
        code = instructions(part.step)
        if code is None:
            return None
        begin = len(self._base)
        spans = [(*byte_bounds(one), one.strides[0]) for one in part.cut]
        for row in rows(np.frombuffer(code, np.int64).tolist()):
            count = row[0]
            moves = [0] * len(row)
            for i in range(HEAD, HEAD + count):
                # Scratch and operands that are no arrays of rows stay where they are.
                for first, last, step in spans:
                    if first <= row[i] < last:
                        moves[i] = step
                        break
            self._base += row
            self._step += moves
        self._parts.append(part)
        return begin, len(self._base)

    def finish(self) -> None:
        """Lay the code out; no step is added afterwards."""
        self._base = np.array(self._base, np.int64)  # type: ignore[assignment]
        self._step = np.array(self._step, np.int64)  # type: ignore[assignment]
        self._code = np.array(self._base)
        self._offset = np.empty_like(self._code)

    def call(self, machine: Machine, begin: int, end: int) -> Step:
        """Return the call of these words of the code."""
        address = address_of(self._code)
        return partial(machine.play, address + 8 * begin, address + 8 * end)

    def move(self, begin: int) -> None:
        """Make the code that of the rows from ``begin`` on."""
        np.multiply(self._step, begin, self._offset)
        np.add(self._base, self._offset, self._code)
        self.at = begin
