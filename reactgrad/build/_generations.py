"""Generations: nodes that died together, kept to be taken over by the next ones like them.

A loop that writes its model anew at every step builds the same nodes again and again, and what is dear about
them is what comes after: gradients, plans, steps, buffers. When the last handle of a result dies, the nodes
that only it kept are a *generation*. If nodes from the same line have died before, the rows of the generation
are *parked* instead of released (see ``park`` of the scheduler). While new nodes are built, each is
compared with the next one of a parked generation: the same op with the same attributes on the same operands,
from the same line and in the same mode. If it is the same, the new node takes over the row, and with the
last one the gradients come back, too, when ``backward`` asks for them.

Nobody can see a parked row. A node that takes one is as new: stale, at version 0, with the next number. So
this saves time and changes nothing else. The first difference ends it: nodes that were taken stay, and
the rest is built. Whatever is unusual (an edit, another shape, a fork) gives up all generations.

Invariants, checked by ``check_invariants``: the rows of a generation are those of nodes up to ``at``, and
parked from there on; ``of`` has the generation of each of these rows; ``ahead`` has the next row of each
generation that can be taken.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reactgrad.core._handles import tidy
from reactgrad.core._rows import number_key
from reactgrad.flow._autocast import open_casts
from reactgrad.flow._checkpoint import in_checkpoint
from reactgrad.flow._mode import PLAIN_MODE, is_grad_enabled, mode_here
from reactgrad.flow._saved import hooks_here, open_hooks
from reactgrad.nodes._handle import HandleRef
from reactgrad.nodes._op import Op
from reactgrad.nodes._scope import open_scopes
from reactgrad.nodes._site import user_site
from reactgrad.scheduler import InvariantError
from reactgrad.values._columns import MISSING

if TYPE_CHECKING:
    from reactgrad.build._generation import Generation
    from reactgrad.core._core import Core

# A loop has two generations in turn, or three. More are kept for loops that alternate.
MOST = 8
# So many lines are remembered, whose code is kept alive by that.
MOST_SEEN = 4096
# After so many generations of one line that nobody took over, only the 8th, 16th, ... are parked.
MISSES = 4

_OPEN = object()
_new = object.__new__


class Generations:
    """The generations of one graph."""

    __slots__ = (
        "_misses",
        "_seen",
        "ahead",
        "by_root",
        "current",
        "entries",
        "going",
        "most",
        "of",
        "outside",
        "since",
        "spare_numbers",
    )

    def __init__(self) -> None:
        self.most = MOST  # 0: none
        # Nodes with smaller serials are not parked: a fork knows nodes by serials, too.
        self.since = 0
        self.by_root: dict[int, Generation] = {}  # the one parked last comes last
        self.of: dict[int, Generation] = {}
        self.ahead: dict[Any, list[Generation]] = {}  # by op and operands of the next node
        self.current: Generation | None = None  # the one that is being taken
        # Of outputs that have a backward behind them: what their handle has, and the next serial then.
        self.entries: dict[int, tuple[Any, int]] = {}
        self.going: set[int] = set()  # rows that were parked and are to be released now
        self.outside: dict[int, int] = {}  # sources from outside: how many generations have them
        self.spare_numbers: dict[Any, int] = {}  # parked constants
        self._seen: dict[Any, None] = {}  # op and line of results that died
        self._misses: dict[Any, int] = {}

    def remember(self, graph: Core, root: int, entry: Any) -> None:
        """Note what the handle of an output has of gradients, after the first ``backward`` from it."""
        if not self.most:
            return
        known = self.entries.get(root)
        if known is None or known[0] is not entry:
            self.entries[root] = entry, graph._scheduler.topology.next_serial

    # --- death -------------------------------------------------------------------------------------

    def park(self, graph: Core) -> None:
        """Park the generations whose results are among the orphans; note the lines of others."""
        if not self.most:
            return
        scheduler, host = graph._scheduler, graph._host
        orphans, topology = scheduler.orphans, scheduler.topology
        serial, children, parents = topology.serial, topology.children, topology.parents
        entries = self.entries
        for root in (*orphans,):
            if children[root] and root not in entries:
                continue
            if not serial[root] or not parents[root] or host.handles[root] is not None:
                continue
            if root in self.going:
                continue
            entry = entries.pop(root, None)
            gen = self.of.get(root)
            if gen is not None and gen.at < len(gen.nodes) and not children[root]:
                self.give_up(graph, gen)  # what was taken is not gone on with
                gen = None
            if gen is not None and gen.root == root and gen.asleep:  # its own gradients anchor it
                if self._may_park(graph):
                    self._park(graph, root, gen.key, None)
                else:
                    self.give_up(graph, gen)
                continue
            if entry is None and (children[root] or host.anchors.get(root)):
                continue
            if entry is None and host.data[root] is MISSING:  # never read: building anew is cheaper
                continue
            if type(host.ops[root]) is not Op:  # a function, which must not be kept alive
                continue
            key = host.ops[root], host.sites[root]
            if key not in self._seen:
                if len(self._seen) >= MOST_SEEN:
                    self._seen.clear()
                    self._misses.clear()
                self._seen[key] = None
            elif self._pays(key) and self._may_park(graph):
                self._park(graph, root, key, entry)

    def _pays(self, key: Any) -> bool:
        """Return whether generations of this line were taken over before, or it is time for another try."""
        missed = self._misses.get(key, 0)
        if missed < MISSES:
            return True
        self._misses[key] = missed + 1
        return not missed & (missed - 1)

    def _may_park(self, graph: Core) -> bool:
        """Return whether nothing is under way by which a parked row could be missed."""
        host, scheduler = graph._host, graph._scheduler
        return not (
            host.policy is not None
            or scheduler.notes
            or scheduler.computing
            or graph._observed
            or graph._edits
            or graph._removals
            or graph._followed
            or graph._traced
            or (graph._events is not None)
            or (graph._reuse is not None and graph._reuse.blocks)
            or (graph._subgraphs is not None and graph._subgraphs.under_way)
            or graph._programs.under_way
        )

    def _park(self, graph: Core, root: int, key: Any, known: tuple[Any, int] | None) -> None:
        # Imported here: most graphs park nothing.
        from reactgrad.build._generation import find_generation, is_same

        gen = self.of.get(root)
        if gen is not None and (gen.root != root or not is_same(graph, gen, known)):
            self.give_up(graph, gen)
            gen = None
        if gen is None:
            gen = find_generation(graph, root, key, known, self.since)
            if gen is None:
                self._misses[key] = self._misses.get(key, 0) + 1
                return
            self._enter(graph, gen)
        scheduler = graph._scheduler
        awake = () if gen.asleep else gen.gradients
        leaf = scheduler.leaf
        computed = [*gen.nodes, *[slot for slot in awake if not leaf[slot]]]
        constants = [slot for slot in awake if leaf[slot]]
        # First: from here on it can be given up.
        self.by_root.pop(root, None)
        self.by_root[root] = gen
        if not gen.asleep:  # else gradients have not heard of it yet
            gen.moved.clear()
        gen.at, gen.asleep = 0, bool(gen.gradients)
        edges = gen.edges if awake else gen.edges[: gen.forward]
        scheduler.park(computed, constants, gen.members, edges)
        children = scheduler.topology.children
        for slot in gen.nodes:
            children[slot] = ()
        self._park_numbers(graph, gen)
        self._put_ahead(graph, gen)
        while len(self.by_root) > self.most:
            self._let_go(graph, next(iter(self.by_root.values())))

    def _let_go(self, graph: Core, gen: Generation) -> None:
        """Give up a generation to make room; all of its line, if nobody ever takes one over."""
        missed = self._misses.get(gen.key, 0) + (gen.at == 0)
        self._misses[gen.key] = missed
        self.give_up(graph, gen)
        if missed >= MISSES:
            for other in [
                one for one in self.by_root.values() if one.key == gen.key and not one.at
            ]:
                self.give_up(graph, other)

    def _park_numbers(self, graph: Core, gen: Generation) -> None:
        """Park the constants that only parked nodes have used."""
        scheduler, host = graph._scheduler, graph._host
        topology = scheduler.topology
        for slot in gen.numbers:
            if topology.serial[slot] and not topology.children[slot] and not host.holds(slot):
                key = number_key(host.data[slot])
                if host.numbers.get(key) == slot:
                    self.spare_numbers[key] = slot
                    del host.numbers[key]
                    scheduler.park((), (slot,), frozenset(), ())

    def number_back(self, graph: Core, key: Any, number: int = 0) -> int | None:
        """Return the constant of a number whose row was parked, as a new node; ``None`` if there is none."""
        slot = self.spare_numbers.pop(key, None)
        if slot is None:
            return None
        scheduler = graph._scheduler
        if not number:
            number = scheduler.topology.next_serial
            scheduler.topology.next_serial = number + 1
        scheduler.take(slot, number)
        graph._host.numbers[key] = slot
        return slot

    def _enter(self, graph: Core, gen: Generation) -> None:
        """Note which rows a generation has; others that have one of them are given up."""
        for other in {id(one): one for slot in gen.members if (one := self.of.get(slot))}.values():
            self.give_up(graph, other)
        self.of.update(dict.fromkeys(gen.members, gen))
        for slot in gen.sources:
            self.outside[slot] = self.outside.get(slot, 0) + 1

    def _put_ahead(self, graph: Core, gen: Generation) -> None:
        slot = gen.nodes[gen.at]
        key = graph._host.ops[slot], graph._scheduler.topology.parents[slot]
        self.ahead.setdefault(key, []).append(gen)

    def _take_from_ahead(self, graph: Core, gen: Generation) -> None:
        slot = gen.nodes[gen.at]
        key = graph._host.ops[slot], graph._scheduler.topology.parents[slot]
        waiting = self.ahead.get(key)
        if waiting and gen in waiting:
            waiting.remove(gen)
            if not waiting:
                del self.ahead[key]

    # --- birth -------------------------------------------------------------------------------------

    def next(
        self, graph: Any, op: Op, attrs: Any, slots: tuple[int, ...], detached: Sequence[int]
    ) -> Any:
        """Return a new node that has taken over a parked row; ``None`` if there is none like it."""
        gen, host, scheduler = self.current, graph._host, graph._scheduler
        topology = scheduler.topology
        if gen is not None:
            slot = gen.nodes[gen.at]
            if host.ops[slot] is not op or topology.parents[slot] != slots:
                gen = None
        if gen is None:
            waiting = self.ahead.get((op, slots))
            if waiting is None:
                return None
            gen = waiting[0]  # the one parked first: a loop takes its generations in turn
            slot = gen.nodes[gen.at]
        if (
            open_casts
            or in_checkpoint()
            or graph._noted
            or (open_hooks and hooks_here() is not None)
            or graph._programs.building is not None
            or ((subgraphs := graph._subgraphs) is not None and subgraphs.under_way)
        ):
            return None
        known = host.attrs[slot]
        if (attrs or known) and not (attrs is known or _alike(attrs, known)):
            return None
        site = user_site(4)
        if (host.in_scope(site) if open_scopes else site) != host.sites[slot]:
            return None
        if mode_here() is not PLAIN_MODE and not is_grad_enabled(graph):
            closed: Any = None
        else:
            closed = frozenset(detached) if detached else _OPEN
        if host.closed.get(slot, _OPEN) != closed:
            return None
        if gen is not self.current:
            if self.current is not None:
                self._put_ahead(graph, self.current)
            self._take_from_ahead(graph, gen)
            self.current = gen
        number = topology.next_serial
        topology.next_serial = number + 1
        scheduler.take(slot, number)
        at = gen.at = gen.at + 1
        if gen.moved and not gen.moved.isdisjoint(slots):
            host.unbind_steps((slot,))
        if at == len(gen.nodes):
            self.current = None
            self._misses.pop(gen.key, None)
        # `new_var` written out.
        var = _new(graph._var)
        var._graph = graph
        var._slot = slot
        (ref := HandleRef(var, host.on_death)).slot = slot
        host.handles[slot] = ref
        return var

    def wake(self, graph: Core, slot: int, programs: dict[Any, Any]) -> None:
        """Give a result that has taken a parked row the gradients that were parked with it.

        This is for a ``backward`` without arguments. What it would build now must be what is parked: it is
        released if other params are frozen, or anybody listens.
        """
        if not self._sleeps(slot):
            return
        tidy(graph)  # or the read to come would mark nodes that are gone already
        if not self._sleeps(slot):
            return
        gen = self.of[slot]
        host, again = graph._host, gen.entry[1].again
        if (
            None in programs
            or again is None
            or again.frozen != host.frozen
            or host.hooks
            or host.retained
            or host.after_grad
            or not is_grad_enabled(graph)
        ):
            self.forsake(graph, slot)
            return
        scheduler = graph._scheduler
        topology = scheduler.topology
        back = {at: key for key, at in self.spare_numbers.items()}
        used = [one for one in gen.numbers if one in back]
        for one in used:
            if one not in gen.made:
                self.number_back(graph, back[one])
        base = topology.next_serial
        there = sorted([at for one, at in gen.made.items() if one not in back])  # need no number
        topology.next_serial = base + gen.span - len(there)
        for one in used:
            if one in gen.made:
                at = gen.made[one]
                self.number_back(graph, back[one], base + at - bisect(there, at))
        numbers = [base + offset - bisect(there, offset) for offset in gen.offsets]
        scheduler.take_together(gen.gradients, numbers, gen.back)
        if gen.moved:
            parents = topology.parents
            moved = [at for at in gen.gradients if not gen.moved.isdisjoint(parents[at])]
            host.unbind_steps(moved)
        gen.asleep = False
        programs[None] = gen.entry
        self.entries[slot] = gen.entry, topology.next_serial

    def forsake(self, graph: Core, slot: int) -> None:
        """Release the gradients that were parked with a result: others are to be built."""
        if self._sleeps(slot):
            self.give_up(graph, self.of[slot])
            tidy(graph)

    def _sleeps(self, slot: int) -> bool:
        """Return whether a node is a result whose gradients are parked."""
        gen = self.of.get(slot)
        return gen is not None and gen.root == slot and gen.asleep and gen.at == len(gen.nodes)

    # --- the end -----------------------------------------------------------------------------------

    def give_up(self, graph: Core, gen: Generation) -> None:
        """Release what is still parked of a generation, and forget it."""
        scheduler = graph._scheduler
        if gen.at < len(gen.nodes):
            self._take_from_ahead(graph, gen)
        if self.current is gen:
            self.current = None
        self.by_root.pop(gen.root, None)
        for slot in gen.members:
            if self.of.get(slot) is gen:
                del self.of[slot]
        rest = (*gen.nodes[gen.at :], *(gen.gradients if gen.asleep else ()))
        self.going.update(rest)
        scheduler.give_up(rest)
        gen.at, gen.asleep, gen.entry = len(gen.nodes), False, None
        for slot in gen.sources:
            count = self.outside.get(slot, 0) - 1
            if count > 0:
                self.outside[slot] = count
            else:
                self.outside.pop(slot, None)
        for key, slot in [*self.spare_numbers.items()]:
            if slot not in self.outside:
                scheduler.give_up((slot,))
                del self.spare_numbers[key]

    def flush(self, graph: Core) -> None:
        """Release all parked rows, and forget all generations."""
        for gen in [*self.by_root.values()]:
            self.give_up(graph, gen)
        self.entries.clear()
        tidy(graph)  # now, or programs that nobody has any more would follow the change to come

    def forked(self, graph: Core) -> None:
        """Begin anew, since a fork is about to be made."""
        self.flush(graph)
        if self.most:
            self.since = graph._scheduler.topology.next_serial

    def forget(self) -> None:
        """Forget all generations, whatever state they are in; the scheduler releases their rows."""
        self.current = None
        for table in (
            self.by_root,
            self.of,
            self.ahead,
            self.entries,
            self.going,
            self.outside,
            self.spare_numbers,
        ):
            table.clear()

    def moved(self, slot: int) -> None:
        """Note that the storage of a node has moved: steps of parked rows that use it are out of date."""
        for gen in self.by_root.values():
            if slot in gen.members or slot in gen.sources:
                gen.moved.add(slot)

    def released(self, graph: Core, slot: int) -> None:
        """Note that a node is gone that a generation has, or has edges from."""
        self.going.discard(slot)
        gen = self.of.get(slot)
        if gen is not None:
            self.give_up(graph, gen)
        if slot in self.outside:
            for one in [*self.by_root.values()]:
                if slot in one.sources:
                    self.give_up(graph, one)

    def check_invariants(self, graph: Core) -> None:
        """Raise ``InvariantError`` if the tables contradict each other or the scheduler's."""
        serial, expected = graph._scheduler.topology.serial, {*self.spare_numbers.values()}
        sources: Counter[int] = Counter()
        for root, gen in self.by_root.items():
            taken, rest = gen.nodes[: gen.at], gen.nodes[gen.at :]
            expected.update(rest, gen.gradients if gen.asleep else ())
            sources.update(gen.sources)
            first = (
                (graph._host.ops[rest[0]], graph._scheduler.topology.parents[rest[0]])
                if rest
                else None
            )
            if (
                root != gen.root
                or any(self.of.get(slot) is not gen for slot in gen.members)
                or not all(map(serial.__getitem__, taken))
                or (rest and gen is not self.current and gen not in self.ahead.get(first, ()))
            ):
                raise InvariantError(f"the generation of row {root} is not as its rows are.")
        if expected != graph._scheduler.topology.parked.keys() or sources != self.outside:
            raise InvariantError(
                "rows are parked, or needed, that no generation has, or the other way round."
            )


# Those of all forks, in which nothing is parked: each keeps nodes that ``fork[var]`` may ask for.
NONE = Generations()
NONE.most = 0


def _alike(attrs: Any, known: Any) -> bool:
    """Return whether attributes are the same: 1, 1.0 and True are equal, but different attributes."""
    try:
        return bool(attrs == known) and repr(attrs) == repr(known)
    except Exception:  # attributes that hold arrays
        return False
