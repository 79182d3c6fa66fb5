"""Edits around functions with rules of their own and several outputs: as if built that way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.autodiff.functions import Exp, SinCos
from tests.laws.random_program import Code, same_bits
from tests.laws.test_gradients_equal_fresh import product_and_sum

CODES = st.integers(0, (1 << 48) - 1)
LEAVES = 3


class Counted(rg.Function, outputs=2):
    """Saves what is neither argument nor output, and a number that its rules read."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.count = int((x > 0).sum())
        both = x * y
        ctx.save_for_backward(x, both)
        return both * ctx.count, x - y

    @staticmethod
    def backward(ctx: Any, by_first: Any, by_second: Any) -> Any:
        x, both = ctx.saved_tensors
        scaled = by_first * float(ctx.count)
        return scaled * both / x + by_second, scaled * x - by_second

    @staticmethod
    def jvp(ctx: Any, tx: Any, ty: Any) -> Any:
        x, both = ctx.saved_tensors
        tx, ty = (x * 0.0 if one is None else one for one in (tx, ty))
        return (tx * (both / x) + x * ty) * float(ctx.count), tx - ty


def parts(a: rg.Var, b: rg.Var) -> tuple[rg.Var, rg.Var, rg.Var]:
    """Two outputs and the node that is edited: rearranged parts of a sum."""
    node = a + b
    return rg.concatenate(rg.split(node, [1])[::-1]), rg.stack(rg.unbind(node)[::-1]), node


def function(build: Any) -> Any:
    """Outputs of a function, twice if there is only one, and the function's node."""

    def built(*operands: rg.Var) -> tuple[rg.Var, rg.Var, rg.Var]:
        outputs = build(*operands)
        outputs = outputs if isinstance(outputs, tuple) else (outputs, outputs)
        return *outputs, outputs[0].parents[0]

    return built


# How many operands, and what is built from them.
OPS: list[tuple[int, Any]] = [
    (2, lambda a, b: (a * b,) * 3),
    (2, lambda a, b: (a + b,) * 3),
    (2, function(product_and_sum)),
    (2, function(Counted.apply)),
    (1, function(SinCos.apply)),
    (1, function(Exp.apply)),
    (2, parts),
]


class Abort(Exception):
    """What ends a transaction."""


class Twins:
    """A graph that is edited, and what builds the same one anew."""

    def __init__(self, nodes: list[int], distrust: bool) -> None:
        self.ops: list[int] = []
        self.operands: list[
            list[int]
        ] = []  # by position in ``made``: leaves, then pairs of outputs
        for i, number in enumerate(nodes):
            code = Code(number)
            self.ops.append(code.pick(len(OPS)))
            count = OPS[self.ops[-1]][0]
            self.operands.append([code.pick(LEAVES + 2 * i) for _ in range(count)])
        self.values = [np.array([1.0, -2.0, 0.5]) + i for i in range(LEAVES)]
        self.graph, self.made, self.nodes = self.build()
        self.graph._scheduler.distrust |= distrust
        self.derivatives = self.differentiate(self.made)

    def build(self) -> tuple[rg.Graph, list[rg.Var], list[rg.Var]]:
        graph = rg.Graph()
        made: list[rg.Var] = [graph.param(value) for value in self.values]
        nodes: list[rg.Var] = []
        for op, operands in zip(self.ops, self.operands, strict=True):
            first, second, node = OPS[op][1](*[made[at] for at in operands])
            made += [first, second]
            nodes.append(node)
        return graph, made, nodes

    @staticmethod
    def differentiate(made: list[rg.Var]) -> list[rg.Var | None]:
        total, leaves = made[-1].sum(), made[:LEAVES]
        directions = [np.array([1.0, 0.5, -2.0]) * (i + 1) for i in range(LEAVES)]
        return [
            *[rg.grad(total, leaf, allow_unused=True) for leaf in leaves],
            rg.jvp(total, leaves, directions, allow_unused=True),
            rg.jvp(made[-1], leaves[0], directions[0], allow_unused=True),
            rg.jacobian(made[-1], leaves[1], "forward", allow_unused=True),
            rg.jacobian(made[-1], leaves[2], "reverse", allow_unused=True),
        ]

    def compare(self, code: Code) -> None:
        _, made, _ = self.build()
        for var, twin in zip(self.made, made, strict=True):
            if code.pick(2):
                assert same_bits(var.value, twin.value)
        for live, fresh in zip(self.derivatives, self.differentiate(made), strict=True):
            if live is not None:
                expected = np.zeros(live.shape) if fresh is None else fresh.value
                assert same_bits(np.asarray(live.value), np.asarray(expected))
        self.graph.check_invariants()

    def replace(self, code: Code) -> None:
        """One operand of one node by what was made before it."""
        at = code.pick(len(self.nodes))
        position = code.pick(len(self.operands[at]))
        parent = code.pick(LEAVES + 2 * at)
        self.operands[at][position] = parent
        self.nodes[at].replace_parent(position, self.made[parent])

    def set(self, code: Code) -> None:
        leaf = code.pick(LEAVES)
        self.values[leaf] = code.array((3,))
        self.made[leaf].set(self.values[leaf])

    def play(self, code: Code) -> None:
        what = code.pick(5)
        if what == 0:
            self.set(code)
        elif what == 1:
            with self.graph.edit():
                for _ in range(1 + code.pick(3)):
                    self.replace(code)
        elif what == 2:
            before = [*map(list.copy, self.operands)], [*self.values]
            with pytest.raises(Abort), self.graph.transaction():
                for _ in range(1 + code.pick(3)):
                    self.set(code) if code.pick(2) else self.replace(code)
                    if code.pick(2):
                        self.compare(code)
                raise Abort
            self.operands, self.values = before
        else:
            self.replace(code)


@pytest.mark.slow
@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(nodes=st.lists(CODES, min_size=2, max_size=8), actions=st.lists(CODES, max_size=8))
def test_as_if_built_that_way(distrust: bool, nodes: list[int], actions: list[int]) -> None:
    twins = Twins(nodes, distrust)
    for number in actions:
        code = Code(number)
        twins.play(code)
        if code.pick(2):
            twins.compare(code)
    twins.compare(Code(1))
