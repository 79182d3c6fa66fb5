"""When a recomputed value counts as unchanged (rule E9)."""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import reactgrad.nodes._cutoff
from reactgrad_scheduler.staleness import MAYBE, STALE

NAN = float("nan")


@pytest.mark.parametrize("size", [3, 50_000], ids=["copied", "shared"])
def test_a_cut_off_node_keeps_its_old_value_and_its_children_do_not_run(
    g: rg.Graph, size: int
) -> None:
    """Also where the old value is large and someone holds it."""
    x = g.input(np.arange(float(size)))
    zero = x * 0.0
    zero.cutoff = "equal"
    y = zero + 1.0
    y.value
    held = zero.value
    for i in range(5):
        x.set(np.full(size, float(i)))
        run = g.forward(y)
        assert run.ran == run.cut_off == [zero]
        assert zero.value is held, "the same object while the version is unchanged"
    assert (zero.value_version, y.value_version) == (1, 1)
    assert zero.parent_versions == (6, 1)


def test_a_change_goes_on_and_the_next_cutoff_decides_again(g: rg.Graph) -> None:
    x = g.input(1.2)
    floor = rg.floor(x)
    floor.cutoff = "equal"
    even = rg.lift(lambda v: int(v) % 2 == 0, cutoff="equal")(floor)
    shown = rg.lift(str)(even)
    shown.value
    ran = []
    for value in (1.4, 2.0, 4.0, 4.5, 5.0):
        x.set(value)
        ran.append([v.name.rpartition("_")[0] for v in g.forward(shown).ran])
    assert ran == [
        ["floor"],
        ["floor", "lambda", "str"],
        ["floor", "lambda"],
        ["floor"],
        ["floor", "lambda", "str"],
    ]
    assert shown.value == "False"


def test_planned_nodes_that_turn_out_clean_are_skipped(g: rg.Graph) -> None:
    x = g.input(1.2)
    floor = rg.floor(x)
    floor.cutoff = "equal"
    y = floor + 1.0
    z = y * 2.0
    z.value
    for value in (1.3, 1.4, 1.5, 1.6):
        x.set(value)
        run = g.forward(z)
        assert (run.ran, run.cut_off) == ([floor], [floor])
        if not g._scheduler.distrust:
            assert run.skipped == [y, z]
        assert not set(map(id, run.skipped)) & set(map(id, run.ran))


class Unit(np.ndarray[Any, Any]):
    """An array of a class that may hold more than its elements."""


PARIS = timezone(timedelta(hours=1))


@dataclass
class Price:
    amount: float


