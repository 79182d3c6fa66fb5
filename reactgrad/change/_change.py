"""A change of what nodes are computed from, or of their shapes: all of it is made, or nothing.

Each step notes how to take it back exactly; nobody but gradient rules can look in between. Steps:
the edges, where a cycle is found; the shapes that follow; the gradients that were built for what
changed, whose own nodes change in the same way. See ``_undo`` for taking back what others have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from reactgrad._errors import OutdatedRuleError, ReactgradError, SeedError
from reactgrad.change._shape_check import Specs, check
from reactgrad.core._rows import Pin
from reactgrad.functions._lift import Lifted
from reactgrad.ops import Attrs, Op
from reactgrad.scheduler import Former, Link
from reactgrad.values._store import MISSING

if TYPE_CHECKING:
    from reactgrad.autodiff import Program
    from reactgrad.change._former_shapes import Departure
    from reactgrad.graph._graph import Graph

NOTHING_CLOSED: frozenset[int] = frozenset()


class Refused(Lifted):
    """What stands for a gradient that cannot be built: reading it raises its ``refusal``."""

    __slots__ = ("refusal",)

    def __init__(self, refusal: Exception) -> None:
        def gradient() -> None:
            raise refusal.with_traceback(None)

        super().__init__(gradient, None, None, None, ())
        self.refusal = refusal


class Definition(NamedTuple):
    """What a node computes, and from what.

    ``closed``: positions of detached operands, ``None``: all. ``branches``: of a choice, by what it
    chooses and between what. ``pin``: what it was computed from, if its value is given instead.
    """

    link: Link
    op: Any
    attrs: Attrs
    closed: frozenset[int] | None
    branches: tuple[int, ...] | None
    pin: Pin | None

    @classmethod
    def of(cls, graph: Graph, slot: int) -> Definition:
        """The present one."""
        host, scheduler = graph._host, graph._scheduler
        return cls(
            scheduler.link(slot),
            host.ops[slot],
            host.attrs[slot],
            host.closed.get(slot, NOTHING_CLOSED),
            host.branches.get(slot),
            host.pins.get(slot),
        )


class Change:
    """One change under way; a ``with`` block, which takes it back if it raises.

    Parameters
    ----------
    lenient
        Nothing is refused: nodes and gradients that do not fit raise when they are read, and what
        functions read while they ran gives way to the edges.
    kind
        What it is to who listens.
    departure
        Where leaves get other shapes, and nothing else changes: takes in what was there before.
    """

    def __init__(
        self,
        graph: Graph,
        kind: str | None = "edit",
        *,
        lenient: bool = False,
        departure: Departure | None = None,
    ) -> None:
        self._graph = graph
        self._kind = kind
        self._lenient = lenient
        self._departure = departure
        self._back: list[Callable[[], object]] = []
        self._done: list[Any] = []  # what the scheduler shall commit
        self._held: list[Any] = []  # former parents, which may have to come back
        # Nodes that changed; whether their shape did; whether they are gradients that raise from now on.
        self._log: list[tuple[int, bool, bool]] = []
        self._breaking = False  # whether what is defined is that
        self._redefined: dict[int, Definition] = {}  # nodes of gradients that are still to change
        # Nodes that do not fit, as long as gradients are still to follow: see `check`.
        self._doubtful: dict[int, ReactgradError] = {}

    def __enter__(self) -> Change:
        if self._departure is None and self._graph._shapes.now is not None:
            self._graph._shapes.clear(self._graph)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is not None:
            self._take_back(0)
            if not isinstance(error, Exception):
                self._recover()
        else:
            for former in self._done:
                self._graph._scheduler.commit(former, self._kind)
        self._back.clear()  # these refer back here, and what is held shall go now
        self._held.clear()

    def _recover(self) -> None:
        """It was interrupted, in whatever line: nothing is being built, and versions are the truth."""
        self._graph._programs.rest()
        self._graph._scheduler.forget()

    def back_by(self, back: Callable[[], object]) -> None:
        """Let a call take back what is done next."""
        self._back.append(back)

    def define(
        self, definitions: Mapping[int, Definition | Link], specs: Specs | None = None
    ) -> None:
        """Let nodes be computed otherwise (by a link alone: only from others), and leaves get other shapes.

        Raises
        ------
        CycleError, ShapeError, DTypeError
            If they cannot.
        """
        scheduler, former = self._graph._scheduler, Former()
        if definitions:
            if self._departure is not None:
                for slot in definitions.keys() - self._departure.definitions.keys():
                    self._departure.definitions[slot] = Definition.of(self._graph, slot)
            self._back.append(partial(scheduler.restore, former))
            links = {
                slot: new if isinstance(new, Link) else new.link
                for slot, new in definitions.items()
            }
            scheduler.relink(links, former, reads_yield=self._lenient)
            self._done.append(former)
            for slot, new in definitions.items():
                self._assign(slot, new)
        respecced = check(
            self._graph,
            specs or {},
            definitions,
            lenient=self._lenient,
            doubtful=self._doubtful,
        )
        if definitions:  # not before all fits, so that what is refused costs no plan
            scheduler.outdate(former)
        for slot, found in respecced.items():
            self._respec(slot, found)
        changed = (*definitions, *respecced)
        self._log += [(slot, slot in respecced, self._breaking) for slot in changed]

    def _assign(self, slot: int, new: Definition | Link) -> None:
        host = self._graph._host
        if isinstance(new, Link):
            self._back.append(partial(host.moved, slot))
        else:
            self._back.append(partial(self._write, slot, Definition.of(self._graph, slot)))
            write_definition(self._graph, slot, new)
        host.moved(slot)
        if slot in host._view_of:  # of a parent that it may not have any more
            self._back.append(partial(host.give_back, slot, host.found(slot)))
            host.discard(slot)

    def _write(self, slot: int, definition: Definition) -> None:
        write_definition(self._graph, slot, definition)
        self._graph._host.moved(slot)

    def _respec(self, slot: int, found: Any) -> None:
        host, scheduler = self._graph._host, self._graph._scheduler
        spec, grad = host.specs[slot], host.grads.get(slot)
        leaf, dropped = scheduler.leaf[slot], slot in scheduler.dropped
        before = host.found(slot)  # of a leaf who set it replaces the value
        if self._departure is not None:
            self._departure.specs.setdefault(slot, (spec, before))

        def back() -> None:
            host.specs[slot] = spec
            host.give_back(slot, before)
            if grad is not None:
                host.grads[slot] = grad
            if not dropped:
                scheduler.staleness.restore(slot)
            if leaf and before.data is MISSING:
                scheduler.unset(slot)
            host.moved(slot)

        self._back.append(back)
        host.grads.pop(slot, None)
        if not leaf:
            host.discard(slot)
            scheduler.drop([slot])
            scheduler.plans.clear()  # they may take a view where there is none any more
        host.specs[slot] = found
        host.moved(slot)

    def put(self, slot: int, value: Any) -> None:
        """Give a node without parents this value, or, if ``MISSING``, take a node's value away."""
        host = self._graph._host
        before = host.found(slot)
        self._back.append(lambda: (host.give_back(slot, before), host.moved(slot)))
        host.discard(slot)
        host.data[slot] = value
        host.footprint.add(value)
        host.moved(slot)
        if value is not MISSING:
            self._graph._scheduler.given(slot)

    def enter(self, table: dict[int, Any], slot: int, entry: Any) -> None:
        """Write down something about a node that gradients follow, or, if it is empty, nothing."""
        former = table.get(slot)
        self._back.append(lambda: _put(table, slot, former))
        _put(table, slot, entry)
        self._log.append((slot, False, False))

    def redefine(self, slot: int, op: Op, operands: tuple[int, ...], attrs: Attrs) -> None:
        """Let a node of a gradient compute this, together with others where nobody looks before."""
        graph = self._graph
        self._redefined[slot] = Definition(Link(operands), op, attrs, NOTHING_CLOSED, None, None)
        if (
            not graph._programs.changing  # else nothing runs in between
            or graph._reuse is not None
            or graph._host.transient
            or graph._host.specs[slot] is None  # which may be a tuple, that rules take apart
        ):
            self._make_redefined()

    def _make_redefined(self) -> None:
        if self._redefined:
            redefined, self._redefined = self._redefined, {}
            self.define(redefined)

    # --- gradients -----------------------------------------------------------------------------

    def follow(self) -> None:
        """Let the gradients follow that were built for what has changed.

        Raises
        ------
        ReactgradError
            If one of them does not exist any more, or what is computed from them does not fit.
        """
        programs = self._graph._programs
        seen: dict[Program, int] = {}
        going = bool(programs)
        if going:
            self._hold()
        while going:  # a program may change what another one was built for
            going = False
            for program in programs.in_order():
                if program.number in programs.under_way:  # what it builds just now
                    continue
                news = self._log[seen.get(program, 0) :]
                seen[program] = len(self._log)
                # To who raises already it is no news that another one begins to.
                known = program.refusal is not None
                heard = [slot for slot, _, raises in news if not (known and raises)]
                if program.has_read_any(heard):
                    going = True
                    self.update(
                        program,
                        {slot for slot, _, _ in news},
                        {slot for slot, respecced, _ in news if respecced},
                    )
        for error in self._doubtful.values():
            raise error

    def _hold(self) -> None:
        """Keep former parents, which may have to come back, while gradients are built."""
        for former in self._done:
            for parents in former.parents.values():
                self._held += map(self._graph._handle, parents)

    def update(self, program: Program, changed: Iterable[int], respecced: Iterable[int]) -> None:
        """Let one program follow."""
        back, log, done = len(self._back), len(self._log), len(self._done)
        changes: list[Any] = []
        if self._departure is not None:
            self._departure.take(program)
        self._back.append(lambda: program.take_back(changes))
        try:
            program.update(set(changed), set(respecced), self.redefine, changes)
            self._make_redefined()
        except ReactgradError as error:
            # A rule that waits for a function to run refuses no edit: it is asked when it has.
            if not self._lenient and not isinstance(error, OutdatedRuleError):
                raise
            self._redefined.clear()
            self._take_back(back)
            del self._log[log:], self._done[done:]
            # Its frames would keep programs alive that were only to be thrown away.
            refusal = self._raising(error.with_traceback(None))
            self._breaking = True
            try:
                program.break_down(refusal, self.redefine)
                self._make_redefined()
            finally:
                self._breaking = False

    def _raising(self, error: Exception) -> Any:
        """A node that raises `error` when it is read."""
        return self._graph._call_lifted(Refused(error), [], None)

    def _take_back(self, start: int) -> None:
        while len(self._back) > start:
            self._back.pop()()


