"""Calls of compiled loops that are not NumPy's: what ops of small arrays are made of under ``jit``.

Such a loop has the form of those inside of ufuncs, ``loop(args, dimensions, steps, data)``: the addresses
of its operands, the result last; how many elements; how many bytes lie between those of each operand;
one number of the op's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend._code import Operand, row
from reactgrad.backend._loops import address_of


class Whole(NamedTuple):
    """An operand of which a loop takes all, not one element for each of the others'."""

    array: Any


class LoopCall:
    """One call of a compiled loop: a step by itself, and an instruction of the register machine."""

    __slots__ = ("_operands", "code")

    def __init__(self, operands: Sequence[Any], code: bytes) -> None:
        self._operands = operands  # which keep alive what lies at the addresses
        self.code = code

    def __call__(self) -> None:
        from reactgrad.backend import _machine

        code = np.frombuffer(self.code, np.int64)
        address = address_of(code)
        _machine.play(address, address + len(self.code))


def loop_call(loop: int, operands: Sequence[Any], data: int = 0) -> LoopCall | None:
    """A step that calls a compiled loop; ``None`` if the operands do not lie as it takes them.

    Parameters
    ----------
    loop : int
        The address of a C function ``void loop(void **args, intptr_t *dimensions, intptr_t *steps,
        intptr_t data)``, such as ``numba.cfunc`` makes. It is called for parts of the elements, too,
        from several threads.
    operands : sequence of array or Whole
        The result is the last one. All have one dtype and lie in one piece. Those that are not
        ``Whole`` have as many elements as the longest, or one, which is then taken for each.
    data : int
        The last argument of the loop.

    Returns
    -------
    callable or None
        For a binder of kind ``"jit"`` to return; ``None`` leaves the node to the kernel for NumPy.
    """
    dtype, size = None, 1
    for one in operands:
        array = one.array if type(one) is Whole else one
        if type(array) is not np.ndarray:
            return None
        dtype = dtype or array.dtype
        flags = array.flags
        if array.dtype is not dtype or not flags.c_contiguous or not flags.aligned:
            return None
        if array is one and array.size != 1:
            if size not in (1, array.size):
                return None
            size = array.size
    found: list[Operand] = []
    assert dtype is not None
    each = dtype.itemsize
    for one in operands:
        whole = type(one) is Whole
        array = one.array if whole else one
        step = 0 if whole or array.size != size else each
        found.append(Operand(dtype.char, address_of(array), step))
    last = operands[-1]
    extent = last.array.nbytes if type(last) is Whole else each
    return LoopCall(operands, row(loop, data, size, found, extent))
