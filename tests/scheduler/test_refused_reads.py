"""Cycles of what functions read: named in full, and healed by a change of anything on them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from random import Random

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


@pytest.mark.slow
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
    from reactgrad.io._capture import capture
    from reactgrad.io._restore import restore

    x = g.input(1.0, name="x")
    node = rg.lift(Reader(lambda: after, caught=-1.0))(x)
    node.name = "node"
    after = node + 1.0
    node.value
    assert restore(capture(g), rg.Graph)["node"].is_stale


class Sheet:
    """Cells that read each other by name, and what a plain walk over their formulas finds."""

    def __init__(self, g: rg.Graph, cells: int, cutoff: str | None = None) -> None:
        self.graph = g
        self.formulas: dict[str, Formula] = {f"c{i}": (1,) for i in range(cells)}
        self.inputs = {
            name: g.input({"formula": formula}, name=f"f_{name}")
            for name, formula in self.formulas.items()
        }

        def cell(given: dict[str, Formula]) -> int:
            return computed(given["formula"], lambda name: self.cells[name].value)

        run = rg.lift(cell, cutoff=cutoff)
        self.cells = {name: run(one) for name, one in self.inputs.items()}
        for name, one in self.cells.items():
            one.name = name

    def set(self, **formulas: Formula) -> None:
        self.formulas |= formulas
        self.graph.set({self.inputs[name]: {"formula": f} for name, f in formulas.items()})

    def expected(self, name: str, way: tuple[str, ...] = ()) -> int:
        if name in way:
            raise rg.CycleError("found by hand")
        return computed(self.formulas[name], lambda one: self.expected(one, (*way, name)))

    def check(self, name: str) -> None:
        found = [outcome(lambda: self.expected(name)), outcome(lambda: self.cells[name].value)]
        assert found[0] == found[1], (name, self.formulas)
        self.graph.check_invariants()


# A number; one or two names to add; or a name, and those to read where it is positive and where not.
Formula = tuple[int] | tuple[str, ...]


def computed(formula: Formula, read: Callable[[str], int]) -> int:
    first, *others = formula
    if isinstance(first, int):
        return first
    if len(others) == 2:
        return read(str(others[0])) if read(first) > 0 else read(str(others[1]))
    return (read(first) + sum(read(str(one)) for one in others)) % 7 - 3


def outcome(call: Callable[[], int]) -> int | str:
    try:
        return call()
    except rg.CycleError:
        return "a cycle"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_formulas_that_change_over_time(seed: int) -> None:
    """Whatever formulas were before, cells have their value, or the error of a cycle that is there now."""
    random = Random(seed)
    g = rg.Graph(executor=rg.Threads(3) if seed % 6 == 5 else None)
    sheet = Sheet(g, random.choice([5, 8, 14]), random.choice([None, "equal"]))
    names = [*sheet.cells]

    def formula() -> Formula:
        if random.random() < 0.4:
            return (random.randrange(-3, 4),)
        return tuple(random.choices(names, k=random.randrange(1, 4)))

    for _ in range(60):
        changed = random.sample(names, random.choice([1, 1, 3]))
        sheet.set(**{name: formula() for name in changed})
        for name in random.sample(names, 4):
            sheet.check(name)


def test_an_error_depends_on_no_cell_that_waited_for_it(g: rg.Graph) -> None:
    """``c8`` had read ``c0`` and ``c10``; what refused ``c4`` came over ``c0``."""
    sheet = Sheet(g, 14)
    sheet.set(c0=("c10",))
    sheet.set(c7=("c8",))
    sheet.set(c8=("c0", "c8", "c10"))
    sheet.set(c13=("c3",))
    sheet.set(c10=("c4",), c4=("c13",))
    sheet.check("c8")
    sheet.set(c3=("c7",))
    sheet.check("c13")


def test_who_is_only_in_doubt_is_not_refused_for_others(g: rg.Graph) -> None:
    """The error of ``c5`` was computed from ``c11``, which now needs ``c2``, which reads ``c5``."""
    sheet = Sheet(g, 14)
    sheet.set(c7=("c11", "c0"))
    sheet.set(c4=("c12",), c3=("c7",), c0=("c5",), c12=("c7",), c5=("c4",))
    sheet.check("c7")
    sheet.set(c11=("c2",))
    sheet.check("c0")
    sheet.set(c12=("c3",))
    sheet.check("c5")
    sheet.set(c2=("c5",))
    sheet.set(c4=(-1,))
    sheet.check("c3")


def test_a_cycle_that_is_gone_is_gone_for_those_behind_it(g: rg.Graph) -> None:
    sheet = Sheet(g, 14, "equal")
    sheet.set(c11=("c10", "c0"))
    sheet.set(c0=("c1",))
    sheet.check("c11")
    sheet.set(c1=("c11",), c10=("c6",))
    sheet.check("c0")
    sheet.set(c6=("c0",))
    sheet.set(c9=("c11",))
    sheet.set(c1=(2,))
    for name in ("c9", "c11", "c9"):
        sheet.check(name)


def test_an_edge_that_only_a_stale_read_refuses_says_what_to_do_first(g: rg.Graph) -> None:
    c = g.input(True)
    with g:
        b = rg.lift(lambda: a.value if c.value else 0)()
    a = rg.lift(lambda v: v + 1)(g.const(1))
    b.name = "b"
    assert b.value == 2
    with pytest.raises(rg.CycleError) as caught:
        a.replace_parent(0, b)
    assert not getattr(caught.value, "__notes__", []), "it is a cycle"
    c.set(False)
    with pytest.raises(rg.CycleError) as caught:
        a.replace_parent(0, b)
    assert "read 'b' first" in caught.value.__notes__[0]
    assert b.value == 0
    a.replace_parent(0, b)
    assert a.value == 1
