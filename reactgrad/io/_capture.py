"""From a graph to its state, as files hold it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import BusyError, SaveError
from reactgrad.autodiff._hooks import GradientHook
from reactgrad.autodiff._record import Record, take_record
from reactgrad.backend import Spec as Spec
from reactgrad.backend import device_of, storage_shape
from reactgrad.core._handles import tidy
from reactgrad.core._live_programs import live_programs
from reactgrad.functions._switch import Switch
from reactgrad.io._state import Absent, Choice, Computation, Definition, State, column
from reactgrad.nodes._op import Op as Op
from reactgrad.nodes._references import references
from reactgrad.nodes._site import scope_of
from reactgrad.scheduler import CollectorPause
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.core._core import Core


# Values up to this size are copied for a snapshot; larger ones are shared until they change.
COPY_LIMIT = 128 * 1024


def capture(graph: Core) -> State:
    """Return the present state of `graph`.

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
        tidy(graph)
        graph._shapes.clear(graph)
        scheduler.attend()
        return _capture(graph, *_wanted(graph))


def capture_part(graph: Core, slots: list[int]) -> State:
    """Return the present state of some nodes, the ancestors of each of which are among them."""
    with graph._lock, CollectorPause():
        tidy(graph)
        graph._scheduler.attend()
        return _capture(graph, slots, [])


def _capture(graph: Core, slots: list[int], records: list[Record]) -> State:
    """Return the state of these nodes and gradient programs."""
    host, scheduler = graph._host, graph._scheduler
    topology, versions = scheduler.topology, scheduler.versions
    number = {slot: i for i, slot in enumerate(slots)}
    definitions: dict[Any, int] = {}
    listed: list[Definition] = []
    specs: dict[Spec | None, int] = {}
    definition: list[int] = []
    spec_of: list[int] = []
    parents: list[int] = []
    versions_seen: list[int] = []
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
        # Such a node was computed from an error that it caught, or from having been refused a read:
        # it runs again.
        if slot in scheduler.cycles or (record and min(record) < 0):
            record = None
        record_count.append(-1 if record is None else len(record))
        versions_seen += record or ()

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
        serial=column([topology.number(slot) for slot in slots]),
        rank=column([topology.rank[slot] for slot in slots]),
        version=column([versions.version[slot] for slot in slots]),
        parents=column(parents),
        parent_count=column([len(topology.parents[slot]) for slot in slots]),
        records=column(versions_seen),
        record_count=column(record_count),
        values=_values(graph, slots),
        max_bytes=graph._host.limit,
        device=graph.device,
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
        pins=tuple(
            (node, tuple(number[var._slot] for var in pin.parents), pin.fixed)
            for node, pin in by_node(host.pins)
        ),
        choices=tuple(
            (node, tuple([number[operand] for operand in operands]))
            for node, operands in by_node(host.branches)
        ),
        dynamic=pairs(scheduler.dynamic),
        gradients=tuple([record.numbered(number) for record in records]),
    )


def _values(graph: Core, slots: list[int]) -> tuple[Any, ...]:
    """Return the values of nodes that a read may need before the node has run again."""
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
            # Its outputs hold the values; the function runs again if another output is asked for.
            continue
        # A cutoff compares with the old value. Without a cutoff the value of a stale node is not
        # needed.
        if data[slot] is not MISSING and (leaf[slot] or slot in cutoffs or matches(slot)):
            if slot not in host._view_of or slot in cutoffs:
                values[slot] = _value(graph, slot)
            elif values[parents[slot][0]] is not Absent.MISSING:
                values[slot] = Absent.VIEW
    return tuple([values[slot] for slot in slots])


def _value(graph: Core, slot: int) -> Any:
    """Return the value of a node as an array or object that the graph does not change any more."""
    host = graph._host
    value, found = host.data[slot], host.specs[slot]
    if found is None or found.weak is not None:
        return value
    if found.kind != "cpu":
        array = device_of(found.device).to_numpy(value).reshape(storage_shape(found))
    elif value.nbytes > COPY_LIMIT:
        return host.hand_out(slot)  # shared: a later write of the value goes to other memory
    else:
        array = np.array(value)
    array = array.reshape(()) if not found.shape else array
    array.flags.writeable = False
    return array


def _wanted(graph: Core) -> tuple[list[int], list[Record]]:
    """Return the slots of nodes that exist not only for gradient programs, in order of creation, and
    records of the programs that gave out some of these.
    """
    host, scheduler, topology = graph._host, graph._scheduler, graph._scheduler.topology
    # A reference held by programs, pins and choices is not one held by the user.
    holders: Counter[int] = Counter()
    seeds: set[int] = set()
    for program in graph._programs.in_order():
        for seed in program.seeds.values():
            seeds.add(seed._slot)
            holders[id(seed)] += 1
    for _, programs in live_programs(graph):
        for seed, _, held in programs.values():
            seeds.add(seed._slot)
            holders[id(seed)] += 1
            holders.update(map(id, held.values()))
    for pin in host.pins.values():
        holders.update(map(id, pin.parents))
    for slot in host.branches:
        holders.update(map(id, host.ops[slot].branches))
    # Clear these variables, whose references would count as the user's.
    program = programs = seed = held = None
    wanted: list[int] = []
    slots = topology.slots()
    for slot in slots:
        if slot in host.removed:
            continue  # wanted only if a wanted node needs it
        if slot not in host.name_of and slot not in host.kept:
            ref = host.handles[slot]
            var = [None if ref is None else ref()]
            if slot in host.owners or slot in seeds:
                if var[0] is None:
                    if not _rests(graph, slot):
                        continue
                elif references(var, 0) <= holders[id(var[0])]:
                    continue
            elif var[0] is None and scheduler.leaf[slot] and topology.children[slot]:
                continue  # wanted only if a consumer is
        wanted.append(slot)
    found = set(wanted)
    _add_ancestors(graph, found, wanted)
    built: dict[int, list[int]] = defaultdict(list)
    for slot, number in host.owners.items():
        built[number].append(slot)
    while needed := _needed(records := _records(graph, found, built)) - found:
        found |= needed
        _add_ancestors(graph, found, [*needed])
    return [slot for slot in slots if slot in found], records


def _rests(graph: Core, slot: int) -> bool:
    """Return whether this is a gradient from a file, of which no Var was taken yet."""
    host, topology = graph._host, graph._scheduler.topology
    from_file = topology.serial[slot] <= host.restored_serial
    return from_file and host.handles[slot] is None and slot in host.givers


def _records(graph: Core, found: set[int], built: dict[int, list[int]]) -> list[Record]:
    """Return records of the programs that gave out some of these nodes."""
    records = [take_record(program, found, built) for program in graph._programs.in_order()]
    return [record for record in records if record is not None]


def _needed(records: list[Record]) -> set[int]:
    """Return the nodes that must be there for these programs to come back."""
    return {slot for record in records for slot in record.needs()}


def _add_ancestors(graph: Core, found: set[int], wanted: list[int]) -> None:
    """Add to `found` everything that the nodes in `wanted` are computed from."""
    host, topology = graph._host, graph._scheduler.topology
    while wanted:
        slot = wanted.pop()
        pin = host.pins.get(slot)
        parents = topology.parents[slot] if pin is None else [var._slot for var in pin.parents]
        for parent in (*parents, *host.branches.get(slot, ())):
            if parent not in found:
                found.add(parent)
                wanted.append(parent)
