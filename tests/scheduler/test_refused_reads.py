"""Cycles of what functions read: named in full, and healed by a change of anything on them."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

import reactgrad as rg


class Reader:
    """A function that adds what it reads, and counts its calls."""

    def __init__(self, *others: Callable[[], rg.Var], caught: float | None = None) -> None:
        self.others = others
        self.caught = caught
        self.calls = 0

    def __call__(self, *values: float) -> float:
        self.calls += 1
        try:
            return float(sum(values) + sum(float(other().value) for other in self.others))
        except rg.CycleError:
            if self.caught is None:
                raise
            return self.caught


def cycle_of(read: Callable[[], object]) -> list[str]:
    with pytest.raises(rg.CycleError) as caught:
        read()
    path = [node.name for node in caught.value.path]
    assert " -> ".join(path) in str(caught.value)
    return path


def round_trip(g: rg.Graph) -> tuple[dict[str, rg.Var], dict[str, Reader]]:
    """``a`` reads ``r``, computed from ``b``, which reads ``c``, which reads ``a``; and inputs of each."""
    var = {name: g.input(1.0, name=name) for name in ("xa", "xb", "xc", "xr")}
    readers = {
        "a": Reader(lambda: var["xa"], lambda: var["r"]),
        "b": Reader(lambda: var["xb"], lambda: var["c"]),
        "c": Reader(lambda: var["xc"], lambda: var["a"]),
    }
    with g:
        for name, reader in readers.items():
            var[name] = rg.lift(reader)()
            var[name].name = name
    var["r"] = var["b"] + var["xr"]
    var["r"].name = "r"
    return var, readers


@pytest.mark.parametrize("start", ["a", "b", "c", "r"])
def test_the_path_names_every_node_also_those_between_the_functions(
    g: rg.Graph, start: str
) -> None:
    var, _ = round_trip(g)
    path = cycle_of(lambda: var[start].value)
    assert path[0] == path[-1]
    assert len(path) == 5
    assert " ".join(path[:-1] * 2).find("a c b r") >= 0
    g.check_invariants()


@pytest.mark.parametrize("change", ["xa", "xb", "xc"])
@pytest.mark.parametrize("start", ["a", "b", "c"])
def test_whatever_led_round_the_cycle_is_what_its_errors_hang_on(
    g: rg.Graph, start: str, change: str
) -> None:
    """No input was read by all of the functions, and each makes every error outdated."""
    var, readers = round_trip(g)
    for name in "abcr":
        cycle_of(lambda name=name: var[name].value)
    cycle_of(lambda: var[start].value)
    calls = [reader.calls for reader in readers.values()]
    for name in "abcr":
        cycle_of(lambda name=name: var[name].value)
    assert [reader.calls for reader in readers.values()] == calls, "nothing has changed"
    readers[change[1]].others = readers[change[1]].others[:1]  # it no longer reads on
    var[change].set(5.0)
    g.check_invariants()
    assert var[start].value == var[start].value
    expected = {"xa": (5.0, 7.0, 6.0), "xb": (7.0, 5.0, 8.0), "xc": (8.0, 6.0, 5.0)}[change]
    assert tuple(var[name].value for name in "abc") == expected
    g.check_invariants()


@pytest.mark.parametrize("touched", ["a", "b", "c"])
def test_a_touch_of_one_function_lets_all_of_them_look_again(g: rg.Graph, touched: str) -> None:
    var, readers = round_trip(g)
    for name in "abcr":
        cycle_of(lambda name=name: var[name].value)
    readers[touched].others = readers[touched].others[:1]
    var[touched].touch()
    values = {name: float(var[name].value) for name in "abc"}
    assert values[touched] == 1.0
    assert sorted(values.values()) in ([1.0, 2.0, 4.0], [1.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    g.check_invariants()


@pytest.mark.parametrize("how", ["edit", "pin"])
def test_a_node_between_the_functions_lets_them_look_again(g: rg.Graph, how: str) -> None:
    var, _ = round_trip(g)
    for name in "abcr":
        cycle_of(lambda name=name: var[name].value)
    if how == "edit":
        var["r"].replace_parent(0, var["xr"])
    else:
        var["r"].pin(2.0)
    assert var["a"].value == 3.0
    assert (var["c"].value, var["b"].value) == (4.0, 5.0)
    g.check_invariants()


def test_an_unrelated_edit_lets_no_refused_function_run(g: rg.Graph) -> None:
    var, readers = round_trip(g)
    other = var["xr"] + 1.0
    cycle_of(lambda: var["a"].value)
    calls = readers["a"].calls
    other.replace_parent(0, var["xa"])
    cycle_of(lambda: var["a"].value)
    assert readers["a"].calls == calls


def test_who_handles_a_refusal_has_a_value_until_the_cycle_changes(g: rg.Graph) -> None:
    x = g.input(1.0)
    reader = Reader(lambda: after, caught=-1.0)
    node = rg.lift(reader)(x)
    after = node + 1.0
    assert (node.value, after.value) == (-1.0, 0.0)
    g.forget_marks()
    assert not g.forward(node, after).ran
    assert reader.calls == 1
    after.replace_parent(0, x)
    assert node.is_stale
    assert (node.value, after.value) == (3.0, 2.0)
    g.check_invariants()


def test_a_node_computed_before_is_refused_as_a_new_one_is(g: rg.Graph) -> None:
    """The cycle shows while ``b`` is checked; it is ``b`` that may handle it, not who asked ``b``."""
    x = g.input(0.0)
    with g:
        a = rg.lift(lambda: float(b.value) if x.value else 5.0)()
        careful = Reader(lambda: a, caught=-1.0)
        b = rg.lift(careful)()
    assert (a.value, b.value) == (5.0, 5.0)
    x.set(1.0)
    assert (a.value, b.value) == (-1.0, -1.0)
    g.check_invariants()


def test_what_an_error_keeps_from_running_stands_against_no_read(g: rg.Graph) -> None:
    """``blocked`` had read ``a``; now it cannot run, and ``a`` may read it and handle its error."""
    x, choice = g.input(1.0), g.input(0.0)
    switch = g.input(1.0)

    def fussy(value: float) -> float:
        if value < 0:
            raise ValueError("negative")
        return value

    operand = rg.lift(fussy)(x)

    def handle(chosen: float) -> float:
        try:
            return float(blocked.value) if chosen else 7.0
        except ValueError:
            return -1.0

    a = rg.lift(handle)(choice)
    blocked = rg.lift(lambda value, on: float(value) + (float(a.value) if on else 0.0))(
        operand, switch
    )
    assert blocked.value == 8.0
    g.set({x: -1.0, choice: 1.0})
    g.forward(a)
    assert a.value == -1.0
    g.check_invariants()
    with pytest.raises(ValueError, match="negative"):
        blocked.value
    g.set({x: 2.0, switch: 0.0})
    assert (blocked.value, a.value) == (2.0, 2.0)
    g.check_invariants()


def test_a_long_cycle_is_named_without_recursion_over_it(g: rg.Graph) -> None:
    x = g.input(1.0)
    first = rg.lift(lambda v: last.value)(x)
    last = first
    for _ in range(3000):
        last = last + 1.0
    with pytest.raises(rg.CycleError) as caught:
        first.value
    assert len(caught.value.path) == 3002


def test_the_path_of_a_cycle_holds_no_node(g: rg.Graph) -> None:
    x = g.input(1.0)
    node = rg.lift(lambda v: kept[0].value)(x)
    kept = [node + 1.0]
    name = kept[0].name
    error: rg.CycleError | None = None
    try:
        node.value
    except rg.CycleError as raised:
        error = raised.with_traceback(None)  # frames hold what they show
    assert error is not None
    assert [var.name for var in error.path] == [node.name, name, node.name]
    kept.clear()
    gc.collect()
    assert name not in g
    assert [var.name for var in error.path] == [node.name, node.name]


def test_a_loaded_graph_does_not_take_a_handled_refusal_for_the_last_word(
    g: rg.Graph, tmp_path: object
) -> None:
    """What was refused is not saved, so that who handled it runs again."""
    from reactgrad._state import capture, restore

    x = g.input(1.0, name="x")
    node = rg.lift(Reader(lambda: after, caught=-1.0))(x)
    node.name = "node"
    after = node + 1.0
    node.value
    assert restore(capture(g))["node"].is_stale
