"""Functions of nodes that are built once for each structure of their arguments, and then reused.

What was built, an *instance*, begins with one feed node for each array or node among the arguments.
A later call lets the feeds follow other nodes or values, if nobody can see its former result any more.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from reactgrad._errors import DTypeError, GraphError, UnsetError
from reactgrad.autodiff import asked_before_reads
from reactgrad.backend import Spec, owner, read_value
from reactgrad.change._change import Change
from reactgrad.change._stand_in import connect, probe
from reactgrad.flow import hooks_here, in_checkpoint, is_grad_enabled
from reactgrad.nodes._cutoff import equal
from reactgrad.ops import FEED, Handle, current_graph
from reactgrad.values._store import MISSING

if TYPE_CHECKING:
    from reactgrad.core._rows import Host
    from reactgrad.graph._graph import Graph
    from reactgrad.graph._var import Var

P = ParamSpec("P")
R = TypeVar("R")

# Instances of one function in one graph that are kept although nobody uses them, the latest ones.
SPARE = 16

# So many instances of a structure are asked whether they are free before one more is built.
ASKED = 4


def _references(objects: Any, key: Any) -> int:
    return sys.getrefcount(objects[key])


_ALONE = _references([object()], 0)
_PLAIN = (bool, int, str, bytes, type(None), Enum, np.dtype)


class Same:
    """An object as a part of a structure: equal to itself only, and not kept by it."""

    __slots__ = ("_hash", "_of")

    def __init__(self, of: Any) -> None:
        self._hash = id(of)
        try:
            self._of: Callable[[], Any] = weakref.ref(of)
        except TypeError:
            self._of = lambda: of  # there are no weak references to it

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return NotImplemented
        mine = self._of()
        return mine is not None and mine is other._of()


class Instance:
    """A function as it was built for one structure of arguments.

    Attributes
    ----------
    feeds : list of int
        The slots of the feeds, in order of the arguments.
    result : object
        What the function has returned, with a ``_Place`` for each node of the instance.
    nodes : dict
        By slot the serial, the operands (``None``: a feed) and the cutoff of each node that depends
        on the feeds or was built for what was returned, as it was built.
    """

    __slots__ = ("__weakref__", "_anchors", "_marks", "feeds", "nodes", "result")

    def __init__(self, graph: Graph, feeds: list[Var], result: Any, first: int) -> None:
        host, scheduler = graph._host, graph._scheduler
        self.feeds = [var._slot for var in feeds]
        nodes = _descendants(graph, self.feeds)
        ends: dict[int, Var] = {}

        def place(one: Any) -> Any:
            if isinstance(one, Handle):
                base = getattr(one, "base", None)
                var: Any = one if base is None else base
                if var._slot in nodes or scheduler.topology.serial[var._slot] >= first:
                    ends[var._slot] = var
                    return _Place(var._slot, base is not None)
            return one

        self.result = _mapped(result, place)
        nodes.update(dict.fromkeys(_built(graph, list(ends), first)))
        self.nodes = {
            slot: (
                scheduler.topology.serial[slot],
                None if slot in self.feeds else scheduler.operands(slot),
                host.cutoffs.get(slot),
            )
            for slot in nodes
        }
        self._marks = _marks(host, self.nodes)
        # These stay when nobody holds a handle, with the gradients that live with the handles.
        self._anchors = [host.anchor(slot) for slot in {*self.feeds, *ends}]
        for slot, var in ends.items():
            host.twin_programs[slot] = var._programs_dict()
        # What is told of its end must not keep the graph alive, as those programs do.
        weakref.finalize(self, _forget, weakref.ref(host), list(ends))

    def intact(self, graph: Graph) -> bool:
        """Whether all nodes are as they were built and in the graph, and nothing was added to them."""
        host, scheduler = graph._host, graph._scheduler
        serials, nodes, cutoffs = scheduler.topology.serial, self.nodes, host.cutoffs
        if _marks(host, nodes) != self._marks or not host.removed.isdisjoint(nodes):
            return False
        for slot, (serial, operands, cutoff) in nodes.items():
            if serials[slot] != serial or cutoffs.get(slot) is not cutoff:
                return False
            if operands is not None and scheduler.operands(slot) != operands:
                return False
        return True

    def free(self, graph: Graph) -> bool:
        """Whether nobody sees its nodes, also not by way of their gradients."""
        host, topology = graph._host, graph._scheduler.topology
        programs = _programs(graph, self.nodes)
        known = _alone(programs) | self._marks["kept"].keys()
        seen = set(self.nodes)
        stack = list(seen)
        children, owners = topology.children, host.owners
        while stack:
            slot = stack.pop()
            if _held(host, slot, known):
                return False
            users = host.branch_users.get(slot) if host.branch_users else None
            for child in (*children[slot], *users) if users else children[slot]:
                if child not in seen:
                    owner = owners.get(child)
                    # What a gradient has built that is gone belongs to who uses it.
                    if owner not in programs and (owner is None or graph._programs.lives(owner)):
                        return False
                    seen.add(child)
                    stack.append(child)
        return seen.isdisjoint(graph._observers.observed)

    def differing(self, graph: Graph, arguments: list[Any]) -> dict[int, Any]:
        """By feed the arguments that it is not fed with yet."""
        return {
            feed: argument
            for feed, argument in zip(self.feeds, arguments, strict=True)
            if not _fed(graph, feed, argument)
        }

    def feed(self, graph: Graph, arguments: dict[int, Any]) -> None:
        """Let these feeds follow other arguments."""
        grads = graph._host.grads
        for slot in self.nodes.keys() & grads.keys():  # of the former result
            del grads[slot]
        for slot, argument in arguments.items():
            _give(graph, slot, argument)

    def returned(self, graph: Graph) -> Any:
        """What the function has returned."""
        return _mapped(self.result, lambda one: one.var(graph) if type(one) is _Place else one)


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of an instance in what its function has returned."""

    slot: int
    detached: bool

    def var(self, graph: Graph) -> Any:
        var = graph._handle(self.slot)
        var._programs_dict()  # which the instance may not keep for it
        return var.detach() if self.detached else var


