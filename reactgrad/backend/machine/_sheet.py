"""Calls of compiled loops without nodes: for what is computed once, and a graph would forget at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.blocks._threads import for_each, get_num_threads
from reactgrad.backend.machine._code import HEAD
from reactgrad.backend.machine._loops import address_of

# So many elements of a row are computed by all calls before the next ones: what one call writes is
# still in the cache when another one reads it.
PART: Final = 256

# With fewer elements in all calls together threads cost more than they save.
SHARED: Final = 200_000

_ITEM: Final = np.dtype(np.float64).itemsize


class Row(NamedTuple):
    """A value, where it lies, and how many bytes from one element to the next: none if there is but one."""

    array: np.ndarray[Any, Any]
    address: int
    step: int


class Sheet:
    """Rows of one length, and calls of compiled loops that compute rows from rows.

    The register machine without a graph: no versions, no plans, nothing that is stale. Each call
    computes each place of its result from the same place of its operands, so parts of the rows are
    computed one after the other, on several threads (``rg.set_num_threads``), with the same bits. A row
    lives as long as somebody holds it. Several threads may not use one sheet at once.

    Parameters
    ----------
    size : int
        How many float64 elements a row has.

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
        """A new row, with these values or with any."""
        array = np.empty(self.size)
        if values is not None:
            array[...] = values
        return Row(array, address_of(array), _ITEM if self.size != 1 else 0)

    def call(
        self, loop: int, operands: Iterable[Row], numbers: Sequence[float], out: Row, data: int = 0
    ) -> None:
        """Let a loop compute `out`, when this is played.

        Parameters
        ----------
        loop : int
            As for ``loop_call``: ``void loop(void **args, intptr_t *dimensions, intptr_t *steps,
            intptr_t data)``. Each element of the result follows from those at its place.
        operands : iterable of Row
            What it reads: rows of this sheet, and of one element.
        numbers : sequence of float
            Behind the operands it is given these together, as by ``Whole``; none if there are none.
        out : Row
            The last operand; none of the others.
        data : int
            The last argument of the loop.
        """
        rows = [*operands, out]
        _, addresses, steps = zip(*rows)
        count, words = len(rows), self._words
        try:
            if numbers:
                count += 1
                self._patches.append(len(words) + HEAD + count - 2)
                addresses = *addresses[:-1], len(self._numbers) * _ITEM, addresses[-1]
                steps = *steps[:-1], 0, steps[-1]
                self._numbers += numbers
            # As ``_code.row`` would write it, but for where the numbers will lie.
            words += count, loop, data, self.size, self._extent, *addresses, *steps
            self._rows.append(rows)
        except BaseException:  # an interrupt: half a call would be played as something else
            self.forget()
            raise

    def play(self) -> None:
        """Make the calls, in their order, and forget them."""
        from reactgrad.backend.machine._machine import play_part  # here, since it needs numba

        rows, size = self._rows, self.size
        numbers = np.array(self._numbers, np.float64)
        code = np.array(self._words, np.int64)
        code[self._patches] += address_of(numbers)
        self.forget()
        first = address_of(code)
        play = partial(_play, play_part, first, first + code.nbytes)
        threads = get_num_threads() if len(rows) * size >= SHARED else 1
        for_each(play, [(at, min(at + PART, size)) for at in range(0, size, PART)], threads)

    def forget(self) -> None:
        """Make none of the calls that were not yet made."""
        self._words: list[int] = []
        self._numbers: list[float] = []
        self._patches: list[int] = []  # which words tell where numbers lie
        self._rows: list[list[Row]] = []  # which keep alive what lies at the addresses


def _play(play_part: Any, row: int, end: int, part: tuple[int, int]) -> None:
    play_part(row, end, *part)
