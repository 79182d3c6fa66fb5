"""A state machine that plays everything a graph can do, beside a naive model (``naive.py``).

After every step: values bit by bit, versions, staleness, what ran and in which order, what was cut
off and what failed, which functions were called, what observers were told, values handed out
before, and the invariants of the engine.

The same 12,000 steps or so at every run. ``MACHINE_EXAMPLES=2000 pytest tests/model`` plays so many
programs that nobody has played before, of 50 steps each.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import reactgrad as rg
from reactgrad.backend import _device
from tests.model import naive, worlds
from tests.model.changes import Changes
from tests.model.computations import same_bits
from tests.model.naive import Model
from tests.model.reads import Reads
from tests.model.worlds import (
    CODES,
    COPY_LIMIT,
    Abort,
    Code,
    Trouble,
    World,
)

STEPS = 50
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "300"))


class Machine(Changes, Reads, RuleBasedStateMachine):
    """Every rule plays one action on one world."""

    done: ClassVar[Counter[str]] = Counter()  # what all machines have done

    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[World] = []
        self.count = 0
        self.called: list[int] = []  # functions of nodes, as the engine calls them
        self.heard: list[naive.Call] = []
        self.expected: list[list[naive.Call]] = []  # what observers must be told, notice by notice
        self.kept: deque[tuple[Any, bytes]] = deque(maxlen=25)  # values that callers still hold
        self.turn = 0
        self.doomed = 0  # open transactions that will fail
        self.trouble: list[Trouble] = []  # what observers have raised
        self.now: World  # whose nodes are being computed

    @initialize(code=CODES, nodes=st.lists(CODES, min_size=4, max_size=10))
    def start(self, code: int, nodes: list[int]) -> None:
        worlds.playing = self
        world = World(rg.Graph(), Model())
        world.graph._scheduler.distrust |= code % 7 == 6
        # Large values are handed out in place, small ones as copies: now and then all count as large.
        _device.COPY_LIMIT = 0 if code % 3 == 2 else COPY_LIMIT
        # Some programs live with a budget from their first value on.
        world.graph.max_bytes = 200 if code % 5 == 4 else None
        self.worlds.append(world)
        self.new_leaf(world, Code(code))
        self.new_choice(world, Code(code))
        for number in nodes:
            self.build(world, Code(number))

    def teardown(self) -> None:
        _device.COPY_LIMIT = COPY_LIMIT

    # --- transactions ----------------------------------------------------------------------------------------

    def act_transaction(self, world: World, codes: Iterator[Code], fails: bool, depth: int) -> None:
        model = world.model
        model.begin()
        named = dict(world.uid_of)
        self.doomed += fails
        try:
            with self.hearing(), world.graph.transaction():
                for code in codes:
                    kind = code.pick(12)
                    if kind == 11:
                        if depth:
                            break
                    elif kind == 10:
                        if depth < 3:
                            self.act_transaction(world, codes, bool(code.pick(2)), depth + 1)
                    else:
                        code.among(INSIDE)(self, world, code)
                        self.check_values(world)
                inside = {uid: model.nodes[uid].version for uid in model.nodes}
                if fails:
                    raise Abort
        except Abort:
            self.did("rolled back")
            self.doomed -= 1
            grown = model.rollback()
            world.uid_of = named
            names = {uid: name for name, uid in world.uid_of.items()}
            for uid, must in grown.items():
                if uid not in model.nodes:  # its last observer was cancelled inside
                    continue
                version = world.graph[names[uid]].value_version
                assert version >= inside[uid] + must, f"version of {uid} has not grown"
                model.nodes[uid].version = version
            world.note_lost()
            # What was computed in it, from nothing that was given back, is told at its end.
            if model.news_of_computed():
                self.notify(world)
            else:
                self.tell_stale(world)
        else:
            self.did("committed")
            model.commit()
            self.notify(world)

    # --- rules -----------------------------------------------------------------------------------------------

    def play(self, action: Callable[[Machine, World, Code], None], number: int) -> None:
        self.did("step")
        code = Code(number)
        world = code.among(self.worlds)
        if world.limited:
            self.did("step with a budget")
        action(self, world, code)

    @rule(number=CODES)
    def make_a_node(self, number: int) -> None:
        self.play(Machine.build, number)

    @rule(number=CODES)
    def make_another_node(self, number: int) -> None:
        self.play(Machine.build, number)

    @rule(number=CODES)
    def set_a_leaf(self, number: int) -> None:
        self.play(Machine.act_set, number)

    @rule(number=CODES)
    def set_leaves(self, number: int) -> None:
        self.play(Machine.act_set_many, number)

    @rule(number=CODES)
    def read_nodes(self, number: int) -> None:
        self.play(Machine.act_read, number)

    @rule(number=CODES)
    def read_more_nodes(self, number: int) -> None:
        self.play(Machine.act_read, number)

    @rule(number=CODES)
    def read_a_value(self, number: int) -> None:
        self.play(Machine.act_value, number)

    @rule(number=CODES)
    def set_and_read_in_a_loop(self, number: int) -> None:
        self.play(Machine.act_burst, number)

    @rule(number=CODES)
    def replace_an_operand(self, number: int) -> None:
        self.play(Machine.act_edit, number)

    @rule(number=CODES)
    def make_a_block_of_edits(self, number: int) -> None:
        self.play(Machine.act_block, number)

    @rule(number=CODES)
    def insert_a_node(self, number: int) -> None:
        self.play(Machine.act_insert, number)

    @rule(number=CODES)
    def remove_a_node(self, number: int) -> None:
        self.play(Machine.act_remove, number)

    @rule(number=CODES)
    def pin(self, number: int) -> None:
        self.play(Machine.act_pin, number)

    @rule(number=CODES)
    def unpin(self, number: int) -> None:
        self.play(Machine.act_unpin, number)

    @rule(number=CODES)
    def touch(self, number: int) -> None:
        self.play(Machine.act_touch, number)

    @rule(number=CODES)
    def change_a_cutoff(self, number: int) -> None:
        self.play(Machine.act_cutoff, number)

    @rule(number=CODES)
    def observe(self, number: int) -> None:
        self.play(Machine.act_observe, number)

    @rule(number=CODES)
    def observe_again(self, number: int) -> None:
        self.play(Machine.act_observe, number)

    @rule(number=CODES)
    def cancel_an_observer(self, number: int) -> None:
        self.play(Machine.act_cancel, number)

    @rule(number=CODES)
    def stabilize(self, number: int) -> None:
        self.play(Machine.act_stabilize, number)

    @rule(number=CODES)
    def fork(self, number: int) -> None:
        self.play(Machine.act_fork, number)

    @rule(number=CODES)
    def ask_what_if(self, number: int) -> None:
        self.play(Machine.act_whatif, number)

    @rule(number=CODES)
    def save_and_load(self, number: int) -> None:
        self.play(Machine.act_reload, number)

    @rule(number=CODES)
    def release_values(self, number: int) -> None:
        self.play(Machine.act_release, number)

    @rule(number=CODES)
    def drop_a_handle(self, number: int) -> None:
        self.play(Machine.act_drop, number)

    @rule(number=CODES)
    def regain_a_handle(self, number: int) -> None:
        self.play(Machine.act_regain, number)

    @rule(number=CODES)
    def look_at_all_nodes(self, number: int) -> None:
        self.play(Machine.act_nodes, number)

    @rule(number=CODES)
    def forget_marks(self, number: int) -> None:
        self.play(Machine.act_forget, number)

    @rule(number=CODES)
    def rename(self, number: int) -> None:
        self.play(Machine.act_rename, number)

    @rule(number=CODES, numbers=st.lists(CODES, max_size=12), fails=st.booleans())
    def run_a_transaction(self, number: int, numbers: list[int], fails: bool) -> None:
        codes = map(Code, numbers)
        self.play(lambda m, world, code: m.act_transaction(world, codes, fails, 0), number)

    # --- what holds after every step -----------------------------------------------------------------------

    def check_values(self, world: World) -> None:
        """Versions of all nodes, values of the clean ones, staleness of a few."""
        model = world.model
        self.turn += 1
        standing = naive.Standing(model)
        for i, (uid, var) in enumerate(world.vars.items()):
            node = model.nodes[uid]
            assert var.value_version == node.version, f"version of {uid}"
            assert var.pinned == node.pinned
            stale = standing.stale(uid)
            if (i + self.turn) % 4 == 0:
                assert var.is_stale == stale, f"{uid} stale: {var.is_stale}"
            # With news for an observer a read might count as the run that it waits for.
            world.released_any()
            if not stale and not model.news() and uid not in model.released:
                self.check_value(world, uid)
        world.graph.check_invariants()

    @invariant()
    def everything_holds(self) -> None:
        for world in self.worlds:
            world.model.drop_unreachable()
            for uid in world.sources.keys() - world.model.nodes.keys():
                del world.sources[uid]  # as a function that goes with its node
            called = len(self.called)
            self.check_values(world)
            assert len(self.called) == called, "a clean read called a function"
        self.check_heard()
        for value, before in self.kept:
            assert value.tobytes() == before, f"a value that was handed out is now {value!r}"

    def check_heard(self) -> None:
        heard, self.heard = self.heard, []
        expected, self.expected = self.expected, []
        for notice in expected:
            part, heard = heard[: len(notice)], heard[len(notice) :]
            same = [
                a[:2] == b[:2] and all(map(same_bits, a[2], b[2]))
                for a, b in zip(
                    sorted(part, key=lambda c: c[0]), sorted(notice, key=lambda c: c[0])
                )
            ]
            assert len(part) == len(notice), f"told {part}, not {notice}"
            assert all(same), f"told {part}, not {notice}"
        assert not heard, f"told {heard}"


INSIDE: list[Callable[[Machine, World, Code], None]] = [
    Machine.act_set,
    Machine.act_set_many,
    Machine.act_read,
    Machine.act_edit,
    Machine.act_block,
    Machine.act_pin,
    Machine.act_unpin,
    Machine.act_touch,
    Machine.act_set,
    Machine.act_read,
    Machine.act_observe,
    Machine.act_burst,
    Machine.act_cancel,
    Machine.act_cutoff,
    Machine.act_rename,
    Machine.act_evict,
]

# What has to happen, and how often at least.
LEAST = {
    "step": 10_000,
    "step with a budget": 500,
    "ran": 1_000,
    "cut off": 50,
    "rebuilt": 3,
    "raised: Failure": 100,
    "raised: ValueError": 20,
    "committed": 100,
    "rolled back": 100,
    "replaced": 100,
    "rewired": 50,
    "made a block of edits": 100,
    "inserted": 100,
    "removed": 50,
    "refused: cycle": 50,
    "refused: shapes": 2,
    "refused: used": 50,
    "released values": 20,
    "saved and loaded": 40,
    "told: changed": 30,
    "told: stale": 10,
    "told: error": 3,
    "told: removed": 3,
    "raised in an observer": 10,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_everything_a_graph_can_do_is_what_a_naive_model_does() -> None:
    Machine.done.clear()
    if "MACHINE_EXAMPLES" in os.environ:
        play(Machine, EXAMPLES)
        return
    play(seed(0)(Machine), EXAMPLES)
    # Which programs a seed stands for depends on the modules that are there; a few more if need be.
    for number in range(1, 6):
        if not too_rare():
            break
        play(seed(number)(Machine), EXAMPLES // 3)
    assert not too_rare(), f"too seldom: {too_rare()} of {Machine.done}"


def play(machine: type[Machine], count: int) -> None:
    """Play so many programs: the same ones, whichever modules are loaded."""
    with no_constants_of_modules():
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=count,
                stateful_step_count=STEPS,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@contextmanager
def no_constants_of_modules() -> Iterator[None]:
    """Hypothesis draws numbers that stand in loaded modules, too: a renamed file would be another program."""
    none = providers.Constants()
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        with patch.object(providers, "_get_local_constants", lambda: none):
            yield
    finally:
        providers.CONSTANTS_CACHE.cache.clear()


def too_rare() -> dict[str, int]:
    """What has not happened often enough."""
    return {what: Machine.done[what] for what in LEAST if Machine.done[what] < LEAST[what]}
