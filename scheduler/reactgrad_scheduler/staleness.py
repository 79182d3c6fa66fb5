"""Marks: which nodes a change may have made stale.

A mark is one of four. Two are *settled*: ``CLEAN`` (it has its value) and ``FAILED`` (it has an error
in place of one: it raised, or an operand has an error). Two are not: ``STALE`` (it surely has to run
when it is read) and ``MAYBE`` (a cutoff stands between it and the change, so that its parents'
versions decide).

A settled node has only settled parents; a ``CLEAN`` one has ``FAILED`` parents only among what it read
itself while it ran, and handled. (What a node read does not count as long as an operand's error keeps
it from running.) A ``STALE`` node has only ``STALE`` descendants, except behind a
cutoff, where they are at least ``MAYBE``. So marking stops where a node is already marked as strongly,
and a change costs only what it newly reaches.

A *dropped* node is one whose value was released: clean or not, it has none to be read. A clean one
is computed again at its version when it is needed (rule E17), any other one when it runs.

``state`` names the nodes with their marks, and which of them are dropped: the exclusive or of a random
number for every node and mark (Zobrist, 1970), kept up to date mark by mark. ``STALE`` nodes count
nothing: marking ends at them, whatever they are, so that nodes which were built and never read, as all
are at first (free rows are ``STALE``, too), change no state. Equal states mean that the same nodes are
not ``STALE`` and have the same marks, up to a chance of 2**-100, and make reads cacheable (see ``plan``).
What nodes have read while they ran is part of it, too, up to a chance of 2**-60.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from random import Random

from reactgrad_scheduler.hubs import MANY, Hubs
from reactgrad_scheduler.overlay import Column, share
from reactgrad_scheduler.topology import Consumers, Topology

CLEAN, STALE, MAYBE, FAILED = 0, 1, 2, 3
UNSETTLED = (STALE, MAYBE)
_STALE_ONLY = frozenset((STALE,))
DROPPED = 4  # no mark, but part of the state and of traces like one
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
        self.hubs: Hubs | None = None  # from the first push of one on
        self.mark: Column[int] = bytearray()
        self.cutoffs: set[int] = set()  # slots whose node has a cutoff
        self.dropped: set[int] = set()  # slots whose value was released
        self.pending: dict[int, None] = {}  # changed leaves, in order of their first change
        self.flushed: dict[int, None] = {}  # leaves that were pending since the last run began
        self.state = 0
        self.salt = 0  # the part of the state that marks do not explain
        # If wanted: marks before their first change; ``DROPPED`` at the complement of slots that were.
        self.trace: dict[int, int] | None = None
        self.heeded: Collection[int] = ()  # slots whose marks someone looks at
        self.moved: set[int] = set()  # those of them whose mark has moved since

    def fork(self, topology: Topology) -> Staleness:
        """Marks of their own with the same rows, for a fork of the topology."""
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
        """Clear the row of a node that is going away."""
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
        """Give `slot` this mark."""
        old = self.mark[slot]
        if old != mark:
            if self.trace is not None:
                self.trace.setdefault(slot, old)
            hubs = self.hubs
            if hubs is not None and mark != STALE:  # as `_leave_stale`, without a call
                hubs.left += (slot,)
                hubs.room -= 1
                if hubs.room < 0:
                    self.hubs = None
            key = self._keys[slot] or self._draw(slot)
            change = key * (old ^ 1) ^ key * (mark ^ 1)  # see ``key``
            self.mark[slot], self.state = mark, self.state ^ change  # no interrupt comes between

    def heed(self, slots: Collection[int]) -> None:
        """Note in ``moved`` whose mark moves, of these nodes; none: which costs nothing."""
        self.heeded = slots
        _become(self, Heeding if slots else Staleness)
        if not slots:
            self.moved.clear()

    def drop(self, slot: int) -> None:
        """The value of `slot` was released."""
        if slot not in self.dropped:
            self.dropped.add(slot)
            self.state ^= self.key(slot, DROPPED)

    def restore(self, slot: int) -> None:
        """`slot` has a value again, or never will."""
        if slot in self.dropped:
            self.dropped.remove(slot)
            self.state ^= self.key(slot, DROPPED)
            if self.trace is not None:
                self.trace[~slot] = DROPPED

    def key(self, slot: int, mark: int) -> int:
        """What a node with this mark adds to the state: another multiple for each mark, 0 for ``STALE``."""
        return (self._keys[slot] or self._draw(slot)) * (mark ^ 1)

    def _draw(self, slot: int) -> int:
        """Give a node its random number, when it is to count for the first time."""
        key = self._keys[slot] = self._random.getrandbits(_KEY_BITS)
        return key

    def renew(self) -> None:
        """Move to a state never seen before: something happened that marks do not show."""
        self.salted(self._random.getrandbits(_KEY_BITS))

    def salted(self, salt: int) -> None:
        """Move to another state, and, called again, back."""
        self.salt, self.state = self.salt ^ salt, self.state ^ salt

    def relinked(self, slot: int, former: Iterable[int], reads: Iterable[int]) -> None:
        """A node has read others than before: the state is another one until it reads those again."""
        self.hubs = None
        change = self._reading(slot, former) ^ self._reading(slot, reads)
        self.salt, self.state = self.salt ^ change, self.state ^ change

    def _reading(self, slot: int, reads: Iterable[int]) -> int:
        """What a node adds to the state by what it has read."""
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
        """Mark what the change of these nodes can reach; if it is interrupted, versions decide on all.

        Returns those that were settled, all clean ones among them.
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
        # As ``put``, of which clean nodes need but this, all together.
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
        """The consumers of a hub that a push has to look at."""
        if self.hubs is None:
            self.hubs = Hubs()
        return self.hubs.reached(slot, consumers)

    def _leave_stale(self, hubs: Hubs, slots: Sequence[int]) -> None:
        """These nodes are about to get another mark."""
        hubs.left += slots
        hubs.room -= len(slots)
        if hubs.room < 0:
            self.hubs = None

    def clean(self, slots: Sequence[int]) -> None:
        """Mark these nodes ``CLEAN``, each given once; as ``put`` for all of them."""
        mark = self.mark
        if _STALE_ONLY.issuperset(map(mark.__getitem__, slots)):
            self._clean(slots, STALE)
            return
        for former in (STALE, MAYBE):
            self._clean([slot for slot in slots if mark[slot] == former], former)
        for slot in slots:
            if mark[slot]:
                self.put(slot, CLEAN)

    def _clean(self, slots: Sequence[int], former: int) -> None:
        """Mark these nodes ``CLEAN``, which all have the same mark, each given once."""
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
        """These nodes have another mark than the one that they had, which was the same for all."""
        trace = self.trace
        if trace is not None:
            for slot in slots:
                trace.setdefault(slot, former)

    def doubt_below(self, changed: Iterable[int]) -> list[int]:
        """Let versions decide on what these nodes can reach: they may not have changed; which were settled."""
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
        """Mark every one of these nodes ``MAYBE``: only versions know (rule E16)."""
        self.hubs = None
        for slot in slots:
            self.put(slot, MAYBE)
        # Anew: who was interrupted while marks moved together may have left the sum of before.
        self.state = self.salt
        for slot in self._topology.slots():
            if self.mark[slot] != STALE:
                self.state ^= self.key(slot, self.mark[slot])
        for slot in self.dropped:
            self.state ^= self.key(slot, DROPPED)
        self.renew()


class Heeding(Staleness):
    """Marks of which someone wants to know when they move; see ``Staleness.heed``."""

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
