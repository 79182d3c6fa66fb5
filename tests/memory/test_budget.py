"""A memory budget changes when values are computed, and nothing else (rule E17)."""

from __future__ import annotations

import gc
import math
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.values._ledger import Ledger
from tests.laws.random_program import Program
from tests.laws.test_versions_are_the_truth import same_entry, story, versions
from tests.reactive.buffers import ROW, SIZE, Buffers, chain, released, squeeze


def positions(run: rg.Run, made: list[rg.Var]) -> list[int]:
    """What a run rebuilt, as positions in the chain."""
    return [rg.VarList(made).index(var) for var in run.rebuilt]


# --- what is released and rebuilt ------------------------------------------------------------------


@pytest.mark.slow
def test_a_read_keeps_to_the_budget_while_it_runs(buffers: Buffers) -> None:
    """A thousand values of 1 MB, of which 20 fit."""
    g = rg.Graph(max_bytes=20 * 2**20)
    x = g.input(np.full(2**17, 0.5))
    y = x
    for _ in range(1000):
        y = y + 1.0
    run = g.forward(y)
    assert len(run.ran) == 1000
    assert len(run.rebuilt) == 0
    assert y.value[0] == 1000.5
    stats = g.stats()
    assert stats.peak_bytes == buffers.peak == 20 * 2**20
    assert stats.bytes == buffers.bytes <= 20 * 2**20
    assert stats.evicted == 1000 + 1 - stats.bytes // 2**20
    assert stats.evicted_bytes == stats.evicted * 2**20
    g.check_invariants()


def test_what_was_released_is_rebuilt_at_its_version() -> None:
    g = rg.Graph()
    made = chain(g, 6)
    g.forward(made[-1])
    values = [v.value.tobytes() for v in made]
    g.max_bytes = 3 * SIZE
    assert g.stats().evicted == 4, "the limit holds at once"
    gone = [i for i, there_not in enumerate(released(*made)) if there_not]
    assert len(gone) == 4
    assert ["value released" in repr(v) for v in made] == released(*made)
    for i in gone:
        run = g.forward(made[i])
        assert not run.ran
        assert made[i] in run.rebuilt
        assert made[i].value.tobytes() == values[i]
    assert [v.value_version for v in made] == [1] * 7
    assert [v.parent_versions for v in made[1:]] == [(1,)] * 6
    assert g.stats().bytes <= 3 * SIZE


def test_rebuilt_lists_what_had_to_be_computed_again_and_nothing_else() -> None:
    """Here only the leaf and the last value fit."""
    g = rg.Graph(max_bytes=3 * SIZE)
    made = chain(g, 4)
    run = g.forward(made[4])
    assert (len(run.ran), len(run.rebuilt)) == (4, 0)
    g.max_bytes = 2 * SIZE
    run = g.forward(made[4])
    assert (list(run.ran), list(run.rebuilt)) == ([], [])
    g.max_bytes = None
    assert positions(g.forward(made[2]), made) == [1, 2]
    assert positions(g.forward(made[3]), made) == [3]
    assert positions(g.forward(*made), made) == []


def test_a_released_value_whose_parents_change_is_just_stale() -> None:
    g = rg.Graph(max_bytes=3 * SIZE)
    made = chain(g, 4)
    g.forward(made[4])
    made[0].set(np.zeros(ROW))
    assert made[2].is_stale
    run = g.forward(made[3])
    assert list(run.ran) == made[1:4]
    assert not run.rebuilt
    assert made[3].value_version == 2


@pytest.mark.slow
def test_a_rebuild_needs_no_more_than_the_budget_and_no_recursion(buffers: Buffers) -> None:
    g = rg.Graph(max_bytes=4 * SIZE)
    made = chain(g, 3000)
    expected = made[-1].value.tobytes()
    squeeze(g)
    g.max_bytes = 4 * SIZE
    run = g.forward(made[-1])
    assert not run.ran
    assert list(run.rebuilt) == made[1:]
    assert made[-1].value.tobytes() == expected
    assert buffers.peak <= 4 * SIZE