class Subgraph(Generic[P, R]):
    """A function whose nodes are built once and reused; made by ``rg.subgraph``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> @rg.subgraph
    ... def double(x):
    ...     return x * 2.0
    >>> double(3.0).value
    np.float64(6.0)
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self._function: Callable[..., R] = function
        functools.update_wrapper(self, function)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # of some built-in functions none is known
            self._signature = None

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        args, kwargs = self._written(args, kwargs)
        arguments: list[Any] = []
        structure = _structure((args, kwargs), arguments)
        graph = _graph_of((args, kwargs))
        specs, arguments = _read(graph, arguments)
        with graph._lock:
            graph._scheduler.check_idle()
            graph._tidy()  # what nobody holds any more sees nothing
            mode = graph._host.mode
            training = mode is None or graph._host.data[mode]
            key = (
                structure,
                specs,
                is_grad_enabled(graph),
                training,
                hooks_here(),
                in_checkpoint(),
            )
            if graph._subgraphs is None:
                graph._subgraphs = Pool()
            return graph._subgraphs.instance(
                graph,
                self,
                key,
                arguments,
                lambda: self._build(graph, args, kwargs, specs, arguments),
            ).returned(graph)

    def _written(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments in one form, whether they were named or left out."""
        if self._signature is None:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _build(
        self, graph: Graph, args: Any, kwargs: Any, specs: tuple[Spec | None, ...], arguments: Any
    ) -> Instance:
        first = graph._scheduler.topology.next_serial
        feeds = [_feed(graph, found) for found in specs]
        stand_ins = iter(feeds)
        numbers: set[int] = set()  # inputs that hold one, which stand for themselves

        def stand_in(one: Any) -> Any:
            if _feeds(one):
                return next(stand_ins)
            if isinstance(one, Handle):
                numbers.add(one._slot)
            return one

        args, kwargs = _mapped((args, kwargs), stand_in)
        try:
            with graph, graph._subgraphs.building(feeds, arguments):
                result = _called(graph, numbers, lambda: self._function(*args, **kwargs))
                if graph._programs.waiting:  # so that what is built now is what stays
                    graph._follow_rules()
        except GraphError as error:
            if not any(isinstance(one, Handle) for one in arguments):
                error.add_note(
                    f"{self.__name__} was called without nodes, so what it builds belongs to the current "  # type: ignore[attr-defined]
                    "graph. Call it inside of `with g:`, g being the graph of the nodes that it uses."
                )
            raise
        graph._tidy()  # what was only needed to build it is no part of it
        instance = Instance(graph, feeds, result, first)
        with graph._scheduler.notes.aside():  # a transaction that fails leaves it as any new node
            instance.feed(graph, dict(zip(instance.feeds, arguments, strict=True)))
        return instance


