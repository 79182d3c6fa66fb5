"""Kernel of the numbers of rows that are counted from the end of a table."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace that mirrors NumPy."""

    def is_row(numbers: Any, table: Any, out: Any, row: int) -> None:
        xp.equal(numbers, row + table.shape[0], out=out)

    register_kernel("is_row_from_end", kind, is_row)


def register_standard(device: Any) -> None:
    """Register it for a device of the array API standard."""

    def is_row(numbers: Any, table: Any, out: Any, row: int) -> None:
        out[...] = numbers == row + table.shape[0]

    register_kernel("is_row_from_end", device.kind, is_row)
