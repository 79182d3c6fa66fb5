"""Runs of small kernels as programs of the register machine.

A NumPy call on a few elements takes some hundred nanoseconds, hardly any of them for the elements. The
machine calls the same compiled loops with the same arguments (``_instructions``) at the cost of a C
function call, and so computes the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.blocks._threads import for_each
from reactgrad.backend.machine._code import SIZE, rows
from reactgrad.backend.machine._find import Machine
from reactgrad.backend.machine._instructions import instructions
from reactgrad.backend.machine._loops import address_of
from reactgrad.backend.machine._nested import places_of_addresses
from reactgrad.backend.machine._stages import Stage, staged
from reactgrad.backend.numpy._in_turn import Unrolled

Step = Callable[[], object]

# Fewer steps in a row than this take less time as single calls.
FEWEST = 4

# A patient machine makes programs of a plan at this run.
PATIENCE = 16

# With fewer elements in a row than this, threads cost more than they save; parts begin at a multiple of
# the second number, so that no two threads write to one line of a cache.
SHARED, PART = 500_000, 64

ALONE: Final = -1
_ITEM: Final = 8


class Registers(NamedTuple):
    """The machine of a graph.

    Attributes
    ----------
    threads
        How many may share its work.
    patient
        True if it makes programs only of plans that run often: a program costs what some twenty runs save.
    """

    machine: Machine
    threads: int
    patient: bool

    def fused(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """Return the calls for these steps, of which some are programs, now or after more runs; see
        ``programs``.
        """
        if not self.patient:
            return self.programs(slots, steps)
        if len(steps) < FEWEST:
            return steps, slots
        calls = Waiting(steps, self)
        return calls, calls.slots(slots)

    def programs(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """Return these steps, with a program in place of each run of steps that the machine can do.

        Returns
        -------
        calls, first_slots
            The calls to make, and for each call the slot of its first step.
        """
        codes = [instructions(step) for step in steps]
        calls = Fused(steps)
        # A step without instructions ends a run, and is called by itself after it.
        ends = [i for i, code in enumerate(codes) if code is None]
        first_slots: list[int] = []
        for before, end in pairwise([-1, *ends, len(steps)]):
            begin = before + 1
            if end - begin >= FEWEST:
                code = b"".join(codes[begin:end])  # type: ignore[arg-type]
                calls.places += [(len(calls), i) for i in range(end - begin)]
                calls.append(Program(self, steps[begin:end], code))
                first_slots.append(slots[begin])
                begin = end
            calls.places += [(len(calls) + i, ALONE) for i in range(len(steps[begin : end + 1]))]
            calls += steps[begin : end + 1]
            first_slots += slots[begin : end + 1]
        return calls, first_slots


class Waiting(Unrolled):
    """The calls of a plan that may run often."""

    __slots__ = ("_registers",)

    def __init__(self, steps: list[Step], registers: Registers) -> None:
        super().__init__(steps)
        self._registers = registers
        self.patience = PATIENCE

    def compiled(self, slots: list[int]) -> tuple[list[Step], list[int]]:
        """Return the calls with programs among them; these if there is nothing for the machine."""
        calls, first_slots = self._registers.programs(slots, self.steps)
        return (self, self.slots(slots)) if len(calls) == len(slots) else (calls, first_slots)


class Fused(list[Step]):
    """The calls in place of a plan's steps.

    Attributes
    ----------
    steps
        The steps as they were given.
    places
        For each step the position of its call, and its position in that if it is a program, or else
        ``ALONE``.
    """

    __slots__ = ("places", "steps")

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.places: list[tuple[int, int]] = []

    def follow(self, places: Collection[int]) -> bool:
        """Take over the new steps at `places` of ``steps``. Return whether that was possible."""
        for at in places:
            call, within = self.places[at]
            step = self.steps[at]
            if within == ALONE:
                self[call] = step
            elif not self[call].become(within, step):  # type: ignore[attr-defined]
                return False
        return True


class Program:
    """A run of steps as instructions that one call does."""

    __slots__ = ("_begins", "_code", "_kept", "_machine", "_places", "_steps", "_whole", "play")

    def __init__(self, registers: Registers, steps: list[Step], code: bytes) -> None:
        self._steps = steps  # they keep the arrays at the addresses alive
        self._code: list[Any] = []
        self._begins: list[int] | None = None  # where the code of each step begins, once asked for
        self._places: Any = None  # of the words that are addresses, once asked for
        self._kept: Sequence[Any] = ()  # other arrays at addresses in the code
        self._machine = registers.machine
        self.play: Callable[[], object]
        numbers = np.array(np.frombuffer(code, np.int64))
        found = rows(numbers.tolist()) if registers.threads > 1 else []
        self._whole = sum([one[SIZE] for one in found]) < SHARED
        if not self._whole:
            calls = [self._stage(registers, stage) for stage in staged(found)]
            self.play = partial(_in_turn, calls)
        else:
            self.play = partial(registers.machine.play, *self._place(numbers))

    def _stage(self, registers: Registers, stage: Stage) -> Callable[[], object]:
        width = stage.width
        row, end = self._place(np.array([number for one in stage.rows for number in one], np.int64))
        if len(stage.rows) * width < SHARED:
            return partial(registers.machine.play, row, end)
        each = -(-width // (registers.threads * PART)) * PART
        play = partial(registers.machine.play_part, row, end)
        parts = [partial(play, at, min(at + each, width)) for at in range(0, width, each)]
        return partial(for_each, _call, parts, registers.threads)

    def become(self, at: int, step: Step) -> bool:
        """Do another step at this position from now on. Return whether its code fits there."""
        code, former = instructions(step), instructions(self._steps[at])
        if code is None or former is None or len(code) != len(former) or len(self._code) != 1:
            return False
        if self._begins is None:
            lengths = [len(instructions(one) or b"") for one in self._steps]
            self._begins = [0, *accumulate(lengths)]
        begin = self._begins[at]
        numbers = np.frombuffer(code, np.int64)
        self._code[0][begin // _ITEM : begin // _ITEM + len(numbers)] = numbers
        self._steps[at] = step
        return True

    def code(self) -> tuple[Any, Any]:
        """Return the code, and the places of the words in it that are addresses."""
        if self._places is None:
            self._places = places_of_addresses(self._code[0])
        return self._code[0], self._places

    @property
    def is_whole(self) -> bool:
        """True if one call does all of the code, in this thread."""
        return self._whole

    def arrays(self, of: Callable[[Step], Iterator[Any]]) -> Iterator[Any]:
        """Yield the arrays ``of`` its steps."""
        for step in self._steps:
            yield from of(step)

    def at(self, code: Any, arrays: Sequence[Any]) -> Program:
        """Return the same steps with another code, whose addresses are those of these arrays."""
        program = Program.__new__(Program)
        program._steps, program._kept, program._code = self._steps, arrays, []
        program._begins, program._places = self._begins, self._places
        program._machine, program._whole = self._machine, True
        program.play = partial(self._machine.play, *program._place(code))
        return program

    def _place(self, code: np.ndarray[Any, Any]) -> tuple[int, int]:
        """Return the addresses at which a code begins and ends, and keep it alive."""
        self._code.append(code)
        address = address_of(code)
        return address, address + code.nbytes

    def __call__(self) -> None:
        self.play()


def _call(part: Callable[[], object]) -> None:
    part()


def _in_turn(calls: list[Callable[[], object]]) -> None:
    for call in calls:
        call()
