"""The scheduler beside the plainest engine that obeys the same rules, on integer nodes.

``Naive`` keeps versions and records and nothing else: a read asks all ancestors and compares.
``Pair`` plays the same actions on it and on the scheduler; after every read both must have called
the same nodes, and hold the same values, versions and records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import networkx as nx

from reactgrad_scheduler import UNCHANGED, Scheduler, Step, check_invariants


class Breakdown(Exception):
    """What failing nodes raise."""


@dataclass
class Definition:
    """What a node computes from its parents' values.

    ``coarse``: results in the same multiple of 8 count as unchanged. ``breaks``: raises where the
    sum is a multiple of 3. ``peeks``: where the sum is odd, it also reads this other node, which is
    a parent of it from then on, until it runs without reading it.
    """

    parents: tuple[int, ...]
    coarse: bool = False
    breaks: bool = False
    peeks: int | None = None

    def compute(self, values: Sequence[int], read: Callable[[int], int]) -> int:
        total = sum(values) * 2 - values[0]
        if self.breaks and total % 3 == 0:
            raise Breakdown(total)
        if self.peeks is not None and total % 2:
            total += read(self.peeks) % 101
        return total % 100_003 + 1

    def unchanged(self, old: int, new: int) -> bool:
        return self.coarse and old // 8 == new // 8


class Naive:
    """Versions, records and values; every read asks, node by node, whether anything moved.

    A node's parents are those of its definition, and behind them what it read the last time it
    ran. The latter are asked one by one, in their order: one that moved may lead it elsewhere.
    """

    def __init__(self) -> None:
        self.definitions: dict[int, Definition | None] = {}  # None: a leaf
        self.values: dict[int, int] = {}
        self.version: dict[int, int] = {}
        self.record: dict[int, tuple[int, ...] | None] = {}
        self.reads: dict[int, tuple[int, ...]] = {}
        self.errors: dict[int, tuple[int, ...]] = {}
        self.forced: set[int] = set()  # must run whatever the versions say
        self.calls: list[int] = []
        self.running: list[dict[int, None]] = []  # what the nodes being computed have read

    def parents(self, node: int) -> tuple[int, ...]:
        definition = self.definitions[node]
        return () if definition is None else definition.parents + self.reads.get(node, ())

    def current(self, node: int) -> tuple[int, ...]:
        return tuple(self.version[parent] for parent in self.parents(node))

    def read(self, targets: Iterable[int], *, retry: bool = False) -> set[int]:
        """Make the targets clean; returns what raised, and what depends on that."""
        self.bad: set[int] = set()
        self.asked: set[int] = set()
        for target in targets:
            self._ask(target, retry=retry)
        return self.bad

    def _ask(self, node: int, *, retry: bool = False) -> None:
        definition = self.definitions[node]
        if definition is None or node in self.asked:
            return
        for parent in definition.parents:
            self._ask(parent, retry=retry)
        self.asked.add(node)
        if self.bad.intersection(definition.parents):
            self.bad.add(node)
            return
        known = self.record[node]
        if node in self.errors and not retry:
            if self._unmoved(node, self.errors[node]):
                self.bad.add(node)
                return
        elif known is not None and node not in self.forced and self._unmoved(node, known):
            return
        self._run(node, definition)

    def _unmoved(self, node: int, known: tuple[int, ...]) -> bool:
        parents = self.parents(node)
        fixed = len(parents) - len(self.reads.get(node, ()))
        for i, (parent, old) in enumerate(zip(parents, known, strict=True)):
            if i == fixed and self.current(node)[:fixed] != known[:fixed]:
                return False
            if i >= fixed:
                self._ask(parent)
            if parent in self.bad or self.version[parent] != old:
                return False
        return True

    def _run(self, node: int, definition: Definition) -> None:
        self.errors.pop(node, None)
        self.calls.append(node)
        self.running.append({})
        try:
            values = [self.values[parent] for parent in definition.parents]
            new = definition.compute(values, self._peek)
        except Breakdown:
            self._adopt(node, definition)
            self.errors[node] = self.current(node)
            self.bad.add(node)
            return
        self._adopt(node, definition)
        if node not in self.values or not definition.unchanged(self.values[node], new):
            self.values[node] = new
            self.version[node] += 1
        self.record[node] = self.current(node)
        self.forced.discard(node)

    def _adopt(self, node: int, definition: Definition) -> None:
        read = self.running.pop()
        self.reads[node] = tuple(other for other in read if other not in definition.parents)

    def _peek(self, node: int) -> int:
        self.running[-1][node] = None
        self._ask(node)
        if node in self.bad:
            raise Breakdown
        return self.values[node]

    def is_stale(self, target: int) -> bool:
        """By versions alone."""
        edges = nx.DiGraph()
        edges.add_node(target)
        stack, seen = [target], {target}
        while stack:
            node = stack.pop()
            for parent in self.parents(node):
                edges.add_edge(parent, node)
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
        stale: set[int] = set()
        for node in nx.topological_sort(edges):
            if self.definitions[node] is not None and (
                stale.intersection(self.parents(node))
                or node in self.forced
                or self.record[node] != self.current(node)
            ):
                stale.add(node)
        return target in stale


class IntegerHost:
    """Owner of integer values, as the scheduler wants one."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(self)
        self.definitions: dict[int, Definition | None] = {}
        self.values: dict[int, int] = {}
        self.held: set[int] = set()
        self.calls: list[int] = []
        self.bound: list[int] = []

    def extend(self, rows: int) -> None:
        """Values are kept in a dict."""

    def bind(self, slot: int) -> Step | None:
        definition = self.definitions[slot]
        assert definition is not None
        self.bound.append(slot)
        parents, values = definition.parents, self.values

        def step() -> object:
            self.calls.append(slot)
            new = definition.compute([values[parent] for parent in parents], self.peek)
            if slot in values and definition.unchanged(values[slot], new):
                return UNCHANGED
            values[slot] = new
            return None

        return step

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        return [self.bind(slot) for slot in slots], True

    def peek(self, slot: int) -> int:
        with self.scheduler.lock:
            self.scheduler.depend(slot)
            if self.scheduler.staleness.pending or self.scheduler.staleness.mark[slot]:
                run = self.scheduler.refresh((slot,))
                if run.failed:
                    raise Breakdown
            return self.value(slot)

    def value(self, slot: int) -> int:
        """The value of a clean node, which may have been released."""
        if slot in self.scheduler.dropped:
            self.scheduler.refresh((slot,))
        return self.values[slot]

    def recomputable(self, slot: int) -> bool:
        """Whether the value of a clean node would come back the same if it was released."""
        scheduler = self.scheduler
        computed = not scheduler.leaf[slot] and bool(scheduler.topology.parents[slot])
        return computed and slot not in scheduler.staleness.cutoffs

    def release(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self.values.pop(slot, None)
        self.scheduler.drop(slots)

    def fuse(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        return steps, slots

    def replaced(self, fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
        return fused is steps

    def inherited(self, plan: Any) -> None:
        return None

    def spoiled(self, slots: Sequence[int]) -> None:
        pass

    def around(self, slots: Sequence[int], targets: Sequence[int]) -> Any:
        return nullcontext()

    def lends(self, slot: int) -> bool:
        return True

    def overwrite(self, slots: Collection[int]) -> None:
        pass

    def holds(self, slot: int) -> bool:
        return slot in self.held

    def released(self, slot: int) -> None:
        del self.definitions[slot]
        self.values.pop(slot, None)

    def explain(self, slot: int) -> str:
        return self.name(slot)

    def name(self, slot: int) -> str:
        return f"n{slot}"

    def living(self, slots: Sequence[int]) -> Callable[[], tuple[object, ...]]:
        return lambda: tuple(map(self.name, slots))

    # --- building

    def leaf(self, value: int) -> int:
        slot = self.scheduler.add((), leaf=True, valued=True)
        self.definitions[slot] = None
        self.values[slot] = value
        self.held.add(slot)
        return slot

    def node(self, definition: Definition) -> int:
        slot = self.scheduler.add(definition.parents)
        self.definitions[slot] = definition
        self.values.pop(slot, None)
        if definition.coarse:
            self.scheduler.staleness.cutoffs.add(slot)
        self.held.add(slot)
        return slot

    def set(self, *changes: tuple[int, int]) -> None:
        for slot, value in changes:
            self.values[slot] = value
        self.scheduler.changed_together(tuple([slot for slot, _ in changes]))

    def read(self, *slots: int, retry: bool = False) -> list[int]:
        """What was called, in order."""
        self.calls.clear()
        self.run = self.scheduler.refresh(slots, retry=retry)
        return list(self.calls)


class Pair:
    """Both engines, in step. Nodes are known by the number of their creation."""

    def __init__(self, *, distrust: bool = False, host: IntegerHost | None = None) -> None:
        self.host = host or IntegerHost()
        self.host.scheduler.distrust |= distrust
        self.naive = Naive()
        self.slot: dict[int, int] = {}
        self.names: dict[int, int] = {}  # and back
        self.created = 0

    def _new(self, slot: int) -> int:
        number = self.created
        self.created += 1
        self.slot[number] = slot
        self.names[slot] = number
        self.naive.version[number] = self.naive.definitions[number] is None
        self.naive.record[number] = None
        return number

    def leaf(self, value: int) -> int:
        self.naive.definitions[self.created] = None
        self.naive.values[self.created] = value
        return self._new(self.host.leaf(value))

    def node(self, definition: Definition) -> int:
        self.naive.definitions[self.created] = definition
        return self._new(self.host.node(self._translated(definition)))

    def _translated(self, definition: Definition) -> Definition:
        peeks = None if definition.peeks is None else self.slot[definition.peeks]
        parents = tuple(self.slot[parent] for parent in definition.parents)
        return Definition(parents, definition.coarse, definition.breaks, peeks)

    def set(self, *changes: tuple[int, int]) -> None:
        self.host.set(*[(self.slot[n], value) for n, value in changes])
        for number, value in changes:
            self.naive.values[number] = value
            self.naive.version[number] += 1

    def read(self, *numbers: int, retry: bool = False) -> None:
        """Read in both and compare what they called and what came out."""
        called = [
            self.names[s] for s in self.host.read(*[self.slot[n] for n in numbers], retry=retry)
        ]
        for slot in self.host.run.rebuilt:
            called.remove(self.names[slot])
        self.naive.calls.clear()
        bad = self.naive.read(numbers, retry=retry)
        assert len(set(called)) == len(called), f"called twice: {called}"
        assert set(called) == set(self.naive.calls), f"{called} not {self.naive.calls}"
        assert bool(self.host.run.failed) == bool(bad)
        for number in numbers:
            if number not in bad:
                assert self.host.value(self.slot[number]) == self.naive.values[number]

    def invalidate(self, number: int) -> None:
        self.host.scheduler.invalidate(self.slot[number])
        self.naive.forced.add(number)
        self.naive.errors.pop(number, None)

    def reparent(self, number: int, parents: tuple[int, ...]) -> None:
        definition = self.naive.definitions[number]
        assert definition is not None
        new = Definition(parents, definition.coarse, definition.breaks, definition.peeks)
        self.host.scheduler.reparent(self.slot[number], tuple(self.slot[p] for p in parents))
        self.host.definitions[self.slot[number]] = self._translated(new)
        self.naive.definitions[number] = new
        self.naive.record[number] = None
        self.naive.errors.pop(number, None)
        self._forget_released()

    def release(self, number: int) -> None:
        """Let go of a node; it and what only it kept may vanish."""
        slot = self.slot[number]
        self.host.held.discard(slot)
        self.host.scheduler.release([slot])
        self._forget_released()

    def _forget_released(self) -> None:
        for name, at in tuple(self.slot.items()):
            if at not in self.host.definitions:
                del self.slot[name], self.names[at], self.naive.definitions[name]

    def compare(self) -> None:
        """Versions, records, staleness and values of every node."""
        scheduler = self.host.scheduler
        for number, slot in self.slot.items():
            definition = self.naive.definitions[number]
            assert scheduler.version(slot) == self.naive.version[number], number
            if definition is not None:
                record = scheduler.versions.record[slot]
                assert record == self.naive.record[number], number
                assert scheduler.is_stale(slot) == self.naive.is_stale(number), number
                if not self.naive.is_stale(number) and slot not in scheduler.dropped:
                    assert self.host.values[slot] == self.naive.values[number]
        check_invariants(scheduler)
