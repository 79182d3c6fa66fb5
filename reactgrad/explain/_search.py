"""The search behind ``Graph.why``: from a node back to the changes that explain its state."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import replace

from reactgrad.core._arguments import own_slot
from reactgrad.core._core import Core
from reactgrad.explain._event import Event
from reactgrad.explain._event_log import EventLog
from reactgrad.explain._no_gradient import no_gradient
from reactgrad.explain._why import (
    ENDS,
    MOST_CAUSES,
    MOST_CHANGES,
    Cause,
    CauseKind,
    Change,
    Verdict,
    Why,
)
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import KEY, MODE, Leaf
from reactgrad.scheduler import FLEETING, error_text


def explain(graph: Core, var: Handle) -> Why:
    """Return the reason for a node's state; runs nothing. See ``Graph.why``."""
    slot = own_slot(graph, var, "why")
    with graph._lock:
        host, scheduler = graph._host, graph._scheduler
        stale = scheduler.truly_stale([slot])
        version, record = scheduler.versions.version, scheduler.versions.record
        search = _Search(graph, stale)
        last_run = search.outcome(slot)
        failed = search.error(slot)
        verdict: Verdict = "clean"
        known: tuple[tuple[str, int], ...] = ()
        operands = scheduler.topology.parents[slot]
        if isinstance(host.ops[slot], Leaf):
            if stale:
                verdict = "unset"
            else:
                search.given(slot)
        elif slot in host.pins:
            verdict = "pinned"
            search.given(slot)
        elif failed:
            verdict = "failed"
        elif stale:
            verdict = "stale"
            search.follow_stale(slot)
        elif last_run in ("cut_off", "ran"):
            verdict = "cut_off" if last_run == "cut_off" else "ran"
            search.follow_run(slot)
        if verdict in ("clean", "cut_off", "ran"):
            pairs = dict(zip(operands, record[slot] or ()))
            known = tuple(
                (host.label(p), n) for p, n in list(pairs.items())[:MOST_CAUSES] if n >= 0
            )
        return Why(
            node=host.label(slot),
            verdict=verdict,
            version=version[slot],
            last_run=last_run,
            computed_from=known,
            changes=tuple(search.changes),
            causes=search.with_paths(slot),
            more=search.more,
            error=failed,
            gradient=no_gradient(graph, slot),
            logged=search.log is not None,
            _operands=len(set(operands)),
            _more_causes=search.more_causes,
            _again=bool(failed) and issubclass(type(scheduler.errors[slot].error), FLEETING),
        )


