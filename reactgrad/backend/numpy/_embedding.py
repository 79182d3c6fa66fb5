"""Kernels of the numbers of rows of a table: those that are none, and those that are counted from the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace that mirrors NumPy."""

    def is_row(numbers: Any, table: Any, out: Any, row: int) -> None:
        xp.equal(numbers, row + table.shape[0], out=out)

    def row_numbers(numbers: Any, out: Any) -> None:
        if (
            xp is np and numbers.size and numbers.min() < 0
        ):  # on a device a check would wait for the host
            raise IndexingError(
                f"embedding: {numbers.min()} is among the numbers, and rows are numbered from 0. Write rg.take(table, "
                "numbers, 0) for rows that are counted from the end, or number what is unknown by a row of its own."
            )
        out[...] = numbers

    register_kernel("is_row_from_end", kind, is_row)
    register_kernel("row_numbers", kind, row_numbers)


def register_standard(device: Any) -> None:
    """Register it for a device of the array API standard."""

    def is_row(numbers: Any, table: Any, out: Any, row: int) -> None:
        out[...] = numbers == row + table.shape[0]

    def row_numbers(numbers: Any, out: Any) -> None:
        out[...] = numbers

    register_kernel("is_row_from_end", device.kind, is_row)
    register_kernel("row_numbers", device.kind, row_numbers)
