"""Calls of compiled loops without nodes, for rows that are computed once and need no versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.blocks._threads import for_each, get_num_threads
from reactgrad.backend.machine._code import HEAD
from reactgrad.backend.machine._find import find_machine
from reactgrad.backend.machine._loops import address_of

# All calls compute so many elements of their rows before any computes the next ones: what one call
# writes is still in the cache when another one reads it.
PART: Final = 256

# With fewer elements in all calls together threads cost more than they save.
SHARED: Final = 200_000

_ITEM: Final = np.dtype(np.float64).itemsize


class Row(NamedTuple):
    """An array, its address, and the bytes from one element to the next: 0 for a single element."""

    array: np.ndarray[Any, Any]
    address: int
    step: int


class Sheet:
    """Rows of one length, and calls of compiled loops that compute rows from rows.

    This is the register machine without a graph: there are no versions, no plans, nothing is stale.
    Each call computes each element of its result from the elements at the same place of its operands.
    So parts of the rows can be computed one after the other, or on several threads
    (``rg.set_num_threads``), with the same bits. A sheet keeps only the rows of calls that were not
    made yet. Only one thread may use a sheet at a time.

    Parameters
    ----------
    size : int
        The number of float64 elements of a row.

    Examples
    --------
    >>> from reactgrad import extend
    >>> sheet = extend.Sheet(3)
    >>> x = sheet.row([1.0, 2.0, 3.0])
    >>> x.array
    array([1., 2., 3.])
    >>> sheet.play()  # what was called for, here nothing
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._extent = size * _ITEM
        self.forget()

    def row(self, values: Any = None) -> Row:
        """Return a new row with these values, or without set elements."""
        array = np.empty(self.size)
        if values is not None:
            array[...] = values
        return Row(array, address_of(array), _ITEM if self.size != 1 else 0)

    def call(
        self, loop: int, operands: Iterable[Row], numbers: Sequence[float], out: Row, data: int = 0
    ) -> None:
        """Add a call of a loop that computes `out` at the next ``play``.

        Parameters
        ----------
        loop : int
            The address of a function as for ``loop_call``: ``void loop(void **args, intptr_t
            *dimensions, intptr_t *steps, intptr_t data)``. It computes each element of the result
            from those at the same place.
        operands : iterable of Row
            The rows that the loop reads: rows of this sheet, and rows of one element.
        numbers : sequence of float
            Numbers that the loop gets as one more operand after these, as a whole (see ``Whole``);
            without numbers there is no such operand.
        out : Row
            The row of the result, passed as the last operand. It may not be one of the others.
        data : int
            The last argument of the loop.
        """
        rows = [*operands, out]
        _, addresses, steps = zip(*rows)
        count, words = len(rows), self._words
        try:
            if numbers:
                count += 1
                # The numbers get their address in `play`, where the list becomes an array.
                self._patches.append(len(words) + HEAD + count - 2)
                addresses = *addresses[:-1], len(self._numbers) * _ITEM, addresses[-1]
                steps = *steps[:-1], 0, steps[-1]
                self._numbers += numbers
            # The same words as ``_code.row`` packs, except for the address of the numbers.
            words += count, loop, data, self.size, self._extent, *addresses, *steps
            self._rows.append(rows)
        except BaseException:  # after an interrupt half a call would be read as another one
            self.forget()
            raise

    def play(self) -> None:
        """Make the calls, in their order, and forget them."""
        machine = find_machine()
        assert machine is not None
        # Local variables keep the rows, the numbers and the code alive until the last call was made.
        rows, size = self._rows, self.size
        numbers = np.array(self._numbers, np.float64)
        code = np.array(self._words, np.int64)
        code[self._patches] += address_of(numbers)
        self.forget()
        first = address_of(code)
        play = partial(_play, machine.play_part, first, first + code.nbytes)
        threads = get_num_threads() if len(rows) * size >= SHARED else 1
        for_each(play, [(at, min(at + PART, size)) for at in range(0, size, PART)], threads)

    def forget(self) -> None:
        """Drop all calls that were not made yet."""
        self._words: list[int] = []
        self._numbers: list[float] = []
        self._patches: list[int] = []  # the words that become addresses of numbers
        self._rows: list[list[Row]] = []  # they keep the arrays at the addresses alive


def _play(play_part: Any, row: int, end: int, part: tuple[int, int]) -> None:
    play_part(row, end, *part)
