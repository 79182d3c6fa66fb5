"""All that a graph is, as one immutable snapshot; and a graph made of such a snapshot.

Nodes are numbered in order of creation. ``State`` holds one column for each thing that every node
has, and pairs of a node and something for what only some have. Gradient programs are not part of
it: what only they keep alive is left out and is built anew when it is asked for. Nor are observers,
hooks, ``.grad`` and stored errors: a node that raised, or caught what another one raised, runs again.

Marks are not part of it either: versions are the truth (rule E16), and ``restore`` derives the
marks from them.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from reactgrad._errors import BusyError, LoadError, ReactgradError, SaveError
from reactgrad.autodiff._hooks import GradientHook
from reactgrad.backend import WEAK_DTYPES as WEAK_DTYPES
from reactgrad.backend import Spec as Spec
from reactgrad.backend import device_of_kind, own_copy, storage_shape
from reactgrad.backend import spec as spec
from reactgrad.backend import weak_spec as weak_spec
from reactgrad.core._rows import Pin, number_key
from reactgrad.functions._function import Applied as Applied
from reactgrad.functions._function import Function as Function
from reactgrad.functions._lift import OPERAND as OPERAND
from reactgrad.functions._lift import Lifted as Lifted
from reactgrad.functions._switch import Switch
from reactgrad.graph._graph import Graph
from reactgrad.nodes._cutoff import Tolerance as Tolerance
from reactgrad.nodes._cutoff import equal as equal
from reactgrad.nodes._function_names import FunctionName as FunctionName
from reactgrad.nodes._function_names import UnnamedError as UnnamedError
from reactgrad.nodes._function_names import UntrustedError as UntrustedError
from reactgrad.nodes._function_names import find as find
from reactgrad.nodes._function_names import name_of as name_of
from reactgrad.nodes._scope import made_name
from reactgrad.nodes._site import in_scope, scope_of, user_site
from reactgrad.ops import CONST, FEED, INPUT, MODE, PARAM, SEED
from reactgrad.ops import OPS as OPS
from reactgrad.ops import Index as Index
from reactgrad.ops import Leaf as Leaf
from reactgrad.ops import Op as Op
from reactgrad.ops import Output as Output
from reactgrad.ops import Slot as Slot
from reactgrad.ops import output as output
from reactgrad.scheduler import CollectorPause
from reactgrad.values._store import MISSING, frozen_copy
from reactgrad_scheduler.staleness import CLEAN, MAYBE, STALE
from reactgrad_scheduler.topology import RANK_GAP

# Serials and versions stay far below what 64 bits hold, also multiplied by the gap of ranks.
MOST_SERIAL = 1 << 42
MOST_VERSION = 1 << 62

# Shape rules of indices make arrays of this many elements at most when a graph is restored.
MOST_SAMPLED = 1 << 20

# Values up to this size are copied for a snapshot; larger ones are shared until they change.
COPY_LIMIT = 128 * 1024


class Absent(Enum):
    """Why a snapshot has no value of a node."""

    # Not set, or not needed: a stale node runs before it is read, a clean one whose value was
    # released is computed again at its version (rule E17).
    MISSING = "missing"
    VIEW = "view"  # the value is a view of that of the first parent


@dataclass(frozen=True, slots=True)
class Computation:
    """An op with its attributes."""

    op: Op
    attrs: tuple[Any, ...]


class Choice(Enum):
    """A node that passes on the value of one of two others; ``State.choices`` says which."""

    SWITCH = "switch"

    @property
    def name(self) -> str:
        """As ops have one."""
        return self.value


LEAVES = {leaf.name: leaf for leaf in (INPUT, PARAM, CONST, SEED, MODE, FEED)}
Definition = Leaf | Computation | Lifted | Choice | Output
Column = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A graph at one moment.

    Attributes
    ----------
    seed, next_serial, max_bytes
        Of the graph: the seed of its random nodes; the number of the next node; its memory budget.
    definitions, specs
        What nodes are, and what is known of their values; each stands here once.
    definition, spec
        For each node its place in these.
    serial, rank, version
        The number of its creation, its topological rank, its value version.
    parents, parent_count
        The parents of all nodes one after the other, and how many are whose.
    records, record_count
        Likewise the versions of the parents that values were computed from; -1: no record.
    values
        For each node its value (arrays, NumPy scalars, any objects) or an ``Absent``.
    names, scopes, kept, forced, frozen, retained, numbers, closed, cutoffs, former_cutoffs, patterns,
    dtypes, floats, pins, choices, dynamic
        What some nodes have: names; the scope that they were built in; being kept alive; having to
        run whatever the versions say; frozen; ``retain_grad``; shared constants; detached edges
        (``None``: all); cutoffs; a value that a cutoff may have kept which is there no more
        (``Host.former_cutoffs``); declared shapes; declared dtypes; inputs whose integers count as
        floats; for pinned nodes, what they were computed from; what nodes choose by and between; how many
        parents are arguments where the others were read on the way.
    """

    seed: int
    next_serial: int
    definitions: tuple[Definition, ...]
    specs: tuple[Spec | None, ...]
    definition: Column
    spec: Column
    serial: Column
    rank: Column
    version: Column
    parents: Column
    parent_count: Column
    records: Column
    record_count: Column
    values: tuple[Any, ...]
    max_bytes: int | None = None
    names: tuple[tuple[int, str], ...] = ()
    scopes: tuple[tuple[int, str], ...] = ()
    kept: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    frozen: tuple[int, ...] = ()
    retained: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    closed: tuple[tuple[int, tuple[int, ...] | None], ...] = ()
    cutoffs: tuple[tuple[int, Callable[[Any, Any], Any]], ...] = ()
    former_cutoffs: tuple[int, ...] = ()
    patterns: tuple[tuple[int, Spec], ...] = ()
    dtypes: tuple[tuple[int, np.dtype[Any]], ...] = ()
    floats: tuple[int, ...] = ()
    pins: tuple[tuple[int, tuple[int, ...], int | None], ...] = ()
    choices: tuple[tuple[int, tuple[int, ...]], ...] = ()
    dynamic: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.serial)

    def label(self, node: int) -> str:
        """The name of a node, for messages."""
        for other, name in self.names:
            if other == node:
                return name
        definition = self.definitions[self.definition[node]]
        op = definition.op if isinstance(definition, Computation) else definition
        return made_name(op, int(self.serial[node]), dict(self.scopes).get(node, ""))


