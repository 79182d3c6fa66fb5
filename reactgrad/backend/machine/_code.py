"""The code of the register machine: rows of addresses, an instruction each.

A row is as long as its loop has operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Final

# A row: how many operands, the result last; the loop, the last of its arguments, how many elements;
# how many bytes of the result it writes; the operands' addresses; their steps in bytes.
OPERANDS, LOOP, DATA, SIZE, EXTENT, HEAD = range(6)


@cache
def _struct(operands: int) -> Struct:
    return Struct(f"={HEAD + 2 * operands}q")


def row(
    function: int,
    data: int,
    size: int,
    addresses: Sequence[int],
    steps: Sequence[int],
    extent: int = 1,
) -> bytes:
    """An instruction; `extent` is needed where a result does not take a step for each element."""
    count, extent = len(addresses), max(size * steps[-1], extent)
    return _struct(count).pack(count, function, data, size, extent, *addresses, *steps)


def rows(code: Sequence[int]) -> list[list[int]]:
    """The instructions of a code."""
    found: list[list[int]] = []
    at = 0
    while at < len(code):
        end = at + HEAD + 2 * code[at]
        found.append([*code[at:end]])
        at = end
    return found


# In place of a loop: copy where a mask holds, elements of as many bytes as the second number says.
MASKED_COPY: Final = 0
