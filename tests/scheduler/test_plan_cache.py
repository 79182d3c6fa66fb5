"""The plan cache: its bounds, what it binds and rebinds, and that it keeps nothing alive."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from types import FrameType

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler import plan_cache as plans
from tests.scheduler.two_engines import Definition, IntegerHost

pytestmark = pytest.mark.trusting


def consistent(cache: plans.PlanCache) -> None:
    transitions = cache._transitions
    assert cache.nodes == sum(len(t.plan) for t in transitions.values())
    assert {key for keys in cache._keys_of.values() for key in keys} == set(transitions)
    assert all(key in cache._keys_of[key[2]] for key in transitions)
    groups = cache._groups
    assert {group for several in cache._groups_of.values() for group in several} == {
        *groups.values()
    }
    assert all(group in cache._groups_of[slot] for group in groups.values() for slot in group.slots)
    assert cache._members == sum(map(len, groups))
    assert {key[2] for key in transitions if not isinstance(key[2], int)} <= {*groups.values()}


def test_a_plan_that_is_stored_again_takes_the_place_of_the_former_one() -> None:
    cache = plans.PlanCache()
    key: plans.Key = (7, (1,), cache.group((2, 3)))
    for length in (5, 3):
        plan = plans.Plan.of(range(length), range(9), certain=True)
        transition = plans.Transition(plan, 7, ())
        cache.put(key, transition)
        consistent(cache)
        assert cache.nodes == length
    assert cache.get(key) is transition
    cache.forget_target(3, 9)
    assert not cache._keys_of
    assert not cache._groups
    assert not cache.nodes


@pytest.mark.parametrize("calls", range(1, 30))
def test_an_interrupt_while_a_group_is_made_hides_no_stale_node(calls: int) -> None:
    g = rg.Graph()
    xs = [g.input(float(i)) for i in range(6)]
    ys = [x * 2.0 for x in xs]
    left = calls

    def stop(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        if frame.f_code is plans.PlanCache.group.__code__ and event == "c_call":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    former = sys.getprofile()
    sys.setprofile(stop)
    try:
        g.forward(*ys)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(former)
    for _ in range(3):
        g.forward(*ys)
    for k, x in enumerate(xs):
        x.set(100.0 + k)
        assert [node.name for node in g.forward(*ys).ran] == [ys[k].name]
        assert ys[k].value == 200.0 + 2 * k


def test_a_plan_is_stored_at_the_second_sight_and_replayed_from_the_third() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    host.read(y)
    sizes = []
    for i in range(4):
        host.set((x, i))
        host.bound.clear()
        host.read(y)
        sizes.append((len(host.scheduler.plans), len(host.bound)))
    # Bound for each of the first two runs; the plan keeps the steps of the second one.
    assert sizes == [(0, 1), (1, 1), (1, 0), (1, 0)]
    consistent(host.scheduler.plans)


def test_the_number_of_plans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_PLANS", 8)
    monkeypatch.setattr(plans, "MAX_SEEN", 8)
    host = IntegerHost()
    x = host.leaf(1)
    nodes = [host.node(Definition((x,))) for _ in range(30)]
    for turn in range(5):
        for node in nodes[: 6 if turn < 3 else 30]:
            host.set((x, turn))
            host.read(node)
            assert len(host.scheduler.plans) <= 8
            cache = host.scheduler.plans
            assert len(cache._seen) <= 8
            consistent(host.scheduler.plans)


def test_more_reads_in_turn_than_keys_are_kept_find_their_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plans, "MAX_SEEN", 8)
    host = IntegerHost()
    leaves = [host.leaf(1) for _ in range(14)]
    y = host.node(Definition(tuple(leaves)))
    host.read(y)
    for turn in range(40):
        host.bound.clear()
        for x in leaves:
            host.set((x, turn))
            host.read(y)
    assert len(host.scheduler.plans) == len(leaves)
    assert not host.bound


def test_the_number_of_planned_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_PLANNED_NODES", 50)
    host = IntegerHost()
    x = host.leaf(1)
    ends = []
    for _ in range(10):
        end = x
        for _ in range(20):
            end = host.node(Definition((end,)))
        ends.append(end)
    for turn in range(4):
        for end in ends:
            for _ in range(3):
                host.set((x, turn))
                host.read(end)
            assert host.scheduler.plans.nodes <= 50
            consistent(host.scheduler.plans)
    assert len(host.scheduler.plans) >= 1


def test_dropping_a_target_drops_its_plans_and_its_slot_can_be_used_again() -> None:
    """The new node in the old slot must not be run by the old node's plan."""
    host = IntegerHost()
    x, z = host.leaf(1), host.leaf(5)
    keep = host.node(Definition((x,)))
    y = host.node(Definition((x,)))
    for i in range(5):
        host.set((x, i))
        host.read(y, keep)
    assert len(host.scheduler.plans) >= 1
    host.held.discard(y)
    host.scheduler.release([y])
    assert all(y not in t.plan.slots for t in host.scheduler.plans._transitions.values())
    again = host.node(Definition((z,)))
    assert again == y, "the slot was not used again, so this test shows nothing"
    for i in range(5):
        host.set((x, i), (z, i))
        assert set(host.read(again, keep)) == {again, keep}
        assert host.values[again] == host.definitions[again].compute([i], int)  # type: ignore[union-attr]


