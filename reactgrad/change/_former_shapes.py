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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from reactgrad.core._definition import Definition, write_definition
from reactgrad.core._lifetime import tidy
from reactgrad.nodes._leaf import CONST, INPUT, PARAM, Leaf
from reactgrad.nodes._op import Op
from reactgrad.scheduler import STALE, Former
from reactgrad.values._lending import Found
from reactgrad.values._storage import MISSING

if TYPE_CHECKING:
    from reactgrad.backend import Spec
    from reactgrad.core._core import Core
    from reactgrad.core._programs import Program

# So many shapes are kept, that of now among them; fewer, but some, where they are those of many nodes; as
# long as what is put aside takes no more memory: beside what it costs to compute larger arrays it costs
# little to follow their shapes.
MOST, FEWEST = 16, 4
MOST_NODES = 1 << 16
MOST_BYTES = 1 << 26

_random = Random(0)

Key = frozenset[tuple[int, Any]]  # leaves with their specs

_NOTHING = Found(MISSING, None, None, None, False), None


class Form:
    """What a graph has while its leaves have certain shapes.

    Attributes
    ----------
    salt
        Which plans belong to it.
    specs, definitions
        Of all nodes that have others at other times.
    tables
        What each program knows, by its number.
    anchors
        Of the nodes of gradients, which nothing else would keep while it is put aside.
    """

    __slots__ = ("anchors", "built", "definitions", "salt", "specs", "tables")

    def __init__(self, salt: int) -> None:
        self.salt = salt
        self.specs: dict[int, Spec | None] = {}
        self.definitions: dict[int, Definition] = {}
        self.tables: dict[int, dict[str, Any]] = {}
        self.anchors: list[Any] = []
        self.built: frozenset[int] = frozenset()  # the nodes of gradients


