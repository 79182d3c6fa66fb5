"""What is switched off costs nothing, and what is switched on changes nothing (rule E15)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.reading._blocks import open_blocks
from reactgrad_scheduler import Scheduler
from tests.explain.models import row_of_tanh


def python_calls(act: Callable[[], object], *, compiled: bool = False) -> int:
    """How many Python functions `act` calls; with `compiled`, also those written in C."""
    calls, events = 0, {"call", "c_call"} if compiled else {"call"}

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in events

    gc.collect()
    gc.disable()  # graphs of other tests, which would die and be closed in between
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def replay(g: rg.Graph, length: int) -> Callable[[], None]:
    """A set and a read of a row whose plan is cached."""
    x = g.input(1.0)
    y = g.keep(row_of_tanh(x, length))

    def act() -> None:
        x.set(2.0)
        y.value

    for _ in range(5):
        act()
    return act


@pytest.mark.slow
@pytest.mark.trusting
@pytest.mark.whole
def test_a_replay_calls_no_python_function_for_a_node() -> None:
    short, long = replay(rg.Graph(), 1000), replay(rg.Graph(), 3000)
    assert python_calls(short) == python_calls(long)


@pytest.mark.slow
@pytest.mark.trusting
def test_instruments_leave_no_call_behind() -> None:
    g = rg.Graph()
    act = replay(g, 1000)
    before = python_calls(act)
    g.events = True
    with g.record() as log, g.record():
        act()
        assert python_calls(act) >= before + 1000, "the probe sees what watching costs"
    g.events = False
    assert len(log.runs) == 2
    with rg.profile() as prof:
        act()
        assert python_calls(act) >= before + 1000
    with rg.detect_anomaly():
        act()
        assert python_calls(act) >= before + 1000
    assert prof.rows[0].calls == 2000
    assert not open_blocks
    for _ in range(5):  # anomaly mode keeps no plans
        act()
    assert type(g._scheduler) is Scheduler
    act()
    assert python_calls(act) == before
    assert python_calls(act) == python_calls(replay(rg.Graph(), 1000))


@pytest.mark.trusting
def test_watching_replays_the_cached_plan() -> None:
    g = rg.Graph()
    act = replay(g, 10)
    misses = g.stats().plan_misses
    g.events = True
    with g.record() as log:
        for _ in range(3):
            act()
    assert len(log.calls) == 30
    assert g.stats().plan_misses == misses


# --- the same with and without -------------------------------------------------------------------


class Twin:
    """A small graph with a cutoff, a failing function and a function that reads others."""

    def __init__(self, *, distrust: bool) -> None:
        g = self.g = rg.Graph()
        g._scheduler.distrust = distrust
        a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
        c = a * b
        floor = rg.floor(c)
        floor.cutoff = "equal"
        d = floor + a
        bad = rg.lift(lambda v: 1 / (v % 3))(b)
        e = bad + d
        f = rg.lift(lambda v: float(d.value) if v > 2 else float(c.value))(b)
        h = rg.tanh(f) * e
        self.leaves = [a, b]
        self.computed = [c, floor, d, bad, e, f, h]
        self.functions = [bad, f]

    def play(self, what: int, which: int, value: int) -> list[object]:
        """One action, and what can be seen of it."""
        node = self.computed[which % len(self.computed)]
        seen: list[object] = []
        try:
            if what <= 3:
                self.leaves[which % 2].set(float(value))
            elif what <= 7:
                run = self.g.forward(node, retry=value == 0)
                seen += [run.ran, run.cut_off, run.skipped]
            elif what == 8:
                self.g.set({leaf: float(value) for leaf in self.leaves})
            elif what == 9:
                self.functions[which % 2].touch()
            elif what == 10:
                self.computed[0].pin(float(value))
            elif what == 11:
                self.computed[0].unpin()
        except ZeroDivisionError as error:
            seen.append(str(error))
        last = self.g.last_run
        return [
            [self.names(part) if isinstance(part, rg.VarList) else part for part in seen],
            self.names(last.ran),
            self.names(last.failed),
            [(v.value_version, v.parent_versions, v.state) for v in self.g.nodes],
        ]

    @staticmethod
    def names(nodes: rg.VarList) -> list[str]:
        return [node.name for node in nodes]


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    actions=st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 20), st.integers(0, 6)), max_size=40
    ),
    on=st.integers(0, 40),
)
def test_watched_and_unwatched_graphs_do_the_same(
    distrust: bool, actions: list[tuple[int, int, int]], on: int
) -> None:
    plain, watched = Twin(distrust=distrust), Twin(distrust=distrust)
    log = watched.g.record()
    for number, action in enumerate(actions):
        if number == on:
            watched.g.events = True
            log.__enter__()
        if number == on + 20:
            watched.g.events = False
        assert watched.play(*action) == plain.play(*action)
        for node in watched.g.nodes[number % 3 :: 5]:
            str(watched.g.why(node))
    watched.g.check_invariants()
    plain.g.check_invariants()


@given(
    actions=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 6)), max_size=30
    )
)
def test_the_log_and_the_recording_agree_with_the_runs(
    actions: list[tuple[int, int, int]],
) -> None:
    twin = Twin(distrust=False)
    g = twin.g
    g.events = True
    with g.record() as log:
        for action in actions:
            twin.play(*action)
    ran = [var.label for run in log.runs for var in run.ran]
    events = g.events or ()
    assert [e.node for e in events if e.kind in ("ran", "cut_off")] == ran
    assert [c.node for c in log.calls if c.outcome in ("ran", "cut_off")] == ran
    # Every version of a node is explained by exactly one event; leaves had theirs before.
    for node in g.nodes:
        versions = [e.after for e in events if e.node == node.label and e.after != e.before]
        first = 1 if node.parents else 2
        assert versions == list(range(first, node.value_version + 1))
