"""The gradient programs of a graph: those that live, and those that are building."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterator
from typing import Any, Protocol

from reactgrad.scheduler import block


class Program(Protocol):
    """The gradients of one output, as the floors below ``autodiff`` know them."""

    number: int
    reads: dict[int, int]
    refusal: Any
    seeds: dict[Any, Any]
    seen: dict[int, Any]
    tables: Any
    _output: int

    def has_read_any(self, slots: Any) -> bool:
        """Return whether anything built depends on one of these nodes."""
        ...

    def update(self, changed: Any, respecced: Any, redefine: Any, changes: Any) -> Any:
        """Build again the gradients that these changes reach."""
        ...

    def take_back(self, changes: Any) -> Any:
        """Undo an update."""
        ...

    def break_down(self, refusal: Any, redefine: Any) -> Any:
        """Make all gradients raise."""
        ...

    def follow_values(self, among: Any) -> bool:
        """Build again what depends on shapes known only from values. Return whether anything was."""
        ...

    def follow_below(self) -> Any:
        """Update the gradients that this program is built on."""
        ...

    def outdated(self) -> dict[int, Any]:
        """Return the nodes whose rules were built on something that no longer holds."""
        ...

    def observe(self, slot: int, shape: Any) -> None:
        """Note that the nodes being built depend on this shape."""
        ...

    def rest(self) -> None:
        """Note that nothing is being built any more."""
        ...

    @property
    def broken(self) -> bool:
        """True if all gradients raise."""
        ...

    @property
    def is_plain(self) -> bool:
        """True if its tables depend on nothing but the definitions and shapes of nodes."""
        ...

    def part_from(self) -> dict[str, Any]:
        """Return the present tables, never to be written again, and go on with copies of them."""
        ...

    def uses(self) -> set[int]:
        """Return the nodes that gradients are computed from."""
        ...

    def shown(self) -> set[int]:
        """Return the nodes that a caller holds as gradients."""
        ...

    def known(self, slot: int) -> Any:
        """Return the adjoint of a node, ``None`` if it was not built or is gone."""
        ...

    def twin(self, graph: Any) -> Any:
        """Return the program that stands for this one in a fork."""
        ...


class Programs:
    """The live programs of a graph, and the state of those that are building."""

    __slots__ = (
        "_by_output",
        "_live",
        "_next",
        "_stand_ins",
        "asking",
        "building",
        "changing",
        "following",
        "looking",
        "observing",
        "read",
        "reshaping",
        "under_way",
        "waiting",
    )

    def __init__(self) -> None:
        self._live: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
        # Programs seeded with ones, and those of backwards with a gradient. They are found by output,
        # not by handle: a handle may die and be made again while the program lives.
        self._by_output: weakref.WeakValueDictionary[tuple[int, Any], Program] = (
            weakref.WeakValueDictionary()
        )
        self._next = 0
        # Stand-ins for directions, by the serials of output and node. Rare, so None before the first.
        self._stand_ins: weakref.WeakValueDictionary[tuple[int, int], Any] | None = None
        self.building: int | None = None
        self.under_way: set[int] = set()  # programs that are building, the innermost among them
        self.asking: list[tuple[Program, int]] = []  # programs in users' rules, with nodes
        self.changing = False  # True while an edit is under way: no function may run
        self.reshaping = False  # True while leaves hold values of former shapes: nothing may run
        self.following = False  # True while rules are called again after functions have run
        self.waiting = False  # True while rules may be left until their function has run
        self.observing = False  # True once programs may depend on shapes known only from values
        self.looking: tuple[int, ...] = ()  # programs computing values to see their shapes
        self.read: Any = None  # the read under way, if it may take several runs

    def rest(self) -> None:
        """Reset the state of building, wherever an interrupt has stopped it."""
        self.building = self.read = None
        self.looking = ()
        self.under_way.clear()
        self.asking.clear()
        self.changing = self.reshaping = self.following = False
        for program in self.in_order():
            program.rest()

    @block
    def while_reshaping(self) -> Iterator[None]:
        """Return a block in which leaves hold values of former shapes, so that nothing may run."""
        try:
            self.reshaping = True
            yield
        finally:
            self.reshaping = False

    def observe(self, slot: int, shape: tuple[int, ...]) -> None:
        """Make the program that is being built depend on the shape of this node's value."""
        program = None if self.building is None else self._live.get(self.building)
        if program is not None:
            program.observe(slot, shape)

    def __bool__(self) -> bool:
        """Return whether there are live programs."""
        return bool(self._live)

    def add(self, program: Program, number: int = 0) -> int:
        """Register a program. Return its number, which in a fork is that of its original."""
        number = number or self._next + 1
        self._next = max(self._next, number)
        self._live[number] = program
        return number

    def follow_on(self, others: Programs) -> None:
        """Continue the numbers of the origin, so that a fork gives no number twice."""
        self._next, self.observing = others._next, others.observing

    def lives(self, number: int) -> bool:
        """Return whether the program with this number lives."""
        return number in self._live

    def of_number(self, number: int) -> Program | None:
        """Return the program with this number, ``None`` if it is gone."""
        return self._live.get(number)

    def find(self, output: int, key: Any) -> Program | None:
        """Return the live program of this output and seed, ``None`` if there is none."""
        return self._by_output.get((output, key))

    def made(self, output: int, key: Any, make: Callable[[], Any]) -> Any:
        """Return the live program of this output and key; make it if there is none."""
        program = self.find(output, key)
        if program is None:
            program = make()
            self.name(output, key, program)
        return program

    def name(self, output: int, key: Any, program: Program) -> None:
        """Enter a program for ``find``."""
        self._by_output[output, key] = program

    def keys_of(self, program: Program) -> tuple[Any, ...]:
        """Return the keys under which ``find`` returns this program."""
        return tuple([key for (_, key), one in self._by_output.items() if one is program])

    def name_as(self, others: Programs, copies: dict[Program, Program]) -> None:
        """Enter the copies of a fork for ``find`` under the keys of their originals."""
        for key, program in others._by_output.items():
            if program in copies:
                self._by_output[key] = copies[program]

    def stand_in(self, serials: tuple[int, int], make: Callable[[], Any]) -> Any:
        """Return the Var that stands for a node as a direction of an output; make it once.

        ``serials`` are those of the output and of the node.
        """
        if self._stand_ins is None:
            self._stand_ins = weakref.WeakValueDictionary()
        found = self._stand_ins.get(serials)
        if found is None:
            found = self._stand_ins[serials] = make()
        return found

    def wait_for(self, slots: Container[int]) -> bool:
        """Return whether rules wait until one of these nodes has run."""
        return self.waiting and any(
            read is None and slot in slots
            for program in self.in_order()
            for slot, (_, read) in program.seen.items()
        )

    def seeded_beside(self, program: Any, given: Any) -> set[int]:
        """Return the nodes that other programs with a computed seed were built for, and these seeds.

        Such a node and its seed must change their shapes together. ``given``: the marks of leaves.
        """
        found: set[int] = set()
        for one in self.in_order():
            seeds = [seed._slot for seed in one.seeds.values() if not given[seed._slot]]
            if seeds and one is not program:
                found.update(seeds, one.reads)
        return found

    def in_order(self) -> list[Program]:
        """Return the live programs in order of creation."""
        # The order of registration is that of creation: a fork registers in the order of its origin.
        return [program for ref in self._live.valuerefs() if (program := ref()) is not None]
