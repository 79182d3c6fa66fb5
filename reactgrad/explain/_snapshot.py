"""An immutable copy of a graph's structure and states at one moment, from which pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from operator import not_
from typing import Any, Literal, NamedTuple

import numpy as np

from reactgrad.autodiff._origin import origins
from reactgrad.core._arguments import own_slot
from reactgrad.core._core import Core
from reactgrad.core._handles import handle, slots_in_order, tidy
from reactgrad.core._rows import Rows
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import FEED, Leaf
from reactgrad.nodes._scope import scopes_in
from reactgrad.nodes._site import Site, scope_of, site_text
from reactgrad.reading._plan import planned
from reactgrad.scheduler import CollectorPause, Run, at_work, error_text
from reactgrad.values._brief import brief
from reactgrad.values._columns import MISSING

State = Literal["clean", "stale", "running", "unset", "error"]
Outcome = Literal["ran", "cut_off", "rebuilt", "skipped", "failed"]


class NodeSnapshot(NamedTuple):  # a tuple: tens of thousands are made at a time
    """One node, as a snapshot found it.

    Attributes
    ----------
    key : int
        Number of its creation; the same in forks of the graph, and never given again.
    name : str
        Its name, set or made.
    kind : str
        ``"input"``, ``"param"``, ``"const"``, ``"op"`` or ``"function"``.
    op : str
        Name of what it computes; of a leaf its kind.
    state : str
        ``"clean"``, ``"stale"``, ``"running"``, ``"unset"`` (an input without value) or ``"error"``.
    outcome : str or None
        Its part in the last run: ``"ran"``, ``"cut_off"``, ``"rebuilt"``, ``"skipped"`` or
        ``"failed"``; ``None`` if that did not reach it.
    version : int
        Its value version.
    shape : str
        Its dtype and shape, such as ``float64[2, 3]``; else the type of the value, or ``unknown``.
    gradient : bool
        True if it belongs to a gradient.
    frozen, pinned, kept : bool
        Its marks; `kept`: by ``Graph.keep``.
    released : bool
        True if its value was dropped and is computed again when it is read.
    cutoff : bool
        True if it has a cutoff.
    seconds : float or None
        Mean duration in recorded runs; ``None`` if ``Graph.record`` never saw it run.
    line : str
        The user's line that built it; empty if that is not known.
    error : str
        The error that it raised, as text; else empty.
    value : str
        Its present value in a few characters, if the snapshot was asked for values; empty of a node
        that is not clean.
    scope : tuple of str
        The parts of its name before the last slash, or else the scope that it was built in, from the
        outermost on; see ``Graph.scope``. Of an adjoint without a name those of the node that it belongs to, the
        outermost one as ``"gradient of net"``.
    named : bool
        True if the name was given by the user.
    feed : bool
        True if it takes an argument of a subgraph or of a module.
    """

    key: int
    name: str
    kind: str
    op: str
    state: State
    outcome: Outcome | None
    version: int
    shape: str
    gradient: bool
    frozen: bool
    pinned: bool
    kept: bool
    released: bool
    cutoff: bool
    seconds: float | None
    line: str
    error: str
    value: str = ""
    scope: tuple[str, ...] = ()
    named: bool = False
    feed: bool = False


class EdgeSnapshot(NamedTuple):
    """One edge: a node that is computed from another one.

    Attributes
    ----------
    parent, child : int
        Keys of the two nodes.
    position : int
        The position among the operands of the child; those that a function read come last.
    detached : bool
        True if gradients do not pass.
    read : bool
        True if the child is a function that read the parent while it ran.
    """

    parent: int
    child: int
    position: int
    detached: bool
    read: bool


@dataclass(frozen=True)
class Snapshot:
    """The result of ``Graph.snapshot``. It holds no node and no value, and never changes.

    Attributes
    ----------
    nodes : tuple of NodeSnapshot
        Parents first.
    edges : tuple of EdgeSnapshot
        By child, in the order of its operands.
    weights : mapping
        The weights of edges to neurons, as text, by the keys of the two ends; see
        ``rg.extend.draw_as_neuron``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = rg.tanh(x)
    >>> [(node.name, node.state) for node in g.snapshot().nodes]
    [('x', 'clean'), ('y', 'stale')]
    """

    nodes: tuple[NodeSnapshot, ...] = field(repr=False)
    edges: tuple[EdgeSnapshot, ...] = field(repr=False)
    weights: Mapping[tuple[int, int], str] = field(default_factory=dict, repr=False)

    @cached_property
    def by_key(self) -> dict[int, NodeSnapshot]:
        """The nodes by their keys."""
        return {node.key: node for node in self.nodes}

    @cached_property
    def _computed(self) -> int:
        """The number of computed nodes."""
        kinds = [node.kind for node in self.nodes]
        return kinds.count("op") + kinds.count("function")

    @cached_property
    def parents(self) -> dict[int, list[int]]:
        """Keys of the nodes that each node is computed from, each once."""
        return self._neighbours(1)

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """Keys of the nodes that use each node, each once."""
        return self._neighbours(0)

    @property
    def ends(self) -> list[int]:
        """Keys of the computed nodes that nothing else is computed from."""
        return [
            node.key
            for node in self.nodes
            if node.kind in ("op", "function") and not self.children[node.key]
        ]

    def _take_over(self, other: Snapshot, differ: Mapping[int, NodeSnapshot]) -> None:
        """Note what was found out about another snapshot of the same nodes and edges."""
        known = vars(other)  # where cached properties are kept
        for name in ("parents", "children", "_computed"):
            if name in known:
                vars(self)[name] = known[name]
        vars(self)["by_key"] = {**other.by_key, **differ}

    def _neighbours(self, end: int) -> dict[int, list[int]]:
        found: dict[int, dict[int, None]] = {node.key: {} for node in self.nodes}
        for edge in self.edges:
            ends = edge.parent, edge.child
            found[ends[end]][ends[1 - end]] = None
        return {key: [*others] for key, others in found.items()}

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self.nodes):,} nodes, {len(self.edges):,} edges>"


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The record of one run, by the keys of the nodes; refers to nothing in the graph.

    Attributes
    ----------
    ran, cut_off, skipped, rebuilt, failed : tuple of int
        Keys, in the order in which it happened; see ``Run``.
    seconds : float
        Duration of the run.
    times : dict of int to float
        Seconds of each node that was called, by its key.
    nodes : int
        The number of computed nodes in the graph.
    """

    ran: tuple[int, ...]
    cut_off: tuple[int, ...]
    skipped: tuple[int, ...]
    rebuilt: tuple[int, ...]
    failed: tuple[int, ...]
    seconds: float
    times: dict[int, float]
    nodes: int


