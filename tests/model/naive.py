"""The plainest graph that obeys the rules: no marks, no plans, no buffers, NumPy and dicts only.

A read walks all ancestors of what is read. Every node on the way whose value is there is computed
once more from its parents' values, and must come out with the same bits unless a cutoff may have
kept an older value: so a version that failed to move shows here, in the model, too. Whether a node
*ran* is decided by versions alone: it did if the versions of its parents are not those that it was
last computed from.

Nothing here is taken from ``reactgrad`` or its scheduler.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tests.model.computations import (
    ARRAY_OPS,
    CUTOFFS,
    FUNCTIONS,
    MISSING,
    READERS,
    Failure,
    Loop,
    Read,
    Refused,
    Shape,
    plain,
    same_bits,
)

# --- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """An error that a node raised. Two of them are never the same one."""

    uid: int
    kind: type[Exception]
    number: int


# What a node was computed from: its operands with their versions, then what it read, in order,
# with version, and error if reading it raised.
Operands = tuple[tuple[int, int], ...]
Reads = tuple[tuple[int, int, Broken | None], ...]


@dataclass(frozen=True)
class Record:
    operands: Operands
    reads: Reads


@dataclass
class Node:
    """One row of the model.

    ``targets`` are the nodes that a reader may read. ``integers``: whether all elements are always
    integers. ``shape`` is ``None`` where only a run can tell.
    """

    uid: int
    op: str  # "leaf", or a key of ARRAY_OPS, FUNCTIONS or READERS
    operands: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    cutoff: str | None = None
    value: Any = MISSING
    version: int = 0
    shape: Shape | None = None
    weak: bool = False  # a Python number
    integers: bool = True
    record: Record | None = None
    reads: tuple[int, ...] = ()
    error: Broken | None = None
    error_record: Record | None = None
    pinned: bool = False
    cycle: frozenset[int] = (
        frozenset()
    )  # when it was refused a read: the nodes that stood against it
    kept: bool = False  # a cutoff kept an older value than its parents' values give
    uncut: int = 0  # the version at which it lost its cutoff
    held: bool = True


@dataclass
class Watch:
    """An observer."""

    number: int
    uid: int
    kind: str
    seen: int  # the version that it was told last
    last: Any  # and that value; or the error that it was told last
    armed: bool
    echo: tuple[int, Any] | None = None  # a leaf that it sets the first time it is called


@dataclass
class Outcome:
    """What a read did."""

    ran: list[int] = field(default_factory=list)
    cut_off: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)  # all that was begun, failed ones included
    bad: dict[int, Broken] = field(default_factory=dict)


Call = tuple[int, str, tuple[Any, ...]]  # observer, kind, arguments


class Model:
    """Nodes, versions and records; every read walks."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.watches: dict[int, Watch] = {}
        self.undo: list[list[tuple[Any, ...]]] = []
        self.errors = 0
        self.released: set[int] = set()  # nodes whose value may have been dropped to save memory
        self.lost: set[int] = set()  # of them, those that their cutoff has nothing to compare with
        self.immortal: set[int] = set()  # a fork keeps what it was made with
        self._outcome = Outcome()
        self._asked: set[int] = set()
        self._asking: list[int] = []  # who waits for whom: running nodes, and all between them
        self._running: dict[int, dict[int, Broken | None]] = {}  # and what they have read so far
        self._retry = False

    def fork(self) -> Model:
        """A copy of its own; observers and open transactions stay behind."""
        twin = Model()
        twin.nodes = {uid: copy.copy(node) for uid, node in self.nodes.items()}
        twin.errors = self.errors
        twin.released = set(self.released)
        twin.lost = set(self.lost)
        twin.immortal = set(self.nodes)
        return twin

    # --- topology

    def parents(self, uid: int) -> tuple[int, ...]:
        """Operands and what was read; a pinned node has none."""
        node = self.nodes[uid]
        return () if node.pinned else node.operands + node.reads

    def ancestors(self, uids: Iterable[int]) -> set[int]:
        """These nodes and all they are computed from at present."""
        found, stack = set(uids), list(uids)
        while stack:
            for parent in self.parents(stack.pop()):
                if parent not in found:
                    found.add(parent)
                    stack.append(parent)
        return found

    def in_order(self) -> list[int]:
        """All nodes, parents first."""
        done: dict[int, None] = {}

        def visit(uid: int) -> None:
            if uid not in done:
                for parent in self.parents(uid):
                    visit(parent)
                done[uid] = None

        for uid in self.nodes:
            visit(uid)
        return list(done)

    def drop_unreachable(self) -> set[int]:
        """Forget the nodes that nobody can reach; returns the others."""
        stack = [uid for uid, node in self.nodes.items() if node.held or uid in self.immortal]
        for watch in self.watches.values():
            stack += [watch.uid] if watch.echo is None else [watch.uid, watch.echo[0]]
        alive = set(stack)
        while stack:
            node = self.nodes[stack.pop()]
            # A function keeps what it may read, a pin what it stands for.
            for other in (*node.operands, *node.reads, *node.targets):
                if other not in alive:
                    alive.add(other)
                    stack.append(other)
        for uid in self.nodes.keys() - alive:
            del self.nodes[uid]
            self.released.discard(uid)
        return alive

    # --- shapes

    def infer(self, op: str, shapes: Sequence[Shape | None]) -> Shape | None:
        """The shape of an op's result; ``None``: only a run can tell.

        Raises
        ------
        Refused
            If shapes do not fit.
        """
        if op not in ARRAY_OPS or any(shape is None for shape in shapes):
            return None
        try:
            return np.shape(ARRAY_OPS[op](*[np.zeros(shape)[()] for shape in shapes]))  # type: ignore[arg-type]
        except (ValueError, IndexError) as error:
            raise Refused("shapes") from error

    def _shapes_after(
        self, changed: Mapping[int, Shape | None], rewired: Container[int] = ()
    ) -> dict[int, Shape | None]:
        """All shapes that change if these do, and these nodes have got other operands."""
        new = dict(changed)
        for uid in self.in_order():
            node = self.nodes[uid]
            follows = uid in rewired or any(p in new for p in node.operands)
            if uid in changed or node.pinned or not follows:
                continue
            if node.op in ARRAY_OPS:
                shape = self.infer(node.op, [self._shape(p, new) for p in node.operands])
                if shape != node.shape:
                    new[uid] = shape
        return new

    def _shape(self, uid: int, new: Mapping[int, Shape | None]) -> Shape | None:
        return new.get(uid, self.nodes[uid].shape)

    def _take_shapes(self, new: Mapping[int, Shape | None]) -> None:
        for uid, shape in new.items():
            node = self.nodes[uid]
            if node.shape != shape:
                node.shape = shape
                if node.op != "leaf" and not node.pinned:
                    node.value = MISSING

    # --- building

    def leaf(self, uid: int, value: Any, cutoff: str | None) -> None:
        """A node whose value is given."""
        weak = not isinstance(value, np.ndarray)
        node = Node(uid, "leaf", value=plain(value), version=1, cutoff=cutoff)
        node.shape, node.weak = np.shape(value), weak
        self.nodes[uid] = node

    def computed(
        self,
        uid: int,
        op: str,
        operands: tuple[int, ...],
        targets: tuple[int, ...] = (),
        cutoff: str | None = None,
    ) -> None:
        """A node that computes."""
        shape = self.infer(op, [self.nodes[p].shape for p in operands])
        node = Node(uid, op, operands, targets, cutoff, shape=shape)
        sources = [self.nodes[p].integers for p in targets or operands]
        node.integers = op != "multiply" and all(sources)
        self.nodes[uid] = node

    # --- changes

    def set(self, values: Mapping[int, Any]) -> None:
        """Set leaves, all or none."""
        ready: dict[int, Any] = {}
        for uid, value in values.items():
            node = self.nodes[uid]
            rule = CUTOFFS[node.cutoff] if node.cutoff else None
            if rule is None or not rule(node.value, plain(value)):
                ready[uid] = plain(value)
        shapes = {u: np.shape(v) for u, v in ready.items() if np.shape(v) != self.nodes[u].shape}
        new = self._shapes_after(shapes)
        if self.undo and ready:
            self._note("set", {uid: self.nodes[uid].value for uid in ready})
        self._take_shapes(new)
        for uid, value in ready.items():
            self.nodes[uid].value = value
            self.nodes[uid].version += 1

    def touch(self, uid: int) -> None:
        """Assume that it changed."""
        node = self.nodes[uid]
        if node.op == "leaf":
            node.version += 1
        else:
            self._forget(node)

    def _forget(self, node: Node) -> None:
        """It has to run again, and so has who was refused a read because of it."""
        node.record = node.error = node.error_record = None
        node.cycle = frozenset()
        for other in self.nodes.values():
            if node.uid in other.cycle:
                self._forget(other)

    def change_cutoff(self, uid: int, cutoff: str | None) -> None:
        """Compare by another rule from now on; an error that the former one raised is gone."""
        node = self.nodes[uid]
        self._note("cutoff", uid, node.cutoff)
        node.uncut = node.version if node.cutoff and not cutoff else node.uncut
        node.cutoff = cutoff
        if node.error is not None:
            self._forget(node)

    def rewire(self, links: Mapping[int, tuple[int, ...]]) -> None:
        """Let nodes take their operands from elsewhere, all of them or none."""
        former = {uid: self.nodes[uid].operands for uid in links}
        self._link(links)
        try:
            if any(uid in self.ancestors(self.parents(uid)) for uid in links):
                raise Refused("cycle")
            shapes = self._shapes_after({}, links)
        except Refused:
            self._link(former)
            raise
        for uid, operands in former.items():
            self._note("edit", uid, operands)
        self._take_shapes(shapes)
        for uid in links:
            self._forget(self.nodes[uid])

    def _link(self, links: Mapping[int, tuple[int, ...]]) -> None:
        for uid, operands in links.items():
            self.nodes[uid].operands = operands

    def remove(self, uid: int) -> list[Call]:
        """Take a node out; its observers are told or cancelled."""
        for other in self.nodes.values():
            known = other.targets if other.op == "switch" else ()
            if other.uid != uid and uid in (*other.operands, *other.reads, *known):
                raise Refused("used")
        watches = [watch for watch in self.watches.values() if watch.uid == uid]
        for watch in watches:
            del self.watches[watch.number]
        del self.nodes[uid]
        self.immortal.discard(uid)
        self.released.discard(uid)
        return [(watch.number, "removed", ()) for watch in watches if watch.kind == "removed"]

    def reload(self, kept: Iterable[int], formless: Iterable[int]) -> None:
        """What a file brings back: no observers, and no errors, nor what was computed from them.

        ``formless``: nodes whose values cannot be written. What a cutoff may have kept is computed
        as if it had changed; all others are computed again when they are needed.
        """
        self.watches.clear()
        self.immortal = set(kept)
        for node in self.nodes.values():
            known = node.record.reads if node.record else ()
            if node.error or any(error is not None for *_, error in known):
                node.record = None
            given = node.op == "leaf" or node.pinned
            if not given and not node.cutoff and not self._matches(node):
                node.value = MISSING  # it runs before anybody may see it
            if node.cycle:
                node.record = None
            node.error = node.error_record = None
            node.cycle = frozenset()
        for uid in formless:
            node = self.nodes[uid]
            if node.cutoff or node.uncut == node.version:
                node.record, node.value = None, MISSING
            else:
                self.released.add(uid)

    def pin(self, uid: int, value: Any) -> None:
        """Give a computed node this value until it is unpinned."""
        node = self.nodes[uid]
        self._note("pin", uid, node.value if node.pinned else MISSING)
        node.pinned = True
        # A Python function's node holds what the function might return, and that is never converted.
        node.value = value if node.op in FUNCTIONS | READERS else plain(value)
        node.version += 1
        self._forget(node)
        self.released.discard(uid)

    def unpin(self, uid: int) -> None:
        """Compute it again."""
        node = self.nodes[uid]
        if not node.pinned:
            return
        if uid in self.ancestors(node.operands):
            raise Refused("cycle")
        shape = self.infer(node.op, [self.nodes[p].shape for p in node.operands])
        new = self._shapes_after({} if shape == node.shape else {uid: shape})
        self._note("unpin", uid, node.shape, node.reads, node.value)
        self._take_shapes(new)
        node.pinned = False
        node.reads = ()  # it runs in any case, and finds them anew
        node.value = MISSING
        self._forget(node)

    # --- transactions

    def _note(self, *change: Any) -> None:
        if self.undo:
            self.undo[-1].append(change)

    def begin(self) -> None:
        """Open a transaction."""
        self.undo.append([])

    def commit(self) -> None:
        """End one well."""
        notes = self.undo.pop()
        if self.undo:
            self.undo[-1] += notes

    def rollback(self) -> dict[int, bool]:
        """Take back what was noted.

        Returns
        -------
        dict
            The nodes whose version may grow by that; ``True``: it must, since the value was given
            back. By how much is free: the caller sets the version that it finds.
        """
        notes = self.undo.pop()
        outer, self.undo = self.undo, []
        grown: dict[int, bool] = {}
        for what, *rest in reversed(notes):
            if what == "set":
                for uid, value in rest[0].items():
                    self.nodes[uid].value = value
                    grown[uid] = True
                continue
            uid, before = rest[0], rest[-1]
            node = self.nodes[uid]
            if what == "cutoff":
                node.uncut = node.version if node.cutoff and not before else node.uncut
                node.cutoff = before
                node.error = node.error_record = None
            elif what == "edit":
                node.operands = before
                self._forget(node)
                self._cut_loops(uid)
            elif what == "pin" and before is MISSING:
                node.pinned = False
                node.value = MISSING
                self._forget(node)
                self._cut_loops(uid)
                grown[uid] = False
            else:
                node.pinned = True
                node.value = before
                if what == "unpin":
                    node.shape, node.reads = rest[1:3]
                self._forget(node)
                grown[uid] = True
        self.undo = outer
        for uid in self.in_order():
            node = self.nodes[uid]
            if node.op == "leaf" or (node.pinned and node.shape is not None):
                self._take_shapes({uid: np.shape(node.value)})
            elif node.op in ARRAY_OPS and not node.pinned:
                self._take_shapes(
                    {uid: self.infer(node.op, [self.nodes[p].shape for p in node.operands])}
                )
        return grown

    def _cut_loops(self, uid: int) -> None:
        """What readers read inside a transaction must not stand against the edges that return."""
        for reader in self.nodes.values():
            while any(reader.uid in self.ancestors([read]) for read in reader.reads):
                reader.reads = ()
                self._forget(reader)

    # --- reads

    def read(self, targets: Iterable[int], *, retry: bool = False) -> Outcome:
        """Make these nodes clean."""
        self._outcome, self._asked, self._retry = Outcome(), set(), retry
        with np.errstate(all="ignore"):
            for uid in targets:
                self._ask(uid)
        self.lost.difference_update(targets)
        return self._outcome

    def _ask(self, uid: int) -> Broken | None:
        """Make one node clean, unless what it needs is broken."""
        node = self.nodes[uid]
        if node.op == "leaf" or node.pinned:
            return None
        if uid in self._asked:
            return self._outcome.bad.get(uid)
        self._asking.append(uid)
        broken = self._look(node)
        self._asking.pop()
        return broken

    def _look(self, node: Node) -> Broken | None:
        uid, bad = node.uid, self._outcome.bad
        broken = [error for p in node.operands if (error := self._ask(p)) is not None]
        if broken:
            self._asked.add(uid)
            bad[uid] = broken[0]
            return broken[0]
        known = node.record if node.error is None else node.error_record
        still = known is not None and self._still(node, known)
        if uid in self._asked:  # what it read before has read it
            return bad.get(uid)
        if still:
            if node.error is None:
                self._asked.add(uid)
                self._recompute(node)
                return None
            if not self._retry:
                self._asked.add(uid)
                self._outcome.failed.append(uid)
                bad[uid] = node.error
                return node.error
        self._run(node)
        self._asked.add(uid)
        return bad.get(uid)

    def _still(self, node: Node, known: Record) -> bool:
        """Whether all that a node was computed from is as it was then."""
        if known.operands != self._versions(node):
            return False
        for target, version, error in known.reads:
            if self._needs_running(target):
                return False
            now = self._ask(target)
            if (self.nodes[target].version, now) != (version, error):
                return False
        return True

    def _matches(self, node: Node) -> bool:
        return (
            node.record is not None
            and node.record.operands == self._versions(node)
            and all(self.nodes[t].version == version for t, version, _ in node.record.reads)
        )

    def _versions(self, node: Node) -> Operands:
        return tuple((p, self.nodes[p].version) for p in node.operands)

    def _needs_running(self, target: int) -> list[int]:
        """The way from `target` up to the latest running node that it needs, or nothing."""
        ways, found = [[target]], {target: [target]}
        while ways:
            way = ways.pop()
            node = self.nodes[way[-1]]
            if node.uid in self._running or node.pinned or node.uid in self._asked:
                continue
            for parent in node.operands if self.is_stale(node.uid) else ():
                if parent not in found:
                    found[parent] = [*way, parent]
                    ways.append(found[parent])
        for uid in reversed(self._running):
            if uid in found:
                return found[uid]
        return []

    def _refuse(self, node: Node, way: list[int]) -> None:
        """A read of a running node would close a cycle: it hangs on what leads round the cycle."""
        round_ = self._asking[self._asking.index(way[-1]) :]
        members = {*way, *round_}
        for uid, below in pairwise(round_):
            other = self.nodes[uid]
            if uid in self._running:
                sources = dict.fromkeys(other.operands) | self._running[uid]
            elif below not in other.operands:
                reads = other.reads[: other.reads.index(below)]
                sources = {p: self._outcome.bad.get(p) for p in (*other.operands, *reads)}
            else:
                continue
            for source, error in sources.items():
                if source not in members and source not in node.operands:
                    self._running[node.uid].setdefault(source, error)
        node.cycle |= members - {node.uid}

    def _forget_reads(self, uid: int, target: int) -> None:
        """What a blocked node had read must not stand against reading that node."""
        for other in self.ancestors([target]):
            node = self.nodes[other]
            blocked = any(p in self._outcome.bad for p in node.operands)
            if blocked and any(uid in self.ancestors([read]) for read in node.reads):
                node.reads = ()
                self._forget(node)

    def _compute(self, node: Node, read: Read) -> Any:
        values = [self.nodes[p].value for p in node.operands]
        self.lost.difference_update(node.operands)
        if node.op in ARRAY_OPS:
            return plain(ARRAY_OPS[node.op](*values))
        return (FUNCTIONS.get(node.op) or READERS[node.op])(read, *values)

    def _run(self, node: Node) -> None:
        """Compute a node and write down what came of it."""
        uid, outcome = node.uid, self._outcome
        read: dict[int, Broken | None] = {}

        def peek(position: int) -> Any:
            target = node.targets[position]
            way = self._needs_running(target)
            if way:
                self._refuse(node, way)
                raise Loop
            if target not in node.operands:
                read.setdefault(target, None)
            error = self._ask(target)
            self._forget_reads(uid, target)
            if error is not None:
                read[target] = error
                raise error.kind
            self.lost.discard(target)
            return self.nodes[target].value

        node.error = node.error_record = None
        node.cycle = frozenset()
        outcome.called.append(uid)
        self._running[uid] = read
        raised: Exception | None = None
        unchanged = False
        try:
            new = self._compute(node, peek)
            if node.cutoff and node.value is not MISSING and uid not in self.lost:
                unchanged = CUTOFFS[node.cutoff](node.value, new)
        except (ValueError, IndexError, TypeError, Loop) as error:
            raised = error
        del self._running[uid]
        node.reads = tuple(read)
        record = Record(
            self._versions(node), tuple((t, self.nodes[t].version, read[t]) for t in read)
        )
        if raised is not None:
            self.errors += 1
            kind = type(raised) if isinstance(raised, Failure | Loop) else ValueError
            node.error = outcome.bad[uid] = Broken(uid, kind, self.errors)
            node.error_record = record
            outcome.failed.append(uid)
            return
        self.released.discard(uid)
        self.lost.discard(uid)
        outcome.ran.append(uid)
        node.kept = unchanged
        if unchanged:
            outcome.cut_off.append(uid)
        else:
            node.value = new
            node.version += 1
        node.record = record

    def _recompute(self, node: Node) -> None:
        """A value that versions call valid is what its parents' values give."""
        assert node.value is not MISSING, node
        if node.kept or node.op in READERS:
            return
        assert same_bits(node.value, self._compute(node, lambda position: None)), node

    def is_stale(self, uid: int) -> bool:
        """Whether a read would find a node out of date."""
        return Standing(self).stale(uid)

    # --- observers

    def attach(self, number: int, uid: int, kind: str, echo: tuple[int, Any] | None) -> None:
        """Observe a node."""
        node = self.nodes[uid]
        clean = not self.is_stale(uid)
        told = kind == "changed" and clean and node.value is not MISSING
        last = node.value if told else None
        armed = not Standing(self).unsettled(uid)
        self.watches[number] = Watch(number, uid, kind, node.version, last, armed, echo)

    def news(self) -> bool:
        """Whether an observer of values has something to be told of at the end of the next run."""
        return any(self._has_news(watch) for watch in self.watches.values())

    def news_of_computed(self) -> bool:
        """Whether the end of a transaction that fails counts as a run: a node has kept its new value."""
        return any(
            self._has_news(watch) and self.nodes[watch.uid].op != "leaf"
            for watch in self.watches.values()
        )

    def _has_news(self, watch: Watch) -> bool:
        return (
            watch.kind == "changed"
            and self.nodes[watch.uid].version != watch.seen
            and not self.is_stale(watch.uid)
        )

    def tell_outcomes(self, failed: Iterable[int]) -> tuple[list[Call], dict[int, Any]]:
        """At the end of a run: who is told what, and the sets that they ask for.

        ``failed``: nodes that raised in it, or were found to have raised before.
        """
        calls: list[Call] = []
        echoes: dict[int, Any] = {}
        for watch in self._watches("changed"):
            if self._has_news(watch):
                node = self.nodes[watch.uid]
                calls.append((watch.number, "changed", (watch.last, node.value)))
                watch.seen, watch.last = node.version, node.value
                if watch.echo is not None:
                    leaf, value = watch.echo
                    echoes[leaf] = value
                    watch.echo = None
        standing = Standing(self)
        for watch in self._watches("error"):
            error = standing.obstacle(watch.uid)
            if error not in (None, watch.last) and not self.ancestors([watch.uid]).isdisjoint(
                failed
            ):
                calls.append((watch.number, "error", (error.kind,)))
                watch.last = error
        return calls, echoes

    def tell_stale(self) -> list[Call]:
        """After a change: who is told that a node has become stale."""
        calls: list[Call] = []
        standing = Standing(self)
        for watch in self._watches("stale"):
            stale = standing.unsettled(watch.uid)
            if stale and watch.armed:
                calls.append((watch.number, "stale", (watch.uid,)))
            watch.armed = not stale
        return calls

    def _watches(self, kind: str) -> Iterator[Watch]:
        for uid in self.in_order():
            yield from (w for w in self.watches.values() if w.uid == uid and w.kind == kind)


