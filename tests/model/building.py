"""How the machine makes nodes."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from tests.model import computations, naive
from tests.model.computations import Refused
from tests.model.worlds import (
    MOST_NODES,
    OPS,
    RULES,
    SHAPES,
    Code,
    World,
    compute,
)


class Building:
    """What makes leaves, ops, functions and readers."""

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
            lambda node: (
                self.is_array(node) and (node.integers or op not in computations.NEED_INTEGERS)
            )
        )
        if not fits:
            return
        operands = tuple(code.among(fits) for _ in range(computations.ARITY[op]))
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
        op = code.among(list(computations.FUNCTIONS))
        operand = code.among(world.held(self.is_array) or [0])
        if not operand:
            return
        uid, cutoff = self.uid(), self.cutoff(code)
        make = rg.lift(compute, cutoff=cutoff and RULES[cutoff])
        self.take(world, uid, make(world.vars[operand], op=op, uid=uid))
        world.model.computed(uid, op, (operand,), cutoff=cutoff)

    def new_reader(self, world: World, code: Code) -> None:
        op = code.among(list(computations.READERS))
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
