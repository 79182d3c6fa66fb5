"""Why a node is as it is: the fields, and the text that a reader gets."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._why import MOST_CAUSES, MOST_CHANGES, Cause, Change
from tests.explain.models import chain_of_three, named, row_of_tanh, text_of


def line_here(back: int) -> str:
    """The line of the caller that lies `back` lines above, as messages show it."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"test_why.py:{frame.f_back.f_lineno - back}: "


# --- stale -----------------------------------------------------------------------------------


def test_a_new_node_is_stale_because_it_is_new(g: rg.Graph) -> None:
    _, _, y = chain_of_three(g)
    why = g.why(y)
    assert (why.verdict, why.version, why.last_run) == ("stale", 0, None)
    assert why.causes == (Cause("new", "y"),)
    assert "y is new: it had never been computed" in str(why)


def test_stale_is_followed_back_to_the_set(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    y.value
    x.set(2.0)
    x.set(3.0)
    why = g.why(y)
    assert why.verdict == "stale"
    assert why.changes == (Change("y", "a", 1, None), Change("a", "x", 1, 3))
    assert why.causes == (Cause("set", "x", 1, 3),)
    assert why.more == 0
    text = str(why)
    assert text.splitlines() == [
        "y is stale (version 1):",
        "  x was set: version 1 -> 3",
        "    x -> a -> y",
        "(g.events = True, before a change, keeps the line that made it)",
    ]
    assert why.causes[0].path == ("x", "a", "y")


def test_the_line_of_the_set_is_known_while_events_are_on(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    y.value
    g.events = True
    x.set(2.0)
    where = line_here(1)
    (cause,) = g.why(y).causes
    assert cause.line is not None
    assert where + "x.set(2.0)" in cause.line
    assert cause.line in str(g.why(y))
    assert "g.events = True" not in text_of(g.why(y))


@pytest.mark.parametrize("how", ["g.set", "mutate", "copy=False", "transaction"])
def test_every_way_to_set_has_its_line(g: rg.Graph, how: str) -> None:
    x = g.input([1.0, 2.0], name="x")
    y = x + 1.0
    y.value
    g.events = True
    if how == "g.set":
        g.set({x: [2.0, 3.0]})
    elif how == "mutate":
        with x.mutate() as array:
            array[0] = 5.0
    elif how == "copy=False":
        x.set(np.array([2.0, 3.0]), copy=False)
    else:
        with g.transaction():
            x.set([2.0, 3.0])
    (cause,) = g.why(y).causes
    assert (cause.kind, cause.before, cause.after) == ("set", 1, 2)
    assert "test_why.py:" in str(cause.line), "not a line of the library, nor of contextlib"


def test_several_changed_leaves_are_all_named(g: rg.Graph) -> None:
    a, b, c = (g.input(1.0, name=n) for n in "abc")
    y = named(a * b + c, "y")
    y.value
    g.set({a: 2.0, c: 3.0})
    why = g.why(y)
    assert {cause.node for cause in why.causes} == {"a", "c"}
    assert Change("y", "c", 1, 2) in why.changes
    assert not any(change.parent == "b" for change in why.changes)


def test_an_operand_that_another_read_has_computed(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    y.value
    x.set(2.0)
    a.value
    x.set(3.0)
    a.value
    g.forward(g.input(1.0) + 1.0)
    why = g.why(y)
    assert why.changes == (Change("y", "a", 1, 3),)
    assert why.causes == (Cause("ran", "a", 1, 3),)


def test_an_operand_of_the_last_run_is_followed_further(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    y.value
    x.set(2.0)
    a.value
    why = g.why(y)
    assert why.changes == (Change("y", "a", 1, 2), Change("a", "x", None, 2))
    assert why.causes == (Cause("set", "x", None, 2),)


@pytest.mark.parametrize("logged", [False, True])
def test_touch_of_a_leaf_and_of_a_function(g: rg.Graph, logged: bool) -> None:
    g.events = logged
    x = g.input(1.0, name="x")
    f = named(rg.lift(lambda v: v + 1.0)(x), "f")
    y = f * 2.0
    y.value
    f.touch()
    assert [(c.kind, c.node) for c in g.why(y).causes] == [("touch", "f")]
    y.value
    x.touch()
    assert [(c.kind, c.before, c.after) for c in g.why(y).causes] == [("touch", 1, 2)]


def test_a_set_says_more_than_a_touch_after_it(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    y.value
    g.events = True
    x.set(2.0)
    x.touch()
    (cause,) = g.why(y).causes
    assert (cause.kind, cause.before, cause.after) == ("set", 1, 3)
    assert "x.set(2.0)" in str(cause.line)


@pytest.mark.parametrize("logged", [False, True])
def test_an_edit(g: rg.Graph, logged: bool) -> None:
    g.events = logged
    _, a, y = chain_of_three(g)
    y.value
    other = g.input(5.0, name="other")
    a.replace_parent(0, other)
    why = g.why(y)
    (cause,) = why.causes
    assert (cause.kind, cause.node) == ("edit", "a")
    assert ("replace_parent" in str(cause.line)) == logged
    assert why.changes == (Change("y", "a", 1, None),)


@pytest.mark.parametrize("logged", [False, True])
def test_pin_and_unpin(g: rg.Graph, logged: bool) -> None:
    g.events = logged
    _, a, y = chain_of_three(g)
    y.value
    a.pin(7.0)
    assert g.why(a).verdict == "pinned"
    assert "until unpin()" in str(g.why(a))
    (cause,) = g.why(y).causes
    assert (cause.kind, cause.node, cause.before, cause.after) == ("pin", "a", 1, 2)
    y.value
    assert g.why(y).verdict == "ran"
    a.unpin()
    (cause,) = g.why(y).causes
    assert (cause.kind, cause.node) == ("unpin", "a")


def test_below_a_failed_node(g: rg.Graph) -> None:
    x = g.input(0, name="x")
    bad = named(rg.lift(lambda v: 1 / v)(x), "bad")
    y = named(bad + 1.0, "y")
    x.set(1)
    y.value
    x.set(0)
    with pytest.raises(ZeroDivisionError):
        y.value
    why = g.why(y)
    assert (why.verdict, why.changes) == ("stale", (Change("y", "bad", 1, None),))
    assert why.causes == (Cause("failed", "bad", error="ZeroDivisionError: division by zero"),)
    x.set(2)
    assert g.why(y).causes == (Cause("set", "x", 3, 4),)


def test_an_unset_input_is_named_as_the_cause(g: rg.Graph) -> None:
    u = g.input(name="u", shape=(2,))
    y = named(u * 2.0, "y")
    assert (g.why(u).verdict, str(g.why(u)).splitlines()[0]) == (
        "unset",
        "u is unset: give it a value with set",
    )
    with pytest.raises(rg.UnsetError):
        y.value
    assert {cause.kind for cause in g.why(y).causes} <= {"new", "unset"}


# --- ran, cut off, failed, clean --------------------------------------------------------------


def test_ran_is_followed_back_without_events(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    y.value
    x.set(2.0)
    y.value
    why = g.why(y)
    assert (why.verdict, why.last_run, why.version) == ("ran", "ran", 2)
    assert why.changes == (Change("y", "a", 1, 2), Change("a", "x", None, 2))
    assert why.causes == (Cause("set", "x", None, 2),)
    assert str(why).splitlines()[0] == "y ran in the last run: version 1 -> 2"


def test_asking_before_the_read_takes_nothing_from_asking_after_it(g: rg.Graph) -> None:
    """Once `why` of a stale node noted the change as marked, and the later one found nothing."""
    x, _, y = chain_of_three(g)
    z = g.input(1.0, name="z")
    both = named(y * z, "both")
    both.value
    for _ in range(4):
        for leaf in (x, z):
            leaf.set(2.0)
            assert g.why(both).verdict == "stale"
            both.value
            assert {cause.node for cause in g.why(both).causes} == {leaf.label}


@pytest.mark.parametrize("turns", [1, 5], ids=["first", "replayed"])
def test_ran_with_events_has_exact_versions_and_lines(g: rg.Graph, turns: int) -> None:
    x, _, y = chain_of_three(g)
    y.value
    g.events = True
    for turn in range(turns):
        x.set(2.0 + turn)
        y.value
    why = g.why(y)
    assert why.changes == (
        Change("y", "a", turns, turns + 1),
        Change("a", "x", turns, turns + 1),
    )
    (cause,) = why.causes
    assert (cause.before, cause.after) == (turns, turns + 1)
    assert "x.set(2.0 + turn)" in str(cause.line)


def test_with_events_an_older_change_is_found_behind_several_reads(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    other = g.input(1.0)
    far = other + 1.0
    y.value
    g.events = True
    x.set(2.0)
    a.value
    other.set(3.0)
    far.value
    y.value
    assert g.why(y).changes == (Change("y", "a", 1, 2), Change("a", "x", 1, 2))
    assert [cause.node for cause in g.why(y).causes] == ["x"]


def test_a_first_run_is_because_the_node_was_new(g: rg.Graph) -> None:
    _, _, y = chain_of_three(g)
    y.value
    assert (g.why(y).verdict, g.why(y).causes) == ("ran", (Cause("new", "y"),))


def test_cut_off(g: rg.Graph) -> None:
    x = g.input(1.2, name="x")
    f = named(rg.floor(x), "f")
    f.cutoff = "equal"
    y = named(f + 1.0, "y")
    y.value
    x.set(1.4)
    y.value
    why = g.why(f)
    assert (why.verdict, why.version) == ("cut_off", 1)
    assert [(cause.kind, cause.node) for cause in why.causes] == [("set", "x")]
    assert str(why).splitlines()[0] == (
        "f ran in the last run and was cut off: its cutoff kept version 1"
    )
    below = g.why(y)
    assert (below.verdict, below.last_run) == ("clean", "skipped")
    assert below.computed_from[0] == ("f", 1)
    assert "found nothing changed" in str(below)


def test_failed_and_retried(g: rg.Graph) -> None:
    works = False

    def fragile(v: float) -> float:
        if not works:
            raise RuntimeError("no network")
        return v

    y = named(rg.lift(fragile)(g.input(1.0)), "y")
    with pytest.raises(RuntimeError):
        y.value
    why = g.why(y)
    assert (why.verdict, why.error, why.last_run) == (
        "failed",
        "RuntimeError: no network",
        "failed",
    )
    assert "retry=True" in str(why)
    works = True
    g.forward(y, retry=True)
    assert g.why(y).verdict == "ran"


@pytest.mark.parametrize("logged", [False, True])
def test_a_retry_is_the_cause(g: rg.Graph, logged: bool) -> None:
    g.events = logged
    fails = False

    def fragile(v: float) -> float:
        if fails:
            raise RuntimeError
        return v

    x = g.input(1.0)
    y = named(rg.lift(fragile)(x), "y")
    y.value
    fails = True
    x.set(2.0)
    with pytest.raises(RuntimeError):
        y.value
    assert g.why(y).verdict == "failed"
    fails = False
    g.forward(y, retry=True)
    why = g.why(y)
    if logged:
        assert why.changes == (Change("y", x.label, 1, 2),), "what it was computed from before"
    else:
        assert [cause.kind for cause in why.causes] == ["retry"]


def test_clean_names_what_it_was_computed_from(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    y.value
    g.forward(x + 5.0)
    why = g.why(a)
    assert (why.verdict, why.last_run, why.changes, why.causes) == ("clean", None, (), ())
    assert why.computed_from[0] == ("x", 1)
    assert str(why).startswith("a is clean at version 1: computed from x (version 1), const_")


def test_a_leaf_says_who_set_it(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    assert g.why(x).causes == ()
    g.events = True
    x.set(2.0)
    (cause,) = g.why(x).causes
    assert (cause.kind, cause.after) == ("set", 2)


def test_a_node_that_read_others_while_it_ran(g: rg.Graph) -> None:
    which = g.input(True, name="which")
    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    y = named(rg.lift(lambda first: a.value if first else b.value)(which), "y")
    y.value
    a.set(5.0)
    assert g.why(y).changes == (Change("y", "a", 1, 2),)
    g.events = True
    y.value
    which.set(False)
    y.value
    assert g.why(y).changes == (Change("y", "which", 1, 2),)
    b.set(3.0)
    assert [cause.node for cause in g.why(y).causes] == ["b"]


# --- what it costs, what it leaves ---------------------------------------------------------------


def test_nothing_runs_and_nothing_is_different_after_asking(g: rg.Graph) -> None:
    calls: list[float] = []
    x = g.input(1.0, name="x")
    f = rg.lift(lambda v: calls.append(v) or v)(x)
    y = f + 1.0
    y.value
    for turn in range(4):
        x.set(float(turn))
        calls.clear()
        for node in (x, f, y):
            str(g.why(node))
        assert calls == []
        assert len(g.forward(y).ran) == 2
    g.check_invariants()


def test_why_is_immutable_and_keeps_no_node(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = named(x + 1.0, "y")
    why = g.why(y)
    with pytest.raises(AttributeError):
        why.verdict = "clean"  # type: ignore[misc]
    before = len(g)
    del y
    assert len(g) == before - 2, "the node and its constant are gone"
    assert why.node == "y"


@pytest.mark.slow
def test_of_a_chain_of_30_000_the_explanation_is_short_and_reaches_the_leaf(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = named(row_of_tanh(x, 30_000), "y")
    y.value
    x.set(2.0)
    why = g.why(y)
    assert why.causes == (Cause("set", "x", 1, 2),)
    assert len(why.changes) == MOST_CHANGES
    assert why.more == 30_000 - MOST_CHANGES
    assert len(str(why).splitlines()) < 60
    y.value
    ran = g.why(y)
    assert ran.causes == (Cause("set", "x", None, 2),)


def test_of_many_causes_some_are_counted(g: rg.Graph) -> None:
    leaves = [g.input(1.0) for _ in range(40)]
    y = rg.stack(leaves).sum()
    y.value
    g.set(dict.fromkeys(leaves, 2.0))
    why = g.why(y)
    assert len(why.causes) == MOST_CAUSES
    assert len(why.changes) == MOST_CHANGES
    assert why.more == 40 - MOST_CAUSES + 41 - MOST_CHANGES


def test_a_node_of_another_graph_is_refused(g: rg.Graph) -> None:
    with pytest.raises(rg.GraphError, match="another graph"):
        g.why(rg.Graph().input(1.0))
    with pytest.raises(rg.DTypeError, match="takes Vars"):
        g.why(3.0)  # type: ignore[arg-type]


# --- errors that functions handle ----------------------------------------------------------------


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("between", [0, 1, 2])
def test_below_an_error_that_a_function_handles(g: rg.Graph, logged: bool, between: int) -> None:
    x = g.input(1.0, name="x")
    y = named(rg.lift(lambda v: 1.0 / v)(x), "y")
    last = y
    for i in range(between):
        last = named(last + 1.0, f"via{i}")

    def careful() -> float:
        try:
            return float(last.value)
        except ZeroDivisionError:
            return -1.0

    with g:
        z = named(rg.lift(careful)(), "z")
    z.value
    g.events = logged
    x.set(0.0)
    assert z.value == -1.0
    why = g.why(z)
    assert (why.verdict, why.changes[0]) == ("ran", Change("z", last.label, 1, 1, raised=True)) or (
        not logged and why.changes[0] == Change("z", last.label, None, 1, raised=True)
    )
    assert [cause.kind for cause in why.causes] == ["failed", "set"]
    assert (why.causes[0].node, why.causes[1].node) == ("y", "x")
    text = text_of(why)
    assert f"{last.label} -> z" in text
    assert "y raised ZeroDivisionError" in text
    assert "x was set: " in text
    assert "new" not in text


def test_what_a_failed_transaction_gave_back_was_not_set(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    y.value
    g.events = True
    with pytest.raises(KeyError), g.transaction():
        x.set(2.0)
        raise KeyError
    (cause,) = g.why(y).causes
    assert (cause.kind, cause.node, cause.before, cause.after) == ("rollback", "x", 1, 3)
    assert "x was given back by a transaction that failed: version 1 -> 3" in str(g.why(y))
    y.value
    (cause,) = g.why(y).causes
    assert cause.kind == "rollback"
    with pytest.raises(KeyError), g.transaction():
        a.replace_parent(0, g.const(5.0))
        raise KeyError
    assert [cause.kind for cause in g.why(y).causes] == ["rollback"]


def test_a_node_that_never_had_a_value_is_without_it_because_of_an_error(g: rg.Graph) -> None:
    broken = rg.lift(lambda v: 1.0 / v)(g.input(0.0))
    y = broken * 2.0 + 1.0
    with pytest.raises(ZeroDivisionError):
        y.value
    why = g.why(y)
    assert [(cause.kind, cause.node) for cause in why.causes] == [("failed", broken.label)]
    assert repr(why) == str(why)


@pytest.mark.parametrize("what", ["touched", "edited", "unpinned"])
def test_what_was_done_to_a_node_that_has_run_since_is_named_as_one_that_may_be(
    g: rg.Graph, what: str
) -> None:
    x, w = g.input(1.0), g.input(1.0)
    y = named(x * 2.0, "y")
    _ = y.value, w.value

    def run_anew() -> str:
        if what == "touched":
            y.touch()
        elif what == "edited":
            y.replace_parent(0, w)
        else:
            y.pin(3.0)
            y.unpin()
        _ = y.value
        return str(g.why(y))

    if what == "touched":
        assert "y ran because it was touched, edited or unpinned, or because" in run_anew()
        assert g.why(y).causes == (Cause("unknown", "y"),)
    else:
        assert "y was edited" in run_anew()
    g.events = True
    assert f"y was {what}" in run_anew()