# --- from a graph to its state -----------------------------------------------------------------


def capture(graph: Graph) -> State:
    """The state of `graph` now.

    Raises
    ------
    BusyError
        Inside a node that is being computed.
    SaveError
        Inside a transaction, which may still be taken back.
    """
    with graph._lock, CollectorPause():
        scheduler = graph._scheduler
        if scheduler.computing:
            raise BusyError(
                "a node of this graph is being computed: its state is half old and half new. Save "
                "it after the read."
            )
        if scheduler.notes:
            raise SaveError(
                "a transaction is open, and what it changed may still be taken back. Save the "
                "graph after it."
            )
        graph._tidy()
        graph._shapes.clear(graph)
        scheduler.attend()
        return _capture(graph, _wanted(graph))


def _capture(graph: Graph, slots: list[int]) -> State:
    host, scheduler = graph._host, graph._scheduler
    topology, versions = scheduler.topology, scheduler.versions
    number = {slot: i for i, slot in enumerate(slots)}
    definitions: dict[Any, int] = {}
    listed: list[Definition] = []
    specs: dict[Spec | None, int] = {}
    definition: list[int] = []
    spec_of: list[int] = []
    parents: list[int] = []
    records: list[int] = []
    record_count: list[int] = []
    for slot in slots:
        op, attrs = host.ops[slot], host.attrs[slot]
        if isinstance(op, GradientHook):
            raise SaveError(
                f"a gradient that is held passes {op.name} on {op.of!r}, and hooks have no form in a "
                "file. Remove the hook, or let go of the gradient, before you save."
            )
        # 1, 1.0 and True are equal keys, and not the same attribute.
        one: Any = Choice.SWITCH if isinstance(op, Switch) else op
        key = (one, attrs, repr(attrs)) if attrs else one
        try:
            place = definitions.setdefault(key, len(listed))
        except TypeError:  # attributes that hold arrays
            place = definitions.setdefault((one, slot), len(listed))
        if place == len(listed):
            listed.append(Computation(op, attrs) if isinstance(op, Op) else one)
        definition.append(place)
        spec_of.append(specs.setdefault(host.specs[slot], len(specs)))
        parents += [number[parent] for parent in topology.parents[slot]]
        record = None if scheduler.leaf[slot] else versions.record[slot]
        # Computed from an error that it caught, or from having been refused a read.
        if slot in scheduler.cycles or (record and min(record) < 0):
            record = None
        record_count.append(-1 if record is None else len(record))
        records += record or ()

    def nodes(some: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(number[slot] for slot in some if slot in number))

    def pairs(table: dict[int, Any]) -> tuple[tuple[int, Any], ...]:
        return tuple(sorted((number[slot], x) for slot, x in table.items() if slot in number))

    def by_node(table: dict[int, Any]) -> tuple[tuple[int, Any], ...]:
        found = [(number[slot], x) for slot, x in table.items() if slot in number]
        return tuple(sorted(found, key=lambda pair: pair[0]))

    return State(
        seed=graph.seed,
        next_serial=topology.next_serial,
        definitions=tuple(listed),
        specs=tuple(specs),
        definition=column(definition),
        spec=column(spec_of),
        serial=column([topology.serial[slot] for slot in slots]),
        rank=column([topology.rank[slot] for slot in slots]),
        version=column([versions.version[slot] for slot in slots]),
        parents=column(parents),
        parent_count=column([len(topology.parents[slot]) for slot in slots]),
        records=column(records),
        record_count=column(record_count),
        values=_values(graph, slots),
        max_bytes=graph.max_bytes,
        names=pairs(host.name_of),
        scopes=tuple(
            [(number[slot], path) for slot in slots if (path := scope_of(host.sites[slot]))]
        ),
        kept=nodes(host.kept),
        forced=nodes(versions.forced),
        frozen=nodes(host.frozen),
        retained=nodes(host.retained),
        numbers=nodes(host.numbers.values()),
        closed=tuple(
            (node, None if positions is None else tuple(sorted(positions)))
            for node, positions in by_node(host.closed)
        ),
        cutoffs=by_node(host.cutoffs),
        former_cutoffs=nodes(
            slot for slot, at in host.former_cutoffs.items() if at == versions.version[slot]
        ),
        patterns=by_node(host.patterns),
        dtypes=by_node(host.dtypes),
        floats=nodes(slot for slot in host.floats if host.ops[slot] is INPUT),
        pins=tuple(
            (node, tuple(number[var._slot] for var in pin.parents), pin.fixed)
            for node, pin in by_node(host.pins)
        ),
        choices=tuple(
            (node, tuple([number[operand] for operand in operands]))
            for node, operands in by_node(host.branches)
        ),
        dynamic=pairs(scheduler.dynamic),
    )


