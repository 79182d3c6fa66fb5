"""A change of what nodes are computed from, or of their shapes, made as a whole or not at all.

Each step notes how to undo it exactly; only gradient rules can see the states in between. The steps
are: the edges, where a cycle is found; the shapes that follow; the gradients that were built for
what changed, whose own nodes change in the same way. ``_rollback`` undoes changes that others have
seen already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from reactgrad._errors import OutdatedRuleError, ReactgradError
from reactgrad.backend import Spec
from reactgrad.build._functions import call_lifted
from reactgrad.change._former_shapes import Departure
from reactgrad.change._shape_check import Specs, check
from reactgrad.core._core import Core
from reactgrad.core._definition import NOTHING_CLOSED, Definition, is_defined, write_definition
from reactgrad.core._handles import handle
from reactgrad.core._programs import Program
from reactgrad.nodes._lifted import Refused
from reactgrad.nodes._op import Attrs, Op
from reactgrad.scheduler import Former, Link
from reactgrad.values._columns import MISSING
from reactgrad.values._facts import put


def note_manner(graph: Core, slots: Iterable[int], manner: str) -> None:
    """Note for `Graph.why` how leaves have just changed, where it was not by a set."""
    scheduler, manners = graph._scheduler, graph._host.manners
    scheduler.versions.settle()
    for slot in slots:
        manners[slot] = (scheduler.versions.version[slot], manner)


class Change:
    """One change under way: a ``with`` block that undoes its steps if it raises.

    Parameters
    ----------
    lenient
        Refuse nothing: nodes and gradients that do not fit raise when they are read, and an edge
        takes precedence over what a function read while it ran.
    kind
        The name of the change for listeners of the scheduler; ``None`` where they are not to hear of it.
    departure
        Given where leaves get other shapes and nothing else changes: records what there was before.
    """

    def __init__(
        self,
        graph: Core,
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
        self._done: list[Any] = []  # what the scheduler commits at the end
        self._at = 0  # its place in `Scheduler.unfinished`
        self._held: list[Any] = []  # former parents, kept alive for an undo
        # Nodes that changed; whether their shape did; whether they are gradients that raise from
        # now on.
        self._log: list[tuple[int, bool, bool]] = []
        self._breaking = False  # True while such gradients are defined
        self._redefined: dict[int, Definition] = {}  # gradient nodes not yet changed
        # Nodes that do not fit yet, but may once gradients have followed; see `check`.
        self._doubtful: dict[int, ReactgradError] = {}

    def __enter__(self) -> Change:
        generations = self._graph._generations
        if generations.by_root or generations.entries:
            generations.flush(self._graph)
        if self._departure is None and self._graph._shapes.now is not None:
            self._graph._shapes.clear(self._graph)
        unfinished = self._graph._scheduler.unfinished
        self._at = len(unfinished)
        unfinished.append(self._undo)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        scheduler = self._graph._scheduler
        if error is not None:
            scheduler.undo(self._at)
            return
        del scheduler.unfinished[self._at :]  # from here on it is made
        for former in self._done:
            scheduler.commit(former, self._kind)
            # For `Graph.why`. These are no leaves, so no version is needed to tell whether it still holds.
            if self._kind is not None:
                manner = "rollback" if scheduler.notes.giving_back else self._kind
                self._graph._host.manners.update(dict.fromkeys(former.rows, (0, manner)))
        self._back.clear()  # the calls refer to this object, and `_held` is not needed any longer
        self._held.clear()

    def _undo(self) -> None:
        """Undo all steps; if it is cut short, the next call goes on."""
        self._take_back(0)
        self._held.clear()

    def back_by(self, back: Callable[[], object]) -> None:
        """Register a call that undoes the step that comes next."""
        self._back.append(back)

    def define(
        self, definitions: Mapping[int, Definition | Link], specs: Specs | None = None
    ) -> None:
        """Change the definitions of nodes and the specs of leaves.

        A bare ``Link`` changes only a node's operands.

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
        if definitions:  # only once everything fits, so that a refused change costs no plan
            scheduler.outdate(former)
        for slot, found in respecced.items():
            self._respec(slot, found)
        changed = (*definitions, *respecced)
        self._log += [(slot, slot in respecced, self._breaking) for slot in changed]

    def _assign(self, slot: int, new: Definition | Link) -> None:
        """Give one node its new definition, or only its new operands."""
        host = self._graph._host
        if isinstance(new, Link):
            self._back.append(partial(host.moved, slot))
        else:
            self._back.append(partial(self._write, slot, Definition.of(self._graph, slot)))
            write_definition(self._graph, slot, new)
        host.moved(slot)
        if slot in host._view_of:  # the value is a view of a parent that may not be one any longer
            self._back.append(partial(host.give_back, slot, host.found(slot)))
            host.discard(slot)

    def _write(self, slot: int, definition: Definition) -> None:
        write_definition(self._graph, slot, definition)
        self._graph._host.moved(slot)

    def _respec(self, slot: int, found: Any) -> None:
        """Give one node another spec. Its value and its ``.grad`` no longer fit and are dropped."""
        host, scheduler = self._graph._host, self._graph._scheduler
        spec, grad = host.specs[slot], host.gradients.of(slot)
        leaf, dropped = scheduler.leaf[slot], slot in scheduler.dropped
        before = host.found(slot)  # the value of a leaf is replaced by the set that came here
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
        host.drop_grad(slot)
        if not leaf:
            host.discard(slot)
            scheduler.drop([slot])
            scheduler.plans.clear()  # plans may expect a view where there is none now
        host.specs[slot] = found
        host.moved(slot)

    def put(self, slot: int, value: Any) -> None:
        """Store this value as that of a node without parents.

        ``MISSING`` takes a node's value away.
        """
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
        """Write an entry that gradients depend on into a table of the host.

        An empty entry is removed.
        """
        former = table.get(slot)
        self._back.append(lambda: put(table, slot, former))
        put(table, slot, entry)
        self._log.append((slot, False, False))

    def redefine(
        self,
        slot: int,
        op: Op,
        operands: tuple[int, ...],
        attrs: Attrs,
        found: Spec | None = None,
    ) -> None:
        """Change what a gradient node computes; ``found`` is its spec from now on, if it is known.

        Such changes are collected and made together, unless something may look at the node in
        between.
        """
        graph = self._graph
        if found is not None and found is not graph._host.specs[slot]:
            self.define({}, {slot: found})
            if is_defined(graph, slot, op, attrs, operands, NOTHING_CLOSED):
                return
        self._redefined[slot] = Definition(Link(operands), op, attrs, NOTHING_CLOSED, None, None)
        if (
            not graph._programs.changing  # while programs change, nothing runs in between
            or graph._reuse is not None
            or graph._host.transient
            or graph._host.specs[slot] is None  # it may be a tuple, which rules take apart
        ):
            self._make_redefined()

    def _make_redefined(self) -> None:
        if self._redefined:
            redefined, self._redefined = self._redefined, {}
            self.define(redefined)

    # --- gradients -----------------------------------------------------------------------------

    def follow(self) -> None:
        """Update the gradients that were built for what has changed.

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
                if program.number in programs.under_way:  # its own new nodes are no news to it
                    continue
                news = self._log[seen.get(program, 0) :]
                seen[program] = len(self._log)
                # For a program that raises already it is no news that another one begins to raise.
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
            try:
                raise error
            finally:
                del error  # its traceback holds this frame

    def _hold(self) -> None:
        """Keep former parents alive while gradients are built; an undo needs them."""
        for former in self._done:
            for parents in former.parents.values():
                self._held += map(partial(handle, self._graph), parents)

    def update(self, program: Program, changed: Iterable[int], respecced: Iterable[int]) -> None:
        """Update one program; where that fails in a lenient change, let its gradients raise when
        they are read.
        """
        back, log, done = len(self._back), len(self._log), len(self._done)
        changes: list[Any] = []
        if self._departure is not None:
            self._departure.take(program)
        self._back.append(lambda: program.take_back(changes))
        try:
            program.update(set(changed), set(respecced), self.redefine, changes)
            self._make_redefined()
        except ReactgradError as error:
            # A rule that waits for a function to run does not refuse an edit: it is asked again
            # when the function has run.
            if not self._lenient and not isinstance(error, OutdatedRuleError):
                raise
            self._redefined.clear()
            self._take_back(back)
            del self._log[log:], self._done[done:]
            # Without its traceback: the frames would keep programs alive that are to be released.
            refusal = self._raising(error.with_traceback(None))
            self._breaking = True
            try:
                program.break_down(refusal, self.redefine)
                self._make_redefined()
            finally:
                self._breaking = False

    def _raising(self, error: Exception) -> Any:
        """Return a new node that raises `error` when it is read."""
        return call_lifted(self._graph, Refused(error), [], None)

    def _take_back(self, start: int) -> None:
        back = self._back
        while len(back) > start:
            back[-1]()
            del back[-1]  # last: each may be called again if it is cut short
