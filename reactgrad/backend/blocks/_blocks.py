"""Blocks: the parts of a large array that are computed one after the other, or side by side."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

Shape = tuple[int, ...]
Block = tuple[slice, ...]  # one slice for each axis


def cut(shape: Shape, size: int, shares: int = 1) -> tuple[int, int]:
    """Return the axis to cut for blocks of at most `size` elements, and its length in a block.

    The axes before it are taken element by element, the axes after it as a whole. If the axis is long
    enough, it is cut into a multiple of `shares` blocks.
    """
    axis = 0
    while axis + 1 < len(shape) and prod(shape[axis + 1 :]) > size:
        axis += 1
    most = max(1, size // prod(shape[axis + 1 :]))
    count = -(-shape[axis] // (most * shares)) * shares
    return axis, -(-shape[axis] // count)


@lru_cache(maxsize=1024)
def blocks(shape: Shape, size: int, shares: int = 1) -> tuple[Block, ...]:
    """Return the parts of an array in C order, each of at most `size` elements that lie side by side.

    Along the axis that is cut all parts are equal except the last one, which may be smaller.

    Parameters
    ----------
    shape : tuple of int
        The shape of the array: at least one axis, none of length 0.
    size : int
        The largest number of elements of a part, at least 1.
    shares : int
        The number of threads that are to get equally many parts, where an axis allows it.

    Returns
    -------
    tuple of Block
        The parts depend only on the arguments, not on what else is computed with the array.

    Examples
    --------
    >>> blocks((5,), 2)
    ((slice(0, 2, None),), (slice(2, 4, None),), (slice(4, 5, None),))
    >>> len(blocks((300,), 100)), len(blocks((300,), 100, 2))
    (3, 4)
    >>> [tuple(range(2)[one[0]]) for one in blocks((2, 3), 3)]
    [(0,), (1,)]
    """
    axis, each = cut(shape, size, shares)
    length = shape[axis]
    cuts = [slice(i, min(i + each, length)) for i in range(0, length, each)]
    rest = tuple([slice(0, n) for n in shape[axis + 1 :]])
    found: list[Block] = [()]
    for n in shape[:axis]:
        found = [(*one, slice(i, i + 1)) for one in found for i in range(n)]
    return tuple([(*one, cut, *rest) for one in found for cut in cuts])


def part(array: Any, block: Block) -> Any:
    """Return the part of an operand, which may broadcast, that belongs to a block of the result."""
    index = block[len(block) - array.ndim :]
    return array[
        tuple([one if n > 1 else slice(None) for n, one in zip(array.shape, index, strict=True)])
    ]
