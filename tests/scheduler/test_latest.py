"""Plans that are found again though the rest of the graph is in another state."""

from __future__ import annotations

import time
from collections.abc import Iterable
from random import Random

import pytest

import reactgrad as rg
from reactgrad_scheduler import hubs, latest
from reactgrad_scheduler.hubs import Hubs
from reactgrad_scheduler.latest import Latest
from reactgrad_scheduler.plan import Plan
from reactgrad_scheduler.topology import Consumers
from tests.scheduler.two_engines import Definition, Pair

pytestmark = pytest.mark.trusting


class Bystanders:
    """A chain of two on one leaf, and nodes that have nothing to do with it, in a state never seen before."""

    def __init__(self, others: int = 40) -> None:
        self.pair = pair = Pair()
        self.x = pair.leaf(1)
        self.low = pair.node(Definition((self.x,)))
        self.high = pair.node(Definition((self.low,)))
        self.sources = [pair.leaf(1) for _ in range(others)]
        self.others = [pair.node(Definition((one,))) for one in self.sources]
        self.turn = 0
        for _ in range(2):
            self.read(self.high)

    def read(self, *numbers: int) -> list[int]:
        """What a read binds, of the leaf set anew, in another state."""
        self.turn += 1
        self.pair.read(self.others[self.turn])
        self.pair.set((self.x, self.turn))
        self.pair.host.bound.clear()
        self.pair.read(*numbers)
        return [self.pair.names[slot] for slot in self.pair.host.bound]


def test_a_read_binds_nothing_where_just_the_same_nodes_are_stale_again() -> None:
    case = Bystanders()
    for _ in range(10):
        assert case.read(case.high) == []
    case.pair.compare()


def test_nodes_that_are_read_together_are_found_again() -> None:
    case = Bystanders()
    for _ in range(2):
        case.read(case.low, case.high)
    for _ in range(10):
        assert case.read(case.low, case.high) == []
    case.pair.compare()


def test_a_plan_that_several_states_have_led_to_is_stored_once() -> None:
    case = Bystanders(others=3)
    lots = Random(0)
    for turn in range(200):
        case.pair.set((case.x, turn), (lots.choice(case.sources), turn))
        for other in case.others:
            if lots.random() < 0.5:
                case.pair.read(other)
        case.pair.read(case.high)
    cache = case.pair.host.scheduler.plans
    both = tuple(case.pair.slot[n] for n in (case.low, case.high))
    stored = [t.plan for t in cache._transitions.values() if t.plan.slots == both]
    assert len(stored) > 5
    assert len(set(map(id, stored))) == 1


class Mux:
    """Many leaves, one node of all of them, and for each of them a node with a cutoff of that and one behind it."""

    def __init__(self, leaves: int = 30) -> None:
        self.pair = pair = Pair()
        self.sources = [pair.leaf(1) for _ in range(leaves)]
        self.joined = pair.node(Definition(tuple(self.sources), coarse=True))
        self.parts = [
            pair.node(Definition((self.joined, source), coarse=True)) for source in self.sources
        ]
        self.ends = [pair.node(Definition((part,))) for part in self.parts]
        self.lots = Random(0)
        for at in range(3):
            self.read(at)

    def read(self, at: int) -> list[int]:
        """What a read of all ends binds when a leaf was set."""
        self.pair.set((self.sources[at], self.lots.randrange(1000)))
        self.pair.host.bound.clear()
        self.pair.read(*self.ends)
        return [self.pair.names[slot] for slot in self.pair.host.bound]


def test_where_versions_decide_the_same_nodes_are_found_again_whichever_leaf_was_set() -> None:
    case = Mux()
    totals = case.pair.host.scheduler.totals
    for at in range(3, 30):
        known = totals.resolved
        assert case.read(at) == []
        assert totals.resolved == known + 1, "no plan is stored for a leaf that was set once"
    case.pair.compare()


def test_what_was_stale_before_and_what_was_read_in_between_runs_where_it_has_to() -> None:
    """The nodes that were clean before a change run after others of the plan only, those before by versions."""
    case = Mux(8)
    pair, lots = case.pair, Random(1)
    for turn in range(400):
        for _ in range(lots.randrange(3)):
            pair.set((lots.choice(case.sources), lots.randrange(40)))
            if lots.random() < 0.5:
                pair.read(
                    *lots.sample([case.joined, *case.parts, *case.ends], lots.randrange(1, 4))
                )
        if lots.random() < 0.1:
            pair.invalidate(lots.choice(case.parts))
        pair.read(*case.ends)  # and compares who was called with an engine that knows no marks
        if turn % 50 == 0:
            pair.compare()
    pair.compare()


