"""The instances of all subgraphs in one graph, and which of them is free."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reactgrad.change._stand_in import connect
from reactgrad.core._handles import handle
from reactgrad.core._lifetime import tidy
from reactgrad.subgraphs._feeds import _give, _take, _unset
from reactgrad.subgraphs._instance import Instance, _alone, _descendants, _held, _programs

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.nodes._handle import Handle


# Instances of one function in one graph that are kept although nobody uses them, the latest ones.
SPARE = 16


# So many instances of a structure are asked whether they are free before one more is built.
ASKED = 4


class Pool:
    """All instances in one graph."""

    __slots__ = ("_building", "_of", "_sweep_at")

    def __init__(self) -> None:
        # The feeds and arguments of what is being built, the innermost last.
        self._building: list[tuple[list[Handle], list[Any]]] = []
        self._of: weakref.WeakKeyDictionary[Any, Instances] = weakref.WeakKeyDictionary()
        self._sweep_at = SPARE

    def instance(
        self,
        graph: Core,
        function: object,
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

    def make_way(self, graph: Core, slots: Iterable[int]) -> bool:
        """Forget the instances that are free and depend on these nodes, or have them; whether there were any."""
        cone = graph._scheduler.topology.descendants(slots)
        forgot = False
        while any(one.forget_free(graph, cone) for one in self._of.values()):
            forgot = True
            tidy(graph)  # now those are free that fed them
        return forgot

    @contextmanager
    def building(self, feeds: list[Handle], arguments: list[Any]) -> Iterator[None]:
        """Build an instance, whose feeds have no values yet."""
        self._building.append((feeds, arguments))
        try:
            yield
        finally:
            self._building.pop()

    @contextmanager
    def fed(self, graph: Core) -> Iterator[None]:
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

    def _sweep(self, graph: Core) -> int:
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
                connect(handle(graph, slot), _unset(graph, host.specs[slot]))
        tidy(graph)
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

    def find(self, graph: Core, key: Any, arguments: list[Any]) -> Instance | None:
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

    def forget_free(self, graph: Core, among: Set[int]) -> bool:
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

    def add(self, graph: Core, key: Any, instance: Instance) -> None:
        """Take in an instance; let go of unused ones, those of which the last use is longest ago."""
        self._of.setdefault(key, deque()).append(instance)
        for structure in list(self._of)[: max(len(self._of) - SPARE, 0)][:ASKED]:
            instances = self._of.pop(structure)
            used = deque([one for one in instances if not one.free(graph)])
            if used:
                self._of[structure] = used
