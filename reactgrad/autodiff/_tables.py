"""The tables of a program: adjoints, edges, and what rules have read.

Forks share them until one side writes.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from reactgrad.core._handles import handle
from reactgrad.ops import Placed, Share

# Stands for a gradient that is zero everywhere.
ZERO: Any = object()

ABSENT: Any = object()

# The tables whose changes are noted. ``reads`` is not among them: it only grows.
TABLES = (
    "adjoint",
    "_serials",
    "_own",
    "_hooks",
    "_holds",
    "_edges",
    "_parts",
    "observed",
    "seen",
    "_inner",
)

# Those of them with a row for each node; ``_parts`` has one for each edge.
BY_NODE = tuple(name for name in TABLES if name != "_parts")

# Those of them that refer to no handle, with other sets and dicts: forks share these until one side
# writes.
_SHARED = tuple({*TABLES, "reads", "_given"} - {"_holds"})

Changes = list[tuple[Any, Any, Any]]  # tables of a program, with what stood in them


class Part(NamedTuple):
    """A contribution of a node to the gradient of one of its operands."""

    slot: int
    serial: int
    kind: type[Placed | Share] | None  # ``None``: it covers the whole operand
    index: Any  # otherwise its place, and the nodes in that index
    operands: tuple[int, ...]
    own: bool  # True if its node was made for this alone


class Tables:
    """The tables of a program, and the undo of what was written into them."""

    __slots__ = (
        "__weakref__",
        "_anchors",
        "_apart",
        "_changes",
        "_edges",
        "_given",
        "_graph",
        "_held",
        "_holds",
        "_hooks",
        "_inner",
        "_output",
        "_own",
        "_params",
        "_parts",
        "_room",
        "_serials",
        "_sharers",
        "_updating",
        "adjoint",
        "again",
        "hollow",
        "number",
        "observed",
        "reads",
        "refusal",
        "rows",
        "seeds",
        "seen",
        "site",
    )

    def _belong_to(self, output: Any, seeds: dict[int, Any]) -> None:
        """Initialise the program for this output and these seeds, with nothing built yet."""
        self._graph = output._graph
        self._output: int = output._slot
        self.seeds = seeds
        self._updating = False
        # While shapes change: nodes that must not change in place. Else ``None``: no node takes another shape.
        self._apart: Container[int] | None = None
        self.again: Any = None  # the last `backward` by this program, see ``_again``
        self.refusal: Any = None  # the node that raises the reason, if it is broken
        # True if it comes from a file and knows nothing but what it gave out: see `_record`.
        self.hollow = False
        self._changes: Changes | None = None
        self._held: list[Any] = []  # contributions while they are added up
        self.rows: list[int] = []  # nodes that were built without a handle in the meantime
        self.site: Any = None  # the place of all that one sweep builds, once it is known
        # What is built may outlive these handles, and needs their nodes.
        self._anchors = [self._graph._host.anchor(slot) for slot in {self._output, *seeds}]
        # By node: its serial, the node given out for it, and the serial of that one.
        self._given: dict[int, tuple[int, int, int]] = {}
        # The programs that have the same tables, this one among them.
        self._sharers: weakref.WeakSet[Tables] | None = None
        # The number of adjoints that the output's handle may keep before dead ones are removed.
        self._room = 8

    def _clear(self) -> None:
        """Begin with empty tables."""
        self.adjoint: dict[int, Any] = {}
        # The serials of the adjoints: their slots may be used again.
        self._serials: dict[int, int] = {}
        self._own: dict[int, None] = {}  # nodes whose adjoint is the adjoint of no other node
        self._hooks: dict[int, tuple[Any, ...]] = {}  # the hooks that adjoints pass
        self._holds: dict[int, Any] = {}  # anchors of adjoints that no node uses, such as tuples
        # For each node between: the positions to which gradients may pass, with the operands.
        self._edges: dict[int, tuple[tuple[int, int], ...]] = {}
        self._params: tuple[int, ...] | None = None  # params among them, on demand
        self._parts: dict[tuple[int, int], Part | None] = {}  # by node and position
        self.observed: dict[int, tuple[int, ...]] = {}  # shapes that only values show
        self.seen: dict[int, tuple[dict[str, Any], dict[str, Any] | None]] = {}
        # The same for functions that rules differentiate while they build: by the rule's node, the
        # functions' slots and serials, and what of them was read.
        self._inner: dict[int, tuple[tuple[int, int, dict[str, Any] | None], ...]] = {}
        self.reads: dict[int, int] = {}

    def twin(self, graph: Any) -> Any:
        """Return the same program in a fork of the graph, with the adjoints that exist already."""
        # Without `__init__`, which would build adjoints.
        program = type(self).__new__(type(self))
        if self._sharers is None:
            self._sharers = weakref.WeakSet((self,))
        program._sharers = self._sharers
        program._sharers.add(program)
        for name in _SHARED:
            setattr(program, name, getattr(self, name))
        program._graph = graph
        program._output = self._output
        program.seeds = {at: handle(graph, seed._slot) for at, seed in self.seeds.items()}
        program._updating = False
        program._apart = None
        program.again = None
        refusal = self.refusal
        program.refusal = None if refusal is None else handle(graph, refusal._slot)
        program.hollow = self.hollow
        program._changes = None
        program._held, program.rows, program.site = [], [], None
        program._anchors = [graph._host.anchor(slot) for slot in {self._output, *self.seeds}]
        program._params = self._params
        program._holds = {at: graph._host.anchor(self.adjoint[at]) for at in self._holds}
        program._room = self._room
        # Gradients that were given out stay as long as the fork, the program as long as the
        # output's node.
        program.number = graph._programs.add(program, self.number)
        return program

    def _part_tables(self) -> None:
        """Copy shared tables before one is written, so that forks keep the former ones."""
        sharers, self._sharers = self._sharers, None
        if sharers is not None:
            if len(sharers) > 1:
                for name in _SHARED:
                    setattr(self, name, getattr(self, name).copy())
            sharers.discard(self)  # last: another thread may ask meanwhile which sharers are left

    def _read(self, slots: Iterable[int]) -> None:
        serial = self._graph._scheduler.topology.serial
        for slot in slots:
            self.reads[slot] = serial[slot]

    def has_read(self, slot: int) -> bool:
        """Return whether adjoints were built for this node, and not for an earlier one in its slot."""
        return self.reads.get(slot) == self._graph._scheduler.topology.serial[slot]

    def has_read_any(self, slots: Iterable[int]) -> bool:
        """Return whether adjoints were built for one of these nodes."""
        reads, serial = self.reads, self._graph._scheduler.topology.serial
        return any(reads.get(slot) == serial[slot] for slot in slots)

    @property
    def seed(self) -> Any:
        """The gradient of the output."""
        return self.seeds[self._output]

    def given(self, slot: int) -> Any:
        """Return the Var that was given out for a node, if both still live."""
        at = self._shown(slot)
        return None if at is None else handle(self._graph, at)

    def all_given(self) -> dict[int, Any]:
        """Return all Vars that were given out and still live, by the nodes they are for."""
        found = {slot: self.given(slot) for slot in self._given}
        return {slot: var for slot, var in found.items() if var is not None}

    def _shown(self, slot: int) -> int | None:
        """Return the node that was given out for a node, if both still live."""
        serial, removed = self._graph._scheduler.topology.serial, self._graph._host.removed
        since, given, number = self._given.get(slot, (None, 0, 0))
        alive = serial[slot] == since and serial[given] == number and given not in removed
        return given if alive else None

    @property
    def is_plain(self) -> bool:
        """True if the tables depend on nothing but the definitions and shapes of nodes."""
        return not (self.broken or self.hollow or self.observed or self.seen or self._inner)

    def tables(self) -> dict[str, Any]:
        """Return the tables as they are.

        Nothing writes them any more once others take their places.
        """
        self._part_tables()  # a fork that is the last sharer would write them
        return {name: getattr(self, name) for name in TABLES}

    def take_tables(self, tables: dict[str, Any]) -> None:
        """Put back tables that were returned by ``tables`` before."""
        for name, table in tables.items():
            setattr(self, name, table)
        self._params = None

    def part_from(self) -> dict[str, Any]:
        """Return the present tables and go on with copies, so that they are not written any more."""
        tables = self.tables()
        self.take_tables({name: table.copy() for name, table in tables.items()})
        return tables

    def uses(self) -> set[int]:
        """Return the nodes of adjoints and of the contributions that these add up."""
        serial = self._graph._scheduler.topology.serial
        found = {slot for slot in map(self.known, self.adjoint) if slot is not None}
        found.discard(ZERO)
        parts = [part for part in self._parts.values() if part is not None]
        found.update([part.slot for part in parts if serial[part.slot] == part.serial])
        return found

    def shown(self) -> set[int]:
        """Return the nodes that were given out and still live."""
        return {slot for slot in map(self._shown, self._given) if slot is not None}

    @property
    def unsure(self) -> bool:
        """True while the program is broken or follows a change: the nodes between may be out of
        date.
        """
        return self.broken or self._updating

    def rest(self) -> None:
        """Stop following a change that an interrupt has ended at whatever line."""
        self._changes, self._updating, self._apart = None, False, None
        self._release_held()

    def _release_held(self) -> None:
        """Release what was built and is used by nothing."""
        self._held.clear()
        if self.rows:
            host, scheduler = self._graph._host, self._graph._scheduler
            children, handles = scheduler.topology.children, host.handles
            scheduler.orphans += [
                slot for slot in self.rows if not children[slot] and handles[slot] is None
            ]
            self.rows.clear()

    @property
    def broken(self) -> bool:
        """True if the program could not follow a change, so that it has to be built again."""
        return self.refusal is not None

    def take_back(self, changes: Changes) -> None:
        """Undo what was noted, latest first."""
        self._params = None
        while changes:
            table, key, before = changes[-1]
            if table is self:
                setattr(self, key, before)
            elif before is ABSENT:
                table.pop(key, None)
            else:
                table[key] = before
            del changes[-1]  # last: if it is cut short, it can go on

    def _note(self, table: Any, key: Any, before: Any) -> None:
        if self._changes is not None:
            self._changes.append((table, key, before))

    def _put(self, table: dict[Any, Any], key: Any, entry: Any) -> None:
        if self._changes is not None:
            self._changes.append((table, key, table.get(key, ABSENT)))
        table[key] = entry

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            self._note(table, key, table[key])  # first: nothing may be lost in between
            del table[key]

    def known(self, slot: int) -> Any:
        """Return the adjoint of a node: a slot, ``ZERO``, or ``None`` where there is none (any
        more).
        """
        adjoint = self.adjoint.get(slot)
        if adjoint is None or adjoint is ZERO:
            return adjoint
        alive = self._graph._scheduler.topology.serial[adjoint] == self._serials[slot]
        return adjoint if alive else None

    def _hooks_of(self, slot: int) -> tuple[Any, ...]:
        """Return the hooks that the adjoint of a node passes, in order."""
        return self._graph._host.hooks.get(slot, ())