def test_a_wide_node_gets_all_of_its_released_operands_at_once(buffers: Buffers) -> None:
    """Rebuilding one of them may release another, and still comes to an end."""
    g = rg.Graph()
    x = g.input(np.linspace(0.1, 1.0, ROW))
    columns = [rg.sin(x * float(i)) for i in range(20)]
    total = rg.stack(columns).sum()
    expected = total.value
    g.max_bytes = SIZE
    total.touch()
    with pytest.warns(rg.BudgetWarning, match="not enough"):
        run = g.forward(total)
    assert total.value == expected
    assert list(run.ran) == [total]
    assert len(set(map(id, run.rebuilt))) == 41, "each"
    assert len(run.rebuilt) <= 2 * 41, "at most twice"
    assert not g._scheduler.awaited
    assert not g._scheduler.locked
    g.check_invariants()


def test_the_least_recently_used_goes_first() -> None:
    g = rg.Graph(max_bytes=100 * SIZE)
    x = g.input(np.zeros(ROW))
    values = [x + float(i) for i in range(5)]
    for value in values:
        value.value
    for value in (values[0], values[3]):
        value.value
    g.max_bytes = 4 * SIZE
    assert released(*values) == [False, True, True, False, False]


def test_among_equally_old_values_the_cheapest_for_its_size_goes_first() -> None:
    g = rg.Graph()
    a = g.input(np.ones((100, 100)))
    dear, cheap = a @ a, a + a
    g.forward(dear, cheap)
    g.max_bytes = 2 * 80_000
    assert released(dear, cheap) == [False, True]


def test_views_go_with_the_value_they_show() -> None:
    g = rg.Graph()
    base = g.input(np.arange(float(ROW))) + 1.0
    view = base.reshape(10, 100)[2:]
    g.forward(view)
    assert g.stats().bytes == 2 * SIZE
    squeeze(g)
    assert g.stats().bytes == SIZE
    run = g.forward(view)
    assert base in run.rebuilt
    assert view in run.rebuilt
    assert not run.ran
    assert view.value[0, 0] == 201.0
    g.check_invariants()


def test_results_of_unknown_size_count_when_they_are_there() -> None:
    g = rg.Graph(max_bytes=4 * SIZE)
    x = g.input(np.zeros(ROW))
    calls: list[int] = []

    def grow(a: np.ndarray) -> np.ndarray:
        calls.append(1)
        return a + 1.0

    made = [x]
    for _ in range(30):
        made.append(rg.lift(grow)(made[-1]))
    assert made[-1].value[0] == 30.0
    assert len(calls) == 30
    stats = g.stats()
    assert stats.bytes <= 4 * SIZE
    assert stats.peak_bytes <= 5 * SIZE, "the size of a result shows only when it is there"
    assert made[15].value[0] == 15.0
    assert len(calls) == 30 + len(g.last_run.rebuilt)


# --- what is never released ------------------------------------------------------------------------


def test_what_nothing_can_bring_back_stays() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones(ROW)), g.param(np.ones(ROW))
    pinned = x * 2.0
    pinned.pin(np.full(ROW, 5.0))
    told = []
    observed = x * 3.0
    observed.observe(lambda old, new: told.append(new[0]))
    cut = x * 4.0
    cut.cutoff = rg.tolerance(atol=0.5)
    formerly_cut = x * 6.0
    formerly_cut.cutoff = rg.tolerance(atol=0.5)
    with g:
        asked_outside = rg.lift(lambda: np.ones(ROW))()
    plain = x * 7.0
    everything = [x, w, pinned, observed, cut, formerly_cut, asked_outside, plain]
    g.forward(*everything)
    x.set(np.full(ROW, 1.01))
    g.forward(*everything)
    formerly_cut.cutoff = None
    told.clear()
    squeeze(g)
    assert list(g.forward(*everything[:-1]).rebuilt) == []
    assert list(g.forward(plain).rebuilt) == [plain]
    assert (cut.value[0], formerly_cut.value[0], pinned.value[0]) == (4.0, 6.0, 5.0)
    assert formerly_cut.value_version == cut.value_version == 1
    assert told == [], "a rebuild is no news"