def snapshot(graph: Core, run: Run | None = None, values: bool = False) -> Snapshot:
    """Return the present state of a graph, with the outcomes of a run.

    No node runs. See ``Graph.snapshot``, and ``Snapshots`` for one after the other.
    """
    with graph._lock, CollectorPause():
        tidy(graph)
        # Nodes of shapes that were put aside must not be seen.
        graph._shapes.clear(graph)
        scheduler, host = graph._scheduler, graph._host
        topology, number = scheduler.topology, scheduler.topology.number
        slots = sorted(slots_in_order(graph), key=topology.rank.__getitem__)
        stale = set(scheduler.truly_stale(slots))
        outcomes = outcomes_of(graph, scheduler.last_run if run is None else run)
        texts = Texts()
        nodes = tuple(
            [_node(graph, slot, slot in stale, outcomes.get(slot), values, texts) for slot in slots]
        )
        weights = weights_of(graph, slots)
        edges: list[EdgeSnapshot] = []
        for slot in slots:
            pin = host.pins.get(slot)
            parents = topology.parents[slot] if pin is None else [one._slot for one in pin.parents]
            fixed = len(parents) if pin is not None else len(scheduler.operands(slot))
            closed = host.closed.get(slot, ())
            for position, parent in enumerate(parents):
                detached = closed is None or position in closed
                edge = (number(parent), number(slot), position, detached, position >= fixed)
                edges.append(EdgeSnapshot(*edge))
    return Snapshot(nodes, tuple(edges), weights)