def column(numbers: Any) -> Column:
    """A read-only column of integers."""
    made = np.array(numbers, np.int64)
    made.flags.writeable = False
    return made


def _values(graph: Graph, slots: list[int]) -> tuple[Any, ...]:
    """The values of nodes, where a read may need them before the node has run again."""
    host, scheduler, data = graph._host, graph._scheduler, graph._host.data
    leaf, cutoffs, matches = scheduler.leaf, host.cutoffs, scheduler.versions.matches
    parents = scheduler.topology.parents
    values: dict[int, Any] = {}
    for slot in scheduler.topology.sort(slots):
        values[slot] = Absent.MISSING
        if (
            getattr(graph._host.ops[slot], "outputs", None) is not None
            and slot not in graph._host.pins
        ):
            continue  # its outputs have it; the function runs again where another one is asked for
        # A cutoff compares with the old value; without one, a stale node's is not looked at again.
        if data[slot] is not MISSING and (leaf[slot] or slot in cutoffs or matches(slot)):
            if slot not in host._view_of or slot in cutoffs:
                values[slot] = _value(graph, slot)
            elif values[parents[slot][0]] is not Absent.MISSING:
                values[slot] = Absent.VIEW
    return tuple([values[slot] for slot in slots])


def _value(graph: Graph, slot: int) -> Any:
    host = graph._host
    value, found = host.data[slot], host.specs[slot]
    if found is None or found.weak is not None:
        return value
    if found.kind != "cpu":
        array = device_of_kind(found.kind).to_numpy(value).reshape(storage_shape(found))
    elif value.nbytes > COPY_LIMIT:
        return host.hand_out(slot)  # whoever writes the value next moves to other memory
    else:
        array = np.array(value)
    array = array.reshape(()) if not found.shape else array
    array.flags.writeable = False
    return array


