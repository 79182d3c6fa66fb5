"""The push side: callbacks when something has happened to observed nodes.

**When.** A callback is never called in the middle of anything: not while nodes are computed, not
inside a transaction, not before ``backward`` has ended. What was read is handed out first.

- ``"changed"``, ``callback(old, new)``: after a run (any read, ``stabilize``, the end of a
  transaction) that leaves the node clean, if its value was replaced since the observer was told
  last, or was attached: computed anew and not cut off, set, touched, pinned, given back by a
  rollback. Once, however often it was replaced.
- ``"error"``, ``callback(error)``: after a run that leaves the node without a value because it, or
  an operand on the way to it, raised. Once for each error; an error that is raised again without
  being computed again is the same one.
- ``"stale"``, ``callback(var)``: after whatever made the clean node stale: a set, a touch, a pin, an
  edit, the end of a transaction. Once, until the node has been clean again. A node that is in truth
  clean, behind a cutoff, counts as clean.
- ``"removed"``, ``callback(var)``: after the node was removed from the graph. All its observers are
  cancelled by that. The Var is only good for knowing which one it was.

**Order.** One *round* calls everybody for whom there is something at its beginning: first who
observes removal, then values and errors, then staleness; nodes in topological order; the observers
of one node as they were attached. What they are told is what was so at the beginning of the round,
whatever others do in it, and all observers of a node are told the same.

**Inside a callback** the graph may be used as anywhere:

- reads give the present values; what they compute is told in the next round;
- sets (also ``mutate``, and those of transactions) are checked at once, and made in order when no
  round is left, those of one ``g.set`` or one transaction together or not at all; until then reads
  show the former values;
- touches, pins and edits are made at once; the values that they give are told after the next run;
- observers that are attached hear of what happens from then on; cancelled ones are not called any
  more, also not in this round;
- ``stabilize`` does nothing: the one under way makes another pass.

A read makes rounds until nobody has to be told of anything that was computed. What observers have
set is then stale, or news for the next run; ``stabilize`` goes on until neither is left.

**Errors.** An observer that raises stops nobody: when all have been called, what they raised reaches
the caller, in this order and with the error of the caller's own act behind it, as one
``ExceptionGroup``. Told is told, also to those that raised.

Observers keep their nodes alive, belong to one graph (forks have none), and cost nothing where there
are none. The kinds and the queue are those of Incremental's ``on_update`` (Jane Street), calling once
and only for what has changed that of the effects of alien-signals, Preact and reaktiv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactgrad._errors import DTypeError, ReactgradError
from reactgrad._observers import KINDS, Observer, Observers, attach, detach
from reactgrad._store import MISSING
from reactgrad.scheduler import Run as RawRun

if TYPE_CHECKING:
    from reactgrad._graph import Graph
    from reactgrad._var import Var

Calls = list[tuple[Observer, tuple[Any, ...]]]

# Rounds of one telling, and passes of one ``stabilize``: more mean observers that set each other
# off for ever.
MAX_ROUNDS = 100


class StabilizeError(ReactgradError, RecursionError):
    """Observers that go on setting off each other, or themselves."""


class held:
    """Hold back the observers of a graph for a block, and call them at its end; takes the lock."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        self._graph._lock.acquire()
        self._graph._observers.held += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._graph._observers.held -= 1
            if error is None or isinstance(error, Exception):
                problems: list[Exception] = []
                endless = deliver(self._graph, problems)
                if problems or endless:
                    conclude(problems, endless, error)
        finally:
            self._graph._lock.release()


def conclude(problems: list[Exception], *errors: Exception | None) -> None:
    """Raise what observers raised, together with other errors."""
    own = [error for error in errors if error is not None]
    if problems or len(own) > 1:
        raise ExceptionGroup("observers raised", problems + own)
    if own:
        raise own[0]


def observe(var: Var, callback: Callable[..., Any], kind: str) -> Observer:
    """Attach an observer; see ``Var.observe``."""
    if kind not in KINDS:
        raise DTypeError(f"observe(kind={kind!r}): one of {', '.join(map(repr, KINDS))}.")
    if not callable(callback):
        raise DTypeError(f"observe({callback!r:.60}): it takes a function to call.")
    graph = var._graph
    with graph._lock:
        observer = Observer(graph, var, kind, callback)
        stale = kind != "removed" and graph._scheduler.is_stale(var._slot)
        observer.armed = not stale
        if kind == "changed" and not stale:
            value = graph._host.hand_out(var._slot)
            observer.last = None if value is MISSING else value
        attach(graph, observer)
        graph._observers.stirred |= stale
        return observer


# --- what has happened ---------------------------------------------------------------------------


def collect(graph: Graph, run: RawRun) -> None:
    """Note what a run did to observed nodes."""
    observers, scheduler = graph._observers, graph._scheduler
    observers.ran = True
    hits = observers.of["changed"].keys() & run.serials.keys()
    if hits:
        if len(run.ran) < len(run.serials):
            hits.intersection_update(run.ran)
        hits.difference_update(run.cut_off)
        observers.note(hits)
    if observers.of["error"]:
        observers.failed.update(run.failed)
    if observers.of["stale"] and (run.cut_off or run.failed):
        # What follows may have become clean without having run, and without its mark having moved.
        topology, staleness = scheduler.topology, scheduler.staleness
        below = {child for slot in (*run.cut_off, *run.failed) for child in topology.children[slot]}
        reached = topology.descendants(below, staleness.mark.__getitem__)
        staleness.moved.update(observers.of["stale"].keys() & reached)


