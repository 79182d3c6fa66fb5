"""From a checked state to a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad._errors import LoadError, ReactgradError
from reactgrad.autodiff._record import renew
from reactgrad.backend import WEAK_DTYPES as WEAK_DTYPES
from reactgrad.backend import Spec as Spec
from reactgrad.backend import device_of, own_copy, read_device, storage_shape
from reactgrad.core._core import C
from reactgrad.core._definition import link_branches
from reactgrad.core._handles import handle
from reactgrad.core._rows import Pin, number_key
from reactgrad.functions._function import Applied as Applied
from reactgrad.functions._switch import Switch
from reactgrad.io._check import check
from reactgrad.io._state import Absent, Choice, Column, Computation, State
from reactgrad.nodes._lifted import Lifted as Lifted
from reactgrad.nodes._op import CONST, MODE, PARAM
from reactgrad.nodes._op import Leaf as Leaf
from reactgrad.nodes._op import Output as Output
from reactgrad.nodes._site import in_scope, user_site
from reactgrad.ops import Index as Index
from reactgrad.scheduler import CLEAN, MAYBE, STALE, CollectorPause
from reactgrad.values._columns import MISSING, frozen_copy

# The largest arrays that shape rules of indices may make while a graph is restored, in elements.
MOST_SAMPLED = 1 << 20


def restore(state: State, make: Callable[[int], C], *, adopt: bool = False) -> C:
    """Return a new graph in this state.

    Named and kept nodes live as long as the graph. The others have no handle yet: they exist, also
    in ``graph.nodes``, and die once a Var of theirs was taken and released.

    Parameters
    ----------
    state
        From ``capture``, or from anywhere: it is checked.
    make
        Returns an empty graph with a seed.
    adopt
        True if writeable arrays among the values may become those of the graph.

    Raises
    ------
    LoadError
        If the state contradicts itself.
    """
    with CollectorPause():
        check(state)
        return _Restoring(state, make(state.seed), adopt).graph


class _Restoring:
    """One restoring of a state, in steps that follow each other.

    The slot of a node is its number in the state.
    """

    def __init__(self, state: State, graph: Any, adopt: bool) -> None:
        self.state = state
        self.adopt = adopt
        self.parents = _split(state.parents, state.parent_count)
        self.records = _split(state.records, state.record_count)
        self.version: list[int] = state.version.tolist()
        self.of = [state.definitions[i] for i in state.definition.tolist()]
        self.specs = [state.specs[i] for i in state.spec.tolist()]
        self.pinned = {node for node, _, _ in state.pins}
        self.graph = graph
        self.add_nodes()
        self.link()
        self.add_what_some_have()
        order: list[int] = np.argsort(state.rank, kind="stable").tolist()
        self.check_specs(order)
        self.show_views(order)
        self.mark(order)
        self.graph._scheduler.renew()
        self.graph.max_bytes = state.max_bytes
        for record in state.gradients:
            renew(graph, record)
        if state.device != "cpu":
            self.graph._device = self.device(state.device)

    @staticmethod
    def device(name: str) -> str:
        """Return the device of the graph, after a check that it is there."""
        try:
            return read_device("the graph", name)
        except ReactgradError as error:
            raise LoadError(str(error)) from error

    def wrong(self, node: int, says: str) -> LoadError:
        return LoadError(f"node {self.state.label(node)!r} {says}")

    def add_nodes(self) -> None:
        """Add the rows of all nodes, without edges."""
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
            op: Any = definition  # a choice gets its op once its branches exist
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
        self.graph._host.restored_serial = state.next_serial - 1

    def check_leaf(self, node: int, value: Any) -> None:
        """Check the row of a leaf."""
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
        """Check the row of a computed node."""
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
        """Return a value as its node stores it, checked against the node's spec."""
        found = self.specs[node]
        if found is None:
            return frozen_copy(value) if type(value) is np.ndarray else value
        if found.weak is not None:
            if found.weak is float and type(value) is int and abs(value) < 1 << 1023:
                return float(value)  # former files may have an integer in an input of floats
            if type(value) is not found.weak and not (found.weak is int and type(value) is bool):
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
        """Add everything that only some nodes have: names, pins, cutoffs and so on."""
        graph, state, host = self.graph, self.state, self.graph._host
        for node, name in state.names:
            host.name_of[node] = name
            host.named[name] = node
        for node, path in state.scopes:
            host.sites[node] = in_scope(host.sites[node], path)
        for node in (*state.kept, *(node for node, _ in state.names)):
            host.kept[node] = handle(graph, node)
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
        for node, parents, fixed in state.pins:
            if isinstance(self.of[node], Leaf):
                raise self.wrong(node, "is pinned, and a leaf")
            host.pins[node] = Pin([handle(graph, parent) for parent in parents], fixed)
        for node, (condition, *branches) in state.choices:
            self.check_choice(node, condition)
            switch = host.ops[node] = Switch(
                (handle(graph, branches[0]), handle(graph, branches[1]))
            )
            switch.declared = self.specs[node]
            link_branches(graph, node, (condition, *branches))
        graph._scheduler.dynamic.update(state.dynamic)
        host.cutoffs.update(state.cutoffs)
        graph._scheduler.staleness.cutoffs.update(
            [node for node, _ in state.cutoffs if not isinstance(self.of[node], Leaf)]
        )

    def check_choice(self, node: int, condition: int) -> None:
        """Check a choice by its spec and condition; its value is checked whenever it runs."""
        found = self.specs[node]
        if found is not None and (found.weak is not None or not found.known):
            raise self.wrong(node, f"promises {found!r}, which is no array")
        pin = next((parents for other, parents, _ in self.state.pins if other == node), None)
        if (self.parents[node] if pin is None else pin)[:1] != (condition,):
            raise self.wrong(node, "chooses by another node than its first operand")

    def check_pattern(self, node: int, pattern: Spec) -> None:
        """Check a declared shape against the spec of its leaf."""
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
        """Check that shapes and dtypes are those that the rules of the ops give."""
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
        """Return the spec that a function declares for its result, or for one of its outputs."""
        if isinstance(definition, Lifted):
            return definition.declared
        (function,) = self.parents[node]
        operands = [self.specs[operand] for operand in self.parents[function]]
        if not operands:  # it is pinned, and the former spec still holds
            return self.specs[node]
        try:
            return self.of[function].promised(definition.index, operands)
        except ReactgradError as error:
            raise self.wrong(node, f"does not fit what its function gets: {error}") from error

    def check_output(self, node: int, definition: Output) -> None:
        """Check that an output belongs to a function with several, or is one of those that it has
        saved.
        """
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
        """Bind values that are views to those of their parents."""
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
                or not device_of(found.device).views
            ):
                raise self.wrong(node, "cannot be a view")
            if host.data[self.parents[node][0]] is not MISSING:
                try:
                    host._bind_view(node)
                except Exception as error:
                    raise self.wrong(node, f"cannot be a view: {error}") from error

    def mark(self, order: list[int]) -> None:
        """Set marks according to the versions."""
        scheduler, data = self.graph._scheduler, self.graph._host.data
        staleness, matches = scheduler.staleness, scheduler.versions.matches
        mark, cutoffs = staleness.mark, staleness.cutoffs
        for node in order:
            if scheduler.leaf[node]:
                continue  # set when it was added: clean with a value, else stale
            above = [parent for parent in self.parents[node] if mark[parent] != CLEAN]
            certain = not matches(node) or any(
                mark[parent] == STALE and parent not in cutoffs for parent in above
            )
            staleness.put(node, STALE if certain else MAYBE if above else CLEAN)
            if not certain and data[node] is MISSING:
                staleness.drop(node)


def _split(flat: Column, counts: Column) -> list[Any]:
    """Return the entries of each node as a tuple; ``None`` for a count of -1."""
    numbers = flat.tolist()
    parts: list[tuple[int, ...] | None] = []
    at = 0
    for count in counts.tolist():
        parts.append(None if count < 0 else tuple(numbers[at : at + count]))
        at += max(count, 0)
    return parts


def _quickly_inferred(operands: list[Spec], attrs: tuple[Any, ...]) -> bool:
    """Return whether a shape rule allocates little: the rule of array indices makes a sample of the
    result.
    """
    index = attrs[0] if attrs else None
    if not isinstance(index, Index) or index.basic:
        return True
    arrays = [part.size for part in index.parts if isinstance(part, np.ndarray)]
    sizes = [math.prod(n or 0 for n in one.shape) for one in operands]
    return math.prod(max(1, size) for size in (*arrays, *sizes)) <= MOST_SAMPLED