def test_a_value_that_a_former_cutoff_kept_goes_when_it_was_computed_again() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    y = x * 2.0
    y.cutoff = rg.tolerance(atol=0.5)
    y.value
    x.set(np.full(ROW, 1.01))
    y.value
    y.cutoff = None
    h = g.fork()
    for graph, var in ((g, y), (h, h[y])):
        squeeze(graph)
        assert released(var) == [False]
    x.set(np.full(ROW, 3.0))
    y.value
    squeeze(g)
    assert released(y) == [True]
    assert y.value[0] == 6.0


def test_a_cutoff_compares_with_a_value_that_was_released_before_it_was_set() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    y = x * 2.0
    y.value
    squeeze(g)
    y.cutoff = rg.tolerance(atol=10.0)
    assert list(g.last_run.rebuilt) == [y]
    x.set(np.zeros(ROW))
    assert list(g.forward(y).cut_off) == [y]
    assert (y.value[0], y.value_version) == (2.0, 1)


@pytest.mark.parametrize("rule", ["equal", rg.tolerance(atol=10.0), lambda old, new: True])
def test_and_with_one_that_a_caller_has_kept(rule: Any) -> None:
    """What callers hold is not what the graph has."""
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    y = x * 0.0 if rule == "equal" else x * 2.0
    z = y + 1.0
    held = y.value, z.value
    squeeze(g)
    y.cutoff = rule
    x.set(np.full(ROW, 2.0))
    run = g.forward(z)
    assert list(run.cut_off) == list(run.ran) == [y]
    assert (y.value == held[0]).all()
    assert y.value_version == 1


def test_an_observer_hears_of_the_value_that_was_released_before_it_came() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    y = x * 2.0
    y.value
    squeeze(g)
    told: list[tuple[float, float]] = []
    y.observe(lambda old, new: told.append((old[0], new[0])))
    x.set(np.zeros(ROW))
    y.value
    assert told == [(2.0, 0.0)]
    squeeze(g)
    assert released(y) == [False]


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_a_cut_off_change_is_cut_off_however_little_memory_there_is() -> None:
    g = rg.Graph(max_bytes=1)
    x = g.input(np.ones(ROW))
    cut = rg.floor(x)
    cut.cutoff = "equal"
    end = (cut + 1.0) * 2.0
    end.value
    x.set(np.full(ROW, 1.5))
    run = g.forward(end)
    assert list(run.ran) == list(run.cut_off) == [cut]
    assert end.value_version == 1


def test_what_callers_hold_is_theirs_and_the_same_again() -> None:
    """Releasing would free nothing where memory is shared, and copies are handed out again."""
    g = rg.Graph()
    small, large = g.input(np.ones(ROW)) + 1.0, g.input(np.ones(2**17)) + 1.0
    anything = rg.lift(lambda a: a * 2.0)(large)
    held = [small.value, large.value, anything.value]
    squeeze(g)
    assert released(small, large, anything) == [True, False, False]
    assert [small.value is held[0], large.value is held[1], anything.value is held[2]] == [True] * 3
    before = [a.copy() for a in held]
    del held[1:]
    squeeze(g)
    assert released(large, anything) == [True, True]
    assert list(g.forward(small).rebuilt) == [small]
    assert small.value is held[0]
    assert (held[0] == before[0]).all()


def test_a_node_that_reads_others_reads_what_was_released() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    inner = x * 3.0
    reader = rg.lift(lambda a: a + inner.value)(x)
    end = reader + 1.0
    assert end.value[0] == 5.0
    squeeze(g)
    assert released(inner, reader, end) == [True] * 3
    x.set(np.full(ROW, 2.0))
    assert end.value[0] == 9.0
    squeeze(g)
    run = g.forward(end)
    assert not run.ran
    assert list(run.rebuilt) == [inner, reader, end]
    squeeze(g)
    run = g.forward(reader)
    assert list(run.rebuilt) == [inner, reader]
    assert reader.value[0] == 8.0
    x.set(np.full(ROW, 1.0))
    assert end.value[0] == 5.0
    g.check_invariants()


# --- too small a budget ------------------------------------------------------------------------------