def test_where_no_cutoff_decides_only_certain_plans_are_kept() -> None:
    case = Bystanders()
    case.pair.invalidate(case.low)  # so that one run is not certain
    for _ in range(6):
        case.read(case.high)
    kept = case.pair.host.scheduler.plans.kept
    assert kept is not None
    assert all(plan.certain for plan in kept)
    case.pair.compare()


def test_a_known_plan_is_kept_once_also_where_threads_run_it() -> None:
    g = rg.Graph(executor=rg.Threads(2))
    xs = [g.input(1.0) for _ in range(12)]
    joined = rg.stack(xs).sum()
    slow = rg.lift(lambda v: time.sleep(0.003) or v, cutoff="equal")
    out = rg.lift(lambda *values: sum(values))(*[slow(joined) for _ in range(4)])
    for i, x in enumerate(xs):
        x.set(float(i + 2))
        assert out.value == 4.0 * sum(one.value for one in xs)
    kept = g._scheduler.plans.kept
    assert kept is not None
    plans = [plan.slots for plan in kept]
    assert len(plans) == len(set(plans)) > 0


@pytest.mark.parametrize("part", ["an operand", "the target"])
def test_a_read_that_needs_less_or_more_is_another_plan(part: str) -> None:
    case = Bystanders()
    if part == "an operand":
        case.pair.read(case.others[0])
        case.pair.set((case.x, 50))
        case.pair.read(case.low)
        case.pair.read(case.high)
        assert case.pair.host.calls == [case.pair.slot[case.high]]
    else:
        case.pair.invalidate(case.high)
        case.pair.read(case.high)
        assert case.pair.host.calls == [case.pair.slot[case.high]]
    case.read(case.high)
    assert len(case.pair.host.calls) == 2
    case.pair.compare()


def test_what_an_edit_an_error_or_a_cutoff_changes_is_seen() -> None:
    case = Bystanders()
    pair = case.pair
    assert case.read(case.high) == []
    pair.reparent(case.high, (case.low, case.others[7]))
    pair.set((case.sources[7], 9))
    case.read(case.high)
    assert pair.host.calls == [pair.slot[n] for n in (case.low, case.others[7], case.high)]
    for _ in range(3):
        case.read(case.high)
    low = pair.slot[case.low]
    pair.host.scheduler.cutoff_changed(low, cuts=True)
    for engine in (pair.host.definitions[low], pair.naive.definitions[case.low]):
        assert engine is not None
        engine.coarse = True
    for _ in range(5):
        case.read(case.high)
    pair.host.scheduler.cutoff_changed(low, cuts=False)
    for engine in (pair.host.definitions[low], pair.naive.definitions[case.low]):
        assert engine is not None
        engine.coarse = False
        engine.breaks = True
    for _ in range(12):  # some of them raise
        case.read(case.high)
    pair.compare()


def test_the_numbers_of_reads_plans_and_nodes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "MAX_READS", 5)
    monkeypatch.setattr(latest, "MAX_PLANS_A_READ", 2)
    monkeypatch.setattr(latest, "MAX_NODES", 40)
    plans = [Plan.of(range(length), range(20), certain=True) for length in range(1, 10)]
    for plan in plans:
        plan.steps = []
    kept = Latest()
    lots = Random(0)
    hits = 0
    for _ in range(2000):
        read = lots.randrange(4 if lots.random() < 0.9 else 20)
        plan = lots.choice(plans)
        hits += plan in kept.of(read)
        if kept.keep(read, plan):
            assert kept.of(read)[0] is plan
        every = list(kept)
        assert len(kept._plans) <= 5
        assert all(len(kept.of(read)) <= 2 for read in range(20))
        assert kept._nodes == sum(map(len, every)) <= 40 + 2 * 9
    assert hits > 100
    assert set(kept._plans) <= set(range(20))
    for read in range(20):
        kept.forget(read)
    assert not [*kept]
    assert kept._nodes == 0
    assert all(plan.steps is None for plan in plans), "steps hold storage"


def test_a_target_that_is_dropped_takes_its_plans_along() -> None:
    case = Bystanders()
    case.read(case.high)
    plans = case.pair.host.scheduler.plans
    slot = case.pair.slot[case.high]
    serial = case.pair.host.scheduler.topology.serial[slot]
    assert plans.latest(serial)
    case.pair.release(case.high)
    assert not plans.latest(serial)


