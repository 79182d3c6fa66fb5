"""Shapes that leaves had lately with everything that followed from them, for loops that alternate.

A leaf with another shape changes the shapes and the memory of the nodes behind it, and the
gradients that are built for them. What there was before is put aside as a form, and put back when
the leaves get that shape again: a batch, the last one of an epoch, an evaluation. Putting back
costs a little for each of these nodes, but runs no rule and builds no node and no plan.

The gradient nodes of a form that was put aside live on, stale and invisible: whatever reads or
changes the structure of the graph first drops all forms. So does every feature that these tables do
not cover, see ``_is_plain``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from random import Random
from typing import Any

from reactgrad.backend import Spec
from reactgrad.core._core import Core
from reactgrad.core._definition import Definition, is_defined, write_definition
from reactgrad.core._handles import tidy
from reactgrad.core._programs import Program
from reactgrad.nodes._op import CONST, INPUT, PARAM, Leaf, Op
from reactgrad.scheduler import STALE, Former
from reactgrad.values._columns import MISSING
from reactgrad.values._lending import Found

# At most `MOST` forms are kept, the current one included; down to `FEWEST` where their nodes are
# many. None is kept where they take more memory than `MOST_BYTES`: computing such large arrays
# costs far more than following their shapes.
MOST, FEWEST = 16, 4
MOST_NODES = 1 << 16
MOST_BYTES = 1 << 26

_random = Random(0)

Key = frozenset[tuple[int, Any]]  # leaves with their specs

# Writes new values of leaves. Given are those of them that count as changed already, and a function that
# takes the calls that undo it.
Write = Callable[[Collection[int], Callable[[Callable[[], object]], object]], None]

_NOTHING = Found(MISSING, None, None, None, False), None


class Form:
    """The state of a graph while its leaves have certain shapes.

    Attributes
    ----------
    salt
        Distinguishes the plans of this form from those of others.
    specs, definitions
        Those of all nodes that differ between forms.
    tables
        The tables of each program, by its number.
    anchors
        Keep gradient nodes alive while the form is put aside.
    built
        The gradient nodes.
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
    """The forms of one graph, the one used last at the end.

    Attributes
    ----------
    now
        The current form; ``None`` while there is no other one to come back to.
    serials
        The serials of all nodes in which forms differ, by slot.
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
        """Drop all forms and what was kept for them."""
        self._forms: dict[Key, Form] = {}
        self.now: Form | None = None
        self._leaves: list[int] = []  # the leaves in whose shapes the forms differ
        self.serials: dict[int, int] = {}
        self._programs: dict[int, weakref.ref[Program]] = {}
        self._next_serial = 0
        # Per node and spec, while the node has another spec: where the value lies, and the bound
        # step.
        self._found: dict[int, dict[Any, tuple[Found, Any]]] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def bury(self, graph: Core) -> None:
        """Drop all forms if one of their nodes is gone."""
        serial = graph._scheduler.topology.serial
        if any(serial[slot] != known for slot, known in self.serials.items()):
            self.forget()

    def clear(self, graph: Core) -> None:
        """Drop all forms and release the nodes that only they kept."""
        if self.now is not None:
            self.forget()
            tidy(graph)

    # --- coming back -------------------------------------------------------------------------

    def come_back(self, graph: Core, sources: Mapping[int, Any], write: Write) -> bool:
        """Put back the form in which the leaves had these specs, and `write` their values.

        Return whether there was one.
        """
        now = self.now
        if now is None:
            return False
        if not self._still_so(graph):
            self.clear(graph)
            return False
        # Strong references, so that none dies meanwhile.
        programs = [ref() for ref in self._programs.values()]
        form = self._forms.get(self._key(graph, sources))
        if form is None or not sources.keys() <= set(self._leaves):
            return False
        backs: list[Callable[[], object]] = []  # undo what `write` has written

        def come() -> None:
            # Before anything moves, so that all that depends on the leaves is stale already.
            graph._scheduler.changed_together(tuple(sources))
            self._put_back(graph, form, programs)
            write(sources, backs.append)

        def go() -> None:
            if self.now is None:  # it was cut short after its last step
                return
            self._put_back(graph, now, programs)
            while backs:
                backs[-1]()
                del backs[-1]
            graph._scheduler.forget()  # marks may be half moved: versions are the truth
            self.clear(graph)

        graph._scheduler.wholly(come, go)
        return True

    def _key(self, graph: Core, sources: Mapping[int, Any]) -> Key:
        """Return the key of the form that the leaves would have with these specs."""
        specs = graph._host.specs
        return frozenset([(leaf, sources.get(leaf, specs[leaf])) for leaf in self._leaves])

    def _still_so(self, graph: Core) -> bool:
        """Return whether all nodes and programs are those that the forms were noted for."""
        serial = graph._scheduler.topology.serial
        return (
            graph._scheduler.topology.next_serial == self._next_serial
            and all(serial[slot] == known for slot, known in self.serials.items())
            and all(program() is not None for program in self._programs.values())
            and _is_plain(graph, self.serials.keys())
        )

    def _put_back(self, graph: Core, form: Form, programs: Sequence[Any]) -> None:
        """Make `form` the current one.

        A call after an interrupt finishes what the interrupted one began.
        """
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
            slot: one
            for slot, one in form.definitions.items()
            if not is_defined(graph, slot, one.op, one.attrs, one.link.operands, one.closed)
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
        # Only once all nodes have their values and operands: steps are bound to where these lie.
        for slot, spec in moving:
            _, bound = self._found[slot].pop(spec, _NOTHING)
            if bound is not None:
                host.bind_again(slot, bound)
        for program in programs:
            if program.number in form.tables:  # an interrupt may have come before they were taken
                program.take_tables(form.tables[program.number])
        if form is not now:
            scheduler.salted(now.salt ^ form.salt)
            self.now = form
            key = self._key(graph, {})
            # Moved to the end: the form used longest ago is dropped first.
            self._forms[key] = self._forms.pop(key)

    def _unbind_beside(self, graph: Core, form: Form, now: Form, moved: list[int]) -> None:
        """Unbind the steps of nodes that exist in both forms and read values that were moved.

        Gradient nodes of only one form are still bound to what they read in that form.
        """
        host, children = graph._host, graph._scheduler.topology.children
        apart = frozenset().union(*[one.built for one in self._forms.values()])
        apart -= form.built & now.built
        beside = {child for slot in moved for child in children[slot]}
        for slot in beside.difference(moved, apart):
            host.moved(slot)

    # --- putting aside -----------------------------------------------------------------------

    def leave(self, graph: Core) -> Departure | None:
        """Return a record of the present state, to be filled in while leaves get new shapes.

        Clear all forms first if something else has changed the graph since they were recorded. Return
        ``None`` if the present state could not be put back later.
        """
        if self.now is not None and not self._still_so(graph):
            self.clear(graph)
        return Departure(graph) if _is_plain(graph, set()) else None

    def arrive(self, graph: Core, departure: Departure) -> None:
        """Put aside what `departure` has recorded, now that the leaves have their new shapes."""
        host, serial = graph._host, graph._scheduler.topology.serial
        # Nodes that were built on the way belong to the new form alone.
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
        # No serial equals it: an interrupt before the last line voids all forms.
        self._next_serial = -1
        former = self.now or Form(0)
        forms = [former, *[form for form in self._forms.values() if form is not former]]
        for form in forms:  # in each former form these programs are as they were before
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
        # When one of these programs dies, all forms are dropped.
        lost = partial(_forget, weakref.ref(self))
        self._programs |= {one.number: weakref.ref(one, lost) for one in departure.programs}
        self._next_serial = graph._scheduler.topology.next_serial
        if self._bytes(graph) > MOST_BYTES:
            self.clear(graph)

    def _is_crowded(self, graph: Core) -> bool:
        """Return whether these forms have too many nodes or take too much memory."""
        forms = len(self._forms)
        many = forms > MOST or forms * len(self.serials) > MOST_NODES
        return many or self._bytes(graph) > MOST_BYTES

    def _bytes(self, graph: Core) -> int:
        """Return the memory that is put aside, in bytes."""
        data = graph._host.data
        arrays = [found.data for kept in self._found.values() for found, _ in kept.values()]
        built = frozenset[int]().union(*[form.built for form in self._forms.values()])
        arrays += [data[slot] for slot in built]
        return sum([getattr(array, "nbytes", 0) for array in arrays])

    def _key_of(self, form: Form) -> Key:
        """Return the key under which a form is kept."""
        return frozenset([(leaf, form.specs[leaf]) for leaf in self._leaves])

    def _drop(self, key: Key) -> None:
        """Drop one form, with the memory that only it needs."""
        del self._forms[key]
        for slot, kept in self._found.items():
            for spec in kept.keys() - {form.specs[slot] for form in self._forms.values()}:
                del kept[spec]


class Departure:
    """A record of what there was before leaves get other shapes, as far as it changes.

    Attributes
    ----------
    specs
        The former specs of nodes, and where their values lay.
    definitions
        The former definitions of gradient nodes.
    programs, tables
        The programs that follow the change, and their former tables by number.
    anchors, built
        Keep their former nodes alive; the gradient nodes among these.
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
        self.is_plain = True  # False once one of the programs is not plain

    def take(self, program: Program) -> None:
        """Record the state of a program that is about to follow the change."""
        if program.number in self.tables:
            return
        self.is_plain = self.is_plain and program.is_plain
        self.programs.append(program)
        anchors, built = _kept(self._graph, [program])
        self.anchors += anchors
        self.built |= built
        self.tables[program.number] = program.part_from()


