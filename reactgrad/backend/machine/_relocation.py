"""Programs of the register machine for other memory: the same steps, with addresses that have moved.

A program is bound to the arrays of its nodes. A fork computes the same nodes in arrays of its own, so its program
differs in addresses only, and one array operation moves them all. Binding each step anew would take longer than
to compute it a hundred times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from reactgrad.backend.machine._instructions import constants
from reactgrad.backend.machine._loop_call import LoopCall, Whole
from reactgrad.backend.machine._loops import address_of, addresses_of
from reactgrad.backend.machine._registers import ALONE, Fused, Program
from reactgrad.backend.numpy._in_turn import InTurn, Joined

Step = Callable[[], object]


class ScratchError(Exception):
    """A program uses memory of which nothing is known, or works in parts on several threads."""


class Layout:
    """The calls of a plan with the arrays that their programs use.

    Attributes
    ----------
    arrays
        The arrays that other ones may take the places of.
    """

    __slots__ = ("_begins", "_calls", "_own", "_programs", "_spans", "arrays")

    def __init__(self, calls: Fused, arrays: list[Any], fixed: list[Any]) -> None:
        """Find which array each address in the code lies in.

        Parameters
        ----------
        arrays, fixed : list of array
            Those of ``arrays`` are without gaps, those of ``fixed`` stay where they are.

        Raises
        ------
        ScratchError
        """
        self.arrays = arrays
        self._calls = calls
        self._spans = _Spans(arrays, [*fixed, *constants()])
        self._begins = self._spans.begins[: len(arrays)]
        # Scratch of steps, and arrays that they have made of attributes. Two graphs may not share these.
        self._own: list[Any] = []
        programs = [(at, call) for at, call in enumerate(calls) if isinstance(call, Program)]
        if not all(program.is_whole for _, program in programs):
            raise ScratchError
        codes = [program.code() for _, program in programs]
        lies_in = [self._spans.of(*code) for code in codes]
        if any(which is None for which in lies_in):
            seen = {id(array) for array in arrays}
            for _, program in programs:
                for array in program.arrays(_arrays_of):
                    if id(array) not in seen and not self._spans.has(array):
                        seen.add(id(array))
                        self._own.append(array)
            if not all(one.flags.c_contiguous for one in self._own):
                raise ScratchError
            self._spans = _Spans([*arrays, *self._own], [*fixed, *constants()])
            lies_in = [self._spans.of(*code) for code in codes]
        # By position of the call: the program, its code, the words that are addresses, and their arrays.
        self._programs: list[tuple[int, Program, Any, Any, Any]] = []
        for (at, program), (code, places), which in zip(programs, codes, lies_in, strict=True):
            if which is None:
                raise ScratchError
            self._programs.append((at, program, code.copy(), places, which))

    def addresses(self) -> Any:
        """Return the addresses of ``arrays``, to be written to."""
        return self._begins.copy()

    def moved(
        self, addresses: Any, kept: Sequence[Any], bind: Callable[[int], Step | None]
    ) -> Fused | None:
        """Return the calls for other arrays; ``None`` if a step that is no part of a program has no call.

        Parameters
        ----------
        addresses : array of int64
            Those of the arrays that take the places of ``arrays``.
        kept : sequence
            What keeps these arrays alive.
        bind : callable
            Returns the step at a position of the plan.
        """
        shifts = np.zeros(len(self._spans.begins), np.int64)
        count = len(addresses)
        np.subtract(addresses, self._begins, shifts[:count])
        own = [one.copy() for one in self._own]
        for at, (new, old) in enumerate(zip(own, self._own, strict=True)):
            shifts[count + at] = address_of(new) - address_of(old)
        calls: list[Step] = [*self._calls]
        for at, program, code, places, which in self._programs:
            code = code.copy()
            code[places] += shifts[which]
            calls[at] = program.at(code, (*kept, own))
        result = Fused([])  # without steps: these calls are never changed one by one
        result.places = self._calls.places
        if len(self._programs) < len(calls):
            for at, (call, within) in enumerate(result.places):
                if within == ALONE:
                    step = bind(at)
                    if step is None:
                        return None
                    calls[call] = step
        result += calls
        return result


class _Spans:
    """Arrays by the addresses between which they lie."""

    def __init__(self, arrays: list[Any], fixed: list[Any]) -> None:
        """``arrays`` are without gaps."""
        self.begins = addresses_of([*arrays, *fixed])
        lengths = [one.nbytes for one in arrays]
        lengths += [one.nbytes if one.flags.c_contiguous else _length(one) for one in fixed]
        ends = self.begins + np.array(lengths, np.int64)
        self._order = np.argsort(self.begins, kind="stable")
        self._first, self._last = self.begins[self._order], ends[self._order]

    def of(self, code: Any, places: Any) -> Any:
        """Return the array in which each address lies; ``None`` if one lies in none."""
        addresses = code[places]
        which = np.searchsorted(self._first, addresses, side="right") - 1
        if (which < 0).any() or (addresses >= self._last[which]).any():
            return None
        return self._order[which]

    def has(self, array: Any) -> bool:
        """Return whether an array begins in one of these."""
        address = address_of(array)
        which = int(np.searchsorted(self._first, address, side="right")) - 1
        return which >= 0 and address < self._last[which]


def _arrays_of(step: Any) -> Iterator[Any]:
    """Yield the arrays that own the memory that a step uses."""
    if isinstance(step, InTurn):
        for call in step.calls:
            yield from _arrays_of(call)
        return
    found: list[Any] = []
    if isinstance(step, LoopCall):
        found = [one.array if isinstance(one, Whole) else one for one in step.operands]
    elif isinstance(step, Joined):
        found = [*step.values, step.out]
    elif isinstance(step, partial):
        found = [*step.args, *step.keywords.values(), getattr(step, "mask", None)]
    for array in found:
        while isinstance(getattr(array, "base", None), np.ndarray):
            array = array.base
        if type(array) is np.ndarray:
            yield array


def _length(array: Any) -> int:
    """Return the number of bytes from the first element of an array to the end of its last one."""
    first, last = byte_bounds(array)
    return last - min(first, address_of(array))
