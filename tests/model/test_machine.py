"""A state machine that plays everything a graph can do, beside a naive model (``naive.py``).

After every step: values bit by bit, versions, staleness, what ran and in which order, what was cut
off and what failed, which functions were called, what observers were told, values handed out
before, and the invariants of the engine.

The same 12,000 steps or so at every run. ``MACHINE_EXAMPLES=2000 pytest tests/model`` plays so many
programs that nobody has played before, of 50 steps each.
"""

from __future__ import annotations

import gc
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import reactgrad as rg
from reactgrad.backend import _device
from reactgrad.io._json import axes_in_memory
from reactgrad.values._storage import MISSING
from reactgrad_scheduler.errors import InvariantError
from tests.model import naive
from tests.model.naive import Failure, Loop, Model, Refused, same_bits

COPY_LIMIT = _device.COPY_LIMIT
STEPS = 50
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "300"))
MOST_NODES, MOST_WORLDS = 16, 3

# Bytes, since integers of a wide range are mostly small: all choices but the first would be 0.
CODES = st.binary(min_size=7, max_size=7).map(lambda some: int.from_bytes(some, "little"))
SHAPES: list[tuple[int, ...]] = [(2,), (), (2, 3), (3,), (1, 3), (3, 1)]
OPS: dict[str, Callable[..., rg.Var]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": rg.maximum,
    "twice": lambda a: a * 2.0,
    "sum": lambda a: a.sum(),
    "sum_rows": lambda a: a.sum(axis=0),
    "max": lambda a: a.max(),
    "transpose": rg.transpose,
    "flip": lambda a: a[::-1],
    "row": lambda a: a[0],
    "flat": lambda a: rg.reshape(a, (-1,)),
}
RULES: dict[str, Any] = {
    "equal": "equal",
    "close": rg.tolerance(atol=2.0),
    "same_first": naive.same_first,
    "picky": naive.picky,
}
KINDS = {Failure: Failure, Loop: rg.CycleError, ValueError: Exception}
COMPUTED = naive.FUNCTIONS | naive.READERS


