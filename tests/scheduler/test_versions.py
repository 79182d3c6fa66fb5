"""Versions, records and what runs: the scheduler beside an engine that only walks and compares."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactgrad_scheduler import staleness
from reactgrad_scheduler.versions import JOURNAL_LIMIT
from tests.laws.random_program import Code
from tests.scheduler.two_engines import Definition, IntegerHost, Pair

CODES = st.integers(0, (1 << 48) - 1)


def build(pair: Pair, code: Code, *, breaks: bool, peeks: bool) -> None:
    alive = list(pair.slot)
    if code.pick(6) == 5:
        pair.leaf(code.pick(1000))
        return
    near = alive[-4:]
    parents = tuple(code.among(near if i == 0 else alive) for i in range(1 + code.pick(3)))
    other = code.among(alive) if peeks and code.pick(3) == 2 else None
    pair.node(
        Definition(
            parents,
            coarse=code.pick(4) == 3,
            breaks=breaks and code.pick(4) == 3,
            peeks=other,
        )
    )


def play(pair: Pair, number: int, *, breaks: bool, peeks: bool, edits: bool) -> None:
    """One action, on both engines."""
    code = Code(number)
    alive = list(pair.slot)
    computed = [n for n in alive if pair.naive.definitions[n] is not None]
    leaves = [n for n in alive if pair.naive.definitions[n] is None]
    what = code.pick(12)
    if what < 2:
        pair.set((code.among(leaves), code.pick(1000)))
    elif what < 4:
        pair.read(code.among(alive), retry=code.pick(8) == 7)
    elif what < 7:
        loop(pair, code, leaves, alive)
    elif what == 7:
        wander(pair, code, leaves, alive)
    elif what == 8:
        pair.set(*{code.among(leaves): code.pick(1000) for _ in range(3)}.items())
    elif what == 9:
        pair.read(*{code.among(alive) for _ in range(3)})
    elif what == 10 and computed:
        change_structure(pair, code, computed, breaks=breaks, peeks=peeks, edits=edits)
    else:
        build(pair, code, breaks=breaks, peeks=peeks)


def loop(pair: Pair, code: Code, leaves: list[int], alive: list[int]) -> None:
    """Sets and reads in a fixed order, several times: what plans are made for."""
    turns = 3 + code.pick(4)
    steps = [
        (code.pick(3) < 2, code.among(leaves), code.among(alive)) for _ in range(1 + code.pick(6))
    ]
    base = code.pick(1000)
    for turn in range(turns):
        for i, (sets, leaf, target) in enumerate(steps):
            if sets:
                pair.set((leaf, (base + 37 * turn + 11 * i) % 500))
            if not sets or code.number % 2:
                pair.read(target)


def wander(pair: Pair, code: Code, leaves: list[int], alive: list[int]) -> None:
    """Sets and reads of few nodes without order: the same plans, and seldom in the same state."""
    some = [code.among(leaves) for _ in range(1 + code.pick(3))]
    targets = [code.among(alive) for _ in range(2 + code.pick(3))]
    lots = Random(code.number)
    for turn in range(24):
        if lots.random() < 0.5:
            pair.set((lots.choice(some), turn))
        elif lots.random() < 0.2:
            pair.read(*dict.fromkeys(targets))
        else:
            pair.read(lots.choice(targets))


def change_structure(
    pair: Pair, code: Code, computed: list[int], *, breaks: bool, peeks: bool, edits: bool
) -> None:
    node = code.among(computed)
    kind = code.pick(4)
    if kind == 0:
        pair.invalidate(node)
    elif kind == 1 and edits:
        parents = tuple(code.among(list(pair.slot)) for _ in range(1 + code.pick(2)))
        try:
            pair.reparent(node, parents)
        except ValueError:  # a cycle: nothing has changed
            pair.compare()
    elif kind == 2 and not peeks:
        pair.release(node)
    elif kind == 3:
        pair.host.scheduler.forget()
    else:
        build(pair, code, breaks=breaks, peeks=peeks)


@pytest.mark.parametrize("many", [2, staleness.MANY], ids=["hubs", "no hubs"])
@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@pytest.mark.parametrize(
    ("breaks", "peeks", "edits"),
    [(False, False, True), (True, False, True), (False, True, False)],
    ids=["pure", "failing", "peeking"],
)
@given(
    nodes=st.lists(CODES, min_size=2, max_size=14),
    actions=st.lists(CODES, min_size=1, max_size=25),
    watch=st.booleans(),
)
def test_scheduler_agrees_with_an_engine_that_only_compares_versions(
    many: int,
    distrust: bool,
    breaks: bool,
    peeks: bool,
    edits: bool,
    nodes: list[int],
    actions: list[int],
    watch: bool,
) -> None:
    pair = Pair(distrust=distrust)
    for value in (1, 2, 3):
        pair.leaf(value)
    for number in nodes:
        build(pair, Code(number), breaks=breaks, peeks=peeks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staleness, "MANY", many)
        for number in actions:
            play(pair, number, breaks=breaks, peeks=peeks, edits=edits)
            if watch:
                pair.compare()
        pair.compare()


@pytest.mark.trusting
def test_a_journal_of_interleaved_plans_settles_to_exact_counts() -> None:
    """Two loops share a node; the tables are looked at only after both have run many times."""
    pair = Pair()
    a, b = pair.leaf(1), pair.leaf(2)
    shared = pair.node(Definition((a, b)))
    left, right = pair.node(Definition((shared, a))), pair.node(Definition((shared, b)))
    for turn in range(60):
        pair.set((a, turn))
        pair.read(left)
        pair.set((b, 3 * turn))
        pair.read(right if turn % 7 else left)
    assert len(pair.host.scheduler.versions.journal) > 50, "nothing was left to settle"
    pair.compare()


@pytest.mark.trusting
def test_a_journal_does_not_grow_without_bound() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    for turn in range(3 * JOURNAL_LIMIT):
        host.set((x, turn))
        host.read(y)
    assert len(host.scheduler.versions.journal) <= JOURNAL_LIMIT + 1


def test_reads_of_a_clean_node_leave_nothing_in_the_journal_for_ever() -> None:
    host = IntegerHost()
    y = host.node(Definition((host.leaf(1),)))
    for _ in range(3 * JOURNAL_LIMIT):
        host.read(y)
    assert len(host.scheduler.versions.journal) <= JOURNAL_LIMIT + 1


def test_setting_the_same_value_twice_is_two_changes() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    host.read(y)
    host.set((x, 2))
    host.set((x, 1))
    assert host.read(y) == [y]
    assert host.scheduler.version(x) == 3
    assert host.scheduler.version(y) == 2
    assert host.scheduler.versions.record[y] == (3,)
