"""Checkpoints: parts of a graph whose intermediate values are computed again rather than kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from reactgrad._errors import DTypeError, GraphError, ParameterError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.nodes._nested import elements
from reactgrad.nodes._reached import reached
from reactgrad.scheduler import safe_repr
from reactgrad.values._transient import Transient

_inside: ContextVar[bool] = ContextVar("reactgrad_in_checkpoint", default=False)
# Whether nodes are being built for a checkpoint in this thread; called for each node of some loops.
in_checkpoint: Callable[[], bool] = _inside.get


class Segment(Transient):
    """The nodes that one checkpointed function has built, without its results.

    A value stays if something outside of the segment can see it: a handle, or a node that was built
    on it later and belongs to no gradient.

    Parameters
    ----------
    limit
        The serial of the first node that was built after the segment.
    """

    recomputed = True

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def let_go(self, host: Any, slot: int) -> bool:
        topology, owners = host.scheduler.topology, host.owners
        if host.in_sight(slot) or not host.recomputable(slot):
            return False
        serial = topology.serial
        if any(serial[c] >= self._limit and c not in owners for c in topology.children[slot]):
            return False
        host.release([slot])
        return True

    def bring_back(self, host: Any, slot: int) -> None:
        """Do nothing: the scheduler knows the release, and computes the value before it is read."""


def checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Build ``fn(*args, **kwargs)`` without keeping its intermediate values.

    ``fn`` builds nodes as always. Each value between its arguments and its results is released as soon
    as the run that computed it does not read it any more. The first gradient that reads one computes
    it again, at its version (``run.rebuilt``), once in a run however many gradients read it; then it
    is released again. Values and versions of nodes are the same as without a checkpoint.

    A value stays in memory while its ``Var`` is held or observed, while a node outside of ``fn`` is
    built on it, and if it has a cutoff. Reading a clean result computes nothing.

    Parameters
    ----------
    fn : callable
        Builds its results from its arguments. Python functions among its nodes are called again, and
        must return the same.
    *args, **kwargs
        Arguments for ``fn``.

    Returns
    -------
    object
        The return value of ``fn``: a Var, or tuples, lists and dicts of Vars and other objects.

    Raises
    ------
    DTypeError
        If ``fn`` cannot be called, or returns no Var.
    GraphError
        If it returns Vars of several graphs.

    Notes
    -----
    Unlike with ``torch.utils.checkpoint``, ``fn`` itself is called once; its nodes run again. So
    nothing has to be replayed, gradients of gradients work, and after a change only the nodes that it
    reaches run. A checkpoint inside of another one becomes a part of it. A loop that repeats the same
    reads computes released values in scratch memory, of which each plan keeps up to 32 MiB between
    runs. If intermediate values are results of Python functions, or results are views of them, nodes
    are bound anew each time, which is slow for small arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(np.ones(1000))
    >>> def block(x):
    ...     for _ in range(10):
    ...         x = rg.tanh(x)
    ...     return x.sum()
    >>> y = rg.checkpoint(block, w)
    >>> run = g.forward(y)
    >>> len(run.ran), g.stats().bytes
    (11, 8008)
    >>> len(y.backward().rebuilt)
    10
    """
    if not callable(fn):
        raise DTypeError(
            f"rg.checkpoint({safe_repr(fn):.60}, ...): it takes a function that builds nodes, and its "
            "arguments: rg.checkpoint(block, x)."
        )
    graph = graph_of((args, kwargs))
    with graph._lock:
        before = graph._scheduler.topology.next_serial
    token = _inside.set(True)
    try:
        results = fn(*args, **kwargs)
    finally:
        _inside.reset(token)
    outputs = [one for one in elements(results) if isinstance(one, Handle)]
    if not outputs:
        raise DTypeError(
            f"rg.checkpoint: {getattr(fn, '__name__', fn)!r} returned {type(results).__name__}, and no "
            "Var. It has to return what it builds, a Var or a tuple of Vars."
        )
    if any(output._graph is not graph for output in outputs):
        raise GraphError(
            f"rg.checkpoint: {getattr(fn, '__name__', fn)!r} returned a Var of another graph than its "
            "arguments'. Give it a Var of the graph in which it builds, or call it in `with graph:`."
        )
    with graph._lock:
        limit = graph._scheduler.topology.next_serial
        slots = {output._slot for output in outputs}
        graph._host.let_pass(_between(graph, slots, before), Segment(limit))
    return results


