"""Random graphs in random states: what was saved and what was loaded do the same for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.io import functions
from tests.io.files import assert_same_graph, same, there_and_back
from tests.laws import random_program
from tests.laws.random_program import LEAVES, Code, Program

pytest.importorskip("safetensors")

CODES = st.integers(0, (1 << 60) - 1)
# A lambda has no name to be found by.
FUNCTION, VJP = random_program.LIFTED["lifted same"][1:]
NAMED = {"lifted same": (1, FUNCTION, functions.same_vjp)}


def wear(program: Program, code: Code) -> None:
    """What else may be done to nodes."""
    alive = program.alive()
    for _ in range(code.pick(4)):
        index = code.among(alive)
        var, entry = program.made[index], program.recipe.entries[index]
        what = code.pick(7)
        if what == 0 and entry.op not in LEAVES and var.dtype.kind == "f":
            var.pin(code.array(var.shape))
        elif what == 1 and entry.op == "param":
            var.freeze()
        elif what == 2:
            program.graph.keep(var)
        elif what == 3:
            var.name = f"name {index}"
        elif what == 4 and var.dtype.kind == "f":
            (var.detach() * var).name = f"half detached {index}"
        elif what == 5:
            with rg.no_grad():
                program.graph.keep(var * 2.0)
        elif what == 6:
            program.graph.forget_marks()


def names(vars: object) -> list[str]:
    return [var.name for var in vars]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("cutoffs", [False, True], ids=["plain", "cutoffs"])
@pytest.mark.parametrize("lifted", [False, True], ids=["arrays", "functions"])
@given(
    nodes=st.lists(CODES, min_size=2, max_size=25),
    actions=st.lists(CODES, max_size=12),
    worn=CODES,
    after=st.lists(CODES, min_size=1, max_size=8),
)
def test_random_graphs_come_back_and_go_on_alike(
    cutoffs: bool, lifted: bool, nodes: list[int], actions: list[int], worn: int, after: list[int]
) -> None:
    table = random_program.LIFTED
    before = dict(table)
    table.update(NAMED)
    try:
        program = Program(nodes, cutoffs=cutoffs, lifted=lifted, compare=False)
        for number in actions:
            program.play(number)
        wear(program, Code(worn))
    finally:
        table.update(before)
    g = program.graph
    h = there_and_back(g)
    twins = {var.name: var for var in h.nodes}  # held from here on
    assert_same_graph(g, h)
    assert_same_graph(h, there_and_back(h))
    mine = {name: var for name, var in ((v.name, v) for v in g.nodes) if name in twins}
    assert set(mine) == set(twins)
    go_on(mine, twins, [Code(number) for number in after])
    h.check_invariants()


def go_on(mine: dict[str, rg.Var], its: dict[str, rg.Var], codes: list[Code]) -> None:
    """The same sets, reads and gradients in both graphs."""
    names_of_all = sorted(mine)
    graph = mine[names_of_all[0]].graph
    leaves = names((*graph.inputs, *graph.params))
    for code in codes:
        for _ in range(code.pick(3)):
            name = code.among(leaves)
            value = code.array(mine[name].shape)
            number = type(mine[name].value) is float
            for vars in (mine, its):
                vars[name].set(float(value) if number else value)
        name = code.among(names_of_all)
        first = mine[name].graph.forward(mine[name])
        second = its[name].graph.forward(its[name])
        assert names(first.ran) == names(second.ran)
        assert names(first.cut_off) == names(second.cut_off)
        assert names(first.rebuilt) == names(second.rebuilt)
        assert same(mine[name].value, its[name].value)
        assert mine[name].value_version == its[name].value_version
        other = code.among(names_of_all)
        # In both: the dtype of a function's result is read from its value.
        kinds = {vars[one].dtype.kind for vars in (mine, its) for one in (name, other)}
        if code.pick(3) == 0 and kinds == {"f"}:
            compare_gradients(mine, its, name, other)


def compare_gradients(
    mine: dict[str, rg.Var], its: dict[str, rg.Var], name: str, other: str
) -> None:
    results = []
    for graph in (mine, its):
        try:
            gradient = rg.grad(graph[name].sum(), graph[other], allow_unused=True)
            results.append(None if gradient is None else gradient.value)
        except rg.GradientError as error:
            results.append(type(error).__name__)
    assert same(*results)
