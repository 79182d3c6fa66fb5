"""The programs of a graph: which live, which one builds, and by what they are found."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Program(Protocol):
    """The gradients of one output, as what lies below them sees these."""

    number: int
    refusal: Any
    seeds: dict[Any, Any]
    seen: dict[int, Any]
    tables: Any
    _output: int

    def has_read_any(self, slots: Any) -> bool:
        """Return whether what was built depends on one of these nodes."""
        ...

    def update(self, changed: Any, respecced: Any, redefine: Any, changes: Any) -> Any:
        """Build anew what these changes reach."""
        ...

    def take_back(self, changes: Any) -> Any:
        """Undo an update."""
        ...

    def break_down(self, refusal: Any, redefine: Any) -> Any:
        """Let all gradients raise."""
        ...

    def follow_values(self, among: Any) -> bool:
        """Build anew what depends on shapes that only values show. Return whether something was."""
        ...

    def follow_below(self) -> Any:
        """Follow what lies below."""
        ...

    def outdated(self) -> dict[int, Any]:
        """Return the nodes whose rules saw what is no more so."""
        ...

    def observe(self, slot: int, shape: Any) -> None:
        """Note that what is built depends on this shape."""
        ...

    def rest(self) -> None:
        """Note that nothing is being built."""
        ...

    @property
    def broken(self) -> bool:
        """Whether all gradients raise."""
        ...

    @property
    def is_plain(self) -> bool:
        """Whether its tables depend on nothing but the definitions and shapes of nodes."""
        ...

    def part_from(self) -> dict[str, Any]:
        """Return the tables of now, which are not written any more; go on with copies."""
        ...

    def uses(self) -> set[int]:
        """Return the nodes that gradients are computed from."""
        ...

    def shown(self) -> set[int]:
        """Return the nodes that somebody was given."""
        ...

    def known(self, slot: int) -> Any:
        """Return the adjoint of a node, if one was built and is there."""
        ...

    def twin(self, graph: Any) -> Any:
        """Return the same program in a fork."""
        ...


class Programs:
    """The live programs of a graph, and which one is building."""

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
        # Those for ones, and for the gradient of each backward, by output: handles come and go.
        self._by_output: weakref.WeakValueDictionary[tuple[int, Any], Program] = (
            weakref.WeakValueDictionary()
        )
        self._next = 0
        # By the serials of an output and a node the one that stands for that as a direction; seldom there are any.
        self._stand_ins: weakref.WeakValueDictionary[tuple[int, int], Any] | None = None
        self.building: int | None = None
        self.under_way: set[int] = set()  # programs that are building, the innermost among them
        self.asking: list[tuple[Program, int]] = []  # who asks rules of users, of which nodes
        self.changing = False  # whether an edit is under way: no function may run
        self.reshaping = False  # whether leaves hold values of former shapes: nothing may run
        self.following = False  # whether rules are asked anew for what functions have left
        self.waiting = False  # whether rules may wait until their function has run
        self.observing = False  # whether programs may go with shapes that only values show
        self.looking: tuple[int, ...] = ()  # programs that look at these
        self.read: Any = None  # under way, if it may take several runs

    def rest(self) -> None:
        """Nothing is being built, in whatever line around it that was interrupted."""
        self.building = self.read = None
        self.looking = ()
        self.under_way.clear()
        self.asking.clear()
        self.changing = self.reshaping = self.following = False
        for program in self.in_order():
            program.rest()

    @contextmanager
    def while_reshaping(self) -> Iterator[None]:
        """A block in which leaves hold values of former shapes."""
        try:
            self.reshaping = True
            yield
        finally:
            self.reshaping = False

    def observe(self, slot: int, shape: tuple[int, ...]) -> None:
        """The value of this node showed its shape: what is being built goes with that."""
        program = None if self.building is None else self._live.get(self.building)
        if program is not None:
            program.observe(slot, shape)

    def __bool__(self) -> bool:
        """Whether there are live programs."""
        return bool(self._live)

    def add(self, program: Program, number: int = 0) -> int:
        """Register a program and number it; one of a fork has that of its original."""
        number = number or self._next + 1
        self._next = max(self._next, number)
        self._live[number] = program
        return number

    def follow_on(self, others: Programs) -> None:
        """Let the numbers of programs of a fork begin behind those of its origin."""
        self._next, self.observing = others._next, others.observing

    def lives(self, number: int) -> bool:
        """Whether the program with this number is there."""
        return number in self._live

    def of_number(self, number: int) -> Program | None:
        """The program with this number, if it lives."""
        return self._live.get(number)

    def find(self, output: int, key: Any) -> Program | None:
        """The live program of this output and seed."""
        return self._by_output.get((output, key))

    def name(self, output: int, key: Any, program: Program) -> None:
        """Let ``find`` find a program."""
        self._by_output[output, key] = program

    def name_as(self, others: Programs, copies: dict[Program, Program]) -> None:
        """Let ``find`` find the copies in a fork under the names of their originals."""
        for key, program in others._by_output.items():
            if program in copies:
                self._by_output[key] = copies[program]

    def stand_in(self, serials: tuple[int, int], make: Callable[[], Any]) -> Any:
        """The Var that stands for a node as a direction of an output, by their serials; made once."""
        if self._stand_ins is None:
            self._stand_ins = weakref.WeakValueDictionary()
        found = self._stand_ins.get(serials)
        if found is None:
            found = self._stand_ins[serials] = make()
        return found

    def wait_for(self, slots: Container[int]) -> bool:
        """Whether rules wait until one of these nodes has run."""
        return self.waiting and any(
            read is None and slot in slots
            for program in self.in_order()
            for slot, (_, read) in program.seen.items()
        )

    def in_order(self) -> list[Program]:
        """The live programs in order of creation."""
        # As they were registered, which a fork does in the order of its origin.
        return [program for ref in self._live.valuerefs() if (program := ref()) is not None]
