"""A limit for the memory of values, and the choice of values to release when it is reached (rule E17).

A graph with a budget has it as its memory policy, ``host.policy``. The budget makes room before an
allocation, counts bytes after a store, and makes room again when a read has ended. In a graph
without one, ``policy`` is ``None`` and none of this runs.

Values that no later step of the read under way needs are released first. Among them, the one is
released that costs least to compute again for the memory and the time that it has been unused:
cost / (bytes * staleness). The cost includes that of released neighbours, so each release makes
its neighbours more expensive. That spreads the values that remain evenly over a deep graph, so that
no rebuild is long (Kirisame et al., "Dynamic Tensor Rematerialization", 2021; without neighbours it
is the rule of Cao and Irani, "GreedyDual-Size", 1997). Costs are estimated from shapes, not
measured, so that a program releases the same values each time.

If the storage of a plan does not fit as a whole, the plan cannot be bound as a whole. ``NoRoomError``
then makes the scheduler run it node by node, and each node makes room for itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Any

import numpy as np

from reactgrad._errors import BudgetWarning, ParameterError
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.core._rows import Rows
from reactgrad.memory._rebuild_costs import Gaps
from reactgrad.nodes._op import Op
from reactgrad.nodes._site import user_level
from reactgrad.scheduler import (
    FLEETING,
    STALE,
    UNKNOWN,
    Column,
    InvariantError,
    Run,
    is_interrupt,
    safe_repr,
)
from reactgrad.values._columns import MISSING
from reactgrad.values._ledger import Ledger, memory_of
from reactgrad.values._lending import Lease

# One release frees at least this part of the budget. Otherwise many small values would each cost a
# walk over all values.
_LEAST_PART = 32
# The overhead of a step besides moving memory, as the number of bytes that could be moved in that time.
_STEP = 16_384
# The assumed cost of a Python function, relative to an op on the same arrays.
_FUNCTION = 16

# The need of a value, from low to high: none (it is stale and will be replaced), idle, read by a
# later step of the run under way, a target of it.
_USELESS, _IDLE, _AHEAD, _ASKED = range(4)


class NoRoomError(Exception):
    """The storage of a plan does not fit into the budget as a whole. Never reaches callers."""


class Uses:
    """The times of last use of values, by a logical clock.

    Attributes
    ----------
    clock
        A counter that grows with every step and read.
    at
        By slot: the clock when the value was last used.
    """

    __slots__ = ("at", "clock")

    def __init__(self) -> None:
        self.clock = 0
        self.at: dict[int, int] = {}


class Handed(dict[int, Any]):
    """The values that callers were given, in a graph with a budget: a look-up counts as a use.

    A read of a clean value takes it from this table without a call of the host, so the table itself
    must note the use. It holds copies only weakly: they live as long as a caller holds them.
    """

    __slots__ = ("_uses",)

    def __init__(self, uses: Uses, handed: dict[int, Any]) -> None:
        super().__init__()
        self._uses = uses
        for slot, value in handed.items():
            self[slot] = value

    def get(self, slot: int, default: Any = None) -> Any:  # type: ignore[override]
        self._uses.at[slot] = self._uses.clock
        return super().get(slot, default)

    def __setitem__(self, slot: int, value: Any) -> None:
        if not isinstance(value, np.generic | Lease):
            value = Lease.of(value) or value
        super().__setitem__(slot, value)


class Budget:
    """The memory policy that keeps the values of a graph within a limit."""

    def __init__(self, host: Rows, limit: int) -> None:
        """Count all values, and take over the table of values that callers were given."""
        self.host = host
        self.limit = limit
        self.evicted = 0  # the number of values released so far
        self.evicted_bytes = 0
        self._uses = Uses()
        self._costs: dict[int, int] = {}  # by slot: estimates that still hold
        self.recovered()  # before the costs, which look at sizes
        self._gaps = Gaps(self._neighbours, self._cost)
        for slot in host.scheduler.dropped:
            self._gaps.add(slot)
        self._computed: set[int] = set()  # slots with a computed value that takes memory
        self._unsized: set[int] = set()  # slots being computed whose size is known only afterwards
        self._asked: Collection[int] = ()  # targets of the read under way
        # Nodes that the read under way runs. None until something must be released: finding them
        # takes a walk.
        self._ahead: set[int] | None = None
        # The most bytes that were needed at once, if more than the limit; else 0.
        self._needed = 0
        self._warned = False
        host.spares.clear()
        self._hand_over(Handed(self._uses, host.handed))

    def end(self) -> None:
        """Stop limiting: give the graph a plain table of handed-out values again."""
        self._hand_over(dict(self.host.handed))

    def close(self) -> None:
        """Drop every reference back to the host, so that both are freed with the graph."""
        del self.host, self._gaps

    def _hand_over(self, handed: dict[int, Any]) -> None:
        """Replace the table of values that callers were given, wherever it is aliased."""
        host = self.host
        graph = host._graph()
        assert graph is not None
        host.handed = graph._handed = handed
        graph._scheduler.plans.unbind()  # bound steps with a cutoff refer to the former table
        host.unbind()

    def change_limit(self, limit: int) -> None:
        """Change the limit, and release values until it is kept."""
        self.limit = limit
        self._needed = 0
        self._warned = False
        self.make_room()

    # --- before an allocation --------------------------------------------------------------------

    def allocate(self, slot: int, size: int, *, running: bool) -> None:
        """Make room for the value of a node.

        Raises
        ------
        NoRoomError
            If the node is bound as a part of a plan, and its value does not fit.
        """
        if self._by_itself(slot):
            self.make_room(size)
        # While a plan runs nothing can be released: room is made when it has ended.
        elif not running:
            self._settle()
            if self.ledger.bytes + size > self.limit:
                raise NoRoomError

    def bind(self, slot: int) -> None:
        """Note that a node is about to run, and make room after nodes that ran before it.

        Raises
        ------
        NoRoomError
            If the node is bound as a part of a plan, and the size of its value is not known.
        """
        host = self.host
        if self._by_itself(slot):
            uses = self._uses
            uses.clock += 1
            self._gaps.discard(slot)
            for one in (slot, *host.scheduler.topology.parents[slot]):
                uses.at[one] = uses.clock
            done = self._unsized.difference(host.scheduler.computing)
            if done:
                self._unsized -= done
                self._dirty |= done
                self.make_room()
            if host.specs[slot] is None:
                self._unsized.add(slot)
        elif host.specs[slot] is None and host.data[slot] is MISSING:
            raise NoRoomError

    def _by_itself(self, slot: int) -> bool:
        """Return whether the node is being computed now, not bound as a part of a plan."""
        computing = self.host.scheduler.computing
        return bool(computing) and computing[-1] == slot

    # --- after a store ---------------------------------------------------------------------------

    def allocated(self, slot: int) -> None:
        """Count the memory that was allocated for a node."""
        self._dirty.add(slot)
        self._settle()

    def stored(self, slot: int) -> None:
        """Note that the value of a node must be counted again before the next decision."""
        self._dirty.add(slot)

    def moved(self, slot: int) -> None:
        """Do what ``stored`` does, and forget the estimated costs of the node and of its consumers."""
        self._dirty.add(slot)
        self._costs.pop(slot, None)
        for child in self.host.scheduler.topology.children[slot]:
            self._costs.pop(child, None)

    def given(self, slot: int) -> None:
        """Make room after a caller has set the value of a node."""
        self._dirty.add(slot)
        self.make_room()

    def recovered(self) -> None:
        """Start counting from nothing: every value is counted before the next decision."""
        self.ledger, self._dirty = Ledger(), set(range(len(self.host.data)))

    def released(self, slots: Iterable[int]) -> None:
        """Add values that were released to the costs of their neighbours."""
        for slot in slots:
            self._gaps.add(slot)

    def removed(self, slot: int) -> None:
        """Forget a node that was removed."""
        self._uses.at.pop(slot, None)
        self._costs.pop(slot, None)
        self._gaps.discard(slot)

    def _settle(self) -> None:
        """Count the values that have changed since the last call."""
        if self._dirty:
            ledger, leaf, computed = self.ledger, self.host.scheduler.leaf, self._computed
            ledger.update(self._dirty, self.host.data)
            for slot in self._dirty:
                if slot in ledger and not leaf[slot]:
                    computed.add(slot)
                else:
                    computed.discard(slot)
            self._dirty.clear()

    # --- around a run ----------------------------------------------------------------------------

    def read_within(self, slots: tuple[int, ...], read: Callable[[], Run]) -> Run:
        """Call ``read``, which reads these nodes, within the limit. Return its run."""
        try:
            return self._read_within(slots, read)
        except BaseException as error:
            # It may have come between a change of a value and its count.
            if issubclass(type(error), FLEETING) or is_interrupt(error):
                self.recovered()
            raise

    def _read_within(self, slots: tuple[int, ...], read: Callable[[], Run]) -> Run:
        host = self.host
        outer = self._asked, self._ahead
        self._asked, self._ahead = frozenset(slots), None
        try:
            run = read()
        finally:
            limited = host.policy is self  # an observer may have lifted the limit
            if limited:
                self._look_back()
                self._asked, self._ahead = outer
        if limited and self._needed and not self._warned and not host.scheduler.computing:
            self._warned = True
            warnings.warn(
                f"max_bytes={self.limit} is not enough: {self._needed} bytes were needed at once, for "
                "leaves, pinned and observed values, values that callers hold, and what one node is "
                "computed from. Values are right, but computed again and again. Raise max_bytes, or "
                "hold and observe less.",
                BudgetWarning,
                stacklevel=user_level(),
            )
        return run

    def _look_back(self) -> None:
        """Note the uses of the run that has ended, and make room for the next one."""
        host, uses = self.host, self._uses
        uses.clock += 1
        run, parents = host.scheduler.last_run, host.scheduler.topology.parents
        for slot in (*run.ran, *run.rebuilt):
            if host.ops[slot] is not None:  # the node may have been released meanwhile
                for one in (slot, *parents[slot]):
                    uses.at[one] = uses.clock
                self._gaps.discard(slot)
                if host.specs[slot] is None:
                    self._dirty.add(slot)
        graph = host._graph()
        if graph is not None and not host.scheduler.computing:
            tidy(graph)  # nodes that nothing can reach are released before any value is
            self.make_room(spare_asked=True)

    # --- making room ---------------------------------------------------------------------------

    def make_room(self, size: int = 0, *, spare_asked: bool = False) -> None:
        """Release values until ``size`` more bytes fit, or no more values may be released.

        With ``spare_asked``, keep the targets of the read.
        """
        # A plan that is bound as a whole is running: its steps hold the arrays of all its nodes.
        if self.host.scheduler.computing[-1:] == [UNKNOWN]:
            return
        self._settle()
        ledger = self.ledger
        excess = ledger.bytes + size - self.limit
        if excess <= 0:
            return
        if self._ahead is None:
            topology, mark = self.host.scheduler.topology, self.host.scheduler.staleness.mark
            self._ahead = topology.ancestors(self._asked, lambda slot: mark[slot])
        busy = self._busy()
        before, goal = ledger.bytes, max(excess, self.limit // _LEAST_PART)
        # A heap with lazy updates: an entry whose cost has grown is put back when it comes first.
        queue: list[tuple[int, float, int]] = []
        for slot in self._computed:
            members = self._members(slot, busy)
            if members:
                queue.append((*self._worth(slot, members), slot))
        heapify(queue)
        while queue and before - ledger.bytes < goal:
            need, _, slot = heappop(queue)
            if need == _ASKED and (spare_asked or before - ledger.bytes >= excess):
                break
            members = self._members(slot, busy)
            worth = (*self._worth(slot, members), slot)
            if queue and worth > queue[0]:  # dearer since its neighbours were released: try later
                heappush(queue, worth)
                continue
            present = ledger.bytes
            self.host.release(members)
            self._settle()
            self.evicted += len(members)
            self.evicted_bytes += present - ledger.bytes
        if before - ledger.bytes < excess:
            self._needed = max(self._needed, ledger.bytes + size)

    def _busy(self) -> set[int]:
        """Return the nodes that are being computed, and their operands."""
        parents = self.host.scheduler.topology.parents
        computing = [slot for slot in self.host.scheduler.computing if slot != UNKNOWN]
        return {*computing, *chain.from_iterable(parents[slot] for slot in computing)}

    def _must_stay(self, slot: int, busy: set[int]) -> bool:
        graph = self.host._graph()
        return (
            slot in busy
            or slot in self.host.spared
            or slot in self.host.scheduler.locked
            or (graph is not None and slot in graph._observed)
            or not self.host.recomputable(slot)
        )

    def _members(self, slot: int, busy: set[int]) -> list[int]:
        """Return a value with all its views, which are released together; ``[]`` if one must stay."""
        topology, view_of = self.host.scheduler.topology, self.host._view_of
        if slot in view_of and self.host.data[topology.parents[slot][0]] is not MISSING:
            return []  # belongs to the members of its parent
        members = [slot]
        for one in members:
            if self._must_stay(one, busy):
                return []
            members += [
                child
                for child in topology.children[one]
                if child in view_of and topology.parents[child][0] == one
            ]
        return [] if self._seen_outside(slot) else members

    def _seen_outside(self, slot: int) -> bool:
        """Return whether a caller holds the memory of a value, so that a release would not free it."""
        if any(lease() is not None for lease in self.host._leases.get(slot, ())):
            return True
        found = self.host.specs[slot]
        # Results of functions are handed out without a copy, so only the reference count tells. A
        # fork that shares the value may count as a caller.
        if (
            found is not None
            or not self.host.owns(slot)
            or not isinstance(self.host.data[slot], np.ndarray)
        ):
            return False
        handed = slot in self.host.handed and self.host.handed[slot] is self.host.data[slot]
        return _references(self.host.data, slot) > _OWN_REFERENCES + handed

    def _worth(self, slot: int, members: Sequence[int]) -> tuple[int, float]:
        """Return how much a value is needed, and the value of keeping it: the order of release."""
        mark, children = self.host.scheduler.staleness.mark, self.host.scheduler.topology.children
        ahead, awaited = self._ahead or (), self.host.scheduler.awaited
        if any(member in self._asked for member in members):
            need = _ASKED
        elif mark[slot] == STALE:
            need = _USELESS
        elif any(
            member in awaited or any(mark[child] and child in ahead for child in children[member])
            for member in members
        ):
            need = _AHEAD
        else:
            need = _IDLE
        uses = self._uses
        used = max(uses.at.get(member, 0) for member in members)
        staleness = uses.clock - used + 1
        cost = self._cost(slot) + self._gaps.around(slot)
        return need, cost / (max(1, self.ledger.bytes_of(slot)) * staleness)

    def _cost(self, slot: int) -> int:
        """Return the estimated cost of computing a node, in bytes read and written."""
        known = self._costs.get(slot)
        if known is not None:
            return known
        op, parents = self.host.ops[slot], self.host.scheduler.topology.parents[slot]
        moved = sum(map(self._size, parents), self._size(slot))
        if not isinstance(op, Op):
            moved *= _FUNCTION
        elif op.name == "matmul":  # each operand is read again for every row or column of the other
            found = self.host.specs[parents[0]]
            moved *= 1 if found is None or not found.shape else found.shape[-1] or 1
        cost = self._costs[slot] = _STEP + moved
        return cost

    def _neighbours(self, slot: int) -> tuple[int, ...]:
        topology = self.host.scheduler.topology
        return (*topology.parents[slot], *topology.children[slot])

    def _size(self, slot: int) -> int:
        found = self.host.specs[slot]
        return self.ledger.bytes_of(slot) if found is None else found.nbytes

    # --- checks ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ``InvariantError`` if the bytes counted differ from the bytes there are."""
        self._settle()
        afresh = Ledger()
        afresh.update(range(len(self.host.data)), self.host.data)
        if afresh.bytes != self.ledger.bytes:
            raise InvariantError(
                f"the values take {afresh.bytes} bytes, and {self.ledger.bytes} were counted. This is "
                "a bug in reactgrad; please report it."
            )


def set_limit(graph: Core, limit: Any) -> None:
    """Set, change or remove the memory budget of a graph; see ``Graph.max_bytes``."""
    host = graph._host
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ParameterError(
            f"max_bytes={safe_repr(limit)}: a number of bytes, such as 2**30, or None for no limit."
        )
    with graph._lock:
        graph._scheduler.check_idle()
        budget = host.policy
        if isinstance(budget, Budget):
            if limit is None:
                del host.policy  # as in a graph that never had one
                budget.end()
            else:
                budget.change_limit(limit)
        elif limit is not None:
            budget = host.policy = Budget(host, limit)
            budget.make_room()


def _references(values: Column[Any], slot: int) -> int:
    """Return the number of references to an array and to the array whose memory it shows."""
    value = values[slot]
    memory = memory_of(value)
    return sys.getrefcount(value) + (sys.getrefcount(memory) if memory is not value else 0)


def _references_of_a_value() -> int:
    """Return the number of references to an array that only the graph holds."""
    return _references([np.empty(0).view()], 0)


# Measured, since it differs between versions of Python. `_references` must be called in the same way.
_OWN_REFERENCES = _references_of_a_value()