def checkpoint_sequential(functions: Iterable[Any], segments: int, input: Any) -> Any:
    """Build functions one upon the other, in parts of which only the results are kept.

    There are `segments` parts of nearly equal length. Each but the last is a ``checkpoint``, so with k parts of n
    equal layers some k + n / k values are kept instead of n.

    Parameters
    ----------
    functions : iterable of callable
        Such as the layers of a ``rg.nn.Sequential``. Each is called with the result of the one before.
    segments : int
        The number of parts, at most that of the functions.
    input : Var or array_like
        What the first one is called with.

    Returns
    -------
    object
        The result of the last function.

    Raises
    ------
    DTypeError
        If there are no functions, or fewer than `segments`.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> g = rg.Graph()
    >>> with g:
    ...     net = rg.nn.Sequential(*[rg.nn.Linear(3, 3, rng=i) for i in range(6)])
    ...     x = rg.input(np.ones((5, 3)))
    >>> loss = rg.checkpoint_sequential(net, 3, x).sum()
    >>> run = loss.backward()
    >>> len(run.rebuilt) > 0, net[0].weight.grad.shape
    (True, (3, 3))
    """
    if not isinstance(functions, Iterable):
        raise DTypeError(
            f"rg.checkpoint_sequential({safe_repr(functions):.60}, ...): the first argument is a list of functions, or "
            "a module that holds some, such as rg.nn.Sequential."
        )
    every = list(functions)
    if (
        isinstance(segments, bool)
        or not isinstance(segments, int)
        or not 1 <= segments <= len(every)
    ):
        raise ParameterError(
            f"rg.checkpoint_sequential({len(every)} functions, segments={safe_repr(segments):.40}): "
            "the number of parts is an "
            "integer from 1 to that of the functions."
        )
    # The first parts are the longer ones: the last, which keeps its values, has no more than they.
    short, more = divmod(len(every), segments)
    start = 0
    for number in range(segments):
        stop = start + short + (number < more)
        part = _one_upon_the_other(every[start:stop])
        input = part(input) if stop == len(every) else checkpoint(part, input)
        start = stop
    return input


def _one_upon_the_other(functions: list[Any]) -> Callable[[Any], Any]:
    def part(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return part


def follow_segment(graph: Any, slot: int, operand: int, contribution: int, before: int) -> None:
    """Make the nodes of a gradient, if it was built inside of a segment, part of the segment.

    Parameters
    ----------
    slot, operand
        A node, and the operand to whose gradient it contributes; the same for a sum of contributions.
    contribution
        The node of that contribution. With it, all nodes that it is computed from with serials from
        ``before`` on are meant.
    """
    host = graph._host
    how = host.transient.get(operand) or host.transient.get(slot)
    if how is None or not how.recomputed:
        return
    slots = _between(graph, {contribution}, before)
    if operand in host.transient and graph._scheduler.topology.serial[contribution] >= before:
        slots.append(contribution)
    host.let_pass(slots, how)


def _between(graph: Any, results: set[int], before: int) -> list[int]:
    """Return the computed nodes with serials from ``before`` on that these results are computed from."""
    topology, branches = graph._scheduler.topology, graph._host.branches
    serial, leaf = topology.serial, graph._scheduler.leaf

    def parents(slot: int) -> list[int]:
        both = (*topology.parents[slot], *branches.get(slot, ()))
        return [parent for parent in both if serial[parent] >= before]

    found = reached(results, parents)
    return [slot for slot in found if slot not in results and not leaf[slot]]