def test_too_small_a_budget_gives_right_values_and_warns_once() -> None:
    g = rg.Graph(max_bytes=100)
    made = chain(g, 5)
    with pytest.warns(rg.BudgetWarning, match="max_bytes=100 is not enough: 24000 bytes") as told:
        made[-1].value
    assert told[0].filename == __file__
    made[0].set(np.full(ROW, 0.5))
    expected = 0.5
    for var in made:
        assert var.value[0] == expected
        expected = math.sin(expected)
    assert g.stats().peak_bytes == 3 * SIZE
    g.max_bytes = 200
    with pytest.warns(rg.BudgetWarning, match="max_bytes=200") as told:
        g.forward(made[3])
    assert told[0].filename == __file__


def test_a_limit_that_is_no_size_is_refused() -> None:
    for wrong in (-1, 1.5, "1 GB", True):
        with pytest.raises(rg.DTypeError, match="a number of bytes"):
            rg.Graph(max_bytes=wrong)  # type: ignore[arg-type]
    g = rg.Graph(max_bytes=5)
    with pytest.raises(rg.DTypeError, match="max_bytes=-1"):
        g.max_bytes = -1
    assert g.max_bytes == 5


def test_a_limit_is_not_changed_while_a_node_runs() -> None:
    g = rg.Graph()

    def sneaky(value: float) -> float:
        g.max_bytes = 10
        return value

    with pytest.raises(rg.BusyError):
        rg.lift(sneaky)(g.input(1.0)).value
    assert g.max_bytes is None


def test_an_observer_may_lift_the_limit_and_set_another_one() -> None:
    g = rg.Graph(max_bytes=3 * SIZE)
    made = chain(g, 5)
    limits = iter([None, 3 * SIZE, None])

    def change(old: object, new: object) -> None:
        g.max_bytes = next(limits)

    observer = made[1].observe(change)
    for turn in range(3):
        made[0].set(np.full(ROW, float(turn)))
        made[1].value
    observer.cancel()
    assert g.max_bytes is None
    made[-1].value
    assert g.stats().bytes == 6 * SIZE
    g.check_invariants()


@pytest.mark.trusting
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_what_a_plan_is_bound_to_stays_while_it_runs() -> None:
    """A function of it builds a node, whose constant does not fit: room is made afterwards."""
    g = rg.Graph(max_bytes=5 * SIZE)
    x = g.input(np.zeros(ROW))
    made: list[rg.Var] = []

    def builds(a: np.ndarray) -> np.ndarray:
        if a[0] == 9.0:
            made.extend(x + np.full(ROW, float(i)) for i in range(2))
            assert released(first) == [False]
        return a * 1.0

    first = x + 1.0
    last = rg.lift(builds)(first) + first
    for turn in range(12):
        x.set(np.full(ROW, float(turn)))
        assert last.value[0] == 2.0 * (turn + 1.0)
        g.check_invariants()
    assert g.stats().plan_hits > 2
    assert g.stats().evicted > 0


def test_without_a_limit_again_nothing_is_left_of_it() -> None:
    g, plain = rg.Graph(max_bytes=3 * SIZE), rg.Graph()
    made = chain(g, 4)
    made[-1].value
    g.max_bytes = None
    assert type(g._host) is type(plain._host)
    assert vars(g).keys() == vars(plain).keys()
    assert vars(g._host).keys() == vars(plain._host).keys()
    g.forward(*made)
    assert g.stats().bytes == 5 * SIZE
    assert (g.stats().peak_bytes, g.stats().evicted) == (5 * SIZE, 0)


def test_a_graph_with_a_limit_goes_at_once() -> None:
    g = rg.Graph(max_bytes=3 * SIZE)
    made = chain(g, 4)
    made[-1].value
    memory = weakref.ref(g._host.data[made[0]._slot])
    gc.disable()
    try:
        del made, g
        assert memory() is None
    finally:
        gc.enable()


# --- nothing else changes ------------------------------------------------------------------------------