def _references(thing: object) -> int:
    return sys.getrefcount(thing)


def _references_of_a_local() -> int:
    """References to an object that only one local variable holds, as ``_references`` counts."""
    thing = object()
    return _references(thing)


# Measured, since it differs between versions of Python.
_OWN = _references_of_a_local()


def _wanted(graph: Graph) -> list[int]:
    """Slots of the nodes that are not there for gradient programs only, in order of creation."""
    host, scheduler, topology = graph._host, graph._scheduler, graph._scheduler.topology
    # What programs, pins and choices hold is not for that held by the user.
    holders: Counter[int] = Counter()
    seeds: set[int] = set()
    for program in graph._programs.in_order():
        for seed in program.seeds.values():
            seeds.add(seed._slot)
            holders[id(seed)] += 1
    for _, programs in graph._live_programs():
        for seed, _, held in programs.values():
            seeds.add(seed._slot)
            holders[id(seed)] += 1
            holders.update(map(id, held.values()))
    for pin in host.pins.values():
        holders.update(map(id, pin.parents))
    for slot in host.branches:
        holders.update(map(id, host.ops[slot].branches))
    program = programs = seed = held = None  # they would be counted
    wanted: list[int] = []
    slots = topology.slots()
    for slot in slots:
        if slot in host.removed:
            continue  # whoever still needs it decides
        if slot not in host.name_of and slot not in host.kept:
            ref = host.handles[slot]
            var = None if ref is None else ref()
            if slot in host.owners or slot in seeds:
                if var is None or _references(var) <= _OWN + holders[id(var)]:
                    continue
            elif var is None and scheduler.leaf[slot] and topology.children[slot]:
                continue  # its consumers decide
        wanted.append(slot)
    found = set(wanted)
    while wanted:
        slot = wanted.pop()
        pin = host.pins.get(slot)
        parents = topology.parents[slot] if pin is None else [var._slot for var in pin.parents]
        for parent in (*parents, *host.branches.get(slot, ())):
            if parent not in found:
                found.add(parent)
                wanted.append(parent)
    return [slot for slot in slots if slot in found]


# --- from a state to a graph -------------------------------------------------------------------


def restore(state: State, *, adopt: bool = False) -> Graph:
    """A new graph in this state.

    Named and kept nodes live as long as the graph. Nobody holds the others yet: they are there,
    in ``graph.nodes`` too, and go when a Var of theirs was taken and let go.

    Parameters
    ----------
    state
        From ``capture``, or from anywhere: it is checked.
    adopt
        Whether writeable arrays among the values may become those of the graph.

    Raises
    ------
    LoadError
        If the state contradicts itself.
    """
    with CollectorPause():
        check(state)
        return _Restoring(state, adopt).graph


def check(state: State) -> None:
    """Raise ``LoadError`` if the columns of `state` contradict each other."""
    n = len(state)
    for name in ("definition", "spec", "rank", "version", "parent_count", "record_count"):
        if len(getattr(state, name)) != n:
            raise LoadError(f"column {name!r} has not one row for each node")
    if len(state.values) != n:
        raise LoadError("there is not one value for each node")
    if state.seed < 0:
        raise LoadError("the seed is negative")
    if state.max_bytes is not None and state.max_bytes < 0:
        raise LoadError("the memory budget is negative")
    if not 0 < state.next_serial <= MOST_SERIAL:
        raise LoadError("the number of the next node is out of range")
    _check_range("serial", state.serial, 1, state.next_serial - 1)
    if np.any(state.serial[1:] <= state.serial[:-1]):
        raise LoadError("its nodes do not stand in order of creation")
    _check_range("definition", state.definition, 0, len(state.definitions) - 1)
    _check_range("spec", state.spec, 0, len(state.specs) - 1)
    _check_range("version", state.version, 0, MOST_VERSION)
    _check_range("records", state.records, 0, MOST_VERSION)
    _check_range("rank", state.rank, 1, state.next_serial * RANK_GAP - 1)
    _check_range("parents", state.parents, 0, n - 1)
    for name, counts, least, total in (
        ("parents", state.parent_count, 0, len(state.parents)),
        ("records", state.record_count, -1, len(state.records)),
    ):
        _check_range(f"{name} of a node", counts, least, total)
        if int(np.maximum(counts, 0).sum()) != total:
            raise LoadError(f"column {name!r} does not have as many entries as its nodes want")
    child = np.repeat(np.arange(n), state.parent_count)
    wrong = np.flatnonzero(state.rank[state.parents] >= state.rank[child])
    if len(wrong):
        cycle = _cycle(n, state.parents.tolist(), child.tolist())
        if cycle:
            raise LoadError(f"its nodes form a cycle: {' -> '.join(map(state.label, cycle))}")
        raise LoadError(
            f"the rank of {state.label(int(child[wrong[0]]))!r} contradicts its parents"
        )
    _check_some(state)