class Standing:
    """What versions say of nodes, without running anything.

    By the definition of clean: has a value, clean parents, and their versions recorded. Who read an
    error and has a value all the same is clean while that error stands.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._nodes = model.nodes
        self._stale: dict[int, bool] = {}

    def stale(self, uid: int) -> bool:
        """Whether a read would find a node out of date."""
        if uid not in self._stale:
            node = self._nodes[uid]
            if node.op == "leaf" or node.pinned:
                self._stale[uid] = False
            else:
                self._stale[uid] = node.error is not None or not self._holds(node, node.record)
        return self._stale[uid]

    def unsettled(self, uid: int) -> bool:
        """Whether a read would run it: it has neither a present value nor a present error."""
        return self.stale(uid) and self._error(uid) is None

    def _holds(self, node: Node, record: Record | None) -> bool:
        """Whether a node would see the same now as when this was written down."""
        return (
            record is not None
            and record.operands == self._model._versions(node)
            and not any(self.stale(parent) for parent in node.operands)
            and all(
                self._nodes[t].version == version
                and (not self.stale(t) if error is None else self._error(t) == error)
                for t, version, error in record.reads
            )
        )

    def _error(self, uid: int) -> Broken | None:
        """What reading a node would raise without running anything."""
        node = self._nodes[uid]
        if node.op == "leaf" or node.pinned:
            return None
        errors = [self._error(parent) for parent in node.operands]
        if any(e is None and self.stale(p) for p, e in zip(node.operands, errors)):
            return None
        for error in errors:
            if error is not None:
                return error
        return node.error if self._holds(node, node.error_record) else None

    def obstacle(self, uid: int) -> Broken | None:
        """Which error stands between a node and a value, whatever else is out of date."""
        node = self._nodes[uid]
        if node.op == "leaf" or node.pinned:
            return None
        for parent in node.operands:
            error = self.obstacle(parent)
            if error is not None:
                return error
        return node.error if self._holds(node, node.error_record) else None
