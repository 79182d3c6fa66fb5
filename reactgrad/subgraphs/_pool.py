"""All instances of subgraphs in one graph, and the search for one that is free."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from reactgrad.change._stand_in import connect
from reactgrad.core._core import Core
from reactgrad.core._handles import handle, tidy
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import INPUT
from reactgrad.nodes._reached import reached
from reactgrad.scheduler import block
from reactgrad.subgraphs._feeds import _give, _take, _unset
from reactgrad.subgraphs._instance import Instance, _alone, _descendants, _held, _programs
from reactgrad.subgraphs._sharing import Sharing

# The number of instances of one function in one graph that are kept unused, the latest ones.
SPARE = 16


# The number of instances that are checked for being free before another one is built.
ASKED = 4


class Pool:
    """All instances of subgraphs in one graph."""

    __slots__ = ("_building", "_of", "_sweep_at", "fed_by")

    def __init__(self) -> None:
        # The feeds and arguments of each instance that is being built, the innermost last.
        self._building: list[tuple[list[Handle], list[Any]]] = []
        self._of: weakref.WeakKeyDictionary[Any, Instances] = weakref.WeakKeyDictionary()
        self._sweep_at = SPARE
        # Each instance that may be fed again, by the slots of its feeds.
        self.fed_by: weakref.WeakValueDictionary[int, Instance] = weakref.WeakValueDictionary()

    def instance(
        self,
        graph: Core,
        function: object,
        key: Any,
        arguments: list[Any],
        build: Callable[[], Instance],
        sharing: Sharing = Sharing.ALL,
    ) -> Instance:
        """Return an instance that is fed with these arguments; build one if none is free."""
        instances = self._of.setdefault(function, Instances())
        instance = instances.find(graph, key, arguments, sharing)
        if instance is None and len(self) >= self._sweep_at:
            visible = self._sweep(graph)
            self._sweep_at = max(SPARE, 2 * visible)
            instance = instances.find(graph, key, arguments, sharing)
        if instance is None:
            instance = build()
            if sharing is Sharing.DRAWN:
                with graph._scheduler.notes.aside():
                    instance.redraw(graph)
            if sharing is Sharing.FIRST:
                instance.share(graph, getattr(function, "__name__", ""))
            # Not kept if a rule in it waits for a function to run: that rule will be built again.
            if not graph._programs.wait_for(instance.nodes):
                instances.add(graph, key, instance)
                self.fed_by.update(dict.fromkeys(instance.feeds, instance))
        return instance

    def carried(self, graph: Core, function: object, slot: int) -> bool:
        """Return whether a node is computed from a result of this function, and from no input.

        Such a value is state that the function's calls hand on, if it is given to the next one.
        """
        instances = self._of.get(function)
        if not instances or self.under_way:
            return False
        ops, leaf = graph._host.ops, graph._scheduler.leaf
        behind = graph._scheduler.topology.ancestors([slot])
        return not any(leaf[one] and ops[one] is INPUT for one in behind) and any(
            not behind.isdisjoint(one.nodes) for one in instances
        )

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    @property
    def under_way(self) -> bool:
        """True while an instance is being built."""
        return bool(self._building)

    def make_way(self, graph: Core, slots: Iterable[int]) -> bool:
        """Release free instances that have one of these nodes or depend on one.

        Return whether there were any.
        """
        cone = graph._scheduler.topology.descendants(slots)
        forgot = False
        while any(one.forget_free(graph, cone) for one in self._of.values()):
            forgot = True
            tidy(graph)  # frees the instances that fed them
        return forgot

    @block
    def building(self, feeds: list[Handle], arguments: list[Any]) -> Iterator[None]:
        """Record that an instance is being built, whose feeds have no values yet."""
        self._building.append((feeds, arguments))
        try:
            yield
        finally:
            self._building.pop()

    @block
    def fed(self, graph: Core) -> Iterator[None]:
        """Give the feeds of instances under way the values of their arguments, for rules that must
        read them.
        """
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
        """Disconnect instances that only feed others, where nothing outside sees any of them.

        Return the number of those seen.

        In a chain of calls each one but the last feeds the next one. The cost is that of all nodes
        that depend on instances, so this is done only when there are twice as many as were seen the
        last time.
        """
        host, topology, branches = graph._host, graph._scheduler.topology, graph._host.branches
        every = [one for instances in self._of.values() for one in instances]
        below = _descendants(graph, [slot for one in every for slot in one.nodes])
        known = _alone(host, _programs(graph, below))
        kept = host.kept.keys() | graph._observers.observed.keys()

        def parents(slot: int) -> Iterable[int]:
            return filter(below.__contains__, (*topology.parents[slot], *branches.get(slot, ())))

        seen = [slot for slot in below if slot in kept or _held(host, slot, known)]
        visible = reached(seen, parents).keys()
        unseen = [one for one in every if visible.isdisjoint(one.nodes)]
        for slot in host.twin_programs.keys() & {slot for one in unseen for slot in one.nodes}:
            host.twin_programs[slot].clear()  # gradients that go through the whole chain
        feeds = [slot for one in unseen for slot in one.feeds]
        for slot in sorted(feeds, key=topology.rank.__getitem__, reverse=True):
            if not below.keys().isdisjoint(topology.parents[slot]):
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
        """Move these to the end, where they are found first."""
        first = set(unseen)
        for key, instances in self._of.items():
            self._of[key] = deque(sorted(instances, key=first.__contains__))

    def find(
        self, graph: Core, key: Any, arguments: list[Any], sharing: Sharing
    ) -> Instance | None:
        """Return an instance that is fed with these arguments, if there is one that is free or may be
        shared.
        """
        instances = self._of.get(key)
        if not instances:
            return None
        self._of[key] = self._of.pop(key)
        if sharing is Sharing.FIRST:
            begin = [one for one in instances if one.begins(graph, arguments)]
            ready = [
                (instance.differing(graph, arguments), instance)
                for instance in begin
                if instance.intact(graph)
            ]
            for differing, instance in sorted(ready, key=_has_differing):
                if instance.give_away(graph, bool(differing)):
                    # A caller may hold its result, so a transaction notes these sets.
                    instance.feed(graph, differing)
                    return instance
        anew = sharing is Sharing.DRAWN
        self._prefer_fed(graph, instances, arguments)
        for asked in range(min(ASKED, len(instances))):
            instance = instances.pop()
            differing = instance.differing(graph, arguments) if asked == 0 else None
            draws = anew and instance.draws(graph)
            if differing == {} and not draws and instance.intact(graph):
                instances.append(instance)
                return instance
            if not instance.free(graph, whole=instance.follows(graph, arguments)):
                instances.appendleft(instance)  # checked again after all others
            elif instance.intact(graph):
                instances.append(instance)
                if differing is None:
                    differing = instance.differing(graph, arguments)
                # Not noted by a transaction, as for a new instance: nothing saw its former feeds.
                with graph._scheduler.notes.aside():
                    instance.feed(graph, differing)
                    if draws:
                        instance.redraw(graph)
                return instance
        return None

    def _prefer_fed(self, graph: Core, instances: deque[Instance], arguments: list[Any]) -> None:
        """Move an instance that follows one of the arguments to the end, where it is found first."""
        children, fed_by = graph._scheduler.topology.children, graph._subgraphs.fed_by
        for argument in arguments:
            if isinstance(argument, Handle):
                for child in children[argument._slot]:
                    one = fed_by.get(child)
                    if one is not None and one in instances:
                        instances.remove(one)
                        instances.append(one)
                        return

    def forget_free(self, graph: Core, among: Set[int]) -> bool:
        """Release the free instances that have one of these nodes.

        Return whether there were any.
        """
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
        """Add an instance. Release free ones of the structures that were used longest ago."""
        self._of.setdefault(key, deque()).append(instance)
        for structure in list(self._of)[: max(len(self._of) - SPARE, 0)][:ASKED]:
            instances = self._of.pop(structure)
            used = deque([one for one in instances if not one.free(graph)])
            if used:
                self._of[structure] = used


def _has_differing(ready: tuple[dict[int, Any], Instance]) -> bool:
    return bool(ready[0])