EQUAL: list[tuple[Any, Any, bool]] = [
    (np.array([1.0, NAN]), np.array([1.0, NAN]), True),
    (np.array([1.0, NAN]), np.array([1.0, 2.0]), False),
    (np.array([0.0]), np.array([-0.0]), False),
    (np.array([1.0]), np.array([1.0], "float32"), False),
    (np.array([1.0]), np.array([[1.0]]), False),
    (np.zeros(0), np.zeros(0), True),
    (np.zeros((0, 2)), np.zeros((0, 3)), False),
    (1, 1, True),
    (1, 1.0, False),
    (1, True, False),
    (NAN, NAN, True),
    ("a", "a", True),
    ([1, 2], [1, 2], True),
    ([1, 2], [2, 1], False),
    (None, None, True),
    (None, 0, False),
    ({1: 2}, {1: 2}, True),
    (np.float64(2.0), np.float64(2.0), True),
    (np.ma.array([1.0, 2.0], mask=[0, 0]), np.ma.array([1.0, 2.0], mask=[0, 1]), False),
    (np.array([1.0, 2.0]), np.ma.array([1.0, 2.0]), False),
    (np.ones((2, 2)), np.ones((2, 2)).view(np.matrix), False),
    (np.ones((2, 2)).view(np.matrix), np.ones((2, 2)).view(np.matrix), True),
    (np.ones((2, 2)).view(np.matrix), np.zeros((2, 2)).view(np.matrix), False),
    (np.ones(2).view(Unit), np.ones(2).view(Unit), False),
    (0j, -0j, False),
    (0j, 0j, True),
    (complex(NAN, 1), complex(NAN, 1), True),
    ([1], [True], False),
    ([1], [1.0], False),
    ([0.0], [-0.0], False),
    ([NAN], [NAN], True),
    ((1, [2.0]), (1, [2.0]), True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
    ({1: "a"}, {1.0: "a"}, False),
    ({1, 2}, {1, 2}, True),
    ({1}, {True}, False),
    ([np.zeros(2)], [np.zeros(2)], True),
    ([np.zeros(2)], [-np.zeros(2)], False),
    ({"a": np.ones(2)}, {"a": np.ones(2, "f4")}, False),
    (OrderedDict(a=1), OrderedDict(a=1), True),
    (OrderedDict(a=1), OrderedDict(a=True), False),
    (deque([1], 3), deque([1], 4), False),
    (deque([0.0], 3), deque([0.0], 3), True),
    (Decimal("1.0"), Decimal("1.00"), False),
    (Decimal("1.0"), Decimal("1.0"), True),
    (datetime(2026, 1, 1), datetime(2026, 1, 1), True),
    (datetime(2026, 1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 2, tzinfo=PARIS), False),
    (Price(1), Price(1), True),
    (Price(1), Price(1.0), False),
    (object(), object(), False),
    (bytearray(b"a"), bytearray(b"a"), True),
    (range(0), range(1, 1), False),
]


@dataclass
class Changing:
    """Equal to all others of its kind."""

    n: int = field(default=0, compare=False)


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, {1}, deque([1]), bytearray(1), Changing(), ([1],), [np.zeros(1)]]
)
def test_one_object_that_a_function_may_have_changed_is_a_change(g: rg.Graph, value: Any) -> None:
    x = g.input(1.0)
    y = rg.lift(lambda _: value, cutoff="equal")(x)
    z = rg.lift(lambda _: [value], cutoff="equal")(x)
    g.forward(y, z)
    x.set(2.0)
    assert g.forward(y, z).cut_off == []


@pytest.mark.parametrize(
    "value", [None, "a", (1, "b"), Decimal(1), len, np.float64, date(2026, 1, 1)]
)
def test_one_object_that_cannot_change_is_the_same(g: rg.Graph, value: Any) -> None:
    x = g.input(1.0)
    y = rg.lift(lambda _: value, cutoff="equal")(x)
    z = rg.lift(lambda _: [value], cutoff="equal")(x)
    g.forward(y, z)
    x.set(2.0)
    assert set(g.forward(y, z).cut_off) == {y, z}


@pytest.mark.parametrize(
    ("old", "new", "unchanged"), EQUAL, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))
)
def test_what_counts_as_equal(g: rg.Graph, old: Any, new: Any, unchanged: bool) -> None:
    results = iter([old, new])
    x = g.input(1.0)
    y = rg.lift(lambda _: next(results), cutoff="equal")(x)
    y.value
    x.set(2.0)
    assert (g.forward(y).cut_off == [y]) is unchanged
    assert y.value_version == 2 - unchanged