def _forget(shapes: Callable[[], Shapes | None], program: object) -> None:
    """Drop all forms, since a program died. Their nodes are released at the next tidying."""
    known = shapes()
    if known is not None:
        known.forget()


def _kept(graph: Core, programs: Iterable[Program]) -> tuple[list[Any], frozenset[int]]:
    """Return anchors for the nodes that these programs use and are computed from, and the gradient
    nodes among them.
    """
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
    # No anchor for gradients that were given out: these die with their last handle, and the program
    # with them.
    return [host.anchor(slot) for slot in (built | above) - shown], frozenset(built)


def _settle(graph: Core, slot: int, spec: Any, found: Found) -> None:
    """Give a node a spec, and the value that it had when it last had that spec."""
    host, staleness = graph._host, graph._scheduler.staleness
    # First: after an interrupt the former spec must not stand without a value.
    host.specs[slot] = spec
    host.give_back(slot, found)
    host.drop_grad(slot)
    if not graph._scheduler.leaf[slot]:
        if found.data is MISSING:
            staleness.drop(slot)
        else:
            staleness.restore(slot)


def _is_plain(graph: Core, slots: Set[int]) -> bool:
    """Return whether nothing was added to these nodes and nothing is under way that a form does not
    record.
    """
    host = graph._host
    if (
        graph._noted
        or graph._computing
        or graph._host.limit is not None
        or host.transient
        or graph._programs.waiting
    ):
        return False
    return host.added(slots).keys() <= {"kept"}


def _is_array(spec: Spec | None) -> bool:
    return spec is not None and spec.weak is None


def _is_array_op(op: Any) -> bool:
    return type(op) is Op or op is INPUT or op is PARAM or op is CONST
