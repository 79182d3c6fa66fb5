"""Runs of small kernels as programs of the register machine.

A NumPy call on a few elements costs some hundred nanoseconds, hardly any of them for the elements. The
machine makes such calls at the cost of a C function's: it calls the same compiled loops with the same
arguments (``_instructions``), so the bits do not depend on who makes the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise

import numpy as np

from reactgrad.backend._instructions import ROW, instructions

Step = Callable[[], object]
Play = Callable[[int, int], None]

# Fewer steps in a row than this cost less as calls of their own.
FEWEST = 4


class Program:
    """Instructions that are done by one call."""

    __slots__ = ("_code", "_play", "_steps")

    def __init__(self, play: Play, steps: list[Step], code: bytes) -> None:
        self._steps = steps  # which keep alive what lies at the addresses
        self._code = np.frombuffer(code, np.int64)
        self._play = partial(play, self._code.ctypes.data, len(code) // ROW.size)

    def __call__(self) -> None:
        self._play()


def find_play() -> Play | None:
    """The compiled loop; ``None`` where there is no numba."""
    try:
        return _imported()
    except ImportError:
        return None


@cache
def _imported() -> Play:
    from reactgrad.backend._machine import play

    return play


def fused(play: Play, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
    """These steps, with programs in place of those in a row that the machine can do.

    Returns
    -------
    calls, first_slots
        What to call, and for each call the slot of its first step.
    """
    codes = [instructions(step) for step in steps]
    ends = [i for i, code in enumerate(codes) if code is None]
    calls: list[Step] = []
    first_slots: list[int] = []
    for before, end in pairwise([-1, *ends, len(steps)]):
        begin = before + 1
        if end - begin >= FEWEST:
            program = Program(play, steps[begin:end], b"".join(codes[begin:end]))  # type: ignore[arg-type]
            calls.append(program)
            first_slots.append(slots[begin])
            begin = end
        calls += steps[begin : end + 1]
        first_slots += slots[begin : end + 1]
    return calls, first_slots