class _Search:
    """Follows changes back to where they began, breadth first, without recursion."""

    def __init__(self, graph: Core, stale: list[int]) -> None:
        self._host, self._scheduler = graph._host, graph._scheduler
        self._stale = set(stale)
        self.changes: dict[Change, None] = {}
        self.causes: dict[Cause, int | None] = {}  # with the slot of the node, unless it is gone
        self.more = self.more_causes = 0
        self._ways: dict[int, list[int]] = {}  # operands that explain a node, by its slot
        self.log: _History | None = None if graph._events is None else _History(graph._events)
        run = self._scheduler.last_run
        serial = self._scheduler.topology.serial
        self._run = run
        self._cut_off = set(run.cut_off)
        self._ran = {slot for slot in run.ran if run.serials[slot] == serial[slot]}
        self._moved = self._ran - self._cut_off
        told = (*self._scheduler.earlier, *self._scheduler.news)
        self._leaves = {slot for slot in told if serial[slot]}
        # Leaves that were changed since the last run that computed something began.
        self._set_since = {*self._scheduler.staleness.pending, *self._scheduler.staleness.flushed}
        if not run.ran and not run.failed:
            self._set_since |= self._leaves
        # Versions of nodes that still have to be explained: slot, version before if known, version.
        self._versions: deque[tuple[int, int | None, int]] = deque()
        self._seen: set[tuple[int, int]] = set()
        # Operands whose errors still have to be explained, since nodes were computed from them.
        self._raisers: deque[int] = deque()
        self._seen_raisers: set[int] = set()

    # --- what is known of one node -------------------------------------------------------------

    def outcome(self, slot: int) -> str | None:
        """Return what the last run did with a node."""
        run, serial = self._run, self._scheduler.topology.serial[slot]
        if run.serials.get(slot) != serial:
            return None
        if slot in self._ran:
            return "cut_off" if slot in self._cut_off else "ran"
        for word, slots in (
            ("rebuilt", run.rebuilt),
            ("failed", run.failed),
            ("skipped", run.skipped),
        ):
            if slot in slots:
                return word
        return None

    def error(self, slot: int) -> str:
        """Return the error that a node raised for the present versions of its parents, as text."""
        error = self._scheduler.error(slot)
        return "" if error is None else error_text(error)

    # --- following -----------------------------------------------------------------------------

    def given(self, slot: int) -> None:
        """Add the event that gave a leaf or a pinned node its value, if that is known."""
        event = self._event(slot, self._scheduler.versions.version[slot])
        if event is not None and event.kind != "ran":
            self._cause(slot, Cause(event.kind, event.node, event.before, event.after, event.line))  # type: ignore[arg-type]

    def follow_stale(self, start: int) -> None:
        """Find out why a stale node will run."""
        queue, seen = deque([start]), {start}
        while queue:
            slot = queue.popleft()
            for parent in self._stale_node(slot):
                if parent not in seen:
                    seen.add(parent)
                    queue.append(parent)
        self._follow_versions()

    def follow_run(self, slot: int) -> None:
        """Find out why a node ran in the last run."""
        event = None
        if self.log is not None:
            event = self.log.last_call(self._scheduler.topology.serial[slot])
        if event is not None:
            self._ran_event(event)
        else:
            self._ran_lately(slot)
        self._follow_versions()

    def _stale_node(self, slot: int) -> list[int]:
        """Note why one node is stale. Return its parents that are stale themselves."""
        host, versions = self._host, self._scheduler.versions
        name = host.label(slot)
        if isinstance(host.ops[slot], Leaf):
            self._cause(slot, Cause("unset", name))
            return []
        error = self.error(slot)
        if error:
            self._cause(slot, Cause("failed", name, error=error))
            return []
        stored = self._scheduler.errors.get(slot)
        known = versions.record[slot] if stored is None else stored.versions
        parents = self._scheduler.topology.parents[slot]
        seen = {} if known is None else dict(zip(parents, known))
        if known is None or slot in versions.forced:
            failed = [p for p in self._scheduler.operands(slot) if self._scheduler.seen(p) < 0]
            if failed:
                self._moved_to(slot, failed[0], None)
            # A gradient that follows an edit gets new nodes, which say nothing themselves.
            new = not versions.version[slot]
            follows = new and slot in host.owners and bool(self._ways)
            if not follows and not (failed and new):
                self._cause(slot, self._redefined(slot))
            if failed or (new and not follows):
                return []
            if known is None:
                seen = self._seen_before_edit(slot)
        behind: list[int] = []
        for parent in dict.fromkeys(parents):
            # A negative version: the function was computed from the error of what it read. An operand
            # that an edit has given it counts as changed only if it was set as well.
            then = seen.get(parent)
            before = then if then is not None and then >= 0 else None
            if parent in self._stale:
                behind.append(parent)
                self._ways.setdefault(slot, []).append(parent)
                self._change(Change(name, host.label(parent), before, None))
            elif (
                parent in self._set_since if then is None else self._scheduler.seen(parent) != then
            ):
                self._moved_to(slot, parent, before)
        return behind

    def _seen_before_edit(self, slot: int) -> dict[int, int]:
        """Return what an edited node had seen of its former operands when it was computed last."""
        serial, _, parents, record = self._scheduler.edited.get(slot, (0, 0, (), ()))
        return dict(zip(parents, record)) if serial == self._scheduler.topology.serial[slot] else {}

    def _edited_before_run(self, slot: int) -> bool:
        """Return whether an edit made a node run in the last run."""
        scheduler = self._scheduler
        serial, before, _, _ = scheduler.edited.get(slot, (0, 0, (), ()))
        moved = scheduler.versions.version[slot] - before
        return serial == scheduler.topology.serial[slot] and moved == int(slot not in self._cut_off)

    def _moved_to(self, slot: int, parent: int, before: int | None) -> None:
        """Note an operand that is settled, but at another version than its node was computed from."""
        name = self._host.label(slot)
        self._ways.setdefault(slot, []).append(parent)
        raised = self._scheduler.seen(parent) < 0
        after = self._scheduler.versions.version[parent]
        self._change(Change(name, self._host.label(parent), before, after, raised))
        if raised:
            self._raisers.append(parent)
        else:
            self._push(parent, before)

    def _redefined(self, slot: int) -> Cause:
        """Return why a node has to run whatever the versions of its operands are."""
        name = self._host.label(slot)
        if self.log is not None:
            serial = self._scheduler.topology.serial[slot]
            event = self.log.before(serial, None)
            if event is not None:
                return Cause(event.kind, name, line=event.line)  # type: ignore[arg-type]
        if not self._scheduler.versions.version[slot]:
            return Cause("new", name)
        # Without a record the operands have changed; with one the node was touched.
        known = self._scheduler.versions.record[slot] is not None
        _, manner = self._host.manners.get(slot, (0, "edit"))
        return Cause("touch" if known else manner, name)  # type: ignore[arg-type]

    def _way_of_leaf(self, slot: int, before: int | None, after: int) -> CauseKind:
        """Return how a leaf came to a version; of several ways a set, which says more than a touch after it."""
        op = self._host.ops[slot]
        if op is MODE or op is KEY:
            return "mode" if op is MODE else "redraw"
        version, manner = self._host.manners.get(slot, (None, "set"))
        alone = before is None or before == after - 1
        return manner if version == after and (alone or manner == "rollback") else "set"  # type: ignore[return-value]

    def _follow_versions(self) -> None:
        """Explain the noted versions, back to the changes where they began."""
        queue, raisers = self._versions, self._raisers
        while queue or raisers:
            if raisers:
                self._raised(raisers.popleft())
                continue
            slot, before, after = queue.popleft()
            host, name = self._host, self._host.label(slot)
            event = self._event(slot, after)
            if event is not None and event.kind == "ran":
                self._ran_event(event)
            elif event is not None:
                if event.kind == "touch":
                    event = self._set_between(slot, before, after) or event
                self._cause(slot, Cause(event.kind, name, before, after, event.line))  # type: ignore[arg-type]
            elif slot in host.pins:
                self._cause(slot, Cause("pin", name, before, after))
            elif isinstance(host.ops[slot], Leaf):
                self._cause(
                    slot, Cause(self._way_of_leaf(slot, before, after), name, before, after)
                )
            elif slot in self._moved and self._scheduler.versions.version[slot] == after:
                self._ran_lately(slot)
            else:
                self._cause(slot, Cause("ran", name, before, after))

    def _raised(self, slot: int) -> None:
        """Find out why a node has an error in place of a value."""
        if slot in self._seen_raisers:
            return
        self._seen_raisers.add(slot)
        scheduler, name = self._scheduler, self._host.label(slot)
        if slot not in scheduler.errors:  # blocked by an operand that raised
            for parent in dict.fromkeys(scheduler.topology.parents[slot]):
                if scheduler.seen(parent) < 0:
                    self._moved_to(slot, parent, None)
            return
        if isinstance(self._host.ops[slot], Leaf):
            self._cause(slot, Cause("unset", name))
            return
        self._cause(slot, Cause("failed", name, error=self.error(slot)))
        event = None
        if self.log is not None:
            event = self.log.last_call(scheduler.topology.serial[slot], ("failed",))
        if event is not None:
            self._follow_moved(event)
        else:
            self._moved_lately(slot)

    def _follow_moved(self, event: Event) -> None:
        """Note the operands of a node that had changed when it was called."""
        assert self.log is not None
        for moved in event.moved:
            change = Change(event.node, moved.node, moved.before, moved.after, moved.raised)
            self._change(change)
            serials = self._scheduler.topology.serial
            slot, above = self.log.slot(serials, moved.serial), self.log.slot(serials, event.serial)
            if slot is None:
                self._cause(None, Cause("ran", moved.node, moved.before, moved.after))
                continue
            if above is not None:
                self._ways.setdefault(above, []).append(slot)
            if moved.raised:
                self._raisers.append(slot)
            else:
                self._push(slot, moved.before, moved.after)

    def _ran_event(self, event: Event) -> None:
        """Find out from the log why a node ran."""
        assert self.log is not None
        self._follow_moved(event)
        slot = self.log.slot(self._scheduler.topology.serial, event.serial)
        if not event.moved and slot is not None and self._edited_before_run(slot):
            self._moved_lately(slot)  # the log compares with the record, which the edit has erased
        retried = self.log.run_of(event)
        origin = self.log.before(event.serial, event)
        if origin is not None and (origin.kind != "new" or not event.moved):
            self._cause(slot, Cause(origin.kind, event.node, line=origin.line))  # type: ignore[arg-type]
        elif not event.moved and retried is not None and retried.retry:
            self._cause(slot, Cause("retry", event.node, line=retried.line))
        elif not event.moved:
            self._cause(slot, Cause("unknown" if event.before else "new", event.node))

    def _ran_lately(self, slot: int) -> None:
        """Find out from the versions that the last run left why a node ran in it."""
        name = self._host.label(slot)
        if self._scheduler.versions.version[slot] == 1 and slot in self._moved:
            self._cause(slot, Cause("new", name))
            return
        edited, found = self._edited_before_run(slot), self._moved_lately(slot)
        if edited:
            self._cause(slot, Cause("edit", name))
        elif not found:
            self._cause(slot, Cause("retry" if self._run.retry else "unknown", name))

    def _moved_lately(self, slot: int) -> bool:
        """Note operands that changed in the last run or by what led to it.

        Return whether there were any.
        """
        version = self._scheduler.versions.version
        found = False
        for parent in dict.fromkeys(self._scheduler.topology.parents[slot]):
            if parent in self._moved:
                before: int | None = version[parent] - 1
            elif parent in self._leaves or self._failed_lately(parent):
                before = None
            else:
                continue
            found = True
            self._moved_to(slot, parent, before)
        return found

    def _failed_lately(self, slot: int) -> bool:
        """Return whether a node has the error of one that raised in the last run."""
        raised = self._scheduler.raises.get(slot) if self._scheduler.seen(slot) < 0 else None
        return raised is not None and any(raised.error is e for e in self._run.failed.values())

    def _set_between(self, slot: int, before: int | None, after: int) -> Event | None:
        """Return the latest set among the changes of a leaf, which says more than a touch after it."""
        for version in range(after, after - 1 if before is None else before, -1):
            event = self._event(slot, version)
            if event is None or event.kind == "set":
                return event
        return None

    def _event(self, slot: int, version: int) -> Event | None:
        if self.log is None:
            return None
        return self.log.how.get((self._scheduler.topology.serial[slot], version))

    def _push(self, slot: int, before: int | None, after: int | None = None) -> None:
        after = self._scheduler.versions.version[slot] if after is None else after
        # Each version is explained once, however many paths lead to it.
        if (slot, after) not in self._seen:
            self._seen.add((slot, after))
            self._versions.append((slot, before, after))

    def _change(self, change: Change) -> None:
        if len(self.changes) < MOST_CHANGES:
            self.changes[change] = None
        elif change not in self.changes:
            self.more += 1

    def _cause(self, slot: int | None, cause: Cause) -> None:
        if cause not in self.causes and len(self.causes) < MOST_CAUSES:
            self.causes[cause] = slot
        elif cause not in self.causes:
            self.more += 1
            self.more_causes += 1

    def with_paths(self, end: int) -> tuple[Cause, ...]:
        """Return the causes, nearest first, each with one shortest path from it to the node ``end``."""
        after, near = {end: end}, {end: 0}  # the next node on the way to the end, and how far it is
        queue = deque([end])
        while queue:
            slot = queue.popleft()
            for parent in self._ways.get(slot, ()):
                if parent not in after:
                    after[parent], near[parent] = slot, near[slot] + 1
                    queue.append(parent)
        far = len(after)
        causes = sorted(self.causes, key=lambda cause: near.get(self._slot_of(cause), far))
        return tuple(
            [replace(cause, path=self._path(self._slot_of(cause), after)) for cause in causes]
        )

    def _slot_of(self, cause: Cause) -> int:
        slot = self.causes[cause]
        return -1 if slot is None else slot

    def _path(self, slot: int, after: dict[int, int]) -> tuple[str, ...]:
        """Return the names on the way from a node to the end."""
        if slot not in after:
            return ()
        way = [slot]
        while after[way[-1]] != way[-1]:
            way.append(after[way[-1]])
        if len(way) <= 2 * ENDS + 1:
            return tuple(map(self._host.label, way))
        names = map(self._host.label, (*way[:ENDS], *way[-ENDS:]))
        shown = list(names)
        return (*shown[:ENDS], "...", *shown[ENDS:])


