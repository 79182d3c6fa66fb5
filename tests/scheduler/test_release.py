"""Values may be released at any moment, also in the middle of a run: nothing else changes (E17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactgrad_scheduler import Step
from tests.laws.random_program import Code
from tests.scheduler.test_versions import CODES, build, play
from tests.scheduler.two_engines import Definition, IntegerHost, Pair


class ForgetfulHost(IntegerHost):
    """Releases whatever it may, at random, whenever a node is about to run."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self.count = 0

    def bind(self, slot: int) -> Step | None:
        computing = self.scheduler.computing
        if computing and computing[-1] == slot:
            self.forget()
        return super().bind(slot)

    def forget(self) -> None:
        scheduler = self.scheduler
        held = set(scheduler.locked)
        for slot in scheduler.computing:
            held.update((slot, *scheduler.topology.parents[slot]))
        part = self.random.choice((0.0, 0.3, 1.0))
        chosen = [
            slot
            for slot in self.values
            if self.recomputable(slot) and slot not in held and self.random.random() < part
        ]
        self.count += len(chosen)
        self.release(chosen)


@pytest.mark.parametrize(("breaks", "peeks"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    nodes=st.lists(CODES, min_size=1, max_size=14),
    actions=st.lists(CODES, min_size=1, max_size=30),
    seed=st.integers(0, 1 << 16),
)
def test_releases_at_any_moment_change_nothing_that_versions_show(
    breaks: bool, peeks: bool, distrust: bool, nodes: list[int], actions: list[int], seed: int
) -> None:
    pair = Pair(distrust=distrust, host=ForgetfulHost(seed))
    pair.leaf(1)
    pair.leaf(2)
    for number in nodes:
        build(pair, Code(number), breaks=breaks, peeks=peeks)
    for number in actions:
        play(pair, number, breaks=breaks, peeks=peeks, edits=True)
        pair.compare()
    pair.read(*pair.slot)
    pair.compare()
    assert not pair.host.scheduler.awaited
    assert not pair.host.scheduler.locked


class StingyHost(IntegerHost):
    """Keeps nothing that it may release."""

    def bind(self, slot: int) -> Step | None:
        scheduler = self.scheduler
        if scheduler.computing and scheduler.computing[-1] == slot:
            held = {slot, *scheduler.locked}
            for one in scheduler.computing:
                held.update(scheduler.topology.parents[one])
            self.release([s for s in self.values if self.recomputable(s) and s not in held])
        return super().bind(slot)


def test_a_rebuild_that_is_forgotten_on_the_way_stays_polynomial() -> None:
    """Each node reads the one before it and one far back, which is gone whenever its turn comes.

    Rebuilt by plain recursion that would be a rebuild inside of a rebuild at every step of it.
    """
    host = StingyHost()
    made = [host.leaf(1)]
    for k in range(1, 129):
        made.append(host.node(Definition((made[-1], made[k // 2]))))
    calls = len(host.read(made[-1]))
    assert len(host.run.ran) == 128
    value = host.values[made[-1]]
    assert calls <= 128**2
    host.release([slot for slot in made if host.recomputable(slot)])
    assert len(host.read(made[-1])) <= 128**2
    assert not host.run.ran
    assert set(host.run.rebuilt) == set(made[1:])
    assert host.values[made[-1]] == value


@pytest.mark.parametrize("length", [50, 5000])
def test_a_chain_is_rebuilt_without_recursion_each_node_once(length: int) -> None:
    host = StingyHost()
    made = [host.leaf(1)]
    for _ in range(length):
        made.append(host.node(Definition((made[-1],))))
    assert len(host.read(made[-1])) == length
    host.release(made[1:])
    assert host.read(made[-1]) == made[1:]
    assert host.run.rebuilt == made[1:]
    assert len(host.values) == 3, "the leaf, the last node and what it was computed from"


def loops(host: IntegerHost, leaf: int, act: Callable[[int], Sequence[int]], turns: int) -> int:
    """How many of these turns found no plan."""
    before = host.scheduler.counted().resolved
    for turn in range(turns):
        host.set((leaf, turn))
        act(turn)
    return host.scheduler.counted().resolved - before


@pytest.mark.trusting
def test_a_loop_that_releases_the_same_values_each_turn_replays_its_plan() -> None:
    host = IntegerHost()
    x, z = host.leaf(1), host.leaf(2)
    side = host.node(Definition((z,)))
    inner = host.node(Definition((x, side)))
    end = host.node(Definition((inner,)))

    def act(turn: int) -> Sequence[int]:
        calls = host.read(end)
        host.release([side, inner])
        return calls

    assert loops(host, x, act, 3) == 3, "the first and the second sight"
    assert loops(host, x, act, 20) == 0
    assert host.run.rebuilt == [side]
    assert host.run.ran == [inner, end]
    host.read(inner)
    assert host.scheduler.version(inner) == 23


@pytest.mark.trusting
def test_releasing_takes_only_the_steps_of_plans_that_hold_the_value() -> None:
    host = IntegerHost()
    x, z = host.leaf(1), host.leaf(2)
    one, other = host.node(Definition((x,))), host.node(Definition((z,)))
    for turn in range(4):
        host.set((x, turn))
        host.read(one)
        host.set((z, turn))
        host.read(other)
    host.release([other])
    host.bound.clear()
    host.scheduler.refresh((other,))
    for turn in range(3):
        host.set((x, turn))
        host.read(one)
    assert host.bound == [other]


def test_a_node_that_fails_after_its_value_was_released_has_none() -> None:
    """Storage that was bound for it and not filled is no value."""
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,), breaks=True))
    host.read(y)
    host.release([y])
    host.set((x, 3))
    host.read(y)
    assert list(host.run.failed) == [y]
    assert y in host.scheduler.dropped
    host.set((x, 1))
    host.read(y)
    assert y not in host.scheduler.dropped
    assert host.values[y] == 2


def test_a_run_whose_every_node_is_rebuilt_stays_quadratic() -> None:
    """All of a graph of two chains that cross is gone before each of its nodes runs."""

    def calls(depth: int) -> int:
        host = StingyHost()
        a, b = host.leaf(1), host.leaf(2)
        for _ in range(depth):
            a, b = host.node(Definition((a, b))), host.node(Definition((b, a)))
        found = len(host.read(a))
        assert not host.scheduler.awaited
        assert not host.scheduler.locked
        return found

    assert calls(64) < 5 * calls(32)