class Code:
    """A number, used up choice by choice: one draw each, which shrinks towards simple choices."""

    def __init__(self, number: int) -> None:
        self.number = number

    def pick(self, count: int) -> int:
        self.number, chosen = divmod(self.number, count)
        return chosen

    def among(self, options: Sequence[Any]) -> Any:
        return options[self.pick(len(options))]

    def array(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Small integers, rarely a NaN."""
        size = int(np.prod(shape))
        values = np.array([float(self.pick(7)) - 1.0 for _ in range(size)]).reshape(shape)
        if size and self.pick(30) == 29:
            values.flat[0] = np.nan
        return values


class Abort(Exception):
    """What ends a transaction, or a block of edits."""


class Trouble(Exception):
    """What observers raise."""


# Who plays; a function that a file shall name has no other way to know.
playing: Machine


def compute(value: Any, *, op: str, uid: int) -> Any:
    """The Python function of all nodes that call one."""
    playing.called.append(uid)
    sources = playing.now.sources
    return COMPUTED[op](lambda position: sources[uid][position].value, value)


class World:
    """A graph, its model, and the handles that are held."""

    def __init__(self, graph: rg.Graph, model: Model) -> None:
        self.graph = graph
        self.model = model
        self.vars: dict[int, rg.Var] = {}
        self.uid_of: dict[str, int] = {}  # by name
        # What readers read. In a fork these are Vars of its origin, and mean their twins.
        self.sources: dict[int, tuple[rg.Var, ...]] = {}
        self.observers: dict[int, rg.Observer] = {}
        self.failed: set[int] = set()  # in runs of which observers of errors were not told yet
        self.gradients = False  # whether nodes of gradients may be in the graph, too
        self.handed: dict[int, tuple[int, Any]] = {}  # the value that callers got last, by version

    @property
    def limited(self) -> bool:
        """Whether the graph has a memory budget."""
        return self.graph.max_bytes is not None

    def released_any(self) -> None:
        """With a memory budget any computed value may be gone by now."""
        if self.limited:
            nodes = self.model.nodes.values()
            self.model.released |= {n.uid for n in nodes if n.op != "leaf" and not n.pinned}

    def out_of_memory(self) -> set[int]:
        """Nodes that have a value which is not there now: it was released."""
        data, nodes = self.graph._host.data, self.model.nodes
        gone = {self.uid_of.get(v.name) for v in self.graph.nodes if data[v._slot] is MISSING}
        return {uid for uid in gone & nodes.keys() if nodes[uid].value is not naive.MISSING}

    def note_lost(self) -> None:
        """A cutoff given to a released value has nothing to compare the next one with."""
        self.model.lost |= {u for u in self.out_of_memory() if self.model.nodes[u].cutoff}

    def expect(self, uids: Iterable[int], *, retry: bool = False) -> naive.Outcome:
        """What a read of these nodes will do."""
        if self.model.lost:
            self.model.lost &= self.out_of_memory()
        return self.model.read(uids, retry=retry)

    def held(self, accept: Callable[[naive.Node], object] = lambda node: True) -> list[int]:
        return [uid for uid in self.vars if accept(self.model.nodes[uid])]


class Machine(RuleBasedStateMachine):
    """Every rule plays one action on one world."""

    done: ClassVar[Counter[str]] = Counter()  # what all machines have done

    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[World] = []
        self.count = 0
        self.called: list[int] = []  # functions of nodes, as the engine calls them
        self.heard: list[naive.Call] = []
        self.expected: list[list[naive.Call]] = []  # what observers must be told, notice by notice
        self.kept: deque[tuple[Any, bytes]] = deque(maxlen=25)  # values that callers still hold
        self.turn = 0
        self.doomed = 0  # open transactions that will fail
        self.trouble: list[Trouble] = []  # what observers have raised
        self.now: World  # whose nodes are being computed

    @initialize(code=CODES, nodes=st.lists(CODES, min_size=4, max_size=10))
    def start(self, code: int, nodes: list[int]) -> None:
        global playing
        playing = self
        world = World(rg.Graph(), Model())
        world.graph._scheduler.distrust |= code % 7 == 6
        # Large values are handed out in place, small ones as copies: now and then all count as large.
        _device.COPY_LIMIT = 0 if code % 3 == 2 else COPY_LIMIT
        # Some programs live with a budget from their first value on.
        world.graph.max_bytes = 200 if code % 5 == 4 else None
        self.worlds.append(world)
        self.new_leaf(world, Code(code))
        self.new_choice(world, Code(code))
        for number in nodes:
            self.build(world, Code(number))

    def teardown(self) -> None:
        _device.COPY_LIMIT = COPY_LIMIT

    # --- making nodes ------------------------------------------------------------------------------

    def uid(self) -> int:
        self.count += 1
        return self.count

    def take(self, world: World, uid: int, var: rg.Var) -> None:
        world.vars[uid] = var
        assert var.name not in world.uid_of
        world.uid_of[var.name] = uid

    def cutoff(self, code: Code) -> str | None:
        return code.among([None, None, None, None, "equal", "close", "same_first", "picky"])

    def new_leaf(self, world: World, code: Code) -> None:
        uid = self.uid()
        make = code.among([world.graph.param, world.graph.input])
        rule = code.among([None, None, None, "equal", "close"])
        value: Any = code.array(code.among(SHAPES))
        if make == world.graph.input and code.pick(3) == 0:
            value = float(code.pick(9) - 2)
        self.take(world, uid, make(value, cutoff=rule and RULES[rule]))
        world.model.leaf(uid, value, rule)

    def new_choice(self, world: World, code: Code) -> None:
        """A leaf that readers choose by."""
        uid = self.uid()
        value = code.pick(3)
        self.take(world, uid, world.graph.input(value))
        world.model.leaf(uid, value, None)

    @staticmethod
    def is_array(node: naive.Node) -> bool:
        return not (node.op == "leaf" and type(node.value) is int)

    def new_op(self, world: World, code: Code) -> None:
        model = world.model
        op = code.among(list(OPS))
        fits = world.held(
            lambda node: self.is_array(node) and (node.integers or op not in naive.NEED_INTEGERS)
        )
        if not fits:
            return
        operands = tuple(code.among(fits) for _ in range(naive.ARITY[op]))
        try:
            model.infer(op, [model.nodes[p].shape for p in operands])
        except Refused:
            return
        if op not in ("add", "subtract", "multiply", "maximum", "twice") and any(
            model.nodes[p].weak for p in operands
        ):
            return
        uid = self.uid()
        var = OPS[op](*[world.vars[p] for p in operands])
        self.take(world, uid, var)
        cutoff = self.cutoff(code)
        if cutoff:
            var.cutoff = RULES[cutoff]
        model.computed(uid, op, operands, cutoff=cutoff)
        self.tell_stale(world)

    def new_function(self, world: World, code: Code) -> None:
        op = code.among(list(naive.FUNCTIONS))
        operand = code.among(world.held(self.is_array) or [0])
        if not operand:
            return
        uid, cutoff = self.uid(), self.cutoff(code)
        make = rg.lift(compute, cutoff=cutoff and RULES[cutoff])
        self.take(world, uid, make(world.vars[operand], op=op, uid=uid))
        world.model.computed(uid, op, (operand,), cutoff=cutoff)

    def new_reader(self, world: World, code: Code) -> None:
        op = code.among(list(naive.READERS))
        choices = world.held(lambda node: type(node.value) is int or node.op == "bump")
        options = world.held(self.is_array)
        if not choices or not options:
            return
        choice = code.among(choices)
        targets = (code.among(options), code.among(options))
        uid, cutoff = self.uid(), self.cutoff(code)
        if op == "switch":
            if world.model.nodes[choice].shape != () or any(
                world.model.nodes[t].shape is not None for t in targets
            ):
                return
            var = rg.switch(world.vars[choice], *[world.vars[t] for t in targets])
            if cutoff:
                var.cutoff = RULES[cutoff]
        else:
            make = rg.lift(compute, cutoff=cutoff and RULES[cutoff])
            var = make(world.vars[choice], op=op, uid=uid)
            world.sources[uid] = tuple([world.vars[t] for t in targets])
        self.take(world, uid, var)
        world.model.computed(uid, op, (choice,), targets, cutoff)

    def build(self, world: World, code: Code) -> None:
        if len(world.model.nodes) >= MOST_NODES or world.model.undo:
            return
        kind = code.pick(10)
        if kind < 5:
            self.new_op(world, code)
        elif kind < 7:
            self.new_function(world, code)
        elif kind < 9:
            self.new_reader(world, code)
        else:
            self.new_leaf(world, code)

    # --- changes -------------------------------------------------------------------------------------

    def new_value(self, world: World, uid: int, code: Code, *, reshape: bool = False) -> Any:
        node = world.model.nodes[uid]
        if type(node.value) is int:
            return code.pick(4)
        if node.weak:
            return float(code.pick(9) - 2)
        if code.pick(6) == 0:
            return np.array(node.value)  # the same once more
        return code.array(code.among(SHAPES) if reshape else node.shape)

    def leaves(self, world: World) -> list[int]:
        return [uid for uid in self.free(world) if world.model.nodes[uid].op == "leaf"]

    def free(self, world: World) -> list[int]:
        """Nodes that may get a value here.

        Nothing says what observers are told of a value that a rollback gives back.
        """
        watched = {watch.uid for watch in world.model.watches.values() if self.doomed}
        return [uid for uid in world.vars if uid not in watched]

    def act_set(self, world: World, code: Code) -> None:
        uid = code.among(self.leaves(world) or [0])
        if uid:
            self.set_leaf(world, uid, self.new_value(world, uid, code), code)

    def set_leaf(self, world: World, uid: int, value: Any, code: Code) -> None:
        var = world.vars[uid]
        world.model.set({uid: np.array(value) if isinstance(value, np.ndarray) else value})
        style = code.pick(8)
        with self.hearing():
            if isinstance(value, np.ndarray) and style == 0:
                with var.mutate() as array:
                    array[...] = value
            elif isinstance(value, np.ndarray) and style == 1:
                self.kept.append((value, value.tobytes()))  # adopted, so it may never change
                var.set(value, copy=False)
            else:
                var.set(value)
        if isinstance(value, np.ndarray) and style != 1:
            value[...] = 777.0  # copied, so that this changes nothing
        self.tell_stale(world)

    def act_set_many(self, world: World, code: Code) -> None:
        chosen = dict.fromkeys(code.among(self.leaves(world) or [0]) for _ in range(2))
        if 0 in chosen:
            return
        reshape = code.pick(3) == 0
        values = {uid: self.new_value(world, uid, code, reshape=reshape) for uid in chosen}
        given = {world.vars[uid]: value for uid, value in values.items()}
        self.change(world, lambda: world.graph.set(given), lambda: world.model.set(values))

    def change(
        self, world: World, change: Callable[[], object], same: Callable[[], object]
    ) -> None:
        """Make a change in both, or in none. Gradients that exist may be a reason of their own."""
        if world.gradients:
            try:
                with self.hearing():
                    change()
            except InvariantError:
                raise
            except rg.ReactgradError:
                # What was released on the way is rebuilt, with the same bits in another object.
                nodes = world.model.nodes.values()
                world.model.released |= {n.uid for n in nodes if n.op != "leaf" and not n.pinned}
                world.handed.clear()
                return
            same()
        else:
            try:
                same()
            except Refused as refusal:
                self.refused(change, refusal)
                return
            with self.hearing():
                change()
        self.tell_stale(world)

    def refused(self, change: Callable[[], object], refusal: Refused) -> None:
        with pytest.raises(rg.ReactgradError) as raised:
            change()
        assert isinstance(raised.value, rg.CycleError) == (refusal.args == ("cycle",))
        assert isinstance(raised.value, rg.EditError) == (refusal.args == ("used",))
        self.did(f"refused: {refusal}")

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Around what observers may be called at the end of: what they raise comes as a group."""
        try:
            yield
        except ExceptionGroup as group:
            raised = list(group.exceptions)
        else:
            raised = []
        trouble, self.trouble = self.trouble, []
        assert raised[: len(trouble)] == trouble, "what observers raised has not reached the caller"
        own = raised[len(trouble) :]
        assert len(own) <= 1
        if own:
            raise own[0]

    @classmethod
    def did(cls, what: str) -> None:
        """Count what has truly happened."""
        cls.done[what] += 1

    def act_touch(self, world: World, code: Code) -> None:
        inside = bool(world.model.undo)  # nothing says what a rollback makes of a touched leaf
        uid = code.among(
            world.held(lambda n: not n.pinned and not (inside and n.op == "leaf")) or [0]
        )
        if uid:
            world.model.touch(uid)
            with self.hearing():
                world.vars[uid].touch()
            self.tell_stale(world)

    def act_cutoff(self, world: World, code: Code) -> None:
        uid = code.among(world.held(lambda node: node.op != "leaf") or [0])
        if uid:
            cutoff = self.cutoff(code)
            world.model.change_cutoff(uid, cutoff)
            world.vars[uid].cutoff = cutoff and RULES[cutoff]
            world.note_lost()

    def editable(self, world: World, code: Code) -> int:
        """A node whose operands may be replaced, or 0."""
        model = world.model
        # What a reader depends on after a rollback of its own edit shows when it runs again.
        fixed = {"leaf", "switch", *(naive.READERS if model.undo else ())}
        return code.among(world.held(lambda n: n.op not in fixed and not n.pinned) or [0])

    def fits(self, world: World, uid: int, stead: int) -> bool:
        """Whether an operand may stand in the stead of another one."""
        node, former = world.model.nodes[uid], world.model.nodes[stead]
        if world.gradients and None in (node.shape, former.shape):
            return False  # gradients must know shapes, and a function would have to run for that
        return (
            self.is_array(node) == self.is_array(former)
            and node.weak == former.weak
            and (node.integers or not former.integers)
        )

    def act_edit(self, world: World, code: Code) -> None:
        """One operand, or all of them."""
        uid = self.editable(world, code)
        if not uid:
            return
        former = world.model.nodes[uid].operands
        if world.gradients and world.model.nodes[uid].shape is None:
            return
        alone, position = code.pick(3), code.pick(len(former))
        operands = list(former)
        for place in [position] if alone else range(len(former)):
            fits = [other for other in world.vars if self.fits(world, other, former[place])]
            if not fits:
                return
            operands[place] = code.among(fits)
        var, given = world.vars[uid], [world.vars.get(p) for p in operands]

        def change() -> None:
            if alone:
                var.replace_parent(position, given[position])
            elif world.model.nodes[uid].op == "twice":
                var.rewire(*given, var.parents[1])
            else:
                var.rewire(*given)
            self.did("replaced" if alone else "rewired")

        self.change(world, change, lambda: world.model.rewire({uid: tuple(operands)}))

    def act_block(self, world: World, code: Code) -> None:
        """Several edits as one; they may turn an edge round, or be given up."""
        model = world.model
        links: dict[int, list[int]] = {}
        edits: list[tuple[int, int, int]] = []

        def plan(uid: int, position: int, parent: int) -> None:
            node = model.nodes[uid]
            if (
                parent in world.vars
                and self.fits(world, parent, node.operands[position])
                and not (world.gradients and node.shape is None)
            ):
                links.setdefault(uid, list(node.operands))[position] = parent
                edits.append((uid, position, parent))

        for _ in range(1 + code.pick(3)):
            uid = self.editable(world, code)
            if not uid:
                return
            position = code.pick(len(model.nodes[uid].operands))
            before = model.nodes[uid].operands[position]
            above = model.nodes[before]
            if code.pick(2) and above.op in OPS and not above.pinned and before in world.vars:
                plan(uid, position, above.operands[0])
                plan(before, 0, uid)
            else:
                plan(uid, position, code.among(list(world.vars)))
        fails = code.pick(5) == 0
        parents = {uid: list(world.vars[uid].parents) for uid in links}

        def change() -> None:
            with world.graph.edit():
                for uid, position, parent in edits:
                    world.vars[uid].replace_parent(position, world.vars[parent])
                for uid, before in parents.items():
                    assert list(world.vars[uid].parents) == before, "an edit was made too early"
                if fails:
                    raise Abort
            self.did("made a block of edits")

        if fails:
            with suppress(Abort):
                change()
        else:
            new = {uid: tuple(operands) for uid, operands in links.items()}
            self.change(world, change, lambda: model.rewire(new))

    def act_insert(self, world: World, code: Code) -> None:
        """Split an edge, or all between two nodes."""
        model = world.model
        uid = self.editable(world, code)
        if not uid or model.undo or len(model.nodes) >= MOST_NODES:
            return
        operands = model.nodes[uid].operands
        parent = code.among(operands)
        places = [i for i, operand in enumerate(operands) if operand == parent]
        position = code.among([None, *places])
        above = model.nodes[parent]
        if not self.is_array(above) or above.weak:
            return
        if world.gradients and None in (above.shape, model.nodes[uid].shape):
            return
        new = self.uid()
        child, split = world.vars[uid], places if position is None else [position]

        def change() -> None:
            world.graph.insert(child.parents[places[0]], child, OPS["twice"], position)

        def same() -> None:
            model.computed(new, "twice", (parent,))
            model.rewire({uid: tuple([new if i in split else p for i, p in enumerate(operands)])})

        self.change(world, change, same)
        if new in model.nodes:  # else gradients that exist did not allow it
            self.take(world, new, child.parents[split[0]])
            self.did("inserted")

    def act_remove(self, world: World, code: Code) -> None:
        """Take a node out for good, unless it is used."""
        model = world.model
        # A function that knows a node does not keep it from being removed, but could not read it.
        known = {
            target
            for each in self.worlds
            for node in each.model.nodes.values()
            for target in (node.targets if node.op != "switch" else ())
        }
        known |= {watch.echo[0] for watch in model.watches.values() if watch.echo}
        free = [uid for uid in world.vars if uid not in known]
        told = {watch.uid for watch in model.watches.values() if watch.kind == "removed"}
        if code.pick(2):
            free = [uid for uid in free if uid in told] or free
        uid = code.among(free or [0])
        if not uid or model.undo or len(world.vars) <= 4:
            return
        var, name = world.vars[uid], world.vars[uid].name

        def remove() -> None:
            world.graph.remove(var)

        try:
            calls = model.remove(uid)
        except Refused as refusal:
            self.refused(remove, refusal)
            return
        gc.collect()  # errors that were raised may keep users of it alive with their frames
        with self.hearing():
            self.expected.append(calls)
            remove()
        self.did("removed")
        assert name not in world.graph
        del world.vars[uid], world.uid_of[name]
        world.handed.pop(uid, None)
        for number, observer in list(world.observers.items()):
            if number not in model.watches:
                assert not observer.active
                del world.observers[number]
        self.tell_stale(world)

    def act_pin(self, world: World, code: Code) -> None:
        nodes = world.model.nodes
        uid = code.among([u for u in self.free(world) if nodes[u].op != "leaf"] or [0])
        if not uid:
            return
        node = nodes[uid]
        shape = node.shape if node.shape is not None else code.among(SHAPES)
        value: Any = code.array(shape)
        if code.pick(2) == 0:
            value = value[()]  # as values of shape () are read, as a number of NumPy
        if node.op in naive.FUNCTIONS | naive.READERS and code.pick(3) == 0:
            value = float(code.pick(9))
        world.model.pin(uid, value)
        with self.hearing():
            world.vars[uid].pin(value)
        self.tell_stale(world)

    def act_unpin(self, world: World, code: Code) -> None:
        nodes = world.model.nodes
        uid = code.among([uid for uid in self.free(world) if nodes[uid].pinned] or [0])
        if not uid:
            return
        self.change(world, world.vars[uid].unpin, lambda: world.model.unpin(uid))

    def act_rename(self, world: World, code: Code) -> None:
        uid = code.among(list(world.vars))
        name = f"name {code.pick(3)}"
        if name in world.uid_of and world.uid_of[name] != uid:
            if world.uid_of[name] in world.model.nodes:
                with pytest.raises(rg.GraphError):
                    world.vars[uid].name = name
                return
            del world.uid_of[name]
        del world.uid_of[world.vars[uid].name]
        world.vars[uid].name = name
        world.uid_of[name] = uid
        assert world.graph[name] is world.vars[uid]

    # --- reads -----------------------------------------------------------------------------------------

    def act_read(self, world: World, code: Code) -> None:
        targets = dict.fromkeys(code.among(list(world.vars)) for _ in range(1 + code.pick(3)))
        self.read(world, list(targets), retry=code.pick(8) == 0)

    def act_value(self, world: World, code: Code) -> None:
        """Read as users do, by ``.value``."""
        model = world.model
        uid = code.among(world.held(lambda node: model.is_stale(node.uid)) or [0])
        if uid:
            self.read(world, [uid], plainly=True)

    def act_burst(self, world: World, code: Code) -> None:
        """The loop that plans are cached for: nothing else looks at the graph in between."""
        leaf = code.among(self.leaves(world) or [0])
        targets = list(dict.fromkeys(code.among(list(world.vars)) for _ in range(1 + code.pick(2))))
        if leaf:
            for _ in range(4):
                self.set_leaf(world, leaf, self.new_value(world, leaf, code), code)
                self.read(world, targets)

    def read(
        self, world: World, uids: list[int], *, retry: bool = False, plainly: bool = False
    ) -> None:
        model = world.model
        outcome = world.expect(uids, retry=retry)
        self.called.clear()
        self.now = world
        raised: Exception | None = None
        try:
            with self.hearing():
                if plainly:
                    world.vars[uids[0]].value
                else:
                    world.graph.forward(*[world.vars[uid] for uid in uids], retry=retry)
        except ExceptionGroup:
            raise
        except Exception as error:
            raised = error.with_traceback(None)
        self.check_run(world, outcome, uids, raised)
        self.notify(world)
        if not model.news():  # else observers made sets, and this would be another run
            for uid in uids:
                if uid not in outcome.bad and not model.is_stale(uid):
                    self.check_value(world, uid)

    def uids(self, world: World, variables: Iterable[rg.Var]) -> list[int]:
        found = []
        for var in variables:
            uid = world.uid_of.get(var.name)
            assert uid is not None or world.gradients, var
            if uid is not None:
                found.append(uid)
        return found

    def check_run(
        self, world: World, outcome: naive.Outcome, uids: list[int], raised: Exception | None
    ) -> None:
        run = world.graph.last_run
        ran, cut_off = self.uids(world, run.ran), self.uids(world, run.cut_off)
        failed, rebuilt = self.uids(world, run.failed), self.uids(world, run.rebuilt)
        assert len(set(ran)) == len(ran), f"ran twice: {ran}"
        assert set(ran) == set(outcome.ran), f"ran {ran}, not {outcome.ran}; {raised!r}"
        assert set(cut_off) == set(outcome.cut_off), f"cut off {cut_off}, not {outcome.cut_off}"
        # Errors of before that do not keep a target from its value need not be listed.
        listed = set(outcome.called) - set(outcome.ran)
        listed |= {outcome.bad[uid].uid for uid in uids if uid in outcome.bad}
        assert len(set(failed)) == len(failed), f"failed twice: {failed}"
        assert listed <= set(failed) <= set(outcome.failed), (
            f"failed {failed}, not {outcome.failed}"
        )
        skipped = self.uids(world, run.skipped)
        if (
            not world.graph._scheduler.distrust
        ):  # else what ran is doubted by the next node that reads
            assert not set(skipped) & set(ran), f"skipped {skipped}, ran {ran}"
        world.released_any()
        assert set(rebuilt) <= world.model.released, f"rebuilt {rebuilt}"
        self.note_rebuilt(world, rebuilt)
        if any(watch.kind == "error" for watch in world.model.watches.values()):
            world.failed.update(failed)
        place = {uid: i for i, uid in enumerate(ran)}
        for uid in ran:
            for parent in world.model.parents(uid):
                assert place.get(parent, -1) < place[uid], f"{uid} ran before {parent}"
        functions = [
            uid
            for uid in outcome.called
            if (op := world.model.nodes[uid].op) not in OPS and op != "switch"
        ]
        assert not Counter(functions) - Counter(self.called), (functions, self.called)
        extra = Counter(self.called) - Counter(functions)
        once = not world.limited
        assert all(uid in rebuilt and (n == 1 or not once) for uid, n in extra.items()), (
            functions,
            self.called,
        )
        bad = [outcome.bad[uid] for uid in uids if uid in outcome.bad]
        for one in failed:
            self.did(f"raised: {world.model.nodes[one].error.kind.__name__}")
        for what, nodes in (("ran", ran), ("cut off", cut_off), ("rebuilt", rebuilt)):
            self.done[what] += len(nodes)
        assert (raised is not None) == bool(bad), f"raised {raised!r}, not {bad}"
        if raised is not None:
            kinds = tuple(KINDS[error.kind] for error in outcome.bad.values())
            assert isinstance(raised, kinds), f"raised {raised!r}, not {bad}"

    @staticmethod
    def note_rebuilt(world: World, uids: Iterable[int]) -> None:
        for uid in uids:
            world.model.released.discard(uid)
            world.handed.pop(uid, None)  # the same bits, in another object

    def check_value(self, world: World, uid: int) -> None:
        wanted, version = world.model.nodes[uid].value, world.model.nodes[uid].version
        self.now = world
        value = world.vars[uid].value
        assert same_bits(value, wanted), f"{uid} is {value!r}, not {wanted!r}"
        world.released_any()
        former = world.handed.get(uid)
        if former is not None and former[0] == version and uid not in world.model.released:
            assert value is former[1] or not isinstance(value, np.ndarray)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
            if self.turn % 3:
                self.kept.append((value, value.tobytes()))
                world.handed[uid] = (version, value)
            else:
                world.handed.pop(uid, None)

    # --- observers -----------------------------------------------------------------------------------------

    def notify(self, world: World) -> None:
        """At the end of a run: observers are told, then what they set is set."""
        if world.model.undo:
            return
        calls, echoes = world.model.tell_outcomes(world.failed)
        world.failed.clear()
        self.expected.append(calls + world.model.tell_stale())
        if echoes:
            world.model.set(echoes)
            self.tell_stale(world)

    def tell_stale(self, world: World) -> None:
        if not world.model.undo:
            self.expected.append(world.model.tell_stale())

    def act_observe(self, world: World, code: Code) -> None:
        if self.doomed:  # nothing says what one is told that is attached before a rollback
            return
        uid = code.among(list(world.vars))
        kind = code.among(["changed", "changed", "stale", "error", "removed", "removed"])
        if kind == "error":
            nodes = world.model.nodes
            fail = {one for one, node in nodes.items() if node.op == "fussy"}
            may = [one for one in world.vars if fail & world.model.ancestors([one])]
            uid = code.among(may or [uid])
            if naive.Standing(world.model).obstacle(uid) is not None:
                return  # whether it hears of an error of before depends on what runs come by
        number = self.uid()
        echo: tuple[int, Any] | None = None
        if kind == "changed" and code.pick(3) == 0:
            taken = {watch.echo[0] for watch in world.model.watches.values() if watch.echo}
            choices = world.held(lambda n: type(n.value) is int and n.uid not in taken)
            if choices:
                echo = (code.among(choices), code.pick(4))
        pending = [(world.vars[echo[0]], echo[1])] if echo else []
        raises = code.pick(4) == 0

        def told(*arguments: Any) -> None:
            self.did(f"told: {kind}")
            self.heard.append((number, kind, arguments))
            while pending:
                leaf, value = pending.pop()
                leaf.set(value)
            if raises:
                self.trouble.append(Trouble(number))
                self.did("raised in an observer")
                raise self.trouble[-1]

        def error(raised: Exception) -> None:
            told(next(kind for kind, one in KINDS.items() if isinstance(raised, one)))

        slot = world.vars[uid]._slot
        callback: Callable[..., object] = {
            "changed": told,
            # Not by its name, which may be another one until a transaction is taken back.
            "stale": lambda var: told(uid if var._slot == slot else var.name),
            "error": error,
            "removed": lambda var: told(),
        }[kind]
        world.model.attach(number, uid, kind, echo)
        world.observers[number] = world.vars[uid].observe(callback, kind=kind)
        self.tell_stale(world)

    def act_cancel(self, world: World, code: Code) -> None:
        if world.observers:
            number = code.among(list(world.observers))
            observer = world.observers.pop(number)
            observer.cancel()
            assert not observer.active
            del world.model.watches[number]

    def act_stabilize(self, world: World, code: Code) -> None:
        if world.model.undo:
            return
        model = world.model
        passes = 0
        while True:
            passes += 1
            watches = [watch for watch in model.watches.values() if watch.kind != "removed"]
            targets = dict.fromkeys(watch.uid for watch in watches)
            outcome = world.expect(targets)
            # What a later pass has mended is no error any more, nor what somebody is told of.
            heard = {watch.uid for watch in watches if watch.kind == "error"}
            failed = any(uid in outcome.bad and uid not in heard for uid in targets)
            if heard:
                world.failed.update(outcome.failed)
            version = sum(node.version for node in model.nodes.values())
            echoing = [w for w in model.watches.values() if w.echo and model._has_news(w)]
            self.notify(world)
            moved = version != sum(node.version for node in model.nodes.values())
            if not moved:
                break
            assert echoing
        self.called.clear()
        self.now = world
        raised: Exception | None = None
        try:
            with self.hearing():
                assert world.graph.stabilize() <= passes + 1
        except ExceptionGroup:
            raise
        except Exception as error:
            raised = error.with_traceback(None)
        assert (raised is not None) == failed, f"stabilize raised {raised!r}"
        self.note_rebuilt(world, self.uids(world, world.graph.last_run.rebuilt))

    # --- forks, releases, lifetime -----------------------------------------------------------------------

    def act_fork(self, world: World, code: Code) -> None:
        if len(self.worlds) >= MOST_WORLDS:
            self.worlds.pop(1 + code.pick(MOST_WORLDS - 1))
            return
        if world.model.undo or world not in self.worlds:
            return
        graph = world.graph.fork()
        twin = World(graph, world.model.fork())
        twin.vars = {uid: graph[var] for uid, var in world.vars.items()}
        twin.uid_of, twin.sources = dict(world.uid_of), dict(world.sources)
        twin.gradients = world.gradients
        self.worlds.append(twin)

    def act_whatif(self, world: World, code: Code) -> None:
        leaf = code.among(self.leaves(world) or [0])
        if not leaf or world.model.undo:
            return
        value = self.new_value(world, leaf, code)
        model = world.model.fork()
        model.set({leaf: value})
        uid = code.among(list(world.vars))
        outcome = model.read([uid])
        with world.graph.whatif({world.vars[leaf]: value}) as graph:
            twin = World(graph, model)
            twin.uid_of, twin.gradients = world.uid_of, world.gradients
            twin.sources = world.sources
            twin.vars = {uid: graph[world.vars[uid]]}
            self.called.clear()
            self.now = twin
            raised: Exception | None = None
            try:
                graph.forward(graph[world.vars[uid]])
            except Exception as error:
                raised = error.with_traceback(None)
            self.check_run(twin, outcome, [uid], raised)
            if not raised:
                self.check_value(twin, uid)

    def act_release(self, world: World, code: Code) -> None:
        """A backward that keeps no values; what it needs is rebuilt later."""
        model = world.model
        roots = world.held(lambda node: node.op in OPS and node.shape == ())
        uid = code.among(roots or [0])
        if not uid or model.undo:
            return
        self.read(world, [uid])
        if model.is_stale(uid):
            return
        world.gradients = True
        inner = {u for u in model.ancestors([uid]) if u != uid and model.nodes[u].op != "leaf"}
        model.released |= {u for u in inner if not model.nodes[u].pinned}
        try:
            with self.hearing():
                run = world.vars[uid].backward(retain_graph=False)
        except rg.GradientError:
            return
        assert not self.uids(world, run.ran)
        self.did("released values")

    def act_evict(self, world: World, code: Code) -> None:
        """A memory budget: values go at any moment from now on, and nothing else differs."""
        with self.hearing():
            world.graph.max_bytes = code.among([None, 0, 40, 200])
        world.released_any()

    def act_reload(self, world: World, code: Code) -> None:
        """Go on with what a file brings back; who is not named has to be taken from there."""
        model = world.model
        if model.undo or code.pick(3):  # observers stay behind, and shall have time to be told
            return
        self.called.clear()
        data = world.graph._host.data
        formless = [
            uid
            for var in world.graph.nodes
            if (uid := world.uid_of.get(var.name)) in model.nodes
            and model.nodes[uid].op in COMPUTED
            and not model.nodes[uid].pinned
            and isinstance(data[var._slot], np.ndarray)
            and axes_in_memory(data[var._slot]) is None
        ]
        with TemporaryDirectory() as folder:
            world.graph.save(f"{folder}/graph")
            loaded = rg.load(f"{folder}/graph")
        loaded._scheduler.distrust = world.graph._scheduler.distrust
        assert not self.called, "saving or loading computes nothing"
        named = {uid for name, uid in world.uid_of.items() if uid in model.nodes and " " in name}
        model.reload(named, formless)
        found = {world.uid_of.get(var.name): var for var in loaded.nodes}
        world.graph, world.gradients = loaded, False
        world.vars = {uid: found[uid] for uid in world.vars}
        world.sources = {
            uid: tuple([found[target] for target in model.nodes[uid].targets])
            for uid in world.sources
            if uid in model.nodes
        }
        world.observers.clear()
        world.handed.clear()
        world.failed.clear()
        model.drop_unreachable()
        self.did("saved and loaded")

    def act_drop(self, world: World, code: Code) -> None:
        if len(world.vars) <= 4 or world.model.undo:
            return
        uid = code.among(list(world.vars))
        del world.vars[uid]
        world.handed.pop(uid, None)
        world.model.nodes[uid].held = False

    def act_regain(self, world: World, code: Code) -> None:
        """Come by a handle that was dropped, from a child."""
        uid = code.among(world.held(lambda node: node.operands) or [0])
        if not uid:
            return
        node = world.model.nodes[uid]
        position = code.pick(len(node.operands))
        parent, var = node.operands[position], world.vars[uid].parents[position]
        if parent in world.vars:
            assert world.vars[parent] is var
        else:
            assert world.uid_of[var.name] == parent
            world.vars[parent] = var
            world.model.nodes[parent].held = True

    def act_forget(self, world: World, code: Code) -> None:
        world.graph.forget_marks()

    def act_nodes(self, world: World, code: Code) -> None:
        """Nodes that nobody can reach are gone, the others are not."""
        gone = {name for name, uid in world.uid_of.items() if uid not in world.model.nodes}
        names = {var.name for var in world.graph.nodes}
        if gone & names:
            gc.collect()  # errors that were raised may have made cycles with their frames
            names = {var.name for var in world.graph.nodes}
        assert world.uid_of.keys() - gone <= names, f"{world.uid_of.keys() - gone - names} are gone"
        # Functions that a fork has, too, keep what they read here.
        if len(self.worlds) == 1 and not world.gradients and not world.model.undo:
            assert not gone & names, f"{gone & names} are still there"
            for name in gone:
                del world.uid_of[name]

    # --- transactions ----------------------------------------------------------------------------------------

    def act_transaction(self, world: World, codes: Iterator[Code], fails: bool, depth: int) -> None:
        model = world.model
        model.begin()
        named = dict(world.uid_of)
        self.doomed += fails
        try:
            with self.hearing(), world.graph.transaction():
                for code in codes:
                    kind = code.pick(12)
                    if kind == 11:
                        if depth:
                            break
                    elif kind == 10:
                        if depth < 3:
                            self.act_transaction(world, codes, bool(code.pick(2)), depth + 1)
                    else:
                        code.among(INSIDE)(self, world, code)
                        self.check_values(world)
                inside = {uid: model.nodes[uid].version for uid in model.nodes}
                if fails:
                    raise Abort
        except Abort:
            self.did("rolled back")
            self.doomed -= 1
            grown = model.rollback()
            world.uid_of = named
            names = {uid: name for name, uid in world.uid_of.items()}
            for uid, must in grown.items():
                if uid not in model.nodes:  # its last observer was cancelled inside
                    continue
                version = world.graph[names[uid]].value_version
                assert version >= inside[uid] + must, f"version of {uid} has not grown"
                model.nodes[uid].version = version
            world.note_lost()
            self.tell_stale(world)
        else:
            self.did("committed")
            model.commit()
            self.notify(world)

    # --- rules -----------------------------------------------------------------------------------------------

    def play(self, action: Callable[[Machine, World, Code], None], number: int) -> None:
        self.did("step")
        code = Code(number)
        world = code.among(self.worlds)
        if world.limited:
            self.did("step with a budget")
        action(self, world, code)

    @rule(number=CODES)
    def make_a_node(self, number: int) -> None:
        self.play(Machine.build, number)

    @rule(number=CODES)
    def make_another_node(self, number: int) -> None:
        self.play(Machine.build, number)

    @rule(number=CODES)
    def set_a_leaf(self, number: int) -> None:
        self.play(Machine.act_set, number)

    @rule(number=CODES)
    def set_leaves(self, number: int) -> None:
        self.play(Machine.act_set_many, number)

    @rule(number=CODES)
    def read_nodes(self, number: int) -> None:
        self.play(Machine.act_read, number)

    @rule(number=CODES)
    def read_more_nodes(self, number: int) -> None:
        self.play(Machine.act_read, number)

    @rule(number=CODES)
    def read_a_value(self, number: int) -> None:
        self.play(Machine.act_value, number)

    @rule(number=CODES)
    def set_and_read_in_a_loop(self, number: int) -> None:
        self.play(Machine.act_burst, number)

    @rule(number=CODES)
    def replace_an_operand(self, number: int) -> None:
        self.play(Machine.act_edit, number)

    @rule(number=CODES)
    def make_a_block_of_edits(self, number: int) -> None:
        self.play(Machine.act_block, number)

    @rule(number=CODES)
    def insert_a_node(self, number: int) -> None:
        self.play(Machine.act_insert, number)

    @rule(number=CODES)
    def remove_a_node(self, number: int) -> None:
        self.play(Machine.act_remove, number)

    @rule(number=CODES)
    def pin(self, number: int) -> None:
        self.play(Machine.act_pin, number)

    @rule(number=CODES)
    def unpin(self, number: int) -> None:
        self.play(Machine.act_unpin, number)

    @rule(number=CODES)
    def touch(self, number: int) -> None:
        self.play(Machine.act_touch, number)

    @rule(number=CODES)
    def change_a_cutoff(self, number: int) -> None:
        self.play(Machine.act_cutoff, number)

    @rule(number=CODES)
    def observe(self, number: int) -> None:
        self.play(Machine.act_observe, number)

    @rule(number=CODES)
    def observe_again(self, number: int) -> None:
        self.play(Machine.act_observe, number)

    @rule(number=CODES)
    def cancel_an_observer(self, number: int) -> None:
        self.play(Machine.act_cancel, number)

    @rule(number=CODES)
    def stabilize(self, number: int) -> None:
        self.play(Machine.act_stabilize, number)

    @rule(number=CODES)
    def fork(self, number: int) -> None:
        self.play(Machine.act_fork, number)

    @rule(number=CODES)
    def ask_what_if(self, number: int) -> None:
        self.play(Machine.act_whatif, number)

    @rule(number=CODES)
    def save_and_load(self, number: int) -> None:
        self.play(Machine.act_reload, number)

    @rule(number=CODES)
    def release_values(self, number: int) -> None:
        self.play(Machine.act_release, number)

    @rule(number=CODES)
    def drop_a_handle(self, number: int) -> None:
        self.play(Machine.act_drop, number)

    @rule(number=CODES)
    def regain_a_handle(self, number: int) -> None:
        self.play(Machine.act_regain, number)

    @rule(number=CODES)
    def look_at_all_nodes(self, number: int) -> None:
        self.play(Machine.act_nodes, number)

    @rule(number=CODES)
    def forget_marks(self, number: int) -> None:
        self.play(Machine.act_forget, number)

    @rule(number=CODES)
    def rename(self, number: int) -> None:
        self.play(Machine.act_rename, number)

    @rule(number=CODES, numbers=st.lists(CODES, max_size=12), fails=st.booleans())
    def run_a_transaction(self, number: int, numbers: list[int], fails: bool) -> None:
        codes = map(Code, numbers)
        self.play(lambda m, world, code: m.act_transaction(world, codes, fails, 0), number)

    # --- what holds after every step -----------------------------------------------------------------------

    def check_values(self, world: World) -> None:
        """Versions of all nodes, values of the clean ones, staleness of a few."""
        model = world.model
        self.turn += 1
        standing = naive.Standing(model)
        for i, (uid, var) in enumerate(world.vars.items()):
            node = model.nodes[uid]
            assert var.value_version == node.version, f"version of {uid}"
            assert var.pinned == node.pinned
            stale = standing.stale(uid)
            if (i + self.turn) % 4 == 0:
                assert var.is_stale == stale, f"{uid} stale: {var.is_stale}"
            # With news for an observer a read might count as the run that it waits for.
            world.released_any()
            if not stale and not model.news() and uid not in model.released:
                self.check_value(world, uid)
        world.graph.check_invariants()

    @invariant()
    def everything_holds(self) -> None:
        for world in self.worlds:
            world.model.drop_unreachable()
            for uid in world.sources.keys() - world.model.nodes.keys():
                del world.sources[uid]  # as a function that goes with its node
            called = len(self.called)
            self.check_values(world)
            assert len(self.called) == called, "a clean read called a function"
        self.check_heard()
        for value, before in self.kept:
            assert value.tobytes() == before, f"a value that was handed out is now {value!r}"

    def check_heard(self) -> None:
        heard, self.heard = self.heard, []
        expected, self.expected = self.expected, []
        for notice in expected:
            part, heard = heard[: len(notice)], heard[len(notice) :]
            same = [
                a[:2] == b[:2] and all(map(same_bits, a[2], b[2]))
                for a, b in zip(
                    sorted(part, key=lambda c: c[0]), sorted(notice, key=lambda c: c[0])
                )
            ]
            assert len(part) == len(notice), f"told {part}, not {notice}"
            assert all(same), f"told {part}, not {notice}"
        assert not heard, f"told {heard}"


INSIDE: list[Callable[[Machine, World, Code], None]] = [
    Machine.act_set,
    Machine.act_set_many,
    Machine.act_read,
    Machine.act_edit,
    Machine.act_block,
    Machine.act_pin,
    Machine.act_unpin,
    Machine.act_touch,
    Machine.act_set,
    Machine.act_read,
    Machine.act_observe,
    Machine.act_burst,
    Machine.act_cancel,
    Machine.act_cutoff,
    Machine.act_rename,
    Machine.act_evict,
]

# What has to happen, and how often at least.
LEAST = {
    "step": 10_000,
    "step with a budget": 500,
    "ran": 1_000,
    "cut off": 50,
    "rebuilt": 3,
    "raised: Failure": 100,
    "raised: ValueError": 20,
    "committed": 100,
    "rolled back": 100,
    "replaced": 100,
    "rewired": 50,
    "made a block of edits": 100,
    "inserted": 100,
    "removed": 50,
    "refused: cycle": 50,
    "refused: shapes": 2,
    "refused: used": 50,
    "released values": 20,
    "saved and loaded": 40,
    "told: changed": 30,
    "told: stale": 10,
    "told: error": 3,
    "told: removed": 3,
    "raised in an observer": 10,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_everything_a_graph_can_do_is_what_a_naive_model_does() -> None:
    Machine.done.clear()
    if "MACHINE_EXAMPLES" in os.environ:
        play(Machine, EXAMPLES)
        return
    play(seed(0)(Machine), EXAMPLES)
    # Which programs a seed stands for depends on the modules that are there; a few more if need be.
    for number in range(1, 6):
        if not too_rare():
            break
        play(seed(number)(Machine), EXAMPLES // 3)
    assert not too_rare(), f"too seldom: {too_rare()} of {Machine.done}"


def play(machine: type[Machine], count: int) -> None:
    """Play so many programs."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=count,
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def too_rare() -> dict[str, int]:
    """What has not happened often enough."""
    return {what: Machine.done[what] for what in LEAST if Machine.done[what] < LEAST[what]}
