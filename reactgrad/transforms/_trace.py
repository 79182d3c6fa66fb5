"""Functions of arrays as graphs: built once for each kind of arguments, then set and read.

A *trace* is a separate graph with an input for each argument. It is built by calling the function
with these inputs, and used again for arguments of the same shapes and dtypes. That is right only if
the function does the same with other values, so a trace in which a value was read (by a branch on
it, or a loop up to it) is used once.

Between calls a trace is *idle*. It keeps its values, so that the next call computes only what
depends on arguments that differ. The memory of all idle traces of a function is bounded.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakKeyDictionary

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, device_of, own_copy, read_value
from reactgrad.core._handles import release_values
from reactgrad.flow._autocast import precision_here
from reactgrad.flow._mode import Differentiable
from reactgrad.graph._graph import Graph
from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._handle import Anchor
from reactgrad.nodes._nested import elements, mapped
from reactgrad.scheduler import Block, block
from reactgrad.subgraphs._arguments import surroundings

# The most kinds of arguments of one function, and the most idle traces of one kind. Several of one
# kind exist where threads, or calls inside of calls, needed them at the same time.
MAX_KINDS: Final = 64
MAX_IDLE: Final = 8
# The memory that the idle traces of one function may hold together. With less, a loop over large
# arrays, such as an optimizer's, would spend its time on new memory. The latest trace stays in any
# case; one that exceeds the limit alone releases what it can compute again.
MAX_BYTES: Final = 2**28

Build = Callable[..., Any]
# By function: its traces are released with it.
_kept: WeakKeyDictionary[Any, OrderedDict[Hashable, list[Trace]]] = WeakKeyDictionary()
_lock = threading.RLock()
# The graph in which a function of this thread or task is being called to be differentiated.
_called_in: ContextVar[Graph | None] = ContextVar("reactgrad_called_in", default=None)


@block
def called_in(graph: Graph) -> Iterator[None]:
    """Call a function to differentiate what it builds in this block, whatever gradient mode
    surrounds it.
    """
    token = _called_in.set(graph)
    try:
        with graph, Differentiable():
            yield
    finally:
        _called_in.reset(token)


def outer_graph() -> Graph | None:
    """Return the graph of the call around, whose nodes a function may close over.

    ``None`` inside of a node that runs, which gets values and builds nothing.
    """
    graph = _called_in.get()
    return None if graph is None or graph.running is not None else graph


class TracedGraph(Graph):
    """A graph that notes whether a value was read.

    Attributes
    ----------
    looked_at : bool
        True once a value was read.
    taken : dict of int to Anchor
        Nodes whose value was read and is not a condition: a number that was taken out of the graph.
        They are kept until the function has returned.
    """

    looked_at = False
    _traced = True

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[int, Anchor] = {}
        self._following: list[weakref.ref[Any]] = []

    @property
    def follows(self) -> bool:
        """True if it computes what its function would build for other values, too."""
        return not self.looked_at and all(program() is not None for program in self._following)

    def _value(self, slot: int) -> Any:
        self.looked_at = True
        found = self._host.specs[slot]
        if slot not in self.taken and (found is None or found.dtype.kind == "f"):
            self.taken[slot] = self._host.anchor(slot)
        return super()._value(slot)

    def _value_for_rule(self, slot: int) -> Any:
        return super()._value(slot)

    def _rule_saw(self, program: Any) -> None:
        self._following.append(weakref.ref(program))


class Trace:
    """A function, or what a transform makes of it, built for arguments of one kind.

    Attributes
    ----------
    result
        The result of `build`: Vars, in tuples as it returned them.
    reusable : bool
        True if it also holds for other values of the arguments.
    bytes : int or None
        The memory of its values while it is idle; the kind of the arguments decides it.
    """

    __slots__ = ("_graph", "_inputs", "_large", "bytes", "result", "reusable")

    def __init__(self, build: Build, arguments: Arguments) -> None:
        self._graph = graph = TracedGraph()
        self._inputs = [
            None if found is None else graph.input(value) for found, value in arguments.read
        ]
        operands = [
            value if var is None else var
            for var, (_, value) in zip(self._inputs, arguments.read, strict=True)
        ]
        with called_in(graph):
            self.result = arguments.call(build, operands)
        graph.taken.clear()
        self.reusable = graph.follows
        self.bytes: int | None = None
        self._large = False

    def rest(self) -> None:
        """Release values that take too much memory to wait for a call that may never come."""
        graph = self._graph
        if self.bytes is None:
            self._large = graph.stats().bytes > MAX_BYTES
        if self._large:
            release_values(graph, graph._scheduler.topology.slots())
        if self.bytes is None:
            self.bytes = graph.stats().bytes

    def set(self, arguments: Arguments) -> None:
        """Give the inputs the values of other arguments.

        Nodes that depend only on equal ones need not run.
        """
        pairs = zip(self._inputs, arguments.read, strict=True)
        self._graph.set(
            {
                var: value
                for var, (_, value) in pairs
                if var is not None and not equal(var.value, value)
            }
        )


class Arguments:
    """The arguments of a function: numbers and arrays, which may change, and other objects.

    Booleans, strings, ``None`` and other hashable objects belong to the kind of the arguments, as
    shapes and dtypes do.
    """

    __slots__ = ("_names", "kind", "read")

    def __init__(self, what: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._names = tuple(kwargs)
        self.read: list[tuple[Spec | None, Any]] = [
            (None, value)
            if isinstance(value, bool)
            else read_value(value, f"argument {i} of {what}")
            for i, value in enumerate((*args, *kwargs.values()))
        ]
        parts = [(type(value), value) if found is None else found for found, value in self.read]
        self.kind = (self._names, *parts)
        try:
            hash(self.kind)
        except TypeError:
            kinds = [type(v).__name__ for found, v in self.read if found is None]
            raise DTypeError(
                f"{what} was called with {' and '.join(kinds)}: arguments are numbers and arrays, "
                "or hashable objects that stay the same. Pass what is in a container as arguments "
                "of their own."
            ) from None

    def own(self) -> None:
        """Copy the arrays, which the caller may change."""
        self.read = [
            (found, value)
            if found is None or found.weak is not None
            else (found, device_of(found.device).reshape(own_copy(found, value), found.shape))  # type: ignore[arg-type]
            for found, value in self.read
        ]

    def call(self, function: Build, operands: Sequence[Any]) -> Any:
        """Call a function with other objects in place of these arguments."""
        split = len(operands) - len(self._names)
        return function(*operands[:split], **dict(zip(self._names, operands[split:], strict=True)))


def traced(function: Any, transform: Hashable, build: Build, arguments: Arguments) -> Block[Any]:
    """Return a block that yields what `build` makes of the arguments, as Vars that hold their values during the block.

    Parameters
    ----------
    function
        The function that is transformed; its traces are kept as long as it lives.
    transform
        Identifies what `build` does with it: each transform has its own traces.
    build
        From Vars, in place of numbers and arrays, to Vars or tuples of Vars.
    """
    key = (transform, arguments.kind, surroundings(function), precision_here())
    trace = _taken(function, key)
    if trace is None:
        trace = Trace(build, arguments)
    else:
        trace.set(arguments)
    return _in_use(function, key, trace)


@block
def _in_use(function: Any, key: Hashable, trace: Trace) -> Iterator[Any]:
    yield trace.result
    # Not reached if the block raised: then the next call builds a new trace.
    if trace.reusable:
        trace.rest()
        _give(function, key, trace)


def _taken(function: Any, key: Hashable) -> Trace | None:
    """Take an idle trace for this call alone. Threads and calls inside of calls share none."""
    with _lock:
        try:
            kinds = _kept.get(function)
        except TypeError:  # a function that is not hashable, or not weakly referable
            return None
        idle = None if kinds is None else kinds.get(key)
        return idle.pop() if idle else None


def _give(function: Any, key: Hashable, trace: Trace) -> None:
    """Keep an idle trace for later calls, within the limits."""
    with _lock:
        try:
            kinds = _kept.setdefault(function, OrderedDict())
        except TypeError:
            return
        idle = kinds.setdefault(key, [])
        # The kind used longest ago is dropped first.
        kinds.move_to_end(key)
        if len(idle) < MAX_IDLE and (not idle or _bytes([idle, [trace]]) <= MAX_BYTES):
            idle.append(trace)
        while len(kinds) > MAX_KINDS or (len(kinds) > 1 and _bytes(kinds.values()) > MAX_BYTES):
            kinds.popitem(last=False)


def _bytes(kinds: Iterable[list[Trace]]) -> int:
    """Return the memory of idle traces; those of one kind hold the same."""
    return sum([len(idle) * (idle[0].bytes or 0) for idle in kinds if idle])


def values(result: Any) -> Any:
    """Return the values of Vars in tuples, all read at one moment."""
    leaves = list(elements(result))
    if leaves:
        leaves[0].graph.forward(*leaves)
    return mapped(result, lambda one: one.value)