def _check_range(name: str, numbers: Column, least: int, most: int) -> None:
    if len(numbers) and not (least <= numbers.min() and numbers.max() <= most):
        at = numbers.min() if numbers.min() < least else numbers.max()
        raise LoadError(f"column {name!r} holds {at}, which is not from {least} to {most}")


def _cycle(n: int, parents: list[int], child: list[int]) -> list[int]:
    """Some cycle along the data, its first node repeated at the end, or an empty list."""
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for p, c in zip(parents, child, strict=True):
        above[c].append(p)
        below[p].append(c)
    missing = [len(one) for one in above]
    ready = [node for node in range(n) if not missing[node]]
    while ready:
        for c in below[ready.pop()]:
            missing[c] -= 1
            if not missing[c]:
                ready.append(c)
    node = next((node for node in range(n) if missing[node]), None)
    if node is None:
        return []
    walk: dict[int, None] = {}
    while node not in walk:
        walk[node] = None
        node = next(p for p in above[node] if missing[p])
    steps = list(walk)
    return [node, *reversed(steps[steps.index(node) :])]


def _check_some(state: State) -> None:
    """What only some nodes have belongs to nodes that are there, once each, and fits them."""
    n = len(state)
    listed = {
        what: [entry[0] for entry in getattr(state, what)]
        for what in (
            *(
                "names",
                "scopes",
                "closed",
                "cutoffs",
                "patterns",
                "dtypes",
                "pins",
                "choices",
                "dynamic",
            ),
        )
    }
    for what in ("kept", "forced", "frozen", "retained", "numbers", "floats", "former_cutoffs"):
        listed[what] = list(getattr(state, what))
    for what, nodes in listed.items():
        if not all(0 <= node < n for node in nodes):
            raise LoadError(f"{what!r} speaks of a node that is not there")
        if len(set(nodes)) != len(nodes):
            raise LoadError(f"{what!r} speaks of a node twice")
    for name, times in Counter(name for _, name in state.names).items():
        if times > 1 or not name:
            raise LoadError(f"the name {name!r} is empty or that of two nodes")
    operands = state.parent_count.tolist()
    for node, parents, fixed in state.pins:
        if operands[node] or not all(0 <= parent < n for parent in parents):
            raise LoadError(f"the pinned node {state.label(node)!r} has parents that cannot be")
        if fixed is not None and not 0 <= fixed < len(parents):
            raise LoadError(f"the pinned node {state.label(node)!r} has fewer arguments than that")
        operands[node] = len(parents)
    choosing = [
        node for node, i in enumerate(state.definition) if type(state.definitions[i]) is Choice
    ]
    if choosing != sorted(listed["choices"]):
        raise LoadError("a node chooses between others that are not named")
    for node, chosen in state.choices:
        if len(chosen) != 3 or not all(0 <= one < n for one in chosen):
            raise LoadError(f"{state.label(node)!r} does not choose by one node between two others")
        operands[node] = max(operands[node], 3)
    for node, positions in state.closed:
        if positions is not None and not (
            len(set(positions)) == len(positions)
            and all(0 <= position < operands[node] for position in positions)
        ):
            raise LoadError(f"{state.label(node)!r} has no such operand to be detached")
    for node, count in state.dynamic:
        lifted = isinstance(state.definitions[state.definition[node]], Lifted | Choice)
        if not lifted or not 0 <= count < state.parent_count[node]:
            raise LoadError(f"{state.label(node)!r} cannot have read other nodes while it ran")


