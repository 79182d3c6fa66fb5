"""Calls of compiled loops that are not NumPy's, for ops with binders of kind ``"jit"``.

Such a loop has the form of those inside ufuncs, ``loop(args, dimensions, steps, data)``: the addresses of
its operands, the result last; the number of elements; for each operand the bytes from one element to the
next; one number of the op's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.machine._code import row
from reactgrad.backend.machine._find import find_machine
from reactgrad.backend.machine._loops import address_of


class Whole(NamedTuple):
    """An operand that a loop gets as a whole, not element by element beside the other operands."""

    array: Any


class LoopCall:
    """One call of a compiled loop: a step by itself, and an instruction of the register machine."""

    __slots__ = ("_play", "code", "operands")

    def __init__(
        self, play: Callable[[int, int], None], operands: Sequence[Any], code: bytes
    ) -> None:
        self._play = play
        self.operands = operands  # they keep the arrays at the addresses alive
        self.code = code

    def __call__(self) -> None:
        code = self.code
        # The code is read where the bytes object itself holds it, without a copy or a buffer.
        address = id(code) + _BYTES
        self._play(address, address + len(code))


# The offset of the contents in a bytes object of CPython; the basic size counts the final zero byte, too.
_BYTES: Final = bytes.__basicsize__ - 1


def loop_call(loop: int, operands: Sequence[Any], data: int = 0) -> LoopCall | None:
    """Return a step that calls a compiled loop, or ``None`` if the loop cannot take these operands.

    Parameters
    ----------
    loop : int
        The address of a C function ``void loop(void **args, intptr_t *dimensions, intptr_t *steps,
        intptr_t data)``, such as ``numba.cfunc`` makes. It may also be called for parts of the
        elements, from several threads.
    operands : sequence of array or Whole
        The operands, the result last. All have one dtype and are contiguous. Those that are not
        ``Whole`` have as many elements as the longest, or one, which is then used for all elements.
    data : int
        The last argument of the loop.

    Returns
    -------
    callable or None
        The value for a binder of kind ``"jit"`` to return; ``None`` leaves the node to the kernel for
        NumPy.
    """
    machine = find_machine()
    if machine is None:
        return None
    last = operands[-1]
    result = last.array if type(last) is Whole else last
    if type(result) is not np.ndarray:
        return None
    dtype, itemsize = result.dtype, result.itemsize
    size = max([one.size for one in operands if type(one) is np.ndarray])
    addresses: list[int] = []
    steps: list[int] = []
    for one in operands:
        step = 0
        if type(one) is Whole:
            array = one.array
        else:
            array = one
            if type(array) is not np.ndarray:
                return None
            if array.size == size > 1 and any(array.strides):
                step = itemsize
            elif array.size != size and array.size != 1:
                return None
        flags = array.flags
        if array.dtype is not dtype or not flags.aligned:
            return None
        if not flags.c_contiguous and (step or array is not one):
            return None
        addresses.append(address_of(array))
        steps.append(step)
    extent = result.nbytes if result is not last else itemsize
    return LoopCall(machine.play, operands, row(loop, data, size, addresses, steps, extent))