def test_tolerance_keeps_the_old_value_until_drift_adds_up(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x * 1.0
    y.cutoff = rg.tolerance(atol=0.1)
    seen = []
    for value in (1.0, 1.06, 1.09, 1.12, 1.2):
        x.set(value)
        seen.append(float(y.value))
    assert seen == [1.0, 1.0, 1.0, 1.12, 1.12]


BIG = 2**60


@pytest.mark.parametrize(
    ("cutoff", "old", "new", "unchanged"),
    [
        (rg.tolerance(), BIG, BIG + 1, False),
        (rg.tolerance(atol=10), 2**63 - 1, 2**63, True),
        (rg.tolerance(atol=10), 2**70, 2**70 + 10, True),
        (rg.tolerance(atol=10), 2**70, 2**70 + 11, False),
        (rg.tolerance(rtol=0.5), -(10**400), -(10**400) // 2, True),
        (rg.tolerance(rtol=0.5), 10**400, 10**400 // 2 - 1, False),
        (rg.tolerance(atol=float("inf")), 2**70, 0, True),
        (rg.tolerance(), np.array([BIG]), np.array([BIG]), True),
        (rg.tolerance(), np.array([BIG]), np.array([BIG + 1]), False),
        (rg.tolerance(atol=1), np.array([BIG]), np.array([BIG + 1]), True),
        (rg.tolerance(atol=1.5), np.array([BIG]), np.array([BIG + 2]), False),
        (rg.tolerance(atol=2**63), np.array([-(2**63)]), np.array([2**63 - 1]), False),
        (rg.tolerance(atol=2.0**64), np.array([-(2**63)]), np.array([2**63 - 1]), True),
        (rg.tolerance(rtol=0.1), np.array([100, -100]), np.array([110, -90]), True),
        (rg.tolerance(rtol=0.1), np.array([100, -100]), np.array([110, -111]), False),
        (rg.tolerance(), np.array([2**64 - 1], "u8"), np.array([2**64 - 2], "u8"), False),
        (rg.tolerance(), np.array([True, False]), np.array([True, True]), False),
        (rg.tolerance(), np.array([True, False]), np.array([True, False]), True),
        (rg.tolerance(), np.ones(2), np.ma.array(np.ones(2), mask=[0, 1]), False),
        (rg.tolerance(), np.ma.array(np.ones(2)), np.ma.array(np.ones(2), mask=[0, 1]), False),
    ],
)
def test_what_is_within_a_tolerance(old: Any, new: Any, cutoff: Any, unchanged: bool) -> None:
    assert cutoff(old, new) is unchanged


@pytest.mark.parametrize("value", [None, "word"])
def test_a_tolerance_on_what_is_no_number_says_what_to_write(g: rg.Graph, value: Any) -> None:
    x = g.input(1.0)
    y = rg.lift(lambda _: value, cutoff=rg.tolerance(atol=1.0))(x)
    y.value
    x.set(2.0)
    with pytest.raises(rg.DTypeError, match=r"cutoff=rg.tolerance.*Write cutoff='equal'"):
        y.value


@pytest.mark.parametrize("cutoff", ["equal", rg.tolerance(atol=0.5)])
@pytest.mark.parametrize("orders", ["CC", "FF", "CF"])
def test_a_difference_in_front_is_found_without_reading_or_copying_the_rest(
    cutoff: Any, orders: str
) -> None:
    """The rows are so many that a copy of one array would be seen."""
    rule = reactgrad.nodes._cutoff.read_cutoff(cutoff)
    assert rule is not None
    old, new = (np.zeros((1000, 1000), order=one) for one in orders)  # type: ignore[call-overload]
    assert rule(old, new)
    new[-1, -1] = 1.0
    assert not rule(old, new)
    new[0, 0] = 1.0
    tracemalloc.start()
    assert not rule(old, new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < old.nbytes / 4


def test_what_a_cutoff_raises_names_the_cutoff_and_its_node(g: rg.Graph) -> None:
    def refuse(old: object, new: object) -> bool:
        raise LookupError("cannot compare")

    x = g.input(1.0, name="x")
    y = x + 1.0
    y.name, y.cutoff = "y", refuse
    y.value
    x.set(2.0)
    with pytest.raises(LookupError) as caught:
        y.value
    notes = "\n".join(caught.value.__notes__)
    assert "in the cutoff 'refuse'" in notes
    assert "node 'y'" in notes
    x.cutoff = refuse
    with pytest.raises(LookupError) as caught:
        x.set(3.0)
    notes = "\n".join(caught.value.__notes__)
    assert "in the cutoff 'refuse'" in notes
    assert "node 'x'" in notes
    assert x.value == 2.0


def test_a_cutoff_on_a_leaf_spares_the_version(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0], cutoff="equal")
    y = x + 1.0
    y.value
    x.set([1.0, 2.0])
    assert x.value_version == 1
    assert not y.is_stale
    x.set([1.0, 3.0])
    assert x.value_version == 2
    assert g.forward(y).ran == [y]


def test_a_cutoff_of_ones_own_is_given_old_and_new_and_they_stay_what_they_were(
    g: rg.Graph,
) -> None:
    seen: list[tuple[Any, Any, Any, Any]] = []

    def look(old: Any, new: Any) -> bool:
        seen.append((old, old.copy(), new, new.copy()))
        return bool(new[0] < 5.0)

    x = g.input([1.0, 0.0])
    y = x * 1.0
    y.cutoff = look
    y.value
    for value in (2.0, 6.0, 3.0, 7.0):
        x.set([value, 0.0])
        y.value
    assert [(old[0], new[0]) for _, old, _, new in seen] == [
        (1.0, 2.0),
        (1.0, 6.0),
        (6.0, 3.0),
        (6.0, 7.0),
    ]
    for old, old_then, new, new_then in seen:
        assert old.tolist() == old_then.tolist()
        assert new.tolist() == new_then.tolist()


def test_a_cutoff_that_does_not_answer_is_an_error_of_its_node(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = x + 1.0
    y.cutoff = lambda old, new: old == new
    y.value
    x.set([1.0, 3.0])
    with pytest.raises(rg.DTypeError, match="True .*or False"):
        y.value
    y.cutoff = None
    assert y.value.tolist() == [2.0, 4.0]


def test_cutoffs_come_and_go_while_plans_are_hot(g: rg.Graph) -> None:
    x = g.input(1.0)
    zero = x * 0.0
    y = zero + 1.0
    counts = []
    for rule in (None, "equal", None, "equal"):
        zero.cutoff = rule
        for i in range(4):
            x.set(float(i))
            counts.append(len(g.forward(y).ran))
        g.check_invariants()
    assert counts == [2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1]


def test_a_cut_off_value_is_not_replaced_when_memory_is_released(g: rg.Graph) -> None:
    """Its inputs have moved on since it was kept: computing it again would give another value."""
    x, w = g.input(1.0), g.param(2.0)
    kept = x * 1.0
    kept.cutoff = rg.tolerance(atol=1.0)
    y = kept * w
    y.backward()
    x.set(1.5)
    y.backward(retain_graph=False)
    assert float(kept.value) == 1.0
    assert kept.value_version == 1
    w.set(3.0)
    assert float(y.value) == 3.0


def test_gradients_of_what_was_cut_off_do_not_run(g: rg.Graph) -> None:
    x, w = g.input(1.2), g.param(2.0)
    step = rg.floor(x)
    step.cutoff = "equal"
    y = rg.tanh(step * w)
    gradient = rg.grad(y, w)
    g.forward(y, gradient)
    x.set(1.9)
    run = g.forward(y, gradient)
    assert run.ran == run.cut_off == [step]


def calls(act: Callable[[], object]) -> int:
    """How many Python functions `act` calls."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.trusting
@pytest.mark.parametrize("rule", ["equal", None])
def test_changing_a_cutoff_costs_what_is_stale_below_it(rule: str | None) -> None:
    def change(size: int) -> int:
        graph = rg.Graph()
        x = graph.input(1.0)
        y = x + 1.0
        y.cutoff = None if rule else "equal"
        z = y + 1.0
        others = [x + float(i) for i in range(size)]
        graph.forward(z, *others)
        x.set(2.0)
        z.is_stale  # marks all
        work = calls(lambda: setattr(y, "cutoff", rule))
        graph.check_invariants()
        assert graph.forward(z).ran == [y, z]
        return work

    assert change(1_000) == change(10)


@pytest.mark.trusting
def test_below_a_cutoff_of_a_stale_node_versions_decide_and_without_it_they_need_not() -> None:
    graph = rg.Graph()
    x = graph.input(1.0)
    y = x + 1.0
    z = y + 1.0
    both = z + x
    graph.forward(both)
    x.set(2.0)
    assert both.is_stale
    mark = graph._scheduler.staleness.mark
    y.cutoff = lambda old, new: True
    assert [mark[v._slot] for v in (y, z, both)] == [STALE, MAYBE, MAYBE]
    y.cutoff = None
    assert [mark[v._slot] for v in (y, z, both)] == [STALE, STALE, STALE]
    y.cutoff = lambda old, new: True
    assert graph.forward(both).ran == [y, both]


@pytest.mark.parametrize(
    "twice",
    [lambda x: x[::-1][::2], lambda x: x.T.T[1:], lambda x: x.reshape(9)[1:].reshape(2, 4)],
    ids=["slices", "transposed", "reshaped"],
)
@pytest.mark.parametrize("computed", [False, True])
def test_a_cutoff_set_on_a_stale_view_of_a_view(
    g: rg.Graph, twice: Callable[[rg.Var], rg.Var], computed: bool
) -> None:
    """Its former value went when the leaf was set in whose memory it lay."""
    x = g.input(np.arange(9.0).reshape(3, 3))
    view = twice(x + 0.0 if computed else x)
    y = view * 10.0
    y.value
    x.set(np.arange(9.0, 18.0).reshape(3, 3))
    view.cutoff = "equal"
    for k in range(3):
        wanted = twice(x.snapshot()).value
        assert np.array_equal(view.value, wanted)
        assert np.array_equal(y.value, wanted * 10.0)
        g.check_invariants()
        x.set(x.value + k)


@pytest.mark.parametrize("holder", ["fork", "caller"])
def test_a_view_that_can_be_none_any_more_writes_into_no_memory_of_others(
    g: rg.Graph, holder: str
) -> None:
    """A view in C order, as long as a cutoff gives the transposed array memory of its own."""
    x = g.input(np.ones((120, 160)))
    turned = x.T
    turned.cutoff = "equal"
    flat = turned.reshape(-1)
    held = flat.value
    fork = g.fork() if holder == "fork" else None
    turned.cutoff = None
    x.set(np.arange(120.0 * 160).reshape(120, 160))
    assert np.array_equal(flat.value, x.value.T.reshape(-1))
    assert np.array_equal(held, np.ones(120 * 160))
    if fork is not None:
        assert all((fork[one].value == 1.0).all() for one in (x, turned, flat))
    g.check_invariants()


@pytest.mark.parametrize("size", [3, 50_000], ids=["copied", "shared"])
def test_views_of_a_view_that_gets_a_cutoff_stay_as_it_is(g: rg.Graph, size: int) -> None:
    x = g.input(np.full(size, 1.0))
    a = x * 2.0
    b = a[1:]
    c = b[::-1]
    d = c[1:]
    c.value
    b.cutoff = rg.tolerance(atol=0.5)
    x.set(np.full(size, 1.1))
    assert d.value.tolist() == [2.0] * (size - 2)
    assert b.value.tolist() == c.value.tolist() == [2.0] * (size - 1)
    x.set(np.full(size, 3.0))
    assert d.value.tolist() == [6.0] * (size - 2)
    assert c.value.tolist() == [6.0] * (size - 1)
    x.set(np.full(size, 3.1))
    b.cutoff = None
    assert d.value.tolist() == [3.1 * 2.0] * (size - 2)
    g.check_invariants()


def test_views_of_a_node_that_gets_a_cutoff_stay_views(g: rg.Graph) -> None:
    x = g.input(np.arange(50_000.0))
    a = x * 2.0
    b = a[1:]
    b.value
    bytes_before = g.stats().bytes
    a.cutoff = "equal"
    assert g.stats().bytes == bytes_before
    x.set(x.value + 1.0)
    assert b.value[0] == 4.0
    assert g.stats().bytes == bytes_before


@pytest.mark.slow
def test_a_long_row_of_views_gets_memory_of_its_own_without_recursion(g: rg.Graph) -> None:
    x = g.input(np.arange(4000.0))
    view = first = (x * 2.0)[1:]
    for _ in range(3000):
        view = view[1:]
    assert view.value.shape == (999,)
    first.cutoff = "equal"
    x.set(np.zeros(4000))
    assert not view.value.any()


@pytest.mark.parametrize("kind", ["function", "switch", "blocked"])
def test_a_cutoff_that_is_set_on_what_has_only_raised_compares_with_nothing(kind: str) -> None:
    """It was bound, to memory that nobody has written."""
    g = rg.Graph()
    sign, a = g.input(-1.0), g.input([1.0, 1.0])

    def unless_negative(sign: float, v: np.ndarray) -> np.ndarray:
        if sign < 0.0:
            raise ValueError("negative")
        return v + 41.0

    y = rg.lift(unless_negative, shape=(2,))(sign, a)
    if kind == "switch":
        y = rg.switch(y.sum() > 0.0, a + 41.0, a)
    elif kind == "blocked":
        y = y * 1.0
    with pytest.raises(ValueError, match="negative"):
        y.value
    y.cutoff = rg.tolerance(atol=1e300)
    sign.set(1.0)
    assert y.value.tolist() == [42.0, 42.0]
    assert y.value_version == 1