def weighted(graph: Core) -> bool:
    """Return whether some node is drawn as a neuron; most graphs have few different ops."""
    from reactgrad.nodes._units import WEIGHTED  # imported late: few snapshots are taken

    ops = {id(op): op for op in graph._host.ops}
    return any(getattr(op, "name", "") in WEIGHTED for op in ops.values())


def weights_of(graph: Core, slots: Collection[int]) -> dict[tuple[int, int], str]:
    """Return the present weights of neurons, as text."""
    from reactgrad.nodes._units import WEIGHTED  # imported late: few snapshots are taken

    found: dict[tuple[int, int], str] = {}
    scheduler, host = graph._scheduler, graph._host
    number = scheduler.topology.number
    if not slots or not weighted(graph):
        return found
    for slot in slots:
        first = WEIGHTED.get(getattr(host.ops[slot], "name", ""))
        if first is None or slot in host.owners or slot in host.pins:
            continue
        genes, *sources = scheduler.operands(slot)
        value = host.data[genes]
        if not isinstance(value, np.ndarray) or scheduler.is_stale(genes):
            continue
        for source, weight in zip(sources, value[first:].tolist(), strict=False):
            found[number(source), number(slot)] = f"{weight:.3g}"
    return found


def snapshot_of(graph: Core, var: Handle) -> NodeSnapshot:
    """Return one node as it is now."""
    with graph._lock:
        slot = own_slot(graph, var, "a display")
        stale = bool(graph._scheduler.truly_stale((slot,)))
        outcome = outcomes_of(graph, graph._scheduler.last_run).get(slot)
        return _node(graph, slot, stale, outcome, False, Texts())


def snapshot_of_run(graph: Core, run: Run, times: Iterable[tuple[int, float]] = ()) -> RunSnapshot:
    """Return the record of a run, with the seconds of the slots that it called."""
    with graph._lock:
        topology, leaf = graph._scheduler.topology, graph._scheduler.leaf
        serial, number, removed = topology.serial, numbers(graph), graph._host.removed
        lists = (run.ran, run.cut_off, run.skipped, run.rebuilt, run.failed)
        stamp = run.serials.get
        ran, cut_off, skipped, rebuilt, failed = [
            tuple([number(slot) for slot in slots if stamp(slot) == serial[slot]])
            for slots in lists
        ]
        spent = {number(slot): seconds for slot, seconds in times if serial[slot]}
        computed = sum(map(not_, compress(leaf, serial)))
        computed -= sum([not leaf[slot] for slot in removed if serial[slot]])
        return RunSnapshot(ran, cut_off, skipped, rebuilt, failed, run.seconds, spent, computed)


def present(graph: Core, var: Handle) -> Any:
    """Return the value of a node, read-only; ``None`` if it is not clean, or released.

    Unlike ``var.value`` this is no read: ``last_run`` and all marks stay as they are.
    """
    with graph._lock:
        slot = own_slot(graph, var, "a display")
        if graph._scheduler.truly_stale((slot,)) or slot in graph._scheduler.dropped:
            return None
        if slot in graph._scheduler.computing or graph._scheduler.error(slot) is not None:
            return None
        value = graph._host.hand_out(slot)
        return None if value is MISSING else value


def planned_keys(graph: Core, targets: Iterable[Handle]) -> list[int]:
    """Return the keys of the nodes that a read of these would run."""
    with graph._lock:
        slots = planned(graph, [own_slot(graph, target, "a picture") for target in targets])
        return [*map(numbers(graph), slots)]


def numbers(graph: Core) -> Callable[[int], int]:
    """Return the function from slots of nodes to their keys, as a lookup where that is enough."""
    topology = graph._scheduler.topology
    return topology.number if topology.numbers else topology.serial.__getitem__


