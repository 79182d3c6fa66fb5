"""Calls of compiled loops that are not NumPy's: what ops of small arrays are made of under ``jit``.

Such a loop has the form of those inside of ufuncs, ``loop(args, dimensions, steps, data)``: the addresses
of its operands, the result last; how many elements; how many bytes lie between those of each operand;
one number of the op's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.machine._code import row
from reactgrad.backend.machine._loops import address_of


class Whole(NamedTuple):
    """An operand of which a loop takes all, not one element for each of the others'."""

    array: Any


class LoopCall:
    """One call of a compiled loop: a step by itself, and an instruction of the register machine."""

    __slots__ = ("_operands", "_play", "code")

    def __init__(
        self, play: Callable[[int, int], None], operands: Sequence[Any], code: bytes
    ) -> None:
        self._play = play
        self._operands = operands  # which keep alive what lies at the addresses
        self.code = code

    def __call__(self) -> None:
        code = self.code
        address = id(code) + _BYTES
        self._play(address, address + len(code))


# From the beginning of an object to its bytes, of which the last one is a zero that ends them.
_BYTES: Final = bytes.__basicsize__ - 1


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
    from reactgrad.backend.machine._machine import play  # here, since it needs numba

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
    return LoopCall(play, operands, row(loop, data, size, addresses, steps, extent))
