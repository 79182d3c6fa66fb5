"""Repeated runs of transient nodes: their steps are bound once, and their values lie in scratch memory.

A run that dropped transient values has recorded when each of them was dropped, brought back or
computed again. A ``Script`` does the same with steps that stay bound. The values lie in scratch:
arrays that several nodes use in turn and that no caller sees. A result lies in the array of an
operand that is dropped right after, if its kernel may write there. Work for a node (bringing back or
computing again its operands, and dropping values after it) is a part of the step of that node.

Invariant: values that a script drops are ``MISSING`` in the table of values before, during and after
a complete run of the script. If a run stops early, ``rescue`` enters those that are there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from reactgrad.backend import Spec, device_of, may_overwrite, own_copy, storage_shape
from reactgrad.core._rows import Rows
from reactgrad.nodes._op import Op
from reactgrad.scheduler import Step, is_interrupt
from reactgrad.values._columns import MISSING

# Scratch of more bytes than this is freed after each run: on arrays so large binding is cheap.
MAX_SCRATCH = 1 << 25

# The events that can happen to the value of a node in a run.
RAN, AGAIN, BACK, GONE = "ran", "computed again", "brought back", "let go"

Event = tuple[str, int]


def _gone_after(events: Sequence[Event], at: int) -> Iterator[int]:
    """Return the slots of the values that are dropped right after this event."""
    return (slot for _, slot in takewhile(lambda event: event[0] == GONE, events[at + 1 :]))


def _alike(one: Spec | None, other: Spec) -> bool:
    """Return whether values of these specs fill memory in the same way."""
    return one is not None and _layout(one) == _layout(other)


def _layout(found: Spec) -> tuple[Any, ...]:
    return storage_shape(found), found.dtype, found.device


class _Memory:
    """An array that values use in turn, with the number of values that lie in it now."""

    __slots__ = ("array", "free", "users")

    def __init__(self, array: Any, free: list[_Memory]) -> None:
        self.array, self.free, self.users = array, free, 0

    def leave(self) -> None:
        """Note that a value leaves the array. Without a value left, the array is free again."""
        self.users -= 1
        if not self.users:
            self.free.append(self)


class _Act(NamedTuple):
    """An event with the arrays that it uses; valid as long as scratch stays where it is."""

    what: str
    slot: int
    out: Any  # the array of the value, if it lies in scratch
    shows: Any  # the array of the operand, if the value is a view of it
    operands: dict[int, Any]  # arrays of the operands that lie in scratch
    packs: bool = False  # True if the value is new, so that `pack` must take it
    over: int | None = None  # the operand that the value is written over


class Repeat:
    """A script that repeats a run; see ``reactgrad_scheduler.Script``.

    Parameters
    ----------
    host
        The owner of the values.
    slots
        The nodes that ran, in this order.
    events
        The events of values, in this order.
    stayed
        Nodes whose values were kept only because they were held or observed.
    back
        Released nodes that had their values again at the end.
    """

    def __init__(
        self,
        host: Rows,
        slots: Sequence[int],
        events: Sequence[Event],
        stayed: Sequence[int],
        back: Set[int],
    ) -> None:
        self._host, self._stayed = host, tuple(stayed)
        self.back = frozenset(back)
        self._gone = frozenset(slot for what, slot in events if what == GONE)
        self._segments = [
            slot
            for slot in self._gone
            if host.transient[slot].recomputed and not host.transient[slot].lasting
        ]
        ran = frozenset(slots)
        self._away = frozenset(slot for what, slot in events if what == BACK) - ran
        # One list of events for each node that ran: events before its run belong to its turn, and
        # so do the drops right after it.
        self._turns: list[list[Event]] = [[] for _ in slots]
        turn, over = 0, False
        for event in events:
            if event[0] != GONE:
                turn, over = turn + over, event[0] == RAN
            self._turns[turn].append(event)
        self._acts: list[list[_Act]] = []
        self._steps: list[Step | None] = []
        self._users: dict[int, set[int]] = {}  # turns, by the slots that they use
        self._large = False
        self._taken = Counter[Spec]()  # the number of scratch arrays in use, by spec
        self._scratches: object = None  # the scratch that the steps are bound to, by identity

    def apart(self, slots: Set[int]) -> bool:
        """Return whether none of these slots is one whose value the script drops."""
        return self._gone.isdisjoint(slots)

    def possible(self) -> bool:
        """Return whether scratch can hold the values: only array ops may read or show them."""
        host, gone = self._host, self._gone
        topology = host.scheduler.topology
        for what, slot in (event for turn in self._turns for event in turn):
            parents = topology.parents[slot]
            if what == GONE:
                shown = [child for child in topology.children[slot] if child in host._view_of]
                if any(child not in gone for child in shown):
                    return False
            elif slot in gone or not gone.isdisjoint(parents):
                specs = [host.specs[one] for one in (slot, *parents)]
                found = specs[0]
                if found is None or found.weak is not None or None in specs:
                    return False
                if not isinstance(host.ops[slot], Op) or slot in host.cutoffs:
                    return False
        # Values of lasting nodes may be many at once, and their scratch exists beside what is
        # computed to stay. Without scratch, each leaves its memory to other values when dropped.
        lasting = any(host.transient[slot].lasting for slot in gone)
        return not lasting or self._scratch() <= MAX_SCRATCH

    def _scratch(self) -> int:
        """Return about how many bytes of scratch are needed, with arrays used again once free."""
        host, free, used = self._host, Counter[Spec](), 0
        for what, slot in (event for turn in self._turns for event in turn):
            found = host.specs[slot]
            if slot in self._gone and found is not None:
                if what == GONE:
                    free[found] += 1
                elif free[found]:
                    free[found] -= 1
                else:
                    used += found.nbytes
        return used

    # --- as the scheduler knows it -------------------------------------------------------------

    def fits(self) -> bool:
        # True if values would be dropped now exactly as in the recorded run.
        host, gone = self._host, self._gone
        graph, handles = host._graph(), host.handles
        held = [handles[slot] for slot in self._segments]
        return (
            graph is not None
            and graph._host.limit is None
            and not host.refused
            and host.lying.isdisjoint(gone)
            and gone.isdisjoint(graph._observed)
            and host.kept.keys().isdisjoint(self._segments)
            and not any(ref is not None and ref() is not None for ref in held)
            and all(host.in_sight(slot) or host.is_observed(slot) for slot in self._stayed)
            and self._away <= host.away.keys()
        )

    def bind(self, moves: Sequence[int], since: int | None) -> tuple[list[Step], list[int]]:
        if since is None or not self._acts or self._scratches is not self._host.spares.scratches:
            self._bind_all()
        else:
            while since < len(moves):  # binding a step may add to `moves`
                moved, since = moves[since:], len(moves)
                turns = {turn for slot in moved for turn in self._users.get(slot, ())}
                if any(act.shows is not None for turn in turns for act in self._acts[turn]):
                    self._bind_all()  # the array that a view shows may have moved
                    break
                for turn in sorted(turns):
                    self._steps[turn] = self._step(self._acts[turn])
        found = [(step, turn) for turn, step in enumerate(self._steps) if step is not None]
        own = [next(slot for what, slot in turn if what == RAN) for turn in self._turns]
        return [step for step, _ in found], [own[turn] for _, turn in found]

    def rescue(self, index: int) -> None:
        # Steps before `index` have run, the one at `index` in part. Enter into the tables the values
        # that scratch holds now, so that the run can go on node by node.
        host, scheduler = self._host, self._host.scheduler
        there: dict[int, _Act] = {}
        ran: set[int] = set()
        for acts in self._acts[:index]:
            for act in acts:
                if act.what == GONE:
                    del there[act.slot]
                elif act.slot in self._gone:
                    there[act.slot] = act
                if act.what == RAN:
                    ran.add(act.slot)
        for act in self._acts[index]:
            if act.over is not None:  # overwritten, perhaps only in part
                there.pop(act.over, None)
        # Values computed again were bound to new storage. Where the step has not run, it is empty.
        for at, acts in enumerate(self._acts):
            again = [act.slot for act in acts if act.what == AGAIN and act.slot in self.back]
            if at < index:
                for slot in again:
                    scheduler.staleness.restore(slot)
            elif again:
                host.release([slot for slot in again if slot in scheduler.dropped])
        released = (ran & self._gone) - there.keys() - host.away.keys() - host.lying
        for slot in there:
            scheduler.staleness.restore(slot)
        for act in self._acts[index]:
            if act.what == RAN and act.slot in self._gone:
                there[act.slot] = act
        for slot, act in there.items():
            host.data[slot] = act.out
            if act.shows is not None:
                host._view_of[slot] = act.shows
                host._part_for.pop(slot, None)
            host.lying.add(slot)
            host.moved(slot)
        scheduler.drop(released)
        if there:  # their scratch arrays now belong to the table: no other run may use them
            host.spares.close_scratch()
        self._forget()

    def ended(self) -> bool:
        if not self._large:
            return True
        self._forget()
        return False

    # --- binding ---------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._acts, self._steps, self._users = [], [], {}

    def _bind_all(self) -> None:
        spares = self._host.spares
        self._large = self._scratch() > MAX_SCRATCH
        self._bind_in_scratch()
        # The limit holds for the scratch of all runs together: if it is passed, start afresh.
        if not self._large and spares.scratch_bytes > MAX_SCRATCH:
            spares.close_scratch()
            self._bind_in_scratch()

    def _bind_in_scratch(self) -> None:
        self._forget()
        spares = self._host.spares
        self._scratches = spares.scratches
        self._taken = Counter[Spec]()
        free: dict[Any, list[_Memory]] = defaultdict(list)
        memory: dict[int, _Memory | None] = {}
        arrays: dict[int, Any] = {}
        fresh: set[int] = set()  # values that were computed and that `pack` has not taken yet
        users: defaultdict[int, set[int]] = defaultdict(set)
        parents = self._host.scheduler.topology.parents
        for turn, events in enumerate(self._turns):
            acts: list[_Act] = []
            self._acts.append(acts)
            for at, (what, slot) in enumerate(events):
                if what == GONE:
                    array, lender = arrays.pop(slot), memory.pop(slot)
                    packs = slot in fresh
                    fresh.discard(slot)
                    acts.append(_Act(what, slot, array, None, {}, packs))
                    if lender is not None:
                        lender.leave()
                    continue
                operands = {one: arrays[one] for one in parents[slot] if one in arrays}
                shows = over = None
                if slot in self._gone:
                    dying = {one for one in _gone_after(events, at) if one not in fresh}
                    shows, over = self._place(what, slot, dying, arrays, memory, free)
                    if what == RAN and shows is None and not self._host.transient[slot].recomputed:
                        fresh.add(slot)
                acts.append(_Act(what, slot, arrays.get(slot), shows, operands, over=over))
                for one in (slot, *parents[slot]):
                    if one not in self._gone:
                        users[one].add(turn)
            self._steps.append(self._step(acts))
        self._users = dict(users)

    def _place(
        self,
        what: str,
        slot: int,
        dying: Set[int],
        arrays: dict[int, Any],
        memory: dict[int, _Memory | None],
        free: dict[Any, list[_Memory]],
    ) -> tuple[Any, int | None]:
        """Find an array for a value; the array of an operand in ``dying`` may be written over.

        Return the array that the value is a view of, if any, and the operand that it is written over,
        if any.
        """
        host, found = self._host, self._host.specs[slot]
        assert found is not None  # `possible` has checked it
        op, device = host.ops[slot], device_of(found.device)
        if what != BACK and op.view is not None and device.views:
            parent = host.scheduler.topology.parents[slot][0]
            shows = arrays[parent] if parent in arrays else host.data[parent]
            view = host.view_in(slot, shows)
            if view is not None:
                arrays[slot], memory[slot] = view, memory.get(parent)
                if memory[slot] is not None:
                    memory[slot].users += 1  # type: ignore[union-attr]
                return shows, None
        for i, parent in enumerate(host.scheduler.topology.parents[slot]):
            lender = memory.get(parent) if parent in dying and what != BACK else None
            if lender is None or lender.users > 1 or lender.array is not arrays[parent]:
                continue
            if _alike(host.specs[parent], found) and may_overwrite(
                op.name, found.kind, i, host.attrs[slot]
            ):
                arrays[slot], memory[slot] = lender.array, lender
                lender.users += 1
                return None, parent
        unused = free[_layout(found)]
        if unused:
            lender = unused.pop()
        else:
            lender = _Memory(self._lend(found, self._taken[found]), unused)
            self._taken[found] += 1
        lender.users = 1
        arrays[slot], memory[slot] = lender.array, lender
        return None, None

    def _lend(self, found: Spec, number: int) -> Any:
        """Return an array of this run alone if its scratch is large, else one that runs share."""
        if self._large:
            array = device_of(found.device).empty(found.storage, found.dtype)
            self._host.footprint.add(array)
            return array
        return self._host.spares.scratch(found, number)

    def _step(self, acts: Sequence[_Act]) -> Step | None:
        """Return one step that performs all these events; ``None`` if there is nothing to call."""
        calls = [call for act in acts if (call := self._call(act)) is not None]
        if len(calls) < 2:
            return calls[0] if calls else None

        def step() -> None:
            for call in calls:
                call()

        return step

    def _call(self, act: _Act) -> Step | None:
        if act.what == GONE:
            return partial(self._put_away, act.slot, act.out) if act.packs else None
        if act.what == BACK:
            return partial(self._bring_back, act.slot, act.out)
        if act.shows is not None:
            return None
        if act.out is None and not act.operands:
            return self._host.bind(act.slot)
        return self._host.bind_at(act.slot, act.out, act.operands)

    # --- values outside of scratch ---------------------------------------------------------------

    def _put_away(self, slot: int, array: Any) -> None:
        host, found = self._host, self._host.specs[slot]
        assert found is not None
        mine = own_copy(found, array)
        try:
            # The version that the value will have: the run has not been recorded yet.
            version = host.scheduler.version(slot) + 1
            shaped = device_of(found.device).reshape(
                mine, storage_shape(found) if found.shape else ()
            )
            host.transient[slot].put_away(host, slot, shaped, version)
        except Exception as error:
            host.data[slot] = mine
            host.moved(slot)
            host.lying.add(slot)
            if is_interrupt(error):
                raise
            host.refuse(slot, error, met=True)

    def _bring_back(self, slot: int, array: Any) -> None:
        host, found = self._host, self._host.specs[slot]
        assert found is not None
        value = host.data[slot]
        if value is MISSING:
            value = host.transient[slot].fetch(host, slot)
        device_of(found.device).assign(array, value)