def key_of(graph: Core, var: Handle) -> int:
    """Return the key of a node in snapshots."""
    with graph._lock:
        return graph._scheduler.topology.number(own_slot(graph, var, "a picture"))


def vars_of(graph: Core, keys: Collection[int]) -> dict[int, Handle]:
    """Return the nodes with these keys, as far as they still exist."""
    with graph._lock:
        tidy(graph)
        graph._shapes.clear(graph)
        return {key: handle(graph, slot) for key, slot in slots_of(graph, keys).items()}


def slots_of(graph: Core, keys: Iterable[int]) -> dict[int, int]:
    """Return the slots of the nodes with these keys, as far as they still exist."""
    with graph._lock:
        found, removed = graph._scheduler.topology.by_number(), graph._host.removed
        return {key: found[key] for key in keys if key in found and found[key] not in removed}


def computing(graph: Core) -> list[int]:
    """Return the keys of the nodes that are being computed.

    Called from another thread, without waiting for a lock.
    """
    number = graph._scheduler.topology.number
    return [number(slot) for slot in at_work(graph._scheduler)]


def finished(graph: Core, since: int = 0) -> list[int]:
    """Return the keys of the nodes that the read under way has computed, from the given position on.

    Called from another thread, without waiting for a lock. Only a graph that is followed or recorded
    knows them.
    """
    scheduler = graph._scheduler
    stopwatch, number = scheduler.stopwatch, scheduler.topology.number
    return [] if stopwatch is None else [number(step.slot) for step in stopwatch.steps[since:]]


def adjoint_of(graph: Core, var: Handle) -> Handle | None:
    """Return the adjoint of a node in any live gradient; ``None`` if there is none."""
    with graph._lock:
        slot = own_slot(graph, var, "a display")
        for program in graph._programs.in_order():
            found = program.known(slot)
            if isinstance(found, int):
                return handle(graph, found)
    return None


def outcomes_of(graph: Core, run: Run) -> dict[int, Outcome]:
    """Return what a run did with the nodes that still exist."""
    serial = graph._scheduler.topology.serial
    found: dict[int, Outcome] = {}
    lists: tuple[tuple[Outcome, Iterable[int]], ...] = (
        ("skipped", run.skipped),
        ("ran", run.ran),
        ("cut_off", run.cut_off),
        ("rebuilt", run.rebuilt),
        ("failed", run.failed),
    )
    stamp = run.serials.get
    for outcome, slots in lists:
        for slot in slots:
            if stamp(slot) == serial[slot]:
                found[slot] = outcome
    return found


class Texts:
    """Texts of one snapshot that many nodes share: loops build many nodes at one line and of one
    shape.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], str] = {}
        self._specs: dict[int, str] = {}
        self._scopes: dict[str, tuple[str, ...]] = {"": ()}
        self._origins: dict[int, int] | None = None  # the nodes that gradients belong to

    def line(self, site: Site | None) -> str:
        """Return the user's line."""
        if site is None or site[0] is None:
            return ""
        key = id(site[0]), site[1]  # by id, since the hash of a code object is slow
        if key not in self._lines:
            self._lines[key] = site_text(site)
        return self._lines[key]

    def shape(self, host: Rows, slot: int) -> str:
        """Return dtype and shape as text."""
        key = id(host.specs[slot])
        if host.specs[slot] is None:
            return host.describe_value(slot)
        if key not in self._specs:
            self._specs[key] = host.describe_value(slot)
        return self._specs[key]

    def gradient(self, graph: Core, slot: int) -> tuple[str, ...]:
        """Return the scopes of a node of a gradient: those of the node that it belongs to, apart from them."""
        if self._origins is None:
            self._origins = origins(graph)
        node = self._origins.get(slot)
        path = () if node is None else self.of(graph, node)
        return (f"gradient of {path[0]}", *path[1:]) if path else ()

    def of(self, graph: Core, slot: int) -> tuple[str, ...]:
        """Return the scopes in the given name of a node, or those that it was built in, outermost first."""
        host = graph._host
        given = host.name_of.get(slot)
        if given is not None and (named := scopes_in(given, host.named)):
            return named
        built = self.scopes(scope_of(host.sites[slot]))
        return built or (
            self.gradient(graph, slot) if given is None and slot in host.owners else ()
        )

    def scopes(self, built: str) -> tuple[str, ...]:
        """Return the scopes that a node was built in, outermost first."""
        if built not in self._scopes:
            self._scopes[built] = tuple(built.split("/"))
        return self._scopes[built]