def test_slots_are_used_again_while_plans_are_hot(g: rg.Graph) -> None:
    x = g.input(1.0)
    stable = rg.tanh(x * 2.0)
    seen: set[int] = set()
    for i in range(200):
        fresh = (x * float(i % 7)) + 1.0 if i % 3 else rg.sin(x) - 1.0
        seen.add(fresh._slot)
        for j in range(4):
            x.set(i + j / 4)
            want = (i + j / 4) * float(i % 7) + 1.0 if i % 3 else np.sin(i + j / 4) - 1.0
            assert float(fresh.value) == want
            assert float(stable.value) == np.tanh((i + j / 4) * 2.0)
        if i % 20 == 0:
            g.check_invariants()
    assert len(seen) < 20, "slots were not used again, so this test shows nothing"


def test_steps_follow_a_value_that_had_to_move(g: rg.Graph) -> None:
    """A held large value stays its holder's; the plan goes on in a new buffer."""
    x = g.input(np.zeros(50_000))
    middle = x + 1.0
    view = middle[::-1]
    y = view * 2.0
    held = []
    for i in range(8):
        x.set(np.full(50_000, float(i)))
        assert y.value[0] == 2.0 * (i + 1.0)
        held.append((i, x.value, middle.value, view.value, y.value))
        if i == 5:
            del held[1:4]
    for i, *values in held:
        assert [v[0] for v in values] == [i, i + 1.0, i + 1.0, 2.0 * (i + 1.0)]


def test_a_number_that_does_not_fit_fails_at_its_node_also_when_the_plan_is_hot(
    g: rg.Graph,
) -> None:
    """Binding may raise as well as running: it is the node's error, and others still run."""
    number = g.input(5)
    small = g.input(np.zeros(2, np.int8))
    sum_, other = small + number, small * 2 + number * 0
    for i in range(5):
        number.set(i)
        g.forward(sum_, other)
    version = sum_.value_version
    number.set(1000)
    with pytest.raises(OverflowError, match="does not fit") as caught:
        g.forward(sum_)
    assert sum_.label in "".join(caught.value.__notes__)
    assert g.last_run.failed == [sum_]
    assert (sum_.state, sum_.value_version) == ("error", version)
    number.set(3)
    assert sum_.value.tolist() == [3, 3]
    g.check_invariants()


@pytest.mark.slow
@pytest.mark.whole
def test_released_values_are_not_kept_by_plans() -> None:
    """``retain_graph=False`` frees memory, whatever was replayed before."""
    g = rg.Graph()
    w = g.param(np.ones(300_000))
    x = g.input(1.0)
    y = ((w * x) * x).sum()
    tracemalloc.start()
    try:
        for i in range(6):
            x.set(float(i))
            y.backward()
        g.zero_grad()
        held = tracemalloc.get_traced_memory()[0]
        y.backward(retain_graph=False)
        g.zero_grad()
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held > 3 * w.value.nbytes
    assert left < w.value.nbytes, "the intermediates are still somewhere"
