"""Bound steps as instructions of the register machine.

An instruction is one call of a loop of NumPy's (``_loops``), with the arguments that NumPy itself would
pass, or of a loop of the op's own (``_loop_call``). So the machine computes the same bits as the step.
An instruction holds the addresses of the step's arrays: it is valid only while the step keeps these
alive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.machine._code import MASKED_COPY, row
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loop_call import LoopCall
from reactgrad.backend.machine._loops import COMPARISONS, address_of, find_loop
from reactgrad.backend.machine._nested import broadcast, product, reduced
from reactgrad.backend.numpy._in_turn import InTurn, Joined

# Steps on more elements gain nothing: the time goes into the elements, not into the call.
MOST_ELEMENTS: Final = 8192

_UNREAD: Final[Any] = object()  # for steps whose instructions were not asked for yet

# From these numbers a reduction begins where none is given.
_FIRST: Final[dict[np.ufunc, tuple[float, ...]]] = {np.add: (0.0,)}


_numbers: dict[tuple[float, str], np.ndarray[Any, Any]] = {}


def _number(number: float, char: str) -> np.ndarray[Any, Any]:
    """Return an array of a number. It lives as long as the module, since instructions hold its address."""
    known = _numbers.get((number, char))
    return _numbers.setdefault((number, char), np.full(1, number, char)) if known is None else known


def constants() -> list[Any]:
    """Return the arrays of numbers that instructions read besides those of their steps."""
    return [*_numbers.values()]


# The kinds of steps that may have instructions, besides those that bring their own.
_KINDS: Final = frozenset([partial, InTurn, Joined])


def instructions(step: Callable[[], object] | None) -> bytes | None:
    """Return the instructions that do what `step` does; ``None`` if no loop does it.

    They are remembered as an attribute of the step.
    """
    if type(step) is LoopCall:
        return step.code
    if type(step) not in _KINDS:
        return None
    code = getattr(step, "code", _UNREAD)
    if code is _UNREAD:
        code = step.code = _read(step)  # type: ignore[union-attr]
    return code


def _read(step: Any) -> bytes | None:
    if type(step) is InTurn:
        return _all([instructions(call) for call in step.calls])
    if type(step) is Joined:
        return _all([_copy(part, value) for part, value in step.copies()])
    function, args, keywords = step.func, step.args, step.keywords
    if type(function) is np.ufunc:
        out = keywords.get("out", args[-1])
        inputs = args[: function.nin]
        if len(args) + len(keywords) != function.nin + 1:
            return None
        if function.signature is not None:
            return product(inputs[0], inputs[1], out) if function is np.matmul else None
        if function in COMPARISONS and type(out) is np.ndarray and out.dtype.char in "fd":
            step.mask = np.empty(out.shape, bool)  # as long as the step: its address is in the code
            return _compared(function, inputs, step.mask, out)
        return _call(function, inputs, out)
    if function is np.copyto:
        return _copy(*args, **keywords)
    if function is np.dot:
        return product(*args) if args[-1].ndim else _dot(*args)
    reduces = getattr(function, "__self__", None)
    if type(reduces) is np.ufunc and function.__name__ == "reduce" and not keywords:
        return _reduce(reduces, *args)
    return None


def _all(parts: list[bytes | None]) -> bytes | None:
    """Return the instructions in turn; ``None`` if one is missing."""
    return None if None in parts else b"".join(parts)  # type: ignore[arg-type]


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> bytes | None:
    operands = _operands(*inputs, out)
    if operands is None:
        small = type(out) is np.ndarray and 0 < out.size <= MOST_ELEMENTS
        return broadcast(ufunc, inputs, out) if small else None
    loop = find_loop(ufunc, "".join([one.dtype for one in operands]))
    return None if loop is None else _row(*loop, out.size, operands)


def _compared(ufunc: np.ufunc, inputs: tuple[Any, ...], mask: Any, out: Any) -> bytes | None:
    """Return the instructions that write 1.0 where a comparison holds, and 0.0 elsewhere."""
    zero, one = (_number(number, out.dtype.char) for number in (0.0, 1.0))
    parts = [
        _call(ufunc, inputs, mask),
        _call(np.positive, (zero,), out),
        _copy(out, one, where=mask),
    ]
    return _all(parts)


def _copy(out: Any, source: Any, casting: str = "same_kind", where: Any = None) -> bytes | None:
    if where is None and type(source) is np.ndarray and source.dtype != out.dtype:
        return _cast(out, source)
    if casting != "same_kind" and where is not None:
        return None
    if where is None:
        return _call(np.positive, (source,), out)
    operands = _operands(source, where, out)
    if operands is None or operands[1].dtype != "?" or operands[0].dtype != operands[2].dtype:
        return None
    return _row(MASKED_COPY, out.itemsize, out.size, operands)


def _cast(out: Any, source: Any) -> bytes | None:
    """Return the instruction that converts numbers to floats, by a loop of the driver."""
    driver, operands = find_driver(), _operands(source, out)
    if driver is None or operands is None:
        return None
    loop = driver.LOOPS.get(f"cast {operands[0].dtype}{operands[1].dtype}")
    return None if loop is None else _row(loop, 0, out.size, operands)


def _reduce(
    ufunc: np.ufunc,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *initial: float,
) -> bytes | None:
    """Return the instructions for a sum or a maximum: copy what it begins from, then take in each element.

    That is NumPy's own loop, with a step of 0 for the result. All elements are summed where the result has one,
    whichever the axes are.
    """
    first = initial or _FIRST.get(ufunc)
    if type(out) is not np.ndarray or type(x) is not np.ndarray or first is None:
        return None
    char = x.dtype.char
    if dtype not in (None, out.dtype) or char != out.dtype.char or char not in "fd":
        return None
    if not 0 < x.size <= MOST_ELEMENTS:
        return None
    if not out.flags.c_contiguous:
        return None
    begin = _call(np.positive, (_number(first[0], char),), out.reshape(-1))
    if begin is None:
        return None
    if out.size > 1:
        rest = reduced(ufunc, x, axis, out)
        return None if rest is None else begin + rest
    terms, total = _operands(x), _operands(out.reshape(-1))
    loop = find_loop(ufunc, 3 * char)
    if terms is None or total is None or loop is None:
        return None
    stays = total[0]._replace(step=0)
    return begin + _row(*loop, x.size, [stays, terms[0], stays])


def _dot(x: Any, y: Any, out: Any) -> bytes | None:
    """Return the instruction for the dot product of two vectors: the loop of a generalized ufunc.

    Such a loop reads the number of products (1 here) and the length of the vectors, then the steps from
    product to product, then the steps from element to element. These numbers take the places that size,
    extent and steps have in other rows; the row has six operands to make room for them. The last step is 0,
    so that no thread takes the row for one whose elements may be shared.
    """
    operands = _operands(x, y, y) if out.ndim == 0 and x.ndim == 1 else None
    dtypes = x.dtype.char + y.dtype.char + out.dtype.char
    loop = find_loop(np.vecdot, dtypes)
    if operands is None or loop is None or not out.flags.aligned:
        return None
    total = address_of(out)
    addresses = [operands[0].address, operands[1].address, *[total] * 4]
    steps = [0, 0, 0, operands[0].step, operands[1].step, 0]
    return row(*loop, 1, addresses, steps, x.size)


def _row(function: int, data: int, size: int, operands: list[_Operand]) -> bytes:
    addresses = [one.address for one in operands]
    return row(function, data, size, addresses, [one.step for one in operands])


class _Operand(NamedTuple):
    """An array as an operand of a loop."""

    dtype: str
    address: int
    step: int  # from one element to the next, in bytes


def _operands(*arrays: Any) -> list[_Operand] | None:
    """Return arrays as operands of one loop over the elements of the last one, in C order.

    ``None`` if an array is not aligned or has elements that one step does not reach, or if there are no
    or too many elements.
    """
    out = arrays[-1]
    if type(out) is not np.ndarray:
        return None
    shape, size = out.shape, out.size
    if not 0 < size <= MOST_ELEMENTS:
        return None
    found: list[_Operand] = []
    for array in arrays:
        if type(array) is not np.ndarray or not array.flags.aligned:
            return None
        own, dtype = array.shape, array.dtype.char
        if own == shape and len(own) == 1:
            step = array.strides[0]
        elif not own or array.size == 1 < size:
            step = 0
        elif own == shape and array.flags.c_contiguous:
            step = array.itemsize
        else:
            return None
        found.append(_Operand(dtype, address_of(array), step))
    return found
