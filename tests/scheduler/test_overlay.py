"""Columns that forks share are the lists that each of them would have alone."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactgrad_scheduler.overlay import FEW, SOME, Blank, Overlay, share
from tests.interrupts import lines_of, struck

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "extend", "fork", "drop"]), st.integers(0, 50), st.integers(0, 50)
    ),
    max_size=40,
)


@given(start=st.lists(st.integers(), max_size=12), actions=ACTIONS)
def test_columns_are_lists_of_their_own(
    start: list[int], actions: list[tuple[str, int, int]]
) -> None:
    columns: list[tuple[Any, list[int]]] = [(start.copy(), start.copy())]
    for what, which, number in actions:
        at = which % len(columns)
        column, expected = columns[at]
        if what == "write" and expected:
            column[number % len(expected)] = expected[number % len(expected)] = which
        elif what == "extend":
            column.extend([number] * (which % 3))
            expected += [number] * (which % 3)
        elif what == "fork":
            mine, twin = share(column)
            columns[at] = mine, expected
            columns.append((twin, expected.copy()))
        elif what == "drop" and len(columns) > 1:
            del columns[at], column
        for one, rows in columns:
            assert list(one) == rows
            assert [one[slot] for slot in range(len(one))] == rows


def test_reading_writes_nothing_and_a_fork_takes_what_was_written() -> None:
    mine, twin = share(list(range(1_000)))
    assert list(mine) == list(twin) == list(range(1_000))
    assert (mine.written, twin.written) == (0, 0)
    twin[3] = -1
    other = twin.fork()
    assert (other.written, other[3], mine[3]) == (1, -1, 3)


def test_who_is_alone_on_a_ground_writes_down_and_begins_anew() -> None:
    mine, twin = share(bytearray(1_000))
    for slot in range(10):
        mine[slot] = slot
    del twin
    twin = mine.fork()
    assert (mine.written, twin.written) == (0, 0)
    assert list(twin)[:11] == [*range(10), 0]


def test_who_has_written_much_gets_a_ground_of_its_own() -> None:
    mine, twin = share(list(range(100)))
    for slot in range(40):
        mine[slot] = -1
    ground = weakref.ref(_Watched.of(twin))
    other = mine.fork()
    assert (mine.written, other.written) == (0, 0)
    assert list(twin) == list(range(100))
    assert list(other) == [-1] * 40 + list(range(40, 100))
    del twin
    assert ground() is None, "the former ground outlives the last column that lies on it"


class _Watched(list[int]):
    """Rows of which it is seen when they go."""

    @classmethod
    def of(cls, column: Overlay[int]) -> _Watched:
        rows = cls(column.ground.rows)
        column.ground.rows = rows
        column.__missing__ = rows.__getitem__
        return rows


def test_a_blank_column_is_the_same_everywhere_and_may_be_written() -> None:
    column = Blank(5, "none")
    column.extend(["none"] * 3)
    column[6] = "one"
    assert list(column) == ["none"] * 6 + ["one", "none"]
    assert column.written == 1


def test_a_few_others_keep_the_rows_that_one_writes_down() -> None:
    # As in a loop of what-ifs, in which the former one is there when the next one is made.
    mine, twin = share(list(range(100)))
    mine.extend([100])
    twin[1] = "own"
    written: list[int] = []
    for turn in range(40):
        for slot in range(SOME + 1):
            mine[slot] = (turn, slot)
        other = mine.fork()
        written.append(mine.written)
        assert list(twin) == [0, "own", *range(2, 100)]
    assert written == [0] * 40
    assert (
        list(other)
        == list(mine)
        == [(39, slot) for slot in range(SOME + 1)] + [*range(SOME + 1, 101)]
    )


def test_where_many_look_on_nobody_pays_for_all_of_them() -> None:
    mine, *twins = share(list(range(1000)))
    twins += [mine.fork() for _ in range(FEW)]
    for slot in range(SOME + 1):
        mine[slot] = -1
    other = mine.fork()
    assert {twin.written for twin in twins} == {0}
    assert (mine.written, other.written) == (SOME + 1, SOME + 1)


def test_what_is_written_in_place_is_not_shared() -> None:
    mine, twin = share([{0: None} for _ in range(8 * SOME)])
    another = mine.fork()
    for slot in range(SOME + 1):
        mine[slot] = {1: None}
    mine.fork()
    assert 0 in twin
    assert twin[0] == another[0] == {0: None}
    assert twin[0] is not another[0]


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt])
def test_an_error_at_any_line_of_a_fork_keeps_no_thread_from_the_next_one(
    error: type[BaseException],
) -> None:
    """Where its ``with`` is left, an error once kept the lock, and the next fork waited for ever."""

    def column() -> tuple[Overlay[int], list[Overlay[int]]]:
        column, *others = share([*range(8)])
        column[1] = -1
        return column, others

    one, others = column()
    for at in range(1, lines_of(one.fork) + 1):
        one, others = column()
        with suppress(error):
            struck(one.fork, at, error)
        assert one.ground.lock.acquire(timeout=0.1), at  # for ever, if this were not an ``RLock``
        one.ground.lock.release()
        twin = one.fork()
        assert [*one] == [*twin] == [0, -1, *range(2, 8)]
        assert [*others[0]] == [*range(8)]


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt])
def test_an_error_at_any_line_that_adds_rows_leaves_no_gap(error: type[BaseException]) -> None:
    """The rows were counted before they were there, and every fork from then on raised ``IndexError``."""

    def column() -> Overlay[int]:
        column, _ = share([0, 1])
        column[1] = -1
        return column

    rows = [2, 3]
    for at in range(1, lines_of(lambda: column().extend(rows)) + 1):
        one = column()
        with suppress(error):
            struck(lambda one=one: one.extend(rows), at, error)
        assert [*one] in ([0, -1], [0, -1, *rows])
        assert [*one.fork()] == [*one]
        size = len(one)
        one.extend([5])
        assert [*one.fork()] == [*one]
        assert (len(one), one[size]) == (size + 1, 5)