class _History:
    """The log of events, indexed by node.

    Attributes
    ----------
    how : dict
        From (serial, version) of a node to the event that gave it this version.
    """

    def __init__(self, log: EventLog) -> None:
        self._entries = log.snapshot()
        self.how = {(e.serial, e.after): e for e in self._entries if e.after != e.before}
        self._slots: dict[int, int] | None = None

    def last_call(self, serial: int, kinds: Container[str] = ("ran", "cut_off")) -> Event | None:
        """Return the latest call of a node that ended in one of these ways."""
        for event in reversed(self._entries):
            if event.serial == serial and event.kind in kinds:
                return event
        return None

    def before(self, serial: int, event: Event | None) -> Event | None:
        """Return the last event that changed the definition of a node after its last call, before
        `event`.
        """
        end = len(self._entries) if event is None else self._index(event)
        for earlier in reversed(self._entries[:end]):
            if earlier.serial == serial:
                if earlier.kind in ("ran", "cut_off"):
                    return None
                if earlier.kind in ("new", "touch", "edit", "unpin", "rollback"):
                    return earlier
        return None

    def run_of(self, event: Event) -> Event | None:
        """Return the run that called a node."""
        for earlier in reversed(self._entries[: self._index(event)]):
            if earlier.kind == "run":
                return earlier
        return None

    def _index(self, event: Event) -> int:
        return event.number - self._entries[0].number

    def slot(self, serials: Iterable[int], serial: int) -> int | None:
        """Return the present slot of a node; ``None`` if it was dropped."""
        if self._slots is None:
            self._slots = {number: slot for slot, number in enumerate(serials) if number}
        return self._slots.get(serial)