def _put(table: dict[int, Any], slot: int, entry: Any) -> None:
    if entry:
        table[slot] = entry
    else:
        table.pop(slot, None)


def write_definition(graph: Graph, slot: int, definition: Definition) -> None:
    """Enter a definition into the tables of the host."""
    host = graph._host
    host.ops[slot], host.attrs[slot] = definition.op, definition.attrs
    if definition.closed is None or definition.closed:
        host.closed[slot] = definition.closed
    else:
        host.closed.pop(slot, None)
    if definition.branches != host.branches.get(slot):
        for operand in host.branches.pop(slot, ()):
            host.branch_users[operand].discard(slot)
        if definition.branches is not None:
            graph._link_branches(slot, definition.branches)
    if definition.pin is None:
        host.pins.pop(slot, None)
    else:
        host.pins[slot] = definition.pin


def respec(graph: Graph, sources: Specs, write: Callable[[Collection[int]], None]) -> None:
    """Give leaves other shapes and dtypes, and all that depends on them, and `write` them; or nothing."""
    shapes = graph._shapes
    if shapes.come_back(graph, sources, write):
        return
    leaves = [graph._handle(slot) for slot in sources]  # one that is named may have no other
    tried: set[int] = set()
    while True:
        graph._tidy()  # what nobody holds any more refuses nothing
        graph._scheduler.attend()  # so that marks tell which values rules may look at
        try:
            departure = shapes.leave(graph)
            with Change(graph, departure=departure) as change:
                change.define({}, sources)
                with graph._programs.while_reshaping():
                    change.follow()
                write(())
            if departure is not None:
                shapes.arrive(graph, departure)
            break
        except ReactgradError as error:
            departure = None  # which knows programs
            if not make_way(graph, error, sources, tried):
                raise
    del leaves