class Pool:
    """All instances in one graph."""

    __slots__ = ("_building", "_of", "_sweep_at")

    def __init__(self) -> None:
        # The feeds and arguments of what is being built, the innermost last.
        self._building: list[tuple[list[Var], list[Any]]] = []
        self._of: weakref.WeakKeyDictionary[Any, Instances] = weakref.WeakKeyDictionary()
        self._sweep_at = SPARE

    def instance(
        self,
        graph: Graph,
        function: Subgraph[Any, Any],
        key: Any,
        arguments: list[Any],
        build: Callable[[], Instance],
    ) -> Instance:
        """An instance for these arguments, and fed with them."""
        instances = self._of.setdefault(function, Instances())
        instance = instances.find(graph, key, arguments)
        if instance is None and len(self) >= self._sweep_at:
            visible = self._sweep(graph)
            self._sweep_at = max(SPARE, 2 * visible)
            instance = instances.find(graph, key, arguments)
        if instance is None:
            instance = build()
            # Rules that wait for a function to run will be built anew: not what is kept here.
            if not graph._programs.wait_for(instance.nodes):
                instances.add(graph, key, instance)
        return instance

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    @property
    def under_way(self) -> bool:
        """Whether an instance is being built."""
        return bool(self._building)

    def make_way(self, graph: Graph, slots: Iterable[int]) -> bool:
        """Forget the instances that are free and depend on these nodes, or have them; whether there were any."""
        cone = graph._scheduler.topology.descendants(slots)
        forgot = False
        while any(one.forget_free(graph, cone) for one in self._of.values()):
            forgot = True
            graph._tidy()  # now those are free that fed them
        return forgot

    @contextmanager
    def building(self, feeds: list[Var], arguments: list[Any]) -> Iterator[None]:
        """Build an instance, whose feeds have no values yet."""
        self._building.append((feeds, arguments))
        try:
            yield
        finally:
            self._building.pop()

    @contextmanager
    def fed(self, graph: Graph) -> Iterator[None]:
        """Let what is being built have the values of its arguments, for rules that must look."""
        building, self._building = self._building, []
        pairs = [pair for feeds, given in building for pair in zip(feeds, given, strict=True)]
        try:
            with graph._scheduler.notes.aside():
                for feed, argument in pairs:
                    _give(graph, feed._slot, argument, lenient=True)
            yield
        finally:
            self._building = building
            with graph._scheduler.notes.aside():
                for feed, _ in pairs:
                    _take(graph, feed)

    def _sweep(self, graph: Graph) -> int:
        """Set free what only others feed on that nobody sees either; returns how many are seen.

        A chain of calls is such: each but the last feeds the next one. Costs all that depends on
        instances, so it is done when there are twice as many as were seen the last time.
        """
        host, topology = graph._host, graph._scheduler.topology
        every = [one for instances in self._of.values() for one in instances]
        reached = _descendants(graph, [slot for one in every for slot in one.nodes])
        known = _alone(_programs(graph, reached))
        kept = host.kept.keys() | graph._observers.observed.keys()
        visible = {slot for slot in reached if slot in kept or _held(host, slot, known)}
        stack = list(visible)
        while stack:
            slot = stack.pop()
            for parent in (*topology.parents[slot], *host.branches.get(slot, ())):
                if parent in reached and parent not in visible:
                    visible.add(parent)
                    stack.append(parent)
        unseen = [one for one in every if visible.isdisjoint(one.nodes)]
        for slot in host.twin_programs.keys() & {slot for one in unseen for slot in one.nodes}:
            host.twin_programs[slot].clear()  # gradients through the whole chain
        feeds = [slot for one in unseen for slot in one.feeds]
        for slot in sorted(feeds, key=topology.rank.__getitem__, reverse=True):
            if not reached.keys().isdisjoint(topology.parents[slot]):
                connect(graph._handle(slot), _unset(graph, host.specs[slot]))
        graph._tidy()
        for instances in self._of.values():
            instances.prefer(unseen)
        return len(every) - len(unseen)


