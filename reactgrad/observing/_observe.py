"""The push side: callbacks that are called when something has happened to observed nodes.

**When.** A callback is never called in the middle of anything: not while nodes are computed, not
inside a transaction, not before ``backward`` has ended. A read returns its values only after its
observers were called.

- ``"changed"``, ``callback(old, new)``: after a run (any read, ``stabilize``, the end of a
  transaction; of one that fails, if something that was computed in it stays) that leaves the node
  clean, if its value was replaced since the observer was attached or last called: computed again
  and not cut off, set, touched, pinned, restored by a rollback. Called once, however often the
  value was replaced.
- ``"error"``, ``callback(error)``: after a run that leaves the node without a value because it, or
  an operand on the way to it, raised. Once for each error; an error that is raised again without
  being computed again is the same one.
- ``"stale"``, ``callback(var)``: after anything that made the clean node stale: a set, a touch, a
  pin, an edit, the end of a transaction. Once, until the node has been clean again, or has failed:
  the error that it raises is as up to date as a value. A marked node that is in truth clean, behind
  a cutoff, counts as clean.
- ``"removed"``, ``callback(var)``: after the node was removed from the graph, which cancels all its
  observers. The Var serves only to say which node it was.

**Order.** One *round* calls all observers that are due at its beginning: first observers of
removal, then of values and errors, then of staleness; nodes in topological order; the observers of
one node in the order in which they were attached. Their arguments are what held at the beginning of
the round, whatever other observers do in it, and all observers of a node get the same ones.

**Inside a callback** the graph may be used as anywhere:

- reads give the present values; observers of what they compute are called in the next round;
- a transaction acts at once, as anywhere: reads in it, also of gradients, see its changes, and an
  exception takes them back;
- sets outside of one (also ``mutate``) are checked at once, and wait: they are made, in order, when
  the callback has returned, or before it reads one of these leaves again or opens a transaction, so
  that each sees the value that those before it have left, by whichever observer. Until then
  what is computed has its former value;
- touches, pins and edits are made at once; observers of the values that follow any change are
  called in a later round, after the next run;
- observers that are attached get what happens from then on; cancelled ones are not called any
  more, also not in this round;
- ``stabilize`` does nothing: the one under way makes another pass;
- a callback may wait for other threads that read the graph. What threads with its context
  variables (``asyncio.to_thread``) set counts as set by the callback; any other thread that changes
  the graph waits until the callback has ended.

A read makes rounds until no observer of anything that was computed is due. What observers have set
is then stale, or news for the next run; ``stabilize`` goes on until neither is left.

**Errors.** An observer that raises does not prevent the others from being called. After that the
caller gets what they raised, in this order and followed by the error of the caller's own act, as
one ``ExceptionGroup``. An observer that raised counts as called. One that is interrupted
(``KeyboardInterrupt``) stops the others for now: they are called first the next time.

Observers keep their nodes alive, belong to one graph (forks have none), and cost nothing where
there are none. The kinds and the queue are those of Incremental's ``on_update`` (Jane Street);
calling once, and only for what has changed, is that of the effects of alien-signals, Preact and
reaktiv.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactgrad._errors import DTypeError, ParameterError
from reactgrad.core._observer import Observer, attach
from reactgrad.core._observers import KINDS
from reactgrad.reading._value import clean_value
from reactgrad.scheduler import safe_repr

if TYPE_CHECKING:
    from reactgrad.nodes._handle import Handle


def observe(var: Handle, /, callback: Callable[..., Any], kind: str = "changed") -> Observer:
    """Call a function when something has happened to this node.

    ==========  ===================  =====================================================
    kind        called               when
    ==========  ===================  =====================================================
    "changed"   callback(old, new)   after a run (any read, ``stabilize``, the end of a
                                     transaction) that leaves the node clean, if its value
                                     was replaced since; `old` is what the observer knew,
                                     ``None`` if there was no value
    "error"     callback(error)      after a run that leaves the node without a value, since
                                     it or one of its operands raised; once for each error
    "stale"     callback(var)        after a change that made the clean node stale; once,
                                     until it has been clean again, or has raised
    "removed"   callback(var)        after ``g.remove``; the Var is of no other use then
    ==========  ===================  =====================================================

    Callbacks are called when everything else is done, nodes in topological order, those of one
    node as they were attached, and never inside a transaction or while nodes are computed. Inside
    of them reads give present values. A set is checked at once and made when the callback has
    returned, or reads the leaf again; transactions, touches, pins and edits act at once. Who is
    attached hears of what happens from then on; who is cancelled is not called any more. What
    callbacks raise stops no other one, and reaches the caller as an ``ExceptionGroup``.

    The observer keeps the node alive until it is cancelled. Forks have no observers.

    Parameters
    ----------
    callback : callable
        What to call.
    kind : {"changed", "stale", "error", "removed"}
        When to call it.

    Returns
    -------
    Observer
        ``cancel()`` ends it.

    Raises
    ------
    DTypeError
        For another kind, or if `callback` cannot be called.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x + 1.0
    >>> observer = y.observe(lambda old, new: print(new))
    >>> _ = y.value
    2.0
    >>> observer.cancel()
    """
    if kind not in KINDS:
        raise ParameterError(
            f"observe(kind={safe_repr(kind)}): one of {', '.join(map(repr, KINDS))}."
        )
    if not callable(callback):
        raise DTypeError(f"observe({callback!r:.60}): it takes a function to call.")
    graph = var._graph
    with graph._lock:
        observer = Observer(graph, var, kind, callback)
        stale = kind != "removed" and graph._scheduler.is_stale(var._slot)
        observer.armed = not (stale and graph._scheduler.unsettled_among((var._slot,)))
        if kind == "changed" and not stale:
            observer.last = clean_value(graph, var._slot)
        attach(graph, observer)
        graph._observers.stirred |= stale
        return observer
