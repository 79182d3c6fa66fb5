"""Bound steps as instructions of the register machine: rows of addresses.

An instruction is one call of a loop of NumPy's (``_loops``) with the arguments that NumPy itself would
give it, so the machine computes the same bits as the step. Its operands lie where the step's lie: an
instruction holds as long as the step that it was read from.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final

import numpy as np

from reactgrad.backend._in_turn import InTurn
from reactgrad.backend._loops import PLAIN, find_loop

MOST_OPERANDS: Final = 4  # of a loop, its result among them

# A row: the loop, the last of its arguments, how many elements; addresses; steps in bytes.
ROW: Final = Struct(f"={3 + 2 * MOST_OPERANDS}q")

# In place of a loop: copy where a mask holds, elements of as many bytes as the second number says.
MASKED_COPY: Final = 0

# Steps on more elements gain nothing: their calls cost more than their number.
MOST_ELEMENTS: Final = 8192

_ZEROS: Final = {one: np.zeros(1, one) for one in ("f", "d")}


def instructions(step: Callable[[], object] | None) -> bytes | None:
    """The rows that do what `step` does; ``None`` if no loop does."""
    if type(step) is not partial and type(step) is not InTurn:
        return None
    try:
        return step.code  # type: ignore[union-attr]
    except AttributeError:
        code = step.code = _read(step)  # type: ignore[union-attr]
        return code


def _read(step: Any) -> bytes | None:
    if type(step) is InTurn:
        parts = [instructions(call) for call in step.calls]
        return None if None in parts else b"".join(parts)  # type: ignore[arg-type]
    function, args, keywords = step.func, step.args, step.keywords
    if type(function) is np.ufunc:
        out = keywords.get("out", args[-1])
        inputs = args[: function.nin]
        whole = len(args) + len(keywords) == function.nin + 1
        return _call(function, inputs, out) if whole else None
    if function is np.copyto:
        return _copy(*args, **keywords)
    if getattr(function, "__self__", None) is np.add and function.__name__ == "reduce":
        return None if keywords else _sum(*args)
    return None


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> bytes | None:
    operands = (*inputs, out)
    if not all(map(_is_plain, operands)) or len(operands) > MOST_OPERANDS:
        return None
    loop = find_loop(ufunc, "".join([one.dtype.char for one in operands]))
    steps = [_step(one, out) for one in operands]
    if loop is None or None in steps:
        return None
    return _row(*loop, out.size, operands, steps)


def _copy(out: Any, source: Any, where: Any = None) -> bytes | None:
    if where is None:
        return _call(np.positive, (source,), out)
    operands = (source, where, out)
    if not all(map(_is_plain, operands)):
        return None
    steps = [_step(one, out) for one in operands]
    if None in steps or source.dtype != out.dtype or where.dtype.char != "?":
        return None
    return _row(MASKED_COPY, out.itemsize, out.size, operands, steps)


def _sum(x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool) -> bytes | None:
    """A sum of all elements: NumPy's own loop with a result that stays where it is, from zero on."""
    if not (_is_plain(x) and _is_plain(out)) or out.size != 1 or x.dtype != out.dtype:
        return None
    if axis is not None and (len(axis) if type(axis) is tuple else 1) != x.ndim:
        return None
    loop, step = find_loop(np.add, 3 * x.dtype.char), _step(x, x)
    begin = _call(np.positive, (_ZEROS.get(x.dtype.char),), out.reshape(1))
    if loop is None or step is None or begin is None:
        return None
    add = _row(*loop, x.size, (out, x, out), [0, step, 0])
    return None if add is None else begin + add


def _is_plain(operand: Any) -> bool:
    return (
        type(operand) is np.ndarray
        and operand.dtype.char in PLAIN
        and 0 < operand.size <= MOST_ELEMENTS
    )


def _step(operand: Any, out: Any) -> int | None:
    """How far it is from one element to the next, in bytes, for elements in the order of `out`."""
    if operand.ndim == 0:
        return 0
    if operand.shape == out.shape:
        if operand.ndim == 1:
            return operand.strides[0]
        return operand.itemsize if operand.flags.c_contiguous else None
    return 0 if operand.size == 1 < out.size else None


def _row(
    function: int, data: int, size: int, operands: tuple[Any, ...], steps: list[Any]
) -> bytes | None:
    addresses = [one.ctypes.data for one in operands]
    if any(at % one.itemsize for at, one in zip(addresses, operands, strict=True)):
        return None
    rest = (0,) * (MOST_OPERANDS - len(operands))
    return ROW.pack(function, data, size, *addresses, *rest, *steps, *rest)
