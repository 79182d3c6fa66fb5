"""Marks, cones and plans only save work (rule E16): erase them, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.laws.random_program import Program, same_bits

CODES = st.integers(0, (1 << 60) - 1)


def story(
    nodes: list[int],
    actions: list[int],
    *,
    distrust: bool,
    cutoffs: bool,
    max_bytes: int | None = None,
) -> Program:
    program = Program(nodes, distrust=distrust, cutoffs=cutoffs, compare=False, max_bytes=max_bytes)
    for number in actions:
        program.play(number)
    return program


def versions(graph: rg.Graph) -> dict[str, tuple[int, tuple[int, ...], bool]]:
    return {v.name: (v.value_version, v.parent_versions, v.is_stale) for v in graph.nodes}


def same_entry(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(
        x == y
        if isinstance(x, str | int | list) and isinstance(y, str | int | list)
        else same_bits(np.asarray(x), np.asarray(y))
        for x, y in zip(a, b, strict=True)
    )


@given(
    nodes=st.lists(CODES, min_size=2, max_size=25),
    actions=st.lists(CODES, min_size=1, max_size=25),
    cutoffs=st.booleans(),
)
def test_a_program_runs_the_same_with_every_mark_and_plan_erased_before_each_read(
    nodes: list[int], actions: list[int], cutoffs: bool
) -> None:
    trusting = story(nodes, actions, distrust=False, cutoffs=cutoffs)
    distrusting = story(nodes, actions, distrust=True, cutoffs=cutoffs)
    assert len(trusting.log) == len(distrusting.log)
    for one, other in zip(trusting.log, distrusting.log, strict=True):
        assert same_entry(one, other), (one, other)
    assert versions(trusting.graph) == versions(distrusting.graph)


def test_erasing_everything_leaves_a_clean_graph_clean(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = rg.tanh(x * 2.0).sum()
    y.value
    g.forget_marks()
    assert not y.is_stale
    assert not g.forward(y).ran
    assert y.parent_versions == (1,)


def test_erasing_everything_keeps_the_invariants_where_an_input_has_no_value(g: rg.Graph) -> None:
    y = g.input(shape=(2,)) + 1.0
    g.forget_marks()
    g.check_invariants()
    assert y.is_stale


def test_erasing_everything_while_a_function_runs_loses_no_node(g: rg.Graph) -> None:
    def forgetful(value: float) -> float:
        g.forget_marks()
        return value

    x = g.input(1.0)
    before = x + 1.0
    after = rg.lift(forgetful)(before) + before
    assert float(after.value) == 4.0
    x.set(2.0)
    ran = g.forward(after).ran
    assert after in ran
    assert float(after.value) == 6.0


def test_erasing_everything_while_a_function_runs_hides_no_change_behind_a_cutoff(
    g: rg.Graph,
) -> None:
    """What ran before in the same read is clean; were it doubted, a change would stop there."""

    def forgetful(value: float) -> float:
        g.forget_marks()
        return float(value)

    x = g.input(1.0)
    step = rg.floor(x)
    step.cutoff = "equal"
    y = rg.lift(forgetful)(step + 1.0)
    assert y.value == 2.0
    g.check_invariants()
    x.set(5.0)
    assert y.is_stale
    assert y.value == 6.0
