"""Bring all observed nodes up to date, until no observer changes anything any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactgrad._errors import AnomalyError, Cancelled, MutationError
from reactgrad.core._observer_errors import MAX_ROUNDS, conclude
from reactgrad.observing._tell import deliver, endless
from reactgrad.reading._refresh import refresh
from reactgrad.scheduler import is_interrupt

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def _stabilize(graph: Core) -> int:
    """Bring all observed nodes up to date and call their observers."""
    observers = graph._observers
    graph._scheduler.check_idle()
    if observers.calling is not None:
        return 0  # the pass that follows finds what this one would
    problems: list[Exception] = []
    failure = stopped = None
    passes = 0
    try:
        while passes < MAX_ROUNDS:
            passes += 1
            observers.stirred = False
            observers.held += 1
            try:
                failure = _refresh(graph)
            finally:
                observers.held -= 1
            stopped = deliver(graph, problems)
            if stopped is not None or not observers.stirred or isinstance(failure, Cancelled):
                break
        else:
            stopped = endless(graph)
        if problems or stopped is not None or failure is not None:
            conclude(problems, stopped, failure)
        return passes
    finally:
        del failure, stopped  # whose tracebacks hold this frame


def _refresh(graph: Core) -> Exception | None:
    """Read all observed nodes. Return the error to be raised for that in the end, if any.

    An error that an observer of errors gets is not raised.
    """
    targets = tuple(graph._observers.observed)
    if not targets:
        return None
    try:
        refresh(graph, targets)
    except (Cancelled, AnomalyError, MutationError) as error:  # the read itself failed, not a node
        return error
    except Exception as error:
        if is_interrupt(error):
            raise
        broken = graph._scheduler.topology.sort(graph._scheduler.stale_among(targets))
        told = graph._observers.of["error"]
        unheard = tuple([slot for slot in broken if slot not in told])
        if len(unheard) == len(broken):
            return error
        if unheard:
            try:
                refresh(graph, unheard)
            except Exception as error:
                if is_interrupt(error):
                    raise
                return error
    return None


def stabilize(graph: Core, /) -> int:
    """Bring all observed nodes up to date, and call their observers, until nothing is left to do.

    Each pass reads all nodes that are observed (for removal only does not count) and calls who
    has to hear of something; another one follows if observers have changed anything. What
    observers of errors are told of is not raised; whatever fails or raises, all other nodes are
    brought up to date and all other observers called. Inside a transaction nobody is called
    before its end; inside an observer it does nothing.

    Returns
    -------
    int
        The number of passes; 0 inside an observer.

    Raises
    ------
    ExceptionGroup
        What observers raised in all passes, and behind that what else would be raised.
    StabilizeError
        If observers still change what is observed after 100 passes.
    Exception
        The error of the first observed node that the last pass leaves without a value and that
        has no observer of errors.
    BusyError
        Inside a node that is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x * 2.0
    >>> observer = y.observe(lambda old, new: print(old, "->", new))
    >>> _ = g.stabilize()
    None -> 2.0
    >>> x.set(3.0)
    >>> _ = g.stabilize()
    2.0 -> 6.0
    """
    with graph._lock:
        return _stabilize(graph)