class Shapes:
    """The forms of one graph, the latest used last.

    Attributes
    ----------
    now
        That of now; ``None``: there is no other one to come back to.
    serials
        Of all nodes in which they differ.
    """

    __slots__ = (
        "__weakref__",
        "_forms",
        "_found",
        "_leaves",
        "_next_serial",
        "_programs",
        "now",
        "serials",
    )

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Come back to nothing; whatever was kept for that is let go of."""
        self._forms: dict[Key, Form] = {}
        self.now: Form | None = None
        self._leaves: list[int] = []  # in whose shapes they differ
        self.serials: dict[int, int] = {}
        self._programs: dict[int, weakref.ref[Program]] = {}
        self._next_serial = 0
        # Of nodes while they have another spec: where their values lie, and their steps.
        self._found: dict[int, dict[Any, tuple[Found, Any]]] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def bury(self, graph: Core) -> None:
        """Nodes are gone: nothing that needs one of them comes back."""
        serial = graph._scheduler.topology.serial
        if any(serial[slot] != known for slot, known in self.serials.items()):
            self.forget()

    def clear(self, graph: Core) -> None:
        """Let go of all that was put aside."""
        if self.now is not None:
            self.forget()
            tidy(graph)

    # --- coming back -------------------------------------------------------------------------

    def come_back(
        self, graph: Core, sources: Mapping[int, Any], write: Callable[[Collection[int]], None]
    ) -> bool:
        """Put back what there was when the leaves had these specs, and `write` them; whether it was there."""
        now = self.now
        if now is None:
            return False
        if not self._still_so(graph):
            self.clear(graph)
            return False
        programs = [ref() for ref in self._programs.values()]  # none of them goes meanwhile
        form = self._forms.get(self._key(graph, sources))
        if form is None or not sources.keys() <= set(self._leaves):
            return False
        try:
            # First: whatever happens, all that depends on them is stale.
            graph._scheduler.changed_together(tuple(sources))
            self._put_back(graph, form, programs)
            write(sources)
        except BaseException:
            self._put_back(graph, now, programs)
            graph._scheduler.forget()  # marks may be half moved: versions are the truth
            self.clear(graph)
            raise
        return True

    def _key(self, graph: Core, sources: Mapping[int, Any]) -> Key:
        specs = graph._host.specs
        return frozenset([(leaf, sources.get(leaf, specs[leaf])) for leaf in self._leaves])

    def _still_so(self, graph: Core) -> bool:
        """Whether all nodes and programs are those that these forms were noted for."""
        serial = graph._scheduler.topology.serial
        return (
            graph._scheduler.topology.next_serial == self._next_serial
            and all(serial[slot] == known for slot, known in self.serials.items())
            and all(program() is not None for program in self._programs.values())
            and _is_plain(graph, self.serials.keys())
        )

    def _put_back(self, graph: Core, form: Form, programs: Sequence[Any]) -> None:
        """Make `form` the one of now; called again after an interrupt, it goes on."""
        host, scheduler, now = graph._host, graph._scheduler, self.now
        assert now is not None
        scheduler.versions.settle()
        if form is not now:
            if not now.anchors:
                now.anchors, now.built = _kept(graph, programs)
            now.tables = {program.number: program.tables() for program in programs}
        moving = [(slot, spec) for slot, spec in form.specs.items() if host.specs[slot] is not spec]
        for slot, _ in moving:
            self._found.setdefault(slot, {})[host.specs[slot]] = host.found(slot), host.bound(slot)
        for slot, spec in moving:
            found, _ = self._found[slot].get(spec, _NOTHING)
            _settle(graph, slot, spec, found)
        changed = {
            slot: definition
            for slot, definition in form.definitions.items()
            if not _is_same(Definition.of(graph, slot), definition)
        }
        if changed:
            former = Former()
            try:
                scheduler.relink({slot: one.link for slot, one in changed.items()}, former)
            except BaseException:
                scheduler.restore(former)
                raise
            for slot, definition in changed.items():
                write_definition(graph, slot, definition)
                host.moved(slot)
                scheduler.versions.record[slot] = None
                scheduler.staleness.put(slot, STALE)
            scheduler.staleness.push(changed)
        self._unbind_beside(graph, form, now, [slot for slot, _ in moving])
        for slot, spec in moving:  # once all of them have their values and operands
            _, bound = self._found[slot].pop(spec, _NOTHING)
            if bound is not None:
                host.bind_again(slot, bound)
        for program in programs:
            if program.number in form.tables:  # else an interrupt came before they were taken
                program.take_tables(form.tables[program.number])
        if form is not now:
            scheduler.salted(now.salt ^ form.salt)
            self.now = form
            key = self._key(graph, {})
            self._forms[key] = self._forms.pop(key)

    def _unbind_beside(self, graph: Core, form: Form, now: Form, moved: list[int]) -> None:
        """Bind anew what reads the values that were moved, and is there in both forms.

        What gradients have built for one of them alone is still bound to what it reads there.
        """
        host, children = graph._host, graph._scheduler.topology.children
        apart = frozenset().union(*[one.built for one in self._forms.values()])
        apart -= form.built & now.built
        beside = {child for slot in moved for child in children[slot]}
        for slot in beside.difference(moved, apart):
            host.moved(slot)

    # --- putting aside -----------------------------------------------------------------------

    def leave(self, graph: Core) -> Departure | None:
        """Before leaves get shapes that are new here: what takes in what is there now."""
        if self.now is not None and not self._still_so(graph):
            self.clear(graph)
        return Departure(graph) if _is_plain(graph, set()) else None

    def arrive(self, graph: Core, departure: Departure) -> None:
        """After it: note what was there before, to come back to."""
        host, serial = graph._host, graph._scheduler.topology.serial
        # What was built on the way belongs to the new form alone.
        before = departure.next_serial
        specs = {at: one for at, one in departure.specs.items() if 0 < serial[at] < before}
        definitions = {
            at: one for at, one in departure.definitions.items() if 0 < serial[at] < before
        }
        leaves = [slot for slot in specs if isinstance(host.ops[slot], Leaf)]
        both = {*specs, *definitions}
        if not (
            leaves
            and departure.is_plain
            and all(program.is_plain for program in departure.programs)
            and _is_plain(graph, both)
            and all(_is_array_op(host.ops[slot]) for slot in both)
            and all(
                _is_array(spec) and _is_array(host.specs[at]) for at, (spec, _) in specs.items()
            )
        ):
            self.clear(graph)
            return
        self._next_serial = -1  # until all is noted
        former = self.now or Form(0)
        forms = [former, *[form for form in self._forms.values() if form is not former]]
        for form in forms:  # in all of them these programs are as they were before
            form.tables = departure.tables | ({} if form is former else form.tables)
            form.anchors = [*form.anchors, *departure.anchors]
            form.built |= departure.built
        for slot, (spec, found) in specs.items():
            self._found.setdefault(slot, {})[spec] = found, None
            for form in forms:
                form.specs.setdefault(slot, spec)
        for slot, definition in definitions.items():
            for form in forms:
                form.definitions.setdefault(slot, definition)
        now = self.now = Form(_random.getrandbits(64))
        now.specs = {slot: host.specs[slot] for slot in former.specs}
        now.definitions = {slot: Definition.of(graph, slot) for slot in former.definitions}
        graph._scheduler.salted(former.salt ^ now.salt)
        self._leaves += [leaf for leaf in leaves if leaf not in self._leaves]
        self._forms = {self._key_of(form): form for form in [*forms[1:], former, now]}
        self.serials = {slot: serial[slot] for slot in {*now.specs, *now.definitions}}
        while len(self._forms) > FEWEST and self._is_crowded(graph):
            self._drop(next(iter(self._forms)))
        # Without one of them nobody needs what was kept for it.
        lost = partial(_forget, weakref.ref(self))
        self._programs |= {one.number: weakref.ref(one, lost) for one in departure.programs}
        self._next_serial = graph._scheduler.topology.next_serial
        if self._bytes(graph) > MOST_BYTES:
            self.clear(graph)

    def _is_crowded(self, graph: Core) -> bool:
        """Whether these are too many forms, for their nodes or their memory."""
        forms = len(self._forms)
        many = forms > MOST or forms * len(self.serials) > MOST_NODES
        return many or self._bytes(graph) > MOST_BYTES

    def _bytes(self, graph: Core) -> int:
        """How much memory is put aside."""
        data = graph._host.data
        arrays = [found.data for kept in self._found.values() for found, _ in kept.values()]
        built = frozenset[int]().union(*[form.built for form in self._forms.values()])
        arrays += [data[slot] for slot in built]
        return sum([getattr(array, "nbytes", 0) for array in arrays])

    def _key_of(self, form: Form) -> Key:
        return frozenset([(leaf, form.specs[leaf]) for leaf in self._leaves])

    def _drop(self, key: Key) -> None:
        """Let one form go, with the memory that only it has."""
        del self._forms[key]
        for slot, kept in self._found.items():
            for spec in kept.keys() - {form.specs[slot] for form in self._forms.values()}:
                del kept[spec]


class Departure:
    """What there was before leaves get other shapes, as far as that changes.

    Attributes
    ----------
    specs
        Nodes with the specs that they had, and where their values lay.
    definitions
        What nodes of gradients were computed from.
    programs, tables
        Those that follow, and by their numbers what they knew.
    """

    def __init__(self, graph: Core) -> None:
        self._graph = graph
        self.next_serial = graph._scheduler.topology.next_serial
        self.specs: dict[int, tuple[Spec | None, Found]] = {}
        self.definitions: dict[int, Definition] = {}
        self.programs: list[Program] = []
        self.tables: dict[int, dict[str, Any]] = {}
        self.anchors: list[Any] = []
        self.built: frozenset[int] = frozenset()
        self.is_plain = True  # whether all of them were

    def take(self, program: Program) -> None:
        """A program is about to follow."""
        if program.number in self.tables:
            return
        self.is_plain = self.is_plain and program.is_plain
        self.programs.append(program)
        anchors, built = _kept(self._graph, [program])
        self.anchors += anchors
        self.built |= built
        self.tables[program.number] = program.part_from()


def _forget(shapes: Callable[[], Shapes | None], program: object) -> None:
    """A program is gone; nodes go with their anchors when somebody comes by."""
    known = shapes()
    if known is not None:
        known.forget()


def _kept(graph: Core, programs: Iterable[Program]) -> tuple[list[Any], frozenset[int]]:
    """What keeps the nodes that these programs use, and what they are computed from; the former."""
    host, parents = graph._host, graph._scheduler.topology.parents
    owners = host.owners
    built: set[int] = set()
    above: set[int] = set()
    shown = {slot for program in programs for slot in program.shown()}
    stack = [*shown, *[slot for program in programs for slot in program.uses()]]
    while stack:
        slot = stack.pop()
        if slot in owners:
            if slot not in built:
                built.add(slot)
                stack += parents[slot]
        else:
            above.add(slot)
    # What was given out goes when nobody holds it any more, and programs go with it.
    return [host.anchor(slot) for slot in (built | above) - shown], frozenset(built)


def _settle(graph: Core, slot: int, spec: Any, found: Found) -> None:
    """Let a node have another spec, and what it had when it had that the last time."""
    host, staleness = graph._host, graph._scheduler.staleness
    host.specs[slot] = spec  # first: an interrupt must not leave the former one with nothing
    host.give_back(slot, found)
    host.grads.pop(slot, None)
    if not graph._scheduler.leaf[slot]:
        if found.data is MISSING:
            staleness.drop(slot)
        else:
            staleness.restore(slot)


def _is_plain(graph: Core, slots: Set[int]) -> bool:
    """Whether nothing was added to these nodes, and nothing is under way that needs them as they are."""
    host = graph._host
    if (
        graph._noted
        or graph._computing
        or graph._host.limit is not None
        or host.registers is not None
        or host.transient
        or graph._programs.waiting
    ):
        return False
    added = (host.cutoffs, host.pins, host.hooks, host.removed, host.retained)
    return all(slots.isdisjoint(table) for table in added)


def _is_array(spec: Spec | None) -> bool:
    return spec is not None and spec.weak is None


def _is_same(one: Definition, other: Definition) -> bool:
    """Whether two definitions are; attributes, which may hold arrays, by identity."""
    return one.attrs is other.attrs and one._replace(attrs=()) == other._replace(attrs=())


def _is_array_op(op: Any) -> bool:
    return type(op) is Op or op is INPUT or op is PARAM or op is CONST
