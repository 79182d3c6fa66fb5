"""Runs of nodes whose values go soon, when they are seen again: bound once, in scratch memory.

A run that let go of values has shown where they go, come back and are computed again. A ``Script``
does the same with steps that stay bound. The values lie in scratch: arrays that several nodes use one
after the other and nobody else ever sees; a result lies where an operand lay that goes right after,
if its kernel may write there. What is brought back or computed again for a node, and what
goes after it, is part of the step of that node.

Invariant: the values that a script lets go are ``MISSING`` in the table before, while and after it is
followed to its end; ``rescue`` puts those into the table that are there when it stops before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from reactgrad.backend import Spec, device_of_kind, may_overwrite, own_copy, storage_shape
from reactgrad.nodes._op import Op
from reactgrad.scheduler import Step
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.core._rows import Rows

# Scratch of more bytes than this is given back after each run: on such arrays binding costs little.
MAX_SCRATCH = 1 << 25

# What can happen to the value of a node in a run.
RAN, AGAIN, BACK, GONE = "ran", "computed again", "brought back", "let go"

Event = tuple[str, int]


def _gone_after(events: Sequence[Event], at: int) -> Iterator[int]:
    """The values that go right after this event."""
    return (slot for _, slot in takewhile(lambda event: event[0] == GONE, events[at + 1 :]))


def _alike(one: Spec | None, other: Spec) -> bool:
    """Whether values of these specs fill memory in the same way."""
    return one is not None and _layout(one) == _layout(other)


def _layout(found: Spec) -> tuple[Any, ...]:
    return storage_shape(found), found.dtype, found.kind


class _Memory:
    """An array that values use one after the other, and how many show it now."""

    __slots__ = ("array", "free", "users")

    def __init__(self, array: Any, free: list[_Memory]) -> None:
        self.array, self.free, self.users = array, free, 0

    def leave(self) -> None:
        """One value less shows it."""
        self.users -= 1
        if not self.users:
            self.free.append(self)


class _Act(NamedTuple):
    """An event with the arrays that it takes, as long as scratch stays where it is."""

    what: str
    slot: int
    out: Any  # where the value lies, if in scratch
    shows: Any  # the array of the operand of which it is a view
    operands: dict[int, Any]  # those that lie in scratch
    packs: bool = False  # whether the value is put away anew
    over: int | None = None  # the operand where the value is written, which goes


class Repeat:
    """What repeats a run; see ``reactgrad_scheduler.Script``.

    Parameters
    ----------
    host
        Owner of the values.
    slots
        The nodes that ran, in this order.
    events
        What happened to values, in this order.
    stayed
        Nodes whose values would have gone, had nobody held or observed them.
    back
        Released nodes whose values were there again in the end.
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
        # The events of each node's turn: it runs after what is done for it.
        self._turns: list[list[Event]] = [[] for _ in slots]
        turn, over = 0, False
        for event in events:
            if event[0] != GONE:
                turn, over = turn + over, event[0] == RAN
            self._turns[turn].append(event)
        self._acts: list[list[_Act]] = []
        self._steps: list[Step | None] = []
        self._users: dict[int, set[int]] = {}  # turns, by what they use outside of scratch
        self._large = False
        self._taken = Counter[Spec]()  # how many arrays of scratch it uses
        self._scratches: object = None

    def apart(self, slots: Set[int]) -> bool:
        """Whether the values that go are none of these."""
        return self._gone.isdisjoint(slots)

    def possible(self) -> bool:
        """Whether scratch can hold the values that go: all that read or show them are array ops."""
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
        # Scratch of values that may be many is there beside what is computed to stay; one by one, they
        # leave their memory to that.
        lasting = any(host.transient[slot].lasting for slot in gone)
        return not lasting or self._scratch() <= MAX_SCRATCH

    def _scratch(self) -> int:
        """About how many bytes the values that go need, each of which lies where none else does then."""
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
            while since < len(moves):  # which may grow on the way
                moved, since = moves[since:], len(moves)
                turns = {turn for slot in moved for turn in self._users.get(slot, ())}
                if any(act.shows is not None for turn in turns for act in self._acts[turn]):
                    self._bind_all()  # of which it is a view may have moved
                    break
                for turn in sorted(turns):
                    self._steps[turn] = self._step(self._acts[turn])
        found = [(step, turn) for turn, step in enumerate(self._steps) if step is not None]
        own = [next(slot for what, slot in turn if what == RAN) for turn in self._turns]
        return [step for step, _ in found], [own[turn] for _, turn in found]

    def rescue(self, index: int) -> None:
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
            if act.over is not None:  # perhaps in part
                there.pop(act.over, None)
        # Bound to new storage; what has not run holds nothing.
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
            host.lying.add(slot)
            host.moved(slot)
        scheduler.drop(released)
        if there:  # which lie in the table now
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
        if not self._large and spares.scratch_bytes > MAX_SCRATCH:  # with that of other runs
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
        fresh: set[int] = set()  # computed, and not put away since
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
        """Find a place for a value, also where an operand lies that is `dying`.

        Returns the array of which it is a view, and the operand that it is written over.
        """
        host, found = self._host, self._host.specs[slot]
        assert found is not None  # see ``possible``
        op, device = host.ops[slot], device_of_kind(found.kind)
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
        """Memory of this run alone where it is much, else what all such runs use."""
        if self._large:
            array = device_of_kind(found.kind).empty(found.storage, found.dtype)
            self._host.footprint.add(array)
            return array
        return self._host.spares.scratch(found, number)

    def _step(self, acts: Sequence[_Act]) -> Step | None:
        """One step that does all of these."""
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

    # --- values that lie somewhere else --------------------------------------------------------

    def _put_away(self, slot: int, array: Any) -> None:
        host, found = self._host, self._host.specs[slot]
        assert found is not None
        mine = own_copy(found, array)
        try:
            # The run that has computed it is not written down yet.
            version = host.scheduler.version(slot) + 1
            shaped = device_of_kind(found.kind).reshape(
                mine, storage_shape(found) if found.shape else ()
            )
            host.transient[slot].put_away(host, slot, shaped, version)
        except Exception as error:
            host.data[slot] = mine
            host.moved(slot)
            host.lying.add(slot)
            host.refuse(slot, error, met=True)

    def _bring_back(self, slot: int, array: Any) -> None:
        host, found = self._host, self._host.specs[slot]
        assert found is not None
        value = host.data[slot]
        if value is MISSING:
            value = host.transient[slot].fetch(host, slot)
        device_of_kind(found.kind).assign(array, value)
