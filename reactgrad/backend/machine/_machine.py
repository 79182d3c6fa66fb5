"""The register machine: one compiled loop that does the instructions of all graphs.

This module needs numba, and so is imported only where it is used. Numba compiles it once, and keeps the
result on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from reactgrad.backend.machine import _code
from reactgrad.backend.machine._code import MASKED_COPY

LOOP, DATA, SIZE, ADDRESSES = 8 * _code.LOOP, 8 * _code.DATA, 8 * _code.SIZE, 8 * _code.HEAD


@intrinsic
def call_loop(
    context: Any, function: Any, args: Any, dimensions: Any, steps: Any, data: Any
) -> Any:
    """Call a loop of NumPy's form. All arguments are addresses; `data` may also be a number."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] * 4)
        loop = builder.inttoptr(values[0], kind.as_pointer())
        builder.call(loop, [builder.inttoptr(one, cgutils.voidptr_t) for one in values[1:]])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


def _reader(of: Any, bits: int) -> Any:
    @intrinsic
    def read(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.load(builder.inttoptr(values[0], ir.IntType(bits).as_pointer()))

        return of(types.int64), generate

    return read


def _writer(of: Any, bits: int) -> Any:
    @intrinsic
    def write(context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            builder.store(values[1], builder.inttoptr(values[0], ir.IntType(bits).as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, of), generate

    return write


_read_8, _read_32, read_64 = (
    _reader(types.int8, 8),
    _reader(types.int32, 32),
    _reader(types.int64, 64),
)
_write_8, _write_32, _write_64 = (
    _writer(types.int8, 8),
    _writer(types.int32, 32),
    _writer(types.int64, 64),
)


@njit("void(int64, int64, int64, int64)", nogil=True, cache=True)
def _copy_masked(args: int, steps: int, size: int, width: int) -> None:
    source, mask, out = read_64(args), read_64(args + 8), read_64(args + 16)
    source_step, mask_step, out_step = read_64(steps), read_64(steps + 8), read_64(steps + 16)
    for _ in range(size):
        if _read_8(mask):
            if width == 8:
                _write_64(out, read_64(source))
            elif width == 4:
                _write_32(out, _read_32(source))
            else:
                _write_8(out, _read_8(source))
        source += source_step
        mask += mask_step
        out += out_step


@njit("void(int64, int64)", nogil=True, cache=True)
def play(row: int, end: int) -> None:
    """Do the instructions that lie from the address `row` to the address `end`."""
    while row < end:
        count, loop, data = read_64(row), read_64(row + LOOP), read_64(row + DATA)
        args = row + ADDRESSES
        steps = args + 8 * count
        if loop != MASKED_COPY:
            call_loop(loop, args, row + SIZE, steps, data)  # pyright: ignore[reportCallIssue]
        else:
            _copy_masked(args, steps, read_64(row + SIZE), data)
        row = steps + 8 * count


@njit("void(int64, int64, int64, int64)", nogil=True, cache=True)
def play_part(row: int, end: int, first: int, last: int) -> None:
    """Do the same, but only for the elements from `first` up to, not including, `last`."""
    room = 8
    # The arguments of this part: the shifted addresses, and in the last place the number of elements.
    own = np.empty(room + 1, np.int64)
    while row < end:
        count, loop, data = read_64(row), read_64(row + LOOP), read_64(row + DATA)
        if count > room:
            room = count
            own = np.empty(room + 1, np.int64)
        steps = row + ADDRESSES + 8 * count
        for i in range(count):
            own[i] = read_64(row + ADDRESSES + 8 * i) + first * read_64(steps + 8 * i)
        own[room] = last - first
        args = own.ctypes.data
        if loop != MASKED_COPY:
            call_loop(loop, args, args + 8 * room, steps, data)  # pyright: ignore[reportCallIssue]
        else:
            _copy_masked(args, steps, last - first, data)
        row = steps + 8 * count
