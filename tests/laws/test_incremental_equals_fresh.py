"""Incremental equals fresh, bit for bit; and what ran is what had to run, by networkx.

What is compared after every read stands in ``random_program.Program.read``.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad.backend._device as device
from tests.laws.random_program import Program

CODES = st.integers(0, (1 << 60) - 1)
SMALL = st.lists(CODES, min_size=2, max_size=12)
ANY_SIZE = st.one_of(
    SMALL, st.lists(CODES, min_size=12, max_size=60), st.lists(CODES, min_size=100, max_size=190)
)
LARGE = max(10, settings().max_examples // 2)  # examples, of programs that take long
ACTIONS = st.lists(CODES, min_size=1, max_size=20)


def play(program: Program, actions: list[int]) -> None:
    for number in actions:
        program.play(number)
    program.check_all()


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@settings(max_examples=LARGE)
@given(nodes=ANY_SIZE, actions=ACTIONS)
def test_array_programs_that_nobody_watches(
    distrust: bool, nodes: list[int], actions: list[int]
) -> None:
    """Tables are brought up to date only when the engine wants to: plans and journal rule."""
    play(Program(nodes, distrust=distrust, lifted=False), actions)


@given(nodes=SMALL, actions=ACTIONS)
def test_array_programs_watched_after_every_action(nodes: list[int], actions: list[int]) -> None:
    play(Program(nodes, watch=True, lifted=False), actions)


@pytest.mark.parametrize("watch", [False, True], ids=["alone", "watched"])
@settings(max_examples=LARGE)
@given(nodes=ANY_SIZE, actions=ACTIONS)
def test_programs_with_python_functions(watch: bool, nodes: list[int], actions: list[int]) -> None:
    play(Program(nodes, watch=watch), actions)


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(nodes=SMALL, actions=ACTIONS)
def test_programs_with_cutoffs(distrust: bool, nodes: list[int], actions: list[int]) -> None:
    """A cutoff that keeps equal values changes no bit of any value, and nothing runs in vain."""
    play(Program(nodes, distrust=distrust, cutoffs=True), actions)


@pytest.mark.parametrize("cutoffs", [False, True], ids=["plain", "cutoffs"])
@given(nodes=SMALL, actions=ACTIONS)
def test_programs_whose_values_are_handed_out_without_a_copy(
    cutoffs: bool, nodes: list[int], actions: list[int]
) -> None:
    """As large arrays are: here arrays of every size are shared with those who hold them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "COPY_LIMIT", -1)
        play(Program(nodes, cutoffs=cutoffs), actions)


@given(nodes=SMALL, loops=st.lists(CODES, min_size=2, max_size=6), order=CODES)
def test_loops_over_loops_of_sets_and_reads(nodes: list[int], loops: list[int], order: int) -> None:
    """Several loops, taken in turns again and again: every transition is cached, then mixed."""
    program = Program(nodes)
    for turn in range(4):
        for i, number in enumerate(loops):
            # 12 is the place of `loop` among the 16 actions.
            program.play((number + (order >> (turn + i) & 1)) * 16 + 12)
    program.check_all()