CODES = st.integers(0, (1 << 60) - 1)


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    nodes=st.lists(CODES, min_size=2, max_size=25),
    actions=st.lists(CODES, min_size=1, max_size=25),
    cutoffs=st.booleans(),
    limit=st.integers(0, 6000),
)
def test_a_program_runs_the_same_with_any_budget(
    distrust: bool, nodes: list[int], actions: list[int], cutoffs: bool, limit: int
) -> None:
    """The same bits, versions, and lists of what ran and was cut off; only more is rebuilt."""
    free = story(nodes, actions, distrust=distrust, cutoffs=cutoffs)
    tight = story(nodes, actions, distrust=distrust, cutoffs=cutoffs, max_bytes=limit)
    assert len(free.log) == len(tight.log)
    for one, other in zip(free.log, tight.log, strict=True):
        assert same_entry(one, other), (one, other)
    assert versions(free.graph) == versions(tight.graph)
    tight.graph.check_invariants()


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
@given(
    nodes=st.lists(CODES, min_size=2, max_size=12),
    actions=st.lists(CODES, min_size=1, max_size=20),
    limit=st.integers(0, 3000),
)
def test_a_program_within_a_budget_watched_after_every_action(
    nodes: list[int], actions: list[int], limit: int
) -> None:
    """What was handed out never changes, and what is counted is what is there."""
    program = Program(nodes, watch=True, max_bytes=limit)
    for number in actions:
        program.play(number)
    program.check_all()


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
@pytest.mark.parametrize("cutoff", ["equal", rg.tolerance(atol=1e-9), None], ids=str)
def test_a_budget_that_comes_and_goes_changes_no_value(cutoff: Any, g: rg.Graph) -> None:
    x = g.input(1.0)
    lifted = rg.lift(lambda v: v + 1.0, cutoff=cutoff)(x)
    plain = x * np.ones(3)
    plain.cutoff = cutoff
    number = 1.0
    for limit in (None, 10**6, 10**5, None, None, 0, None):
        g.max_bytes = limit
        for _ in range(4):
            number += 1.0
            x.set(number)
            assert lifted.value == number + 1.0
            assert np.array_equal(plain.value, np.full(3, number))
            g.check_invariants()


def test_memory_that_has_the_place_of_some_that_went_is_counted_by_its_own_size() -> None:
    """Before the ledger is told that what lay there is gone."""
    ledger = Ledger()
    before = np.ones(4)
    ledger.update([0], [before, None])
    place, others = id(before), []
    del before
    after = np.ones(1)
    while id(after) != place and len(others) < 10_000:
        others.append(after)
        after = np.ones(1)
    assert id(after) == place
    ledger.update([1], [None, after])
    ledger.update([0], [None, after])
    assert (ledger.bytes, ledger.bytes_of(1)) == (8, 8)
    ledger.update([1], [None, None])
    assert ledger.bytes == 0


def test_forks_of_a_graph_with_a_limit_count_each_value_once() -> None:
    for _ in range(10):
        g = rg.Graph(max_bytes=10**6)
        x, w = g.input(np.ones(4)), g.param(np.ones((3, 2)))
        y = x.sum() + 1.0
        e = x - w.sum()
        t = (e**2).sum()
        r = rg.grad(rg.erf(w).sum(), w)
        with g.whatif({x: np.ones(7)}) as trial:
            assert trial[y].value == 8.0
        assert t.value == 100.0
        w.set(np.full((3, 2), 7.0))
        fork = g.fork()
        t.backward()
        fork.forward(fork[e], fork[r])
        fork.check_invariants()
        g.check_invariants()


@pytest.mark.parametrize("holder", ["caller", "fork"])
def test_a_value_that_somebody_holds_is_replaced_in_the_middle_of_a_plan(holder: str) -> None:
    """A cutoff decides while the plan runs; then nothing can go, and room is made afterwards."""
    size = 50_000  # handed out as a view, not as a copy
    g = rg.Graph(max_bytes=20 * size)
    x = g.input(np.ones(size))
    a = rg.sin(x)
    a.cutoff = "equal"
    y = a * 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.BudgetWarning)
        for k in range(12):
            held = a.value if holder == "caller" else g.fork()
            x.set(np.full(size, k + 0.5))
            assert np.array_equal(y.value, np.sin(x.value) * 2.0)
            assert not y.is_stale
            g.check_invariants()
            del held