class Hub:
    """A leaf with many consumers of which some are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, consumers: int = 100) -> None:
        self.looked_at: list[int] = []
        reached = Hubs.reached

        def counted(hubs: Hubs, hub: int, every: Consumers) -> Iterable[int]:
            found = [*reached(hubs, hub, every)]
            self.looked_at.append(len(found))
            return found

        monkeypatch.setattr(Hubs, "reached", counted)
        self.pair = pair = Pair()
        self.x = pair.leaf(1)
        self.nodes = [pair.node(Definition((self.x,))) for _ in range(consumers)]
        self.ends = [pair.node(Definition((node,))) for node in self.nodes[:10]]
        self.other = pair.leaf(1)
        self.beside = pair.node(Definition((self.other,)))

    def turn(self, value: int, *ends: int) -> int:
        """How many consumers the next read looks at after this one, which reads these."""
        for end in ends:
            self.pair.read(self.ends[end])
        self.pair.set((self.x, value), (self.other, value))
        self.looked_at.clear()
        self.pair.read(self.beside)
        return sum(self.looked_at)


def test_a_change_looks_at_those_consumers_of_a_hub_that_have_been_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = Hub(monkeypatch)
    assert hub.turn(0) == 100
    lots = Random(0)
    read = looked_at = 0
    for turn in range(60):
        ends = lots.sample(range(10), turn % 4)
        read += len(ends)
        looked_at += hub.turn(turn, *ends)
        assert looked_at <= read, "more than what was read"
    assert looked_at
    hub.pair.compare()


def test_a_hub_reaches_consumers_old_and_new_however_their_marks_came_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = Hub(monkeypatch)
    pair = hub.pair
    hub.turn(0)
    hub.ends[0] = pair.node(Definition((hub.x,)))  # a new consumer
    pair.reparent(hub.ends[1], (hub.x, hub.beside))  # one that becomes one
    hub.turn(1, 0, 1)
    pair.compare()
    hub.turn(2, 0, 1, 2)
    pair.invalidate(hub.nodes[2])
    hub.turn(3, 2)
    cut = pair.slot[hub.nodes[3]]
    pair.host.scheduler.cutoff_changed(cut, cuts=True)
    hub.turn(4, 3)
    pair.host.scheduler.cutoff_changed(cut, cuts=False)
    hub.turn(5, 3)
    pair.host.scheduler.forget()
    hub.turn(6, 4)
    pair.compare()
    for turn in range(7, 20):
        hub.turn(turn, *range(turn % 10))
        pair.compare()


def test_what_is_written_down_for_hubs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "LEFT_LIMIT", 50)
    hub = Hub(monkeypatch)
    lengths: list[int] = []
    for turn in range(100):
        hub.turn(turn, turn % 10)
        for end in range(5):
            hub.pair.read(hub.ends[end])
            known = hub.pair.host.scheduler.staleness.hubs
            lengths.append(len(known.left) if known is not None else 0)
    assert 30 < max(lengths) <= 50
    hub.pair.compare()


def test_reads_of_nodes_that_are_gone_are_not_remembered() -> None:
    case = Bystanders()
    pair = case.pair
    for turn in range(60):
        gone = pair.node(Definition((case.x,)))
        pair.read(gone)
        for other in case.sources[:2]:
            pair.set((other, turn))
            pair.read(gone)
        pair.release(gone)
    kept = pair.host.scheduler.plans.kept
    assert kept is not None
    live = set(map(pair.host.scheduler.topology.serial.__getitem__, pair.host.held))
    assert kept._plans.keys() <= live


def test_a_node_that_reads_a_hub_from_now_on_lets_all_hubs_be_found_anew() -> None:
    """Its mark may be one that nobody has written down."""
    pair = Pair()
    x, other = pair.leaf(1), pair.leaf(2)
    nodes = [pair.node(Definition((x,))) for _ in range(hubs.MANY + 1)]
    reader = pair.node(Definition((other,), peeks=x))  # where `other` is odd
    pair.read(reader, nodes[0])
    pair.set((x, 2))
    pair.read(nodes[0])
    marks = pair.host.scheduler.staleness
    assert marks.hubs is not None
    pair.set((other, 3))
    pair.read(reader)
    assert x in pair.naive.parents(reader)
    assert marks.hubs is None
    pair.set((x, 3))
    pair.compare()
