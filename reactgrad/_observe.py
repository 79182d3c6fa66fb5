"""The push side: callbacks when observed nodes have changed.

Order: nodes in topological order, and at one node the observers in the order in which they were
attached. Once: an observer is called once for each run that left its node with a new value,
however often it was computed inside that run. Observers attached while observers are called take
part from the next pass on; cancelled ones are not called any more. Sets inside an observer are
queued, and made when all observers of the pass have been called. An observer that raises does not
stop the others; the errors of a pass reach the caller together, as an ``ExceptionGroup``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from reactgrad._errors import Cancelled, DTypeError, ReactgradError
from reactgrad._store import MISSING

if TYPE_CHECKING:
    from reactgrad._graph import Graph
    from reactgrad._var import Var

KINDS = ("changed", "stale", "error", "removed")

# Passes of one ``stabilize``: more mean observers that set each other off for ever.
MAX_PASSES = 100


class StabilizeError(ReactgradError, RecursionError):
    """Observers that go on setting what they observe."""


class Observer:
    """What ``Var.observe`` returns; keeps the node alive until it is cancelled.

    Attributes
    ----------
    var : Var
        The observed node.
    kind : str
        ``"changed"``, ``"stale"``, ``"error"`` or ``"removed"``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(2.0)
    >>> observer = x.observe(print)
    >>> observer.cancel()
    >>> observer.active
    False
    """

    __slots__ = ("_armed", "_callback", "_last", "_table", "kind", "var")

    def __init__(self, var: Var, kind: str, callback: Callable[..., Any], table: Observers) -> None:
        self.var = var
        self.kind = kind
        self._callback = callback
        self._table = table
        self._last: Any = None  # the value, or the error, that was told last
        self._armed = False  # for "stale": whether the node was clean since

    def cancel(self) -> None:
        """Call this observer no more; cancelling twice does nothing."""
        self._table.discard(self)

    @property
    def active(self) -> bool:
        """Whether the observer was not cancelled."""
        return self._table.has(self)

    def __repr__(self) -> str:
        state = "" if self.active else " (cancelled)"
        return f"<observer of {self.var.name!r}, {self.kind}{state}>"


class Observers:
    """The observers of one graph, and what they have still to be told.

    Attributes
    ----------
    changed, failed
        Slots with a new value, or an error, that their observers were not told of yet.
    queued
        Sets made inside observers, to be made after the pass.
    """

    __slots__ = ("_by_slot", "_stale", "again", "changed", "failed", "notifying", "queued")

    def __init__(self) -> None:
        self._by_slot: dict[int, dict[Observer, None]] = {}
        self._stale: dict[int, None] = {}
        self.changed: set[int] = set()
        self.failed: dict[int, Exception] = {}
        self.notifying = False
        self.again = False  # whether observers made sets since the last pass
        self.queued: list[tuple[int, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._by_slot)

    def __len__(self) -> int:
        return sum(map(len, self._by_slot.values()))

    def add(self, observer: Observer) -> None:
        """Attach an observer."""
        slot = observer.var._slot
        self._by_slot.setdefault(slot, {})[observer] = None
        if observer.kind == "stale":
            self._stale[slot] = None

    def discard(self, observer: Observer) -> None:
        """Detach an observer."""
        slot = observer.var._slot
        here = self._by_slot.get(slot)
        if here is not None and here.pop(observer, 0) is None and not here:
            del self._by_slot[slot]
            self._stale.pop(slot, None)
            self.changed.discard(slot)
            self.failed.pop(slot, None)

    def has(self, observer: Observer) -> bool:
        """Whether an observer is attached."""
        return observer in self._by_slot.get(observer.var._slot, ())

    def of(self, slot: int, kind: str) -> list[Observer]:
        """The observers of a node of this kind, in order."""
        return [one for one in self._by_slot.get(slot, ()) if one.kind == kind]

    def slots(self) -> list[int]:
        """The observed nodes."""
        return list(self._by_slot)

    def stale_slots(self) -> list[int]:
        """The nodes whose turning stale is observed."""
        return list(self._stale)

    def note(self, slots: Iterable[int]) -> None:
        """These nodes have new values."""
        self.changed.update(slot for slot in slots if slot in self._by_slot)


def observe(var: Var, callback: Callable[..., Any], kind: str) -> Observer:
    """Attach an observer; see ``Var.observe``."""
    graph = var._graph
    if kind not in KINDS:
        raise DTypeError(f"observe(kind={kind!r}): one of {', '.join(map(repr, KINDS))}.")
    if not callable(callback):
        raise DTypeError(f"observe({callback!r:.60}): it takes a function to call.")
    with graph._lock:
        observer = Observer(var, kind, callback, graph._observers)
        clean = not graph._scheduler.is_stale(var._slot)
        value = graph._host.data[var._slot]
        if kind == "changed" and clean and value is not MISSING:
            observer._last = graph._host.hand_out(var._slot)
        observer._armed = clean
        graph._observers.add(observer)
        return observer


def collect(graph: Graph, ran: Sequence[int], unchanged: Sequence[int]) -> None:
    """Remember what a run changed at observed nodes."""
    observers = graph._observers
    if len(ran) <= len(observers._by_slot):
        hits = [slot for slot in ran if slot in observers._by_slot]
    else:
        members = set(ran)
        hits = [slot for slot in observers._by_slot if slot in members]
    same = set(unchanged)
    observers.note(slot for slot in hits if slot not in same)


def collect_errors(graph: Graph, failed: Sequence[int], errors: Sequence[Exception]) -> None:
    """Remember which observed nodes an error keeps from having a value."""
    topology, mark = graph._scheduler.topology, graph._scheduler.staleness.mark
    observed = graph._observers._by_slot
    for slot, error in zip(failed, errors, strict=True):
        for reached in topology.descendants([slot], lambda s: mark[s]):
            if reached in observed:
                graph._observers.failed.setdefault(reached, error)


def tell_stale(graph: Graph, problems: list[Exception]) -> None:
    """Call the observers of nodes that a change has just made stale."""
    observers, scheduler = graph._observers, graph._scheduler
    for slot in scheduler.topology.sort(observers.stale_slots()):
        stale = scheduler.is_stale(slot)
        for observer in observers.of(slot, "stale"):
            if stale and observer._armed:
                observer._armed = False
                _call(observer, problems, observer.var)
            elif not stale:
                observer._armed = True


def notify(graph: Graph) -> None:
    """Call the observers of what has changed, and make the sets they ask for.

    Raises
    ------
    ExceptionGroup
        What observers raised.
    """
    observers = graph._observers
    if observers.notifying or graph._scheduler.notes:
        return
    problems: list[Exception] = []
    observers.notifying = True
    try:
        _tell(graph, problems)
        if observers._stale:
            tell_stale(graph, problems)
    finally:
        observers.notifying = False
    queued, observers.queued = observers.queued, []
    if queued:
        observers.again = True
        try:
            graph._set_many(list(dict(queued).items()))
        except Exception as error:
            problems.append(error)
    if problems:
        raise ExceptionGroup("observers raised", problems)


def _tell(graph: Graph, problems: list[Exception]) -> None:
    observers, host = graph._observers, graph._host
    changed, observers.changed = observers.changed, set()
    failed, observers.failed = observers.failed, {}
    for slot in graph._scheduler.topology.sort(changed | failed.keys()):
        if slot in failed:
            for observer in observers.of(slot, "error"):
                # Told once: reading the same error again is no news.
                if observer._last is None or str(observer._last) != str(failed[slot]):
                    observer._last = failed[slot]
                    _call(observer, problems, failed[slot])
        if slot not in changed or host.data[slot] is MISSING:
            continue
        for observer in observers.of(slot, "error"):
            observer._last = None
        new = host.hand_out(slot)
        for observer in observers.of(slot, "changed"):
            old, observer._last = observer._last, new
            _call(observer, problems, old, new)


def _call(observer: Observer, problems: list[Exception], *arguments: Any) -> None:
    if not observer.active:  # another observer cancelled it
        return
    try:
        observer._callback(*arguments)
    except Exception as error:
        error.add_note(f"in an observer ({observer.kind}) of node {observer.var.name!r}")
        problems.append(error)


def removed(graph: Graph, slot: int) -> None:
    """A node was removed: cancel its observers, and call those of kind ``"removed"``.

    Raises
    ------
    ExceptionGroup
        What they raised.
    """
    observers = graph._observers
    gone = list(observers._by_slot.get(slot, ()))
    for observer in gone:
        observers.discard(observer)
    problems: list[Exception] = []
    for observer in gone:
        if observer.kind == "removed":
            try:
                observer._callback(observer.var)
            except Exception as error:
                error.add_note("in an observer of the removal of a node")
                problems.append(error)
    if problems:
        raise ExceptionGroup("observers raised", problems)


def stabilize(graph: Graph) -> int:
    """Bring all observed nodes up to date and call their observers; see ``Graph.stabilize``."""
    observers = graph._observers
    if observers.notifying:
        return 0
    first: Exception | None = None
    for passes in range(1, MAX_PASSES + 1):
        targets = tuple(observers.slots())
        observers.again = False
        if targets:
            try:
                graph._refresh(targets)
            except (ExceptionGroup, Cancelled):
                raise
            except Exception as error:
                if not any(observers.of(slot, "error") for slot in targets):
                    first = first or error
        notify(graph)
        if not observers.again:
            if first is not None:
                raise first
            return passes
    names = ", ".join(graph._host.name(slot) for slot in list(observers.changed)[:6])
    raise StabilizeError(
        f"after {MAX_PASSES} passes observers still change what is observed ({names}). An observer "
        "that sets a node it observes, directly or through others, never ends: set only what does "
        "not lead back, or only when the value differs."
    )
