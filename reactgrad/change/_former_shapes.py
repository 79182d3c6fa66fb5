"""Shapes that leaves had lately with everything that followed from them, for loops that alternate.

A leaf with another shape changes the shapes and the memory of the nodes behind it, and the
gradients that are built for them. What there was before is put aside as a form, and put back when
the leaves get that shape again: a batch, the last one of an epoch, an evaluation. Putting back
writes a few columns of the tables; it runs no rule and builds no node, no plan and no step.

The gradient nodes of a form that was put aside live on, stale and invisible: whatever reads or
changes the structure of the graph first drops all forms. So does every feature that these tables do
not cover, see ``_is_plain``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from reactgrad.backend import Spec
from reactgrad.core._core import Core
from reactgrad.core._definition import Definition, is_defined, write_definition
from reactgrad.core._handles import tidy
from reactgrad.core._programs import Program
from reactgrad.nodes._op import CONST, INPUT, PARAM, Leaf, Op
from reactgrad.scheduler import Former
from reactgrad.values._lending import Found

if TYPE_CHECKING:
    from reactgrad.change._forms import Blocks, Form, Values

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
        "_blocks",
        "_causes",
        "_forms",
        "_leaves",
        "_next_serial",
        "_programs",
        "_values",
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
        # The leaves whose shapes have changed the definition of a node.
        self._causes: dict[int, frozenset[int]] = {}
        self._programs: dict[int, weakref.ref[Program]] = {}
        self._next_serial = 0
        # What is put aside: by node, or in blocks from the first time that a form comes back.
        self._values: Values = {}
        self._blocks: Blocks | None = None

    def __len__(self) -> int:
        return len(self._forms)

    def bury(self, graph: Core) -> None:
        """Drop all forms if one of their nodes is gone."""
        if not self._all_live(graph):
            self.forget()

    def _all_live(self, graph: Core) -> bool:
        """Return whether the nodes in which forms differ, and those that read them, are still there."""
        if self._blocks is not None:
            return self._blocks.all_live(graph)
        serial = graph._scheduler.topology.serial
        return all(serial[slot] == known for slot, known in self.serials.items())

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
        if len(self._leaves) > 1 and self._has_other_gradients(graph, form, sources):
            return False
        if self._blocks is None:
            from reactgrad.change._forms import Blocks  # here, as few programs come back to a shape

            self._blocks = Blocks(graph, [*self._forms.values()], now, self._values)
            self._values = {}
        backs: list[Callable[[], object]] = []  # undo what `write` has written

        def come() -> None:
            # Before anything moves, so that all that depends on the leaves is stale already.
            graph._scheduler.changed_together(tuple(sources))
            self._put_back(graph, form, programs, sources)
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

    def _has_other_gradients(self, graph: Core, form: Form, sources: Mapping[int, Any]) -> bool:
        """Return whether nodes are defined otherwise in a form because of leaves that keep their shapes.

        Their gradients were built once more since then: what was kept would run, though nothing has changed for it.
        """
        specs = graph._host.specs
        changed = {leaf for leaf, spec in sources.items() if spec is not specs[leaf]}
        return any(
            changed.isdisjoint(self._causes[slot])
            and not is_defined(graph, slot, one.op, one.attrs, one.link.operands, one.closed)
            for slot, one in form.definitions.items()
        )

    def _key(self, graph: Core, sources: Mapping[int, Any]) -> Key:
        """Return the key of the form that the leaves would have with these specs."""
        specs = graph._host.specs
        return frozenset([(leaf, sources.get(leaf, specs[leaf])) for leaf in self._leaves])

    def _still_so(self, graph: Core) -> bool:
        """Return whether all nodes and programs are those that the forms were noted for."""
        return (
            graph._scheduler.topology.next_serial == self._next_serial
            and self._all_live(graph)
            and all(program() is not None for program in self._programs.values())
            and _is_plain(graph, self.serials.keys())
        )

    def _put_back(
        self, graph: Core, form: Form, programs: Sequence[Any], sources: Collection[int] = ()
    ) -> None:
        """Make `form` the current one, since leaves change.

        A call after an interrupt finishes what the interrupted one began.
        """
        scheduler, now, blocks = graph._scheduler, self.now, self._blocks
        assert now is not None
        assert blocks is not None
        if form is not now:
            if not now.anchors:
                now.anchors, now.built = _kept(graph, programs)
            now.tables = {program.number: program.tables() for program in programs}
            blocks.keep_steps(graph, now)
        blocks.exchange(graph, form)
        changed = {
            slot: one
            for slot, one in form.definitions.items()
            if not is_defined(graph, slot, one.op, one.attrs, one.link.operands, one.closed)
        }
        others = _redefine(graph, changed) if changed else []
        if changed:
            beside, reached = list(changed), False
            if not others:
                beside, reached = blocks.beside(graph, form, sources, changed)
            scheduler.redefined(beside, reached=reached)
        # Only once all nodes have their values and operands: steps are bound to where these lie.
        blocks.bind(graph, form)
        for slot in others:  # their values lie elsewhere than in the other form
            if slot in graph._host._view_of:
                graph._host.discard(slot)
            graph._host.moved(slot)
        for program in programs:
            if program.number in form.tables:  # an interrupt may have come before they were taken
                program.take_tables(form.tables[program.number])
        if form is not now:
            scheduler.salted(now.salt ^ form.salt)
            self.now = form
            key = self._key(graph, {})
            # Moved to the end: the form used longest ago is dropped first.
            self._forms[key] = self._forms.pop(key)

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
        from reactgrad.change._forms import Form

        # No serial equals it: an interrupt before the last line voids all forms.
        self._next_serial = -1
        former = self.now or Form(0)
        forms = [former, *[form for form in self._forms.values() if form is not former]]
        for form in forms:  # in each former form these programs are as they were before
            form.tables = departure.tables | ({} if form is former else form.tables)
            form.anchors = [*form.anchors, *departure.anchors]
            form.built |= departure.built
            form.steps = None
        if self._blocks is not None:
            self._values, self._blocks = self._blocks.values(), None
        for slot, (spec, found) in specs.items():
            self._values[slot, spec] = found
            for form in forms:
                form.specs.setdefault(slot, spec)
        for slot, definition in definitions.items():
            self._causes[slot] = self._causes.get(slot, frozenset()).union(leaves)
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

    def arrays(self) -> list[Any]:
        """Return the values that are put aside."""
        if self._blocks is not None:
            return self._blocks.arrays()
        return [found.data for found in self._values.values()]

    def _bytes(self, graph: Core) -> int:
        """Return the memory that is put aside, in bytes."""
        data = graph._host.data
        built = frozenset[int]().union(*[form.built for form in self._forms.values()])
        arrays = self.arrays() + [data[slot] for slot in built]
        return sum([getattr(array, "nbytes", 0) for array in arrays])

    def _key_of(self, form: Form) -> Key:
        """Return the key under which a form is kept."""
        return frozenset([(leaf, form.specs[leaf]) for leaf in self._leaves])

    def _drop(self, key: Key) -> None:
        """Drop one form, with the memory that only it needs."""
        del self._forms[key]
        needed = {pair for form in self._forms.values() for pair in form.specs.items()}
        self._values = {pair: one for pair, one in self._values.items() if pair in needed}


def _redefine(graph: Core, changed: Mapping[int, Definition]) -> list[int]:
    """Give nodes the definitions that they had in a form. Return those that have another op or other operands now."""
    host, scheduler = graph._host, graph._scheduler
    links = {slot: one.link for slot, one in changed.items() if one.link != scheduler.link(slot)}
    others = [
        slot for slot, one in changed.items() if slot in links or host.ops[slot] is not one.op
    ]
    if links:
        former = Former()
        try:
            scheduler.relink(links, former)
        except BaseException:
            scheduler.restore(former)
            raise
    for slot, definition in changed.items():
        write_definition(graph, slot, definition)
    return others


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