class _Restoring:
    """One restoring of a state, in steps that follow each other; a node's slot is its number."""

    def __init__(self, state: State, adopt: bool) -> None:
        self.state = state
        self.adopt = adopt
        self.parents = _split(state.parents, state.parent_count)
        self.records = _split(state.records, state.record_count)
        self.version: list[int] = state.version.tolist()
        self.of = [state.definitions[i] for i in state.definition.tolist()]
        self.specs = [state.specs[i] for i in state.spec.tolist()]
        self.pinned = {node for node, _, _ in state.pins}
        self.floats = set(state.floats)
        self.graph = Graph(rng=state.seed)
        self.add_nodes()
        self.link()
        self.add_what_some_have()
        order: list[int] = np.argsort(state.rank, kind="stable").tolist()
        self.check_specs(order)
        self.show_views(order)
        self.mark(order)
        self.graph._scheduler.renew()
        self.graph.max_bytes = state.max_bytes

    def wrong(self, node: int, says: str) -> LoadError:
        return LoadError(f"node {self.state.label(node)!r} {says}")

    def add_nodes(self) -> None:
        """The rows of all nodes, still without edges."""
        state, host, scheduler = self.state, self.graph._host, self.graph._scheduler
        site = user_site()
        for node, definition in enumerate(self.of):
            value = state.values[node]
            leaf, valued = isinstance(definition, Leaf), not isinstance(value, Absent)
            if leaf:
                self.check_leaf(node, value)
            else:
                self.check_computed(node, value)
            scheduler.add((), leaf=leaf, valued=leaf and valued)
            op: Any = definition  # a choice gets its own when the nodes that it knows are there
            attrs: tuple[Any, ...] = ()
            if isinstance(definition, Computation):
                op, attrs = definition.op, definition.attrs
            data = self.stored(node, value) if valued else MISSING
            host.add_node(node, op, attrs, self.specs[node], data, site)
            if op is MODE:
                host.keep_mode(node)
        topology, versions = scheduler.topology, scheduler.versions
        rows = zip(
            state.serial.tolist(), state.rank.tolist(), self.version, self.records, strict=True
        )
        for node, (serial, rank, version, record) in enumerate(rows):
            topology.serial[node], topology.rank[node] = serial, rank
            versions.version[node], versions.record[node] = version, record
        topology.next_serial = state.next_serial

    def check_leaf(self, node: int, value: Any) -> None:
        kind, found = self.of[node], self.specs[node]
        if self.parents[node] or self.records[node] is not None:
            raise self.wrong(node, "is a leaf and has parents")
        if value is Absent.VIEW or (value is Absent.MISSING and kind is CONST):
            raise self.wrong(node, "has no value, and is none that can be computed")
        if value is not Absent.MISSING and not self.version[node]:
            raise self.wrong(node, "has a value, and version 0")
        if kind is PARAM and (found is None or found.weak or found.dtype.kind != "f"):
            raise self.wrong(node, "is a param and not made of floats")
        if kind is MODE and (type(value) is not bool or self.of.index(MODE) != node):
            raise self.wrong(node, "is a mode, and not the one of its graph, train or eval")

    def check_computed(self, node: int, value: Any) -> None:
        record, parents = self.records[node], self.parents[node]
        if node in self.pinned:
            if record != () or isinstance(value, Absent):
                raise self.wrong(node, "is pinned and has no value of its own")
        elif isinstance(self.of[node], Computation) and not parents:
            raise self.wrong(node, "is computed from nothing")
        if record is None:
            return
        if not self.version[node]:
            raise self.wrong(node, "was computed, and has version 0")
        if isinstance(self.of[node], Computation):
            if len(record) != len(parents):
                raise self.wrong(node, "has not one parent version for each parent")
            for parent, version in zip(parents, record, strict=True):
                if version > self.version[parent]:
                    raise self.wrong(node, "was computed from a version that does not exist yet")

    def stored(self, node: int, value: Any) -> Any:
        """A value as its node stores it, held against what is known of it."""
        found = self.specs[node]
        if found is None:
            return frozen_copy(value) if type(value) is np.ndarray else value
        if found.weak is not None:
            integer = found.weak is float and type(value) in (int, bool) and node in self.floats
            if type(value) is not found.weak and not integer:
                raise self.wrong(node, f"holds {found!r} and was given {type(value).__name__}")
            return value
        if (
            type(value) is not np.ndarray
            or value.shape != found.shape
            or value.dtype != found.dtype
        ):
            raise self.wrong(node, f"was given a value that is not {found!r}")
        flags = value.flags
        if self.adopt and found.kind == "cpu" and flags.carray:
            return value.reshape(storage_shape(found))
        try:
            return own_copy(found, value)
        except ReactgradError as error:
            raise self.wrong(node, f"cannot live on {found.device!r} here: {error}") from error

    def link(self) -> None:
        relink = self.graph._scheduler.topology.relink
        for node, parents in enumerate(self.parents):
            if parents:
                relink(node, parents)

    def add_what_some_have(self) -> None:
        graph, state, host = self.graph, self.state, self.graph._host
        for node, name in state.names:
            host.name_of[node] = name
            host.named[name] = node
        for node, path in state.scopes:
            host.sites[node] = in_scope(host.sites[node], path)
        for node in (*state.kept, *(node for node, _ in state.names)):
            host.kept[node] = graph._handle(node)
        for node in state.forced:
            if isinstance(self.of[node], Leaf) or node in self.pinned:
                raise self.wrong(node, "is to run again, and is never computed")
        graph._scheduler.versions.forced.update(state.forced)
        for node in state.former_cutoffs:
            if isinstance(self.of[node], Leaf):
                raise self.wrong(node, "is held by a cutoff, and is never computed")
            host.former_cutoffs[node] = self.version[node]
        for node in state.frozen:
            if self.of[node] is not PARAM:
                raise self.wrong(node, "is frozen, and no param")
        host.frozen.update(state.frozen)
        host.retained.update(state.retained)
        for node in state.numbers:
            value = state.values[node]
            if self.of[node] is not CONST or type(value) not in WEAK_DTYPES:
                raise self.wrong(node, "is listed as a shared number, and is none")
            host.numbers[number_key(value)] = node
        for node, positions in state.closed:
            host.closed[node] = None if positions is None else frozenset(positions)
        for node, pattern in state.patterns:
            self.check_pattern(node, pattern)
            host.patterns[node] = pattern
        for node, dtype in state.dtypes:
            if not isinstance(self.of[node], Leaf):
                raise self.wrong(node, "declares a dtype, and is no leaf")
            host.dtypes[node] = dtype
        for node in state.floats:
            if self.of[node] is not INPUT:
                raise self.wrong(node, "is listed as an input of floats, and is no input")
        host.floats.update(state.floats)
        for node, parents, fixed in state.pins:
            if isinstance(self.of[node], Leaf):
                raise self.wrong(node, "is pinned, and a leaf")
            host.pins[node] = Pin([graph._handle(parent) for parent in parents], fixed)
        for node, (condition, *branches) in state.choices:
            self.check_choice(node, condition)
            switch = host.ops[node] = Switch(
                (graph._handle(branches[0]), graph._handle(branches[1]))
            )
            switch.declared = self.specs[node]
            graph._link_branches(node, (condition, *branches))
        graph._scheduler.dynamic.update(state.dynamic)
        host.cutoffs.update(state.cutoffs)
        graph._scheduler.staleness.cutoffs.update(
            [node for node, _ in state.cutoffs if not isinstance(self.of[node], Leaf)]
        )

    def check_choice(self, node: int, condition: int) -> None:
        """What a choice passes on is checked whenever it runs."""
        found = self.specs[node]
        if found is not None and (found.weak is not None or not found.known):
            raise self.wrong(node, f"promises {found!r}, which is no array")
        pin = next((parents for other, parents, _ in self.state.pins if other == node), None)
        if (self.parents[node] if pin is None else pin)[:1] != (condition,):
            raise self.wrong(node, "chooses by another node than its first operand")

    def check_pattern(self, node: int, pattern: Spec) -> None:
        found = self.specs[node]
        if not isinstance(self.of[node], Leaf) or pattern.weak is not None:
            raise self.wrong(node, "declares a shape, and is no leaf of arrays")
        if (
            found is None
            or found.dtype != pattern.dtype
            or len(found.shape) != len(pattern.shape)
            or any(m not in (None, n) for m, n in zip(pattern.shape, found.shape, strict=True))
        ):
            raise self.wrong(node, f"declares {pattern!r} and holds {found!r}")

    def check_specs(self, order: list[int]) -> None:
        """Shapes and dtypes are those that the rules of the ops give."""
        for node in order:
            definition, found = self.of[node], self.specs[node]
            if isinstance(definition, Leaf | Choice) or node in self.pinned:
                continue
            if isinstance(definition, Output):
                self.check_output(node, definition)
            if isinstance(definition, Lifted | Output):
                if found is not self.promised(node, definition):
                    raise self.wrong(node, f"is listed as {found!r}, which it does not declare")
                continue
            op, attrs = definition.op, definition.attrs
            operands = [self.specs[parent] for parent in self.parents[node]]
            if op.vjps is not None and len(op.vjps) != len(operands):
                raise self.wrong(node, f"has {len(operands)} operands, not {len(op.vjps)}")
            expected = None
            if None not in operands:
                if not _quickly_inferred(operands, attrs):  # type: ignore[arg-type]
                    continue
                try:
                    expected = op.result(tuple(operands), attrs)  # type: ignore[arg-type]
                except Exception as error:
                    says = f"cannot compute op {op.name!r} of its parents: {error}"
                    raise self.wrong(node, says) from error
            if expected is not found:
                raise self.wrong(node, f"is listed as {found!r}; its op gives {expected!r}")

    def promised(self, node: int, definition: Lifted | Output) -> Spec | None:
        """What a function says of its result, or of one of them."""
        if isinstance(definition, Lifted):
            return definition.declared
        (function,) = self.parents[node]
        operands = [self.specs[operand] for operand in self.parents[function]]
        if not operands:  # it is pinned, and what it said before holds
            return self.specs[node]
        try:
            return self.of[function].promised(definition.index, operands)
        except ReactgradError as error:
            raise self.wrong(node, f"does not fit what its function gets: {error}") from error

    def check_output(self, node: int, definition: Output) -> None:
        """Outputs are those of functions that have several, or what these have saved."""
        of = [self.of[parent] for parent in self.parents[node]]
        function = of[0] if len(of) == 1 else None
        outputs = function.outputs if isinstance(function, Lifted) else None
        if outputs is None or not isinstance(function, Lifted):
            raise self.wrong(node, "is an output of what has none")
        saved = isinstance(function, Applied)
        if definition.index >= len(outputs) and not saved:
            raise self.wrong(node, "is an output that its function does not have")
        expected = function.output(definition.index)
        if (definition.name, definition.declared) != (expected.name, expected.declared):
            raise self.wrong(node, "is not listed as its function's output")

    def show_views(self, order: list[int]) -> None:
        """Let values that are views show their parents'."""
        host = self.graph._host
        for node in order:
            if self.state.values[node] is not Absent.VIEW:
                continue
            op, found = self.of[node], self.specs[node]
            if (
                not isinstance(op, Computation)
                or op.op.view is None
                or node in host.cutoffs
                or found is None
                or not device_of_kind(found.kind).views
            ):
                raise self.wrong(node, "cannot be a view")
            if host.data[self.parents[node][0]] is not MISSING:
                try:
                    host._bind_view(node)
                except Exception as error:
                    raise self.wrong(node, f"cannot be a view: {error}") from error

    def mark(self, order: list[int]) -> None:
        """Marks that say what the versions say."""
        scheduler, data = self.graph._scheduler, self.graph._host.data
        staleness, matches = scheduler.staleness, scheduler.versions.matches
        mark, cutoffs = staleness.mark, staleness.cutoffs
        for node in order:
            if scheduler.leaf[node]:
                continue  # since it was added: clean with a value, else stale
            above = [parent for parent in self.parents[node] if mark[parent] != CLEAN]
            certain = not matches(node) or any(
                mark[parent] == STALE and parent not in cutoffs for parent in above
            )
            staleness.put(node, STALE if certain else MAYBE if above else CLEAN)
            if not certain and data[node] is MISSING:
                staleness.drop(node)


def _split(flat: Column, counts: Column) -> list[Any]:
    """The entries of each node as a tuple; ``None`` for a count of -1."""
    numbers = flat.tolist()
    parts: list[tuple[int, ...] | None] = []
    at = 0
    for count in counts.tolist():
        parts.append(None if count < 0 else tuple(numbers[at : at + count]))
        at += max(count, 0)
    return parts


def _quickly_inferred(operands: list[Spec], attrs: tuple[Any, ...]) -> bool:
    """Whether a shape rule allocates little: those of array indices make a sample of the result."""
    index = attrs[0] if attrs else None
    if not isinstance(index, Index) or index.basic:
        return True
    arrays = [part.size for part in index.parts if isinstance(part, np.ndarray)]
    sizes = [math.prod(n or 0 for n in one.shape) for one in operands]
    return math.prod(max(1, size) for size in (*arrays, *sizes)) <= MOST_SAMPLED
