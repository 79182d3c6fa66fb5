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
    arrays = [one.array if type(one) is Whole else one for one in operands]
    first = arrays[0]
    if type(first) is not np.ndarray:
        return None
    dtype, itemsize = first.dtype, first.itemsize
    # A result takes a step for each element, unless it is whole.
    size = max([one.size for one in operands if type(one) is not Whole])
    found: list[Operand] = []
    for array, one in zip(arrays, operands, strict=True):
        if type(array) is not np.ndarray or array.dtype is not dtype:
            return None
        flags, step = array.flags, itemsize
        if one is not array or array.size == 1 < size or not any(array.strides):
            step = 0
        elif array.size != size:
            return None
        if not flags.aligned or not (flags.c_contiguous or (step == 0 and one is array)):
            return None
        found.append(Operand(dtype.char, address_of(array), step))
    extent = arrays[-1].nbytes if type(operands[-1]) is Whole else itemsize
    return LoopCall(operands, row(loop, data, size, found, extent))
