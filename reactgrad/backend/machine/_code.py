"""The code of the register machine: one row of 64-bit numbers for each instruction.

The length of a row depends on the number of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Final

# A row: the number of operands, the result included; the address of the loop; the loop's last argument;
# the number of elements; the number of bytes of the result that it writes; the addresses of the operands,
# the result last; the distance in bytes from one element to the next, for each operand.
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
    """Return the bytes of an instruction.

    The extent of a result is its size times its step; `extent` gives it where the step is 0.
    """
    count, extent = len(addresses), max(size * steps[-1], extent)
    return _struct(count).pack(count, function, data, size, extent, *addresses, *steps)


def rows(code: Sequence[int]) -> list[list[int]]:
    """Return the instructions of a code, each as a list of its numbers."""
    found: list[list[int]] = []
    at = 0
    while at < len(code):
        end = at + HEAD + 2 * code[at]
        found.append([*code[at:end]])
        at = end
    return found


# In place of a loop's address: copy the elements where a mask is true. The loop's last argument is then the
# number of bytes of an element.
MASKED_COPY: Final = 0