def announce(graph: Graph, slots: Iterable[int] = ()) -> None:
    """Something was changed other than by a run; these nodes have new values by that."""
    observers = graph._observers
    observers.note(slots)
    observers.stirred = True
    if observers.of["stale"] and not observers.held:
        with held(graph):
            pass


def removed(graph: Graph, slot: int) -> None:
    """A node was removed for good; its slot is not free yet. Cancels and tells its observers.

    Raises
    ------
    ExceptionGroup
        What observers raised.
    """
    observers = graph._observers
    with held(graph):
        for observer in observers.at(slot):
            detach(graph, observer)
            if observer.kind == "removed":
                observers.gone.append(observer)


# --- telling -------------------------------------------------------------------------------------


def deliver(graph: Graph, problems: list[Exception]) -> StabilizeError | None:
    """Call observers, round by round, and make their sets.

    Nobody is called while someone holds them back, or nodes are being computed.

    Parameters
    ----------
    problems
        Gets what they raise.

    Returns
    -------
    StabilizeError or None
        What is wrong if there is no end to it.
    """
    observers = graph._observers
    if observers.held or graph._computing:
        return None
    if not (observers or observers.gone):
        observers.ran = False
        return None
    observers.held = 1
    try:
        for _ in range(MAX_ROUNDS):
            calls = _due(graph)
            if calls:
                _call(observers, calls, problems)
            elif observers.queue:
                _make_sets(graph, problems)
            else:
                return None
        error = endless(graph)
        observers.queue.clear()
        return error
    finally:
        observers.held = 0


def _call(observers: Observers, calls: Calls, problems: list[Exception]) -> None:
    try:
        for observer, arguments in calls:
            if observer.active or observer.kind == "removed":  # else cancelled by another one
                observers.calling = observer
                try:
                    observer.call(*arguments)
                except Exception as error:
                    problems.append(error)
    finally:
        observers.calling = None


def _make_sets(graph: Graph, problems: list[Exception]) -> None:
    queue, graph._observers.queue = graph._observers.queue, []
    for observer, sets in queue:
        values = {var._slot: value for var, value in sets if var._graph is graph}
        try:
            graph._set_many(list(values.items()))
        except Exception as error:  # it fitted when it was asked for
            observer.blame(error)
            problems.append(error)


def _due(graph: Graph) -> Calls:
    """Whom to call, and with what."""
    observers = graph._observers
    calls: Calls = [(observer, (observer.var,)) for observer in observers.gone]
    observers.gone.clear()
    if observers.ran:
        observers.ran = False
        calls += _outcomes(graph)
    if observers.of["stale"]:
        calls += _turned_stale(graph)
    return calls


def _outcomes(graph: Graph) -> Calls:
    """Values and errors that observers have not been told of."""
    observers, scheduler = graph._observers, graph._scheduler
    calls: Calls = []
    # News of a node that has become stale since wait until it is clean.
    due = observers.news.keys() - scheduler.stale_among(observers.news.keys())
    failed, observers.failed = observers.failed, set()
    errors = scheduler.blocked(failed, observers.of["error"]) if failed else {}
    for slot in scheduler.topology.sort(due | errors.keys()):
        if slot in errors:
            error, number = errors[slot].error, errors[slot].number
            for observer in observers.of["error"][slot]:
                if observer.last != number:
                    observer.last = number
                    calls.append((observer, (error,)))
        if slot in due:
            before, new = observers.news.pop(slot), graph._value(slot)
            for observer in observers.of["changed"][slot]:
                if observer.number < before:
                    calls.append((observer, (observer.last, new)))
                    observer.last = new
    return calls


def _turned_stale(graph: Graph) -> Calls:
    """Nodes that were clean when this was last asked, and are not any more."""
    observers, scheduler = graph._observers, graph._scheduler
    calls: Calls = []
    table = observers.of["stale"]
    scheduler.staleness.flush()
    slots = scheduler.topology.sort(scheduler.staleness.moved & table.keys())
    stale = scheduler.stale_among(slots) if slots else set()
    scheduler.staleness.moved.clear()
    for slot in slots:
        for observer in table[slot]:
            if slot in stale and observer.armed:
                calls.append((observer, (observer.var,)))
            observer.armed = slot not in stale
    return calls


def endless(graph: Graph) -> StabilizeError:
    """The error that names what does not come to rest."""
    observers, scheduler = graph._observers, graph._scheduler
    slots = observers.news.keys() | scheduler.stale_among(observers.observed)
    slots.update(var._slot for _, sets in observers.queue for var, _ in sets)
    names = [graph._host.name(slot) for slot in scheduler.topology.sort(slots)]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return StabilizeError(
        f"after {MAX_ROUNDS} times of being called observers still change what is observed ({shown}). "
        "An observer that sets a node it observes, directly or through others, never ends: set only "
        "what does not lead back, or only when the value differs."
    )