def _node(
    graph: Core, slot: int, stale: bool, outcome: Outcome | None, values: bool, texts: Texts
) -> NodeSnapshot:
    """Return the snapshot of one node."""
    scheduler, host = graph._scheduler, graph._host
    op, site, key = host.ops[slot], host.sites[slot], scheduler.topology.number(slot)
    leaf = isinstance(op, Leaf)
    state, error = _state(graph, slot, stale, leaf)
    return NodeSnapshot(
        key,
        host.label(slot),
        op.name if leaf else "op" if hasattr(op, "infer") else "function",
        op.name,
        state,
        outcome,
        scheduler.version(slot),
        texts.shape(host, slot),
        slot in host.owners,
        *_marks(graph, slot),
        texts.line(site),
        error,
        _value(graph, slot) if values and state == "clean" else "",
        texts.of(graph, slot),
        slot in host.name_of,
        op is FEED or (graph._subgraphs is not None and slot in graph._subgraphs.fed_by),
    )


def again(
    graph: Core, slot: int, former: NodeSnapshot, stale: bool, outcome: Outcome | None, texts: Texts
) -> NodeSnapshot:
    """Return the snapshot, with its value, of a node whose edges, op and pin are as in a former one."""
    scheduler, host = graph._scheduler, graph._host
    if host.name_of.get(slot) != (former.name if former.named else None):
        return _node(graph, slot, stale, outcome, True, texts)
    state, error = _state(graph, slot, stale, former.kind not in ("op", "function"))
    return NodeSnapshot(
        former.key,
        former.name,
        former.kind,
        former.op,
        state,
        outcome,
        scheduler.versions.version[slot],
        texts.shape(host, slot),
        former.gradient,
        *_marks(graph, slot),
        former.line,
        error,
        _value(graph, slot) if state == "clean" else "",
        former.scope,
        former.named,
        former.feed,
    )


def _marks(graph: Core, slot: int) -> tuple[bool, bool, bool, bool, bool, float | None]:
    """Return whether a node is frozen, pinned, kept, released and has a cutoff, and its mean time in seconds."""
    scheduler, host = graph._scheduler, graph._host
    return (
        slot in host.frozen,
        slot in host.pins,
        slot in host.kept,
        slot in scheduler.dropped,
        slot in host.cutoffs,
        graph._measured.mean(slot, scheduler.topology.serial[slot]),
    )


def _state(graph: Core, slot: int, stale: bool, leaf: bool) -> tuple[State, str]:
    """Return the state of a node, and the error that it raised as text."""
    scheduler = graph._scheduler
    error = None if leaf else scheduler.error(slot)
    if slot in scheduler.computing:
        state: State = "running"
    elif error is not None:
        state = "error"
    else:
        state = "clean" if not stale else "unset" if leaf else "stale"
    return state, "" if error is None else error_text(error)


def _value(graph: Core, slot: int) -> str:
    """Return the value of a clean node as text, read in place, so that nothing is copied or kept."""
    host = graph._host
    value, found = host.data[slot], host.specs[slot]
    if value is MISSING or (found is not None and found.known and found.kind != "cpu"):
        return ""
    if found is not None and found.known and not found.shape and isinstance(value, np.ndarray):
        value = value.reshape(-1)[0]  # scalars are stored with one axis
    return brief(value)
