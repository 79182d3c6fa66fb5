"""The cellx suite: four properties a layer, each made of those of the layer before."""

from __future__ import annotations

import pytest

import reactgrad as rg
from tests.reactive.signals import Signals

# Which properties of the layer before each property is made of.
SOURCES = ((1,), (0, 2), (1, 3), (2,))

PUBLISHED = {
    1000: ([-3, -6, -2, 2], [-2, -4, 2, 3]),
    2500: ([-3, -6, -2, 2], [-2, -4, 2, 3]),
}


def plain(start: list[int], layers: int) -> list[list[int]]:
    """All layers, by a loop."""
    found = [start]
    for _ in range(layers):
        a, b, c, d = found[-1]
        found.append([b, a - c, b + d, c])
    return found


def reached(changed: set[int], layers: int) -> int:
    """How many nodes a change of these signals reaches, by a loop."""
    count = 0
    for _ in range(layers):
        changed = {i for i, sources in enumerate(SOURCES) if changed.intersection(sources)}
        count += len(changed)
    return count


def build(suite: Signals, layers: int, cutoff: str | None = None) -> list[list[rg.Var]]:
    rules = (lambda b: b, lambda a, c: a - c, lambda b, d: b + d, lambda c: c)
    found = [[suite.signal(v) for v in (1, 2, 3, 4)]]
    for _ in range(layers):
        before = found[-1]
        found.append(
            [
                suite.computed(rule, *[before[s] for s in sources], cutoff=cutoff)
                for rule, sources in zip(rules, SOURCES, strict=True)
            ]
        )
    return found


def values(layer: list[rg.Var]) -> list[int]:
    return [var.value for var in layer]


@pytest.mark.slow
@pytest.mark.parametrize("layers", [10, 100, 1000, 2500])
@pytest.mark.parametrize("reads", [False, True], ids=["arguments", "reads"])
def test_values_and_counts_of_all_layers(g: rg.Graph, layers: int, reads: bool) -> None:
    suite = Signals(g, reads=reads)
    nodes = build(suite, layers)
    for layer in nodes[1:]:
        for var in layer:
            suite.effect(var)
    assert len(suite.settle().ran) == 4 * layers
    before = values(nodes[-1])
    assert before == plain([1, 2, 3, 4], layers)[-1]
    assert (suite.calls, suite.effects) == (4 * layers, 4 * layers)

    g.set(dict(zip(nodes[0], (4, 3, 2, 1), strict=True)))
    suite.forget()
    assert len(suite.settle().ran) == 4 * layers
    after = values(nodes[-1])
    assert after == plain([4, 3, 2, 1], layers)[-1]
    assert (suite.calls, suite.effects) == (4 * layers, 4 * layers)
    if layers in PUBLISHED:
        assert (before, after) == PUBLISHED[layers]
    g.check_invariants()


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 10, 100, 1000])
@pytest.mark.parametrize("signal", range(4))
def test_one_signal_runs_what_it_reaches(g: rg.Graph, layers: int, signal: int) -> None:
    suite = Signals(g, reads=False)
    nodes = build(suite, layers)
    g.forward(*nodes[-1])
    suite.forget()
    nodes[0][signal].set(10)
    run = g.forward(*[var for layer in nodes for var in layer])
    expected = reached({signal}, layers)
    assert (len(run.ran), suite.calls) == (expected, expected)
    start = [1, 2, 3, 4]
    start[signal] = 10
    assert values(nodes[-1]) == plain(start, layers)[-1]


def test_only_what_the_end_asked_for_needs_runs(g: rg.Graph) -> None:
    suite = Signals(g, reads=False)
    nodes = build(suite, 3)
    # prop1 <- prop2 <- prop1, prop3 <- (prop2), (prop2, prop4)
    assert g.forward(nodes[3][0]).ran == [nodes[1][0], nodes[1][2], nodes[2][1], nodes[3][0]]
    assert suite.calls == 4


@pytest.mark.slow
@pytest.mark.parametrize("layers", [10, 100, 1000])
@pytest.mark.parametrize("start", [[1, 2, 3, 5], [2, 3, 4, 5], [4, 3, 2, 1], [0, 0, 0, 0]])
def test_a_cutoff_runs_only_nodes_below_a_changed_value(
    g: rg.Graph, layers: int, start: list[int]
) -> None:
    suite = Signals(g, reads=False)
    nodes = build(suite, layers, cutoff="equal")
    g.forward(*nodes[-1])
    everything = [var for layer in nodes for var in layer]
    g.forward(*everything)
    g.set(dict(zip(nodes[0], start, strict=True)))
    run = g.forward(*everything)

    old, new = plain([1, 2, 3, 4], layers), plain(start, layers)
    # Setting a signal to what it was is a change: signals have no cutoff here.
    changed = {0, 1, 2, 3}
    ran = []
    cut_off = []
    for i in range(1, layers + 1):
        here = [k for k, sources in enumerate(SOURCES) if changed.intersection(sources)]
        changed = {k for k in here if old[i][k] != new[i][k]}
        ran += [nodes[i][k] for k in here]
        cut_off += [nodes[i][k] for k in here if k not in changed]
    assert run.ran == ran
    assert run.cut_off == cut_off
    assert values(nodes[-1]) == new[-1]
    g.check_invariants()


def test_signals_with_a_cutoff_that_are_set_to_what_they_were_run_nothing(g: rg.Graph) -> None:
    suite = Signals(g, reads=False)
    nodes = build(suite, 100)
    for var in nodes[0]:
        var.cutoff = "equal"
    g.forward(*nodes[-1])
    suite.forget()
    g.set(dict(zip(nodes[0], (1, 2, 3, 4), strict=True)))
    assert not g.forward(*nodes[-1]).ran
    assert suite.calls == 0
