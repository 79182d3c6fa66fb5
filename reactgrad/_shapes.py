"""Shapes that leaves had lately, with all that followed from them, so that loops may alternate.

Giving a leaf another shape gives another one to the nodes behind it, other memory, and gradients that are
built for it. What was there before is put aside, and put back as it was when the leaves get that shape
again: a batch, the last one of an epoch, an evaluation. That costs a little for each of these nodes, and
no rule, no new node and no plan.

The nodes of gradients that belong to a shape that was put aside live on, stale, and nobody sees them:
whoever looks at the structure of the graph, or changes it, lets go of all that was put aside. So does
whatever these tables know nothing of, see ``_is_plain``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from reactgrad._change import Change, Definition, write_definition
from reactgrad._store import MISSING, Found
from reactgrad.ops import CONST, INPUT, PARAM, Leaf, Op
from reactgrad.scheduler import Former
from reactgrad_scheduler.staleness import STALE

if TYPE_CHECKING:
    from reactgrad._graph import Graph
    from reactgrad.autodiff import Program
    from reactgrad.backend import Spec

# So many shapes are kept, that of now among them.
MOST = 4

_random = Random(0)

Key = frozenset[tuple[int, Any]]  # leaves with their specs

_NOTHING = Found(MISSING, None, None, None, False)


@dataclass(eq=False, slots=True)
class Form:
    """What a graph has while its leaves have certain shapes.

    Attributes
    ----------
    salt
        Which plans belong to it.
    specs, definitions
        Of all nodes that have others at other times.
    tables
        What each program knows, in the order of ``Shapes._programs``.
    anchors
        Of the nodes of gradients, which nothing else would keep while it is put aside.
    """

    salt: int
    specs: dict[int, Spec | None] = field(default_factory=dict)
    definitions: dict[int, Definition] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)
    anchors: list[Any] = field(default_factory=list)


class Shapes:
    """The forms of one graph, the latest used last."""

    __slots__ = (
        "_forms",
        "_found",
        "_leaves",
        "_next_serial",
        "_now",
        "_programs",
        "_serials",
    )

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._forms: dict[Key, Form] = {}
        self._now: Form | None = None
        self._leaves: list[int] = []  # in whose shapes they differ
        self._serials: dict[int, int] = {}  # of all nodes in which they differ
        self._programs: list[weakref.ref[Program]] = []
        self._next_serial = 0
        # Values, where they lie, of nodes while they have another spec.
        self._found: dict[int, dict[Any, Found]] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def clear(self, graph: Graph) -> None:
        """Let go of all that was put aside."""
        if self._now is not None:
            self._forget()
            graph._tidy()

    # --- coming back -------------------------------------------------------------------------

    def come_back(
        self, graph: Graph, sources: Mapping[int, Any], write: Callable[[], None]
    ) -> bool:
        """Put back what there was when the leaves had these specs, and `write` them; whether it was there."""
        now = self._now
        if now is None:
            return False
        if not self._still_so(graph):
            self.clear(graph)
            return False
        form = self._forms.get(self._key(graph, sources))
        if form is None or not sources.keys() <= set(self._leaves):
            return False
        try:
            # First: whatever happens, all that depends on them is stale.
            graph._scheduler.changed_together(tuple(sources))
            self._put_back(graph, form)
            write()
        except BaseException:
            self._put_back(graph, now)
            self.clear(graph)
            raise
        return True

    def _key(self, graph: Graph, sources: Mapping[int, Any]) -> Key:
        specs = graph._host.specs
        return frozenset([(leaf, sources.get(leaf, specs[leaf])) for leaf in self._leaves])

    def _still_so(self, graph: Graph) -> bool:
        """Whether all nodes and programs are those that these forms were noted for."""
        serial = graph._scheduler.topology.serial
        return (
            graph._scheduler.topology.next_serial == self._next_serial
            and all(serial[slot] == known for slot, known in self._serials.items())
            and _live(graph) == [program() for program in self._programs]
            and _is_plain(graph, self._serials)
        )

    def _put_back(self, graph: Graph, form: Form) -> None:
        """Make `form` the one of now; called again after an interrupt, it goes on."""
        host, scheduler, now = graph._host, graph._scheduler, self._now
        assert now is not None
        scheduler.versions.settle()
        programs = [program for ref in self._programs if (program := ref()) is not None]
        if form is not now:
            now.anchors = now.anchors or _anchors(graph, programs)
            now.tables = [program.tables() for program in programs]
        for slot, spec in form.specs.items():
            if host.specs[slot] is not spec:
                kept = self._found.setdefault(slot, {})
                kept[host.specs[slot]] = host.found(slot)
                _settle(graph, slot, spec, kept.pop(spec, _NOTHING))
        changed = {
            slot: definition
            for slot, definition in form.definitions.items()
            if Definition.of(graph, slot) != definition
        }
        if changed:
            scheduler.relink({slot: one.link for slot, one in changed.items()}, Former())
            for slot, definition in changed.items():
                write_definition(graph, slot, definition)
                host.moved(slot)
                scheduler.versions.record[slot] = None
                scheduler.staleness.put(slot, STALE)
            scheduler.staleness.push(changed)
        for program, tables in zip(programs, form.tables):
            program.take_tables(tables)
        if form is not now:
            scheduler.staleness.salted(now.salt ^ form.salt)
            self._now = form
            key = self._key(graph, {})
            self._forms[key] = self._forms.pop(key)

    # --- putting aside -----------------------------------------------------------------------

    def leave(self, graph: Graph) -> Departure | None:
        """Before leaves get shapes that are new here: what has to be seen now."""
        if self._now is not None and not self._still_so(graph):
            self.clear(graph)
        if not _is_plain(graph, ()):
            return None
        return Departure(graph)

    def arrive(self, graph: Graph, departure: Departure | None, change: Change) -> None:
        """After it: note what was there before, to come back to."""
        specs, definitions = change.former_specs, change.former_definitions
        serial = graph._scheduler.topology.serial
        if departure is not None:
            # What was built on the way belongs to the new form alone.
            before = departure.next_serial
            specs = {at: one for at, one in specs.items() if 0 < serial[at] < before}
            definitions = {at: one for at, one in definitions.items() if 0 < serial[at] < before}
        host = graph._host
        leaves = [slot for slot in specs if isinstance(host.ops[slot], Leaf)]
        if (
            departure is None
            or not leaves
            or departure.programs != _live(graph)
            or not _is_plain(graph, {*specs, *definitions})
            or any(spec is None or spec.weak is not None for spec, _ in specs.values())
        ):
            self.clear(graph)
            return
        former = self._now or Form(0)
        former.tables, former.anchors = departure.tables, departure.anchors
        forms = [former, *[form for form in self._forms.values() if form is not former]]
        for slot, (spec, found) in specs.items():
            self._found.setdefault(slot, {})[spec] = found
            for form in forms:
                form.specs.setdefault(slot, spec)
        for slot, definition in definitions.items():
            for form in forms:
                form.definitions.setdefault(slot, definition)
        now = self._now = Form(_random.getrandbits(64))
        now.specs = {slot: host.specs[slot] for slot in former.specs}
        now.definitions = {slot: Definition.of(graph, slot) for slot in former.definitions}
        graph._scheduler.staleness.salted(former.salt ^ now.salt)
        self._leaves += [leaf for leaf in leaves if leaf not in self._leaves]
        self._forms = {self._key_of(form): form for form in [*forms[1:], former, now]}
        while len(self._forms) > MOST:
            self._drop(next(iter(self._forms)))
        self._serials = {slot: serial[slot] for slot in {*now.specs, *now.definitions}}
        self._programs = [weakref.ref(program) for program in departure.programs]
        self._next_serial = graph._scheduler.topology.next_serial

    def _key_of(self, form: Form) -> Key:
        return frozenset([(leaf, form.specs[leaf]) for leaf in self._leaves])

    def _drop(self, key: Key) -> None:
        """Let one form go, with the memory that only it has."""
        del self._forms[key]
        for slot, kept in self._found.items():
            for spec in kept.keys() - {form.specs[slot] for form in self._forms.values()}:
                del kept[spec]


class Departure:
    """What there was of programs before leaves got other shapes."""

    def __init__(self, graph: Graph) -> None:
        self.next_serial = graph._scheduler.topology.next_serial
        self.programs = _live(graph)
        self.tables = [program.part_from() for program in self.programs]
        self.anchors = _anchors(graph, self.programs)


def _live(graph: Graph) -> list[Program]:
    return graph._programs.in_order()


def _anchors(graph: Graph, programs: Iterable[Program]) -> list[Any]:
    """What keeps the nodes that these programs have built, and those that they are computed from."""
    host, parents = graph._host, graph._scheduler.topology.parents
    numbers = {program.number for program in programs}
    slots = {slot for slot, number in host.owners.items() if number in numbers}
    for slot in [*slots]:
        slots.update(parents[slot])
    return [host.anchor(slot) for slot in slots]


def _settle(graph: Graph, slot: int, spec: Any, found: Found) -> None:
    """Let a node have another spec, and what it had when it had that the last time."""
    host, staleness = graph._host, graph._scheduler.staleness
    host.give_back(slot, found)
    host.specs[slot] = spec
    host.grads.pop(slot, None)
    host.moved(slot)
    if not graph._scheduler.leaf[slot]:
        if found.data is MISSING:
            staleness.drop(slot)
        else:
            staleness.restore(slot)


def _is_plain(graph: Graph, slots: Iterable[int]) -> bool:
    """Whether these nodes are ops of arrays to which nothing was added, in a graph that is one of its own."""
    host = graph._host
    if (
        graph._noted
        or graph._computing
        or graph.max_bytes is not None
        or host.registers is not None
        or host.transient
        or graph._programs.waiting
        or not all(program.is_plain for program in _live(graph))
    ):
        return False
    added = (host.cutoffs, host.pins, host.hooks, host.removed, host.retained)
    return all(
        (type(host.ops[slot]) is Op or host.ops[slot] in _LEAVES)
        and not any(slot in table for table in added)
        for slot in slots
    )


_LEAVES = (INPUT, PARAM, CONST)
