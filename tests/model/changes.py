"""How the machine changes graphs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler.errors import InvariantError
from tests.model import computations
from tests.model.building import Building
from tests.model.computations import Refused
from tests.model.worlds import (
    MOST_NODES,
    OPS,
    RULES,
    SHAPES,
    Abort,
    Code,
    World,
)


class Changes(Building):
    """Sets, edits, pins, cutoffs and names; each on a graph and on its model."""

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
            # A view gets memory of its own, and is computed again where what it showed is gone.
            world.model.released |= world.out_of_memory()

    def editable(self, world: World, code: Code) -> int:
        """A node whose operands may be replaced, or 0."""
        model = world.model
        # What a reader depends on after a rollback of its own edit shows when it runs again.
        fixed = {"leaf", "switch", *(computations.READERS if model.undo else ())}
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
        if node.op in computations.FUNCTIONS | computations.READERS and code.pick(3) == 0:
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
