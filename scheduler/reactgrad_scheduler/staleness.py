"""Marks: the nodes that a change may have made stale.

There are four marks. Two are *settled*: ``CLEAN`` (the node has its value) and ``FAILED`` (it has an error
in place of one: it raised, or an operand has an error). Two are not: ``STALE`` (it certainly runs when it
is read) and ``MAYBE`` (a cutoff lies between it and the change, so that its parents' versions decide).

A settled node has only settled parents. A ``CLEAN`` one has ``FAILED`` parents only among its own reads
whose errors it has handled. (Reads do not count while an operand's error keeps the node from running.) A
``STALE`` node has only ``STALE`` descendants, except behind a cutoff, where they are at least ``MAYBE``.
So marking stops at nodes that are already marked as strongly, and a change costs only what it newly
reaches.

A *dropped* node is one whose value was released: clean or not, it has no value to be read. A clean one is
computed again at its version when it is needed (rule E17), any other one when it runs.

``state`` identifies the nodes with their marks, and which of them are dropped: it is the exclusive or of a
random number for every node and mark (Zobrist, 1970), updated with every mark. ``STALE`` nodes count as
nothing: marking ends at them anyway, and so nodes that were built and never read, as all are at first
(free rows are ``STALE``, too), change no state. Equal states mean that the same nodes are not ``STALE``
and have the same marks, up to a chance of 2**-100, which makes reads cacheable (see ``plan``). The reads
that nodes have made while they ran are part of the state, too, up to a chance of 2**-60.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from random import Random

from reactgrad_scheduler.hubs import MANY, Hubs
from reactgrad_scheduler.overlay import Column, share
from reactgrad_scheduler.ranges import Change
from reactgrad_scheduler.topology import Consumers, Topology

CLEAN, STALE, MAYBE, FAILED = 0, 1, 2, 3
UNSETTLED = (STALE, MAYBE)
_STALE_ONLY = frozenset((STALE,))
DROPPED = 4  # not a mark, but part of the state and of traces like one
_KEY_BITS = 110


class Staleness:
    """The marks, their state, and the leaves whose change is not yet marked."""

    __slots__ = (
        "_keys",
        "_random",
        "_topology",
        "cutoffs",
        "dropped",
        "flushed",
        "heeded",
        "hubs",
        "mark",
        "moved",
        "pending",
        "salt",
        "state",
        "trace",
    )

    def __init__(self, topology: Topology, random: Random | None = None) -> None:
        self._topology = topology
        self._random = random or Random(0x5EED)
        self._keys: Column[int] = []
        self.hubs: Hubs | None = None  # None before the first push of a hub
        self.mark: Column[int] = bytearray()
        self.cutoffs: set[int] = set()  # slots whose node has a cutoff
        self.dropped: set[int] = set()  # slots whose value was released
        # Changed leaves, in order of their first change; `None`: as a whole, or else in which rows.
        self.pending: dict[int, Change | None] = {}
        # Leaves that were pending since the last run began.
        self.flushed: dict[int, object] = {}
        self.state = 0
        self.salt = 0  # the part of the state that does not come from marks
        # If traced: the marks before their first change. A node that was dropped has an entry
        # ``DROPPED`` at the complement of its slot.
        self.trace: dict[int, int] | None = None
        self.heeded: Collection[int] = ()  # slots for which moves of the mark are recorded
        self.moved: set[int] = set()  # those of them whose mark has moved since

    def fork(self, topology: Topology) -> Staleness:
        """Return separate marks with the same rows, for a fork of the topology."""
        self.flush()
        twin = Staleness(topology, self._random)
        self._keys, twin._keys = share(self._keys)
        self.mark, twin.mark = share(self.mark)
        twin.cutoffs = self.cutoffs.copy()
        twin.dropped = self.dropped.copy()
        twin.state, twin.salt = self.state, self.salt
        return twin

    def extend(self, rows: int) -> None:
        """Add free rows."""
        self.mark.extend([STALE] * rows)
        self._keys.extend([0] * rows)

    def remove(self, slot: int) -> None:
        """Clear the row of a node that is about to be removed."""
        self.restore(slot)
        if self.mark[slot] != STALE:
            self.mark[slot], self.state = STALE, self.state ^ self.key(slot, self.mark[slot])
        self._keys[slot] = 0
        if self.hubs is not None:
            self.hubs.remove(slot)
        self.cutoffs.discard(slot)
        self.pending.pop(slot, None)
        self.flushed.pop(slot, None)

    def put(self, slot: int, mark: int) -> None:
        """Set the mark of ``slot``."""
        old = self.mark[slot]
        if old != mark:
            if self.trace is not None:
                self.trace.setdefault(slot, old)
            hubs = self.hubs
            if hubs is not None and mark != STALE:  # `_leave_stale` written out, to save a call
                hubs.left += (slot,)
                hubs.room -= 1
                if hubs.room < 0:
                    self.hubs = None
            key = self._keys[slot] or self._draw(slot)
            change = key * (old ^ 1) ^ key * (mark ^ 1)  # see ``key``
            # In one assignment: an interrupt must not come between the mark and the state.
            self.mark[slot], self.state = mark, self.state ^ change

    def put_all(self, marks: Sequence[tuple[int, int]]) -> None:
        """Set the marks of many nodes, given as (slot, mark), each slot once."""
        mark, keys, draw = self.mark, self._keys, self._draw
        if self.trace is not None or self.heeded:
            for slot, one in marks:
                self.put(slot, one)
            return
        if self.hubs is not None:
            self._leave_stale(self.hubs, [slot for slot, one in marks if one != STALE])
        state = 0
        for slot, one in marks:
            key = keys[slot] or draw(slot)
            state ^= key * (mark[slot] ^ 1) ^ key * (one ^ 1)
            mark[slot] = one
        self.state ^= state

    def heed(self, slots: Collection[int]) -> None:
        """Record in ``moved`` the nodes among these whose mark moves. An empty table costs nothing."""
        self.heeded = slots
        _become(self, Heeding if slots else Staleness)
        if not slots:
            self.moved.clear()

    def drop(self, slot: int) -> None:
        """Note that the value of ``slot`` was released."""
        if slot not in self.dropped:
            self.dropped.add(slot)
            self.state ^= self.key(slot, DROPPED)

    def restore(self, slot: int) -> None:
        """Note that ``slot`` has a value again, or never will have one."""
        if slot in self.dropped:
            self.dropped.remove(slot)
            self.state ^= self.key(slot, DROPPED)
            if self.trace is not None:
                self.trace[~slot] = DROPPED

    def key(self, slot: int, mark: int) -> int:
        """Return what a node with this mark adds to the state.

        That is its random number times a factor for the mark, which is 0 for ``STALE``.
        """
        return (self._keys[slot] or self._draw(slot)) * (mark ^ 1)

    def _draw(self, slot: int) -> int:
        """Give a node its random number, when it is first needed."""
        key = self._keys[slot] = self._random.getrandbits(_KEY_BITS)
        return key

    def renew(self) -> None:
        """Move to a state never seen before, since something changed that marks do not show."""
        self.salted(self._random.getrandbits(_KEY_BITS))

    def salted(self, salt: int) -> None:
        """Move to another state; a second call with the same ``salt`` moves back."""
        self.salt, self.state = self.salt ^ salt, self.state ^ salt

    def relinked(self, slot: int, former: Iterable[int], reads: Iterable[int]) -> None:
        """Note that a node has read others than before: the state changes until it reads those again."""
        self.hubs = None
        change = self._reading(slot, former) ^ self._reading(slot, reads)
        self.salt, self.state = self.salt ^ change, self.state ^ change

    def _reading(self, slot: int, reads: Iterable[int]) -> int:
        """Return what the reads of a node add to the state."""
        known, draw = self._keys, self._draw
        keys = [known[node] or draw(node) for node in (slot, *reads)]
        return hash(tuple(keys)) * keys[0]

    def flush(self) -> list[int]:
        """Turn the pending changes into marks; see ``push``."""
        reached: list[int] = []
        if self.pending:
            reached = self.push(self.pending)
            self.flushed.update(self.pending)
            self.pending.clear()
        return reached

    def push(self, changed: Iterable[int]) -> list[int]:
        """Mark all nodes that the change of these can reach. Return those that were settled.

        All nodes that were clean are among the returned ones. If it is interrupted, all computed nodes
        become ``MAYBE``, so that versions decide.
        """
        try:
            return self._push(changed)
        except BaseException:
            parents = self._topology.parents
            self.doubt_all([slot for slot in self._topology.slots() if parents[slot]])
            raise

    def _push(self, changed: Iterable[int]) -> list[int]:
        children, mark, cutoffs = self._topology.children, self.mark, self.cutoffs
        keys, draw = self._keys, self._draw
        certain: list[int] = []
        doubtful: list[int] = []
        for slot in changed:
            (doubtful if slot in cutoffs else certain).append(slot)
        # `put` written out for clean nodes: each changes the state by its number (see ``key``), and the
        # changes are collected and written once.
        reached: list[int] = []
        state = 0
        while certain:
            slot = certain.pop()
            consumers = children[slot]
            if len(consumers) > MANY:
                consumers = self._of_hub(slot, consumers)
            for child in consumers:
                former = mark[child]
                if former == STALE:
                    continue
                if former == CLEAN:
                    mark[child] = STALE
                    state ^= keys[child] or draw(child)
                    reached.append(child)
                else:
                    self.put(child, STALE)
                (doubtful if child in cutoffs else certain).append(child)
        self.state ^= state
        self.moved_from(CLEAN, reached)
        return reached + self.doubt_below(doubtful) if doubtful else reached

    def _of_hub(self, slot: int, consumers: Consumers) -> Iterable[int]:
        """Return the consumers of a hub that a push must visit."""
        if self.hubs is None:
            self.hubs = Hubs()
        return self.hubs.reached(slot, consumers)

    def _leave_stale(self, hubs: Hubs, slots: Sequence[int]) -> None:
        """Record nodes that are about to lose the mark ``STALE``."""
        hubs.left += slots
        hubs.room -= len(slots)
        if hubs.room < 0:
            self.hubs = None

    def clean(self, slots: Sequence[int]) -> None:
        """Mark these nodes ``CLEAN``, each given once; ``put`` for all of them at once."""
        mark = self.mark
        if _STALE_ONLY.issuperset(map(mark.__getitem__, slots)):
            self._clean(slots, STALE)
            return
        for former in (STALE, MAYBE):
            self._clean([slot for slot in slots if mark[slot] == former], former)
        for slot in slots:
            if mark[slot]:
                self.put(slot, CLEAN)

    def as_new(self, slots: Iterable[int]) -> None:
        """Mark these nodes ``STALE``, as new ones are. Nodes below them must be so already."""
        mark, keys, draw, state = self.mark, self._keys, self._draw, 0
        for slot in slots:
            if (former := mark[slot]) != STALE:
                state ^= (keys[slot] or draw(slot)) * (former ^ 1)  # see ``key``
                mark[slot] = STALE
        self.state ^= state

    def _clean(self, slots: Sequence[int], former: int) -> None:
        """Mark these nodes ``CLEAN``, which all have the mark ``former``, each given once."""
        mark, keys = self.mark, self._keys
        state = 0
        draw = self._draw
        if self.hubs is not None:
            self._leave_stale(self.hubs, slots)
        for slot in slots:
            state ^= keys[slot] or draw(slot)
            mark[slot] = CLEAN
        if former != STALE:  # see ``key``
            for slot in slots:
                state ^= keys[slot] * (former ^ 1)
        self.state ^= state
        self.moved_from(former, slots)

    def moved_from(self, former: int, slots: Iterable[int]) -> None:
        """Note that these nodes have lost the mark ``former``, which all of them had."""
        trace = self.trace
        if trace is not None:
            for slot in slots:
                trace.setdefault(slot, former)

    def doubt_below(self, changed: Iterable[int]) -> list[int]:
        """Mark as ``MAYBE`` what these nodes, which may have changed, reach. Return those that were settled."""
        children, mark, put = self._topology.children, self.mark, self.put
        reached: list[int] = []
        stack = list(changed)
        while stack:
            for child in children[stack.pop()]:
                if mark[child] not in UNSETTLED:
                    put(child, MAYBE)
                    stack.append(child)
                    reached.append(child)
        return reached

    def doubt_all(self, slots: Iterable[int]) -> None:
        """Mark all these nodes ``MAYBE``, so that versions decide (rule E16)."""
        self.hubs = None
        for slot in slots:
            self.put(slot, MAYBE)
        # Computed anew: an interrupt in `_push` or `_clean` may have left marks without their state.
        self.state = self.salt
        for slot in self._topology.slots():
            if self.mark[slot] != STALE:
                self.state ^= self.key(slot, self.mark[slot])
        for slot in self.dropped:
            self.state ^= self.key(slot, DROPPED)
        self.renew()


class Heeding(Staleness):
    """Marks whose moves are recorded for some nodes; see ``Staleness.heed``."""

    __slots__ = ()

    def put(self, slot: int, mark: int) -> None:
        if slot in self.heeded and self.mark[slot] != mark:
            self.moved.add(slot)
        super().put(slot, mark)

    def moved_from(self, former: int, slots: Iterable[int]) -> None:
        self.moved.update(filter(self.heeded.__contains__, slots))
        super().moved_from(former, slots)


def _become(staleness: Staleness, kind: type[Staleness]) -> None:
    staleness.__class__ = kind
