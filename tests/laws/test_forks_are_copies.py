"""Forks, edits and gradients beside naive copies: whatever happens to one graph, no other one moves.

A world is a graph with the same program as nested tuples, which a fork copies deeply; values and
derivatives are computed from these by plain recursion over dual numbers.
"""

from __future__ import annotations

import copy
import gc
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg

LEAVES = 3
OPS: dict[str, Any] = {
    "add": (lambda a, b: a + b),
    "mul": (lambda a, b: a * b),
    "sin": (lambda a, b: rg.sin(a)),
    "cat": (lambda a, b: b[::-1] - a),  # a view of an operand
}
ARITY = {"add": 2, "mul": 2, "sin": 1, "cat": 2}

Dual = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # value, and its slope along a direction


def naive(name: str, a: Dual, b: Dual) -> Dual:
    (x, dx), (y, dy) = a, b
    if name == "add":
        return x + y, dx + dy
    if name == "mul":
        return x * y, dx * y + x * dy
    if name == "sin":
        return np.sin(x), np.cos(x) * dx
    return y[::-1] - x, dy[::-1] - dx


@dataclass
class World:
    """A graph, and what it is to be."""

    graph: rg.Graph
    leaves: list[np.ndarray[Any, Any]]
    program: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # by name

    @property
    def names(self) -> list[str]:
        return [f"x{i}" for i in range(LEAVES)] + list(self.program)

    def dual(self, name: str, wanted: int, direction: np.ndarray[Any, Any]) -> Dual:
        if name.startswith("x"):
            at = int(name[1:])
            return self.leaves[at], direction if at == wanted else np.zeros(2)
        op, operands = self.program[name]
        return naive(op, *[self.dual(one, wanted, direction) for one in operands])

    def reaches(self, start: str, goal: str) -> bool:
        """Whether `goal` is computed from `start`, or is it."""
        return goal == start or any(
            self.reaches(start, one) for one in self.program.get(goal, ("", []))[1]
        )

    def look(self) -> dict[str, tuple[Any, ...]]:
        """All that may be known of each node without computing anything."""
        found = {}
        for name in self.names:
            var = self.graph[name]
            versions = var.value_version, var.parent_versions
            found[name] = (*versions, var.is_stale, [one.name for one in var.parents])
        return found

    def check(self, name: str) -> None:
        direction = np.array([1.0, -2.0])
        value, _ = self.dual(name, 0, direction)
        np.testing.assert_allclose(self.graph[name].value, value, rtol=1e-12, atol=1e-12)
        for wanted in range(LEAVES):
            slope = self.dual(name, wanted, direction)[1].sum()
            leaf = self.graph[f"x{wanted}"]
            gradient = rg.grad(self.graph[name], leaf, gradient=np.ones(2), allow_unused=True)
            ours = 0.0 if gradient is None else float(gradient.value @ direction)
            assert ours == pytest.approx(slope, rel=1e-9, abs=1e-9)


ACTIONS = [
    "set",
    "set",
    "node",
    "read",
    "grad",
    "fork",
    "what-if",
    "rewire",
    "block",
    "undo",
    "drop",
]


@pytest.mark.slow
@settings(max_examples=80)
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), *[st.integers(0, 1_000)] * 4), min_size=6, max_size=40
    )
)
def test_worlds_never_meet(actions: list[tuple[str, int, int, int, int]]) -> None:
    g = rg.Graph()
    leaves = [np.array([0.1 * i, 0.2]) for i in range(LEAVES)]
    for i, leaf in enumerate(leaves):
        g.keep(g.param(leaf, name=f"x{i}"))
    worlds = [World(g, leaves)]
    kept: list[Any] = []  # results that callers hold, with copies
    made = 0
    for what, which, a, b, c in actions:
        at = which % len(worlds)
        world = worlds[at]
        others = [(other, other.look()) for other in worlds if other is not world]
        names = world.names
        first, second = names[a % len(names)], names[b % len(names)]
        computed = list(world.program)
        if what == "set":
            world.leaves[a % LEAVES] = np.array([0.01 * b, 0.02 * c])
            world.graph[f"x{a % LEAVES}"].set(world.leaves[a % LEAVES])
        elif what == "node":
            op = list(OPS)[c % len(OPS)]
            made += 1
            node = OPS[op](world.graph[first], world.graph[second])
            node.name = f"n{made}"
            world.graph.keep(node)
            operands = [first, second] if ARITY[op] == 2 else [first, first]
            world.program[node.name] = op, operands
        elif what == "read":
            value = world.graph[first].value
            kept.append((value, np.array(value)))
        elif what == "grad":
            world.check(first)
        elif what == "fork":
            worlds.append(
                World(world.graph.fork(), world.leaves.copy(), copy.deepcopy(world.program))
            )
        elif what == "what-if":
            number = np.array([0.03 * b, 0.5])
            with world.graph.whatif({f"x{a % LEAVES}": number}) as w:
                leaves = world.leaves.copy()
                leaves[a % LEAVES] = number
                World(w, leaves, world.program).check(second)
        elif what in ("rewire", "block", "undo") and computed:
            name = computed[a % len(computed)]
            op, operands = world.program[name]
            if op == "cat":  # made of two nodes
                continue
            position = c % ARITY[op]
            before = world.look()
            if world.reaches(name, second):
                with pytest.raises(rg.CycleError):
                    world.graph[name].replace_parent(position, world.graph[second])
                assert world.look() == before
            elif what == "undo":
                with pytest.raises(ZeroDivisionError), world.graph.transaction():
                    world.graph[name].replace_parent(position, world.graph[second])
                    world.graph["x0"].set([9.0, 9.0])
                    assert np.shape(world.graph[name].value) == (2,)
                    raise ZeroDivisionError
                for one, (version, *_, parents) in world.look().items():
                    assert version >= before[one][0]
                    assert parents == before[one][3]
            else:
                with world.graph.edit():
                    world.graph[name].replace_parent(position, world.graph[second])
                now = operands.copy()
                now[position] = second
                world.program[name] = op, now if ARITY[op] == 2 else [second, second]
        elif what == "drop" and len(worlds) > 1:
            others = [(other, look) for other, look in others if other is not world]
            del worlds[at], world
            gc.collect()
        for other, look in others:
            assert other.look() == look, "what happened to one graph is seen in another"
        for value, saved in kept:
            assert np.array_equal(value, saved), "a value that was handed out has changed"
    for world in worlds:
        for name in world.names:
            world.check(name)
        world.graph.check_invariants()