class Instances:
    """The instances of one function in one graph, by structure, the latest used last."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[Any, deque[Instance]] = {}

    def __iter__(self) -> Iterator[Instance]:
        return itertools.chain.from_iterable(self._of.values())

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def prefer(self, unseen: list[Instance]) -> None:
        """Let these be asked first."""
        first = set(unseen)
        for key, instances in self._of.items():
            self._of[key] = deque(sorted(instances, key=first.__contains__))

    def find(self, graph: Graph, key: Any, arguments: list[Any]) -> Instance | None:
        """An instance for these arguments, and fed with them, if one is there."""
        instances = self._of.get(key)
        if not instances:
            return None
        self._of[key] = self._of.pop(key)
        for asked in range(min(ASKED, len(instances))):
            instance = instances.pop()
            differing = instance.differing(graph, arguments) if asked == 0 else None
            if differing == {} and instance.intact(graph):
                instances.append(instance)
                return instance
            if not instance.free(graph):
                instances.appendleft(instance)  # asked again when all others were
            elif instance.intact(graph):
                instances.append(instance)
                if differing is None:
                    differing = instance.differing(graph, arguments)
                with (
                    graph._scheduler.notes.aside()
                ):  # as one that is new: nobody sees what it was fed
                    instance.feed(graph, differing)
                return instance
        return None

    def forget_free(self, graph: Graph, among: Set[int]) -> bool:
        """Forget the free instances that have one of these nodes; whether there were any."""
        going = [
            (instances, one)
            for instances in self._of.values()
            for one in instances
            if not among.isdisjoint(one.nodes) and one.free(graph)
        ]
        for instances, one in going:
            instances.remove(one)
        return bool(going)

    def add(self, graph: Graph, key: Any, instance: Instance) -> None:
        """Take in an instance; let go of unused ones, those of which the last use is longest ago."""
        self._of.setdefault(key, deque()).append(instance)
        for structure in list(self._of)[: max(len(self._of) - SPARE, 0)][:ASKED]:
            instances = self._of.pop(structure)
            used = deque([one for one in instances if not one.free(graph)])
            if used:
                self._of[structure] = used


# --- arguments -----------------------------------------------------------------------------------


def _feeds(one: Any) -> bool:
    """Whether an argument is a node or a value that nodes can have; others are part of the structure.

    So are inputs that hold a number: what follows one is an array.
    """
    if isinstance(one, Handle):
        found = one._graph._host.specs[one._slot]
        return found is None or found.weak is None
    return isinstance(one, float | complex | np.ndarray | np.generic) or (
        not isinstance(one, _PLAIN) and owner(one) is not None
    )


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nesting with `change` of what is in it."""
    if isinstance(value, tuple):
        parts = [_mapped(one, change) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is list:
        return [_mapped(one, change) for one in value]
    if type(value) is dict:
        return {key: _mapped(one, change) for key, one in value.items()}
    return change(value)


def _structure(value: Any, arguments: list[Any]) -> Any:
    """The nesting of a value without what feeds nodes, which goes into `arguments`, as a key."""
    if isinstance(value, tuple) or type(value) is list:
        return (type(value), *[_structure(one, arguments) for one in value])
    if type(value) is dict:
        return (dict, *[(key, _structure(one, arguments)) for key, one in value.items()])
    if _feeds(value):
        arguments.append(value)
        return Handle
    if isinstance(value, slice):
        return (slice, *_structure((value.start, value.stop, value.step), arguments))
    if isinstance(value, Handle):
        base = getattr(value, "base", None)
        return (type(value), Same(value if base is None else base))
    return (type(value), value) if isinstance(value, _PLAIN) else Same(value)


def _graph_of(value: Any) -> Graph:
    """The graph of the first node among some arguments, else the current one."""
    found: list[Any] = []
    _mapped(value, lambda one: found.append(one._graph) if isinstance(one, Handle) else None)
    if found:
        return found[0]
    return current_graph()


def _read(graph: Graph, arguments: list[Any]) -> tuple[tuple[Spec | None, ...], list[Any]]:
    """Shape and dtype of each argument, and the arguments as a leaf would take them."""
    specs: list[Spec | None] = []
    taken: list[Any] = []
    for one in arguments:
        if isinstance(one, Handle):
            if one._graph is not graph:
                raise GraphError(
                    f"the arguments of a subgraph are nodes of several graphs: {one.name!r} is of another "  # type: ignore[attr-defined]
                    "one than those before. Pass its value, or build all of them in one graph."
                )
            found, value = graph._host.specs[one._slot], one
        else:
            found, value = read_value(one, "an argument of a subgraph")
        specs.append(found)
        taken.append(value)
    return tuple(specs), taken


def _called(graph: Graph, unread: set[int], function: Callable[[], Any]) -> Any:
    """What a function returns that may not read these nodes, nor what is computed from them."""
    if not unread:
        return function()

    def check(slot: int) -> None:
        if not unread.isdisjoint(graph._scheduler.topology.ancestors([slot])):
            raise UnsetError(FEED.missing)

    return asked_before_reads(graph, check, function)


# --- feeds ---------------------------------------------------------------------------------------


def _feed(graph: Graph, found: Spec | None) -> Var:
    """What the function gets for an argument: a node without a value so far."""
    if found is None or found.weak is None:
        return probe(graph, found, FEED.missing)
    return _unset(graph, found)  # a number remains one only as a leaf


def _unset(graph: Graph, found: Spec | None) -> Var:
    """A leaf without a value, for a feed to follow or to be."""
    slot = graph._scheduler.add((), leaf=True, valued=False)
    graph._host.add_node(slot, FEED, (), found, MISSING, None)
    return graph._handle(slot)


def _give(graph: Graph, feed: int, argument: Any, *, lenient: bool = False) -> None:
    """Let a feed have the value of an argument, now and when that changes."""
    leaf = None if isinstance(argument, Handle) else _leaf(graph, feed)
    if leaf is not None:
        leaf.set(argument)
        return
    if not isinstance(argument, Handle):
        argument = graph._new_leaf(FEED, argument, None, None, None, None)
    connect(graph._handle(feed), argument, lenient=lenient)


def _take(graph: Graph, feed: Var) -> None:
    """Let a feed have no value."""
    if graph._host.ops[feed._slot] is not FEED:
        # Gradients that cannot be built without a value are built again when there is one.
        connect(feed, _unset(graph, graph._host.specs[feed._slot]), lenient=True)
        return
    feed.touch()
    with Change(graph, None) as change:
        change.put(feed._slot, MISSING)


def _leaf(graph: Graph, feed: int) -> Var | None:
    """The leaf that gives a feed its value, if it has one of its own."""
    ops, slot = graph._host.ops, feed
    if ops[feed] is not FEED:
        operands = graph._scheduler.operands(feed)
        if not operands:  # connected to nothing so far
            return None
        (slot,) = operands
        if ops[slot] is not FEED or len(graph._scheduler.topology.children[slot]) > 1:
            return None
    return graph._handle(slot)


def _fed(graph: Graph, feed: int, argument: Any) -> bool:
    """Whether a feed has the value of this argument, now and when that changes."""
    if isinstance(argument, Handle):
        closed = graph._host.closed.get(feed, ())
        detached = getattr(argument, "base", None) is not None
        return graph._scheduler.operands(feed) == (argument._slot,) and (
            closed is None or (0 in closed) is detached
        )
    leaf = _leaf(graph, feed)
    return leaf is not None and equal(leaf.value, argument)


# --- nodes ---------------------------------------------------------------------------------------


def _descendants(graph: Graph, slots: list[int]) -> dict[int, None]:
    """These nodes and all that depend on them, also where a choice might."""
    children, users = graph._scheduler.topology.children, graph._host.branch_users
    found = dict.fromkeys(slots)
    stack = list(found)
    while stack:
        slot = stack.pop()
        for child in (*children[slot], *users.get(slot, ())):
            if child not in found:
                found[child] = None
                stack.append(child)
    return found


def _built(graph: Graph, ends: list[int], first: int) -> list[int]:
    """The computed nodes since the serial `first` that lead to some nodes, and these."""
    topology, leaf = graph._scheduler.topology, graph._scheduler.leaf
    branches = graph._host.branches
    found: dict[int, None] = {}
    stack = ends.copy()
    while stack:
        slot = stack.pop()
        if slot not in found and topology.serial[slot] >= first and not leaf[slot]:
            found[slot] = None
            stack += (*topology.parents[slot], *branches.get(slot, ()))
    return list(found)


def _programs(graph: Graph, nodes: Iterable[int]) -> dict[int, dict[int, Var]]:
    """The gradients that live with some nodes, and theirs in turn: what was given out, by number."""
    known, givers = graph._host.twin_programs, graph._host.givers
    found: dict[int, dict[int, Var]] = {}
    stack = [known[slot] for slot in known.keys() & nodes]
    while stack:
        for entry in stack.pop().values():
            if isinstance(entry, tuple) and entry[1].number not in found:
                found[entry[1].number] = entry[2]
                stack += [getattr(var, "_programs", {}) for var in entry[2].values()]
    # Those that gave out one of the nodes: gradients that the function has asked for.
    for slot in givers.keys() & nodes:
        for program in givers[slot]:
            found.setdefault(program.number, {})
    return found


def _alone(programs: dict[int, dict[int, Var]]) -> set[int]:
    """The slots of those gradients that nobody holds but the program that gave them out."""
    return {
        adjoints[slot]._slot
        for adjoints in programs.values()
        for slot in adjoints
        if _references(adjoints, slot) <= _ALONE
    }


def _marks(host: Host, nodes: Mapping[int, Any]) -> dict[str, dict[int, Any]]:
    """What was done to some nodes besides building them."""
    return {
        "pinned": _part(host.pins, nodes),
        "hooks": _part(host.hooks, nodes),
        "retained": dict.fromkeys(nodes.keys() & host.retained) if host.retained else {},
        "kept": _part(host.kept, nodes),
    }


def _part(table: dict[int, Any], nodes: Mapping[int, Any]) -> dict[int, Any]:
    return {slot: table[slot] for slot in nodes.keys() & table.keys()} if table else {}


def _held(host: Host, slot: int, known: set[int]) -> bool:
    """Whether somebody holds the handle of a node, but for gradients that are `known`."""
    ref = host.handles[slot]
    return ref is not None and slot not in known and ref() is not None


def _forget(of: weakref.ref[Host], slots: list[int]) -> None:
    """Let gradients go with the instance that has kept them."""
    host = of()
    if host is not None:
        for slot in slots:
            host.twin_programs.pop(slot, None)


@overload
def subgraph(function: Callable[P, R]) -> Subgraph[P, R]: ...
@overload
def subgraph(function: None = None) -> Callable[[Callable[P, R]], Subgraph[P, R]]: ...
def subgraph(function: Any = None) -> Any:
    """A function of nodes whose nodes are built once for each structure and reused afterwards.

    Called with an array, a Var or a detached Var, the same nodes follow the array, follow the Var, or
    follow it without passing gradients to it. So a model that is written as a function, and called
    anew for every batch, does not build anew. A call looks at each node of the instance, and of the
    gradients that live with it, whether somebody else sees it: some 0.2 us a node.

    Two results that live never change each other: nodes are used again only when nobody can see their
    former result, or when the arguments are the same. Somebody sees it who holds it, or a node or
    gradient that depends on it, or observes one.

    The structure of a call is the nesting of the arguments in tuples, lists and dicts; shape, dtype and
    device of arrays and nodes; whether gradients are recorded, train or eval mode, the block of
    ``saved_tensors_hooks`` and whether it is called for a checkpoint; and everything else that is passed:
    integers, strings and other plain values by value, objects such as ``self`` and inputs that hold a
    number by identity. What else the function looks at, it looks at only when it is built: also
    ``x.requires_grad``, which says nothing there, since gradients pass as each call has it.

    Parameters
    ----------
    function : callable
        Builds and returns nodes, in any nesting of tuples, lists and dicts. It cannot read the values
        of its arguments. May be a method.

    Returns
    -------
    Subgraph
        Called like the function, with arrays and floats where the function takes nodes.

    Raises
    ------
    UnsetError
        If the function reads the value of an argument.
    GraphError
        If the arguments are nodes of several graphs.

    Notes
    -----
    Without a node among the arguments the nodes belong to the current graph. Of each function and graph,
    the last 16 instances that are free are kept.

    Each argument is one of its own, also where two are the same node: a gradient that is asked for inside
    is by that argument alone.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     w = rg.param([1.0, 2.0])
    ...     x = rg.input([3.0, 4.0])
    >>> @rg.subgraph
    ... def loss(x):
    ...     return ((w * x) ** 2).sum()
    >>> loss(x).value
    np.float64(73.0)
    >>> size = len(g)
    >>> loss(x * 2.0).value, loss(x.detach()).value
    (np.float64(292.0), np.float64(73.0))
    >>> len(g) == size
    True
    >>> first, second = loss(x), loss(x + 1.0)
    >>> first.value, second.value
    (np.float64(73.0), np.float64(116.0))
    """
    if function is None:
        return subgraph
    if not callable(function):
        raise DTypeError(f"subgraph takes a function that builds nodes, not {function!r:.60}.")
    return Subgraph(function)