def make_way(graph: Graph, refused: ReactgradError, slots: Iterable[int], tried: set[int]) -> bool:
    """Let go of what is there, but nobody may hold, and has refused a change of these nodes; whether there
    was something.

    Parameters
    ----------
    tried
        Outputs that were asked before to let go of their gradients.
    """
    if isinstance(refused, SeedError) and _let_go(graph, refused.output._slot, tried):
        return True
    # The gradients of a former backward refuse in words of their rules, and are kept for the next one only.
    went = [
        _let_go(graph, slot, tried)
        for slot, programs in graph._live_programs()
        if "backward" in programs
    ]
    if any(went):
        return True
    if graph._subgraphs is not None:
        # Perhaps only the frames of the error still hold the nodes that have refused.
        from traceback import clear_frames

        clear_frames(refused.__traceback__)
    return forget_unseen(graph, slots)


def forget_unseen(graph: Graph, slots: Iterable[int]) -> bool:
    """Forget what is computed from these nodes, and themselves, where only ``g.reuse()`` or ``rg.subgraph`` keep it
    for later; whether there was something."""
    keepers = [keeper for keeper in (graph._reuse, graph._subgraphs) if keeper is not None]
    return any(keeper.make_way(graph, slots) for keeper in keepers)


def _let_go(graph: Graph, slot: int, tried: set[int]) -> bool:
    """Let an output go of the gradients that it keeps; whether that was new."""
    if slot in tried:
        return False
    keeping = (graph._handle(slot)._programs_dict(), graph._host.twin_programs.get(slot, {}))
    gone = [
        (key, programs.pop(key))
        for programs in keeping
        for key, entry in [*programs.items()]
        if isinstance(entry, tuple)
    ]
    for key, entry in gone:
        if key != "backward":  # kept for the next backward only
            entry[1].stay()  # as long as somebody uses what it has given out
    tried.add(slot)
    return bool(gone)
