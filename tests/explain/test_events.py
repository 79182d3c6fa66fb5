"""``g.events``: what happened, in order, once it is switched on."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._event_log import LIMIT
from tests.explain.models import chain_of_three, named


def story(g: rg.Graph) -> list[tuple[str, str, int, int]]:
    assert g.events is not None
    return [(e.kind, e.node, e.before, e.after) for e in g.events]


def test_off_at_first_and_off_again(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    assert g.events is None
    g.events = True
    assert g.events == ()
    x.set(2.0)
    assert len(g.events) == 1
    g.events = False
    assert g.events is None
    y.value
    g.events = True
    assert g.events == (), "what happened in between is not there, nor what was before"


def test_a_set_and_a_read(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    g.events = True
    x.set(2.0)
    y.value
    x.set(3.0)
    y.value
    assert story(g) == [
        ("set", "x", 1, 2),
        ("run", "y", 0, 0),
        ("ran", "a", 0, 1),
        ("ran", "y", 0, 1),
        ("set", "x", 2, 3),
        ("run", "y", 0, 0),
        ("ran", "a", 1, 2),
        ("ran", "y", 1, 2),
    ]
    assert [e.number for e in g.events or ()] == list(range(1, 9))
    assert [(m.node, m.before, m.after) for m in (g.events or ())[6].moved] == [("x", 2, 3)]


def test_replayed_plans_write_the_same_story(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    for turn in range(5):
        x.set(float(turn))
        y.value
    g.events = True
    for turn in range(3):
        x.set(float(turn))
        y.value
    one = [("set", "x"), ("run", "y"), ("ran", "a"), ("ran", "y")]
    assert [(kind, node) for kind, node, _, _ in story(g)] == one * 3
    assert [e.after for e in g.events or () if e.node == "a"] == [6, 7, 8]


def test_new_and_dropped_with_names_and_lines(g: rg.Graph) -> None:
    g.events = True
    x = g.input(1.0, name="x")
    y = named(x + 1.0, "y")
    y.value
    del y
    len(g)
    kinds = [(e.kind, e.node) for e in g.events or ()]
    assert kinds[0] == ("new", "x")
    assert ("new", "y") in kinds, "named when it was asked for its name, not before"
    dropped = [node for kind, node in kinds if kind == "dropped"]
    assert dropped[0] == "y"
    assert len(dropped) == 2, "and its constant"
    assert "y = named(x + 1.0" in str(next(e for e in g.events or () if e.node == "y").line)
    assert (g.events or ())[0].after == 1


def test_a_long_chain_is_dropped_in_full_and_in_order(g: rg.Graph) -> None:
    x = g.input(1.0)
    nodes = [x]
    for _ in range(500):
        nodes.append(nodes[-1] * x)
    names = [node.name for node in nodes]
    g.events = True
    del nodes[1:]
    gc.collect()
    len(g)
    assert [e.node for e in g.events or ()] == list(reversed(names[1:]))


def test_a_wide_fan_is_dropped_in_linear_work(g: rg.Graph) -> None:
    x = g.input(1.0)
    middle = x * 2.0
    fan = [middle * x for _ in range(2000)]
    g.events = True
    del middle, fan
    len(g)
    assert len(g.events or ()) == 2000 + 2, "the middle and its constant too"


def test_an_operand_used_twice_is_dropped_with_its_only_consumer(g: rg.Graph) -> None:
    x = g.input(1.0)
    m = named(rg.tanh(x), "m")
    y = named(m * m, "y")
    g.events = True
    del m, y
    len(g)
    assert [(e.kind, e.node) for e in g.events or ()] == [("dropped", "y"), ("dropped", "m")]


def test_a_new_node_stands_before_what_is_done_to_it(g: rg.Graph) -> None:
    g.events = True
    x = g.input(1.0, name="x")
    x.set(2.0)
    y = named(x * x, "y")
    x.touch()
    assert story(g) == [
        ("new", "x", 0, 1),
        ("set", "x", 1, 2),
        ("new", "y", 0, 0),
        ("touch", "x", 2, 3),
    ]
    assert y.value_version == 0


def test_touch_pin_unpin_and_edit(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    f = named(rg.lift(lambda v: v)(x), "f")
    g.forward(y, f)
    other = g.input(9.0, name="other")
    g.events = True
    x.touch()
    f.touch()
    a.pin(5.0)
    a.pin(6.0)
    a.unpin()
    a.replace_parent(0, other)
    assert story(g) == [
        ("touch", "x", 1, 2),
        ("touch", "f", 1, 1),
        ("pin", "a", 1, 2),
        ("pin", "a", 2, 3),
        ("unpin", "a", 3, 3),
        ("edit", "a", 3, 3),
    ]
    assert all("test_events.py" in str(e.line) for e in g.events or ())


def test_cut_off_failed_and_rebuilt(g: rg.Graph) -> None:
    x = g.input(1.2, name="x")
    f = named(rg.floor(x), "f")
    f.cutoff = "equal"
    bad = named(rg.lift(lambda v: 1 / (v - 1.4))(x), "bad")
    g.forward(f, bad)
    g.events = True
    x.set(1.4)
    with pytest.raises(ZeroDivisionError):
        g.forward(f, bad)
    called = {e.node: e for e in g.events or () if e.kind not in ("set", "run")}
    assert (called["f"].kind, called["f"].before, called["f"].after) == ("cut_off", 1, 1)
    assert (called["bad"].kind, called["bad"].error) == (
        "failed",
        "ZeroDivisionError: float division by zero",
    )
    g.events = False
    w = g.param(2.0)
    square = named(w * w, "square")
    rg.tanh(square).backward(retain_graph=False)
    g.events = True
    square.value
    assert story(g)[-1] == ("rebuilt", "square", 1, 1)


def test_retry_is_seen(g: rg.Graph) -> None:
    broken = True
    y = named(rg.lift(lambda v: 1 / 0 if broken else v)(g.input(1.0)), "y")
    g.events = True
    with pytest.raises(ZeroDivisionError):
        y.value
    broken = False
    g.forward(y, retry=True)
    runs = [e for e in g.events or () if e.kind == "run"]
    assert [e.retry for e in runs] == [False, True]


def test_several_leaves_at_once_and_a_transaction_taken_back(g: rg.Graph) -> None:
    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    g.events = True
    g.set({a: 5.0, b: 6.0})
    with pytest.raises(KeyError), g.transaction():
        a.set(7.0)
        raise KeyError
    assert story(g) == [
        ("set", "a", 1, 2),
        ("set", "b", 1, 2),
        ("set", "a", 2, 3),
        ("rollback", "a", 3, 4),
    ]


def test_the_limit_keeps_the_latest(g: rg.Graph) -> None:
    x = g.input(0.0, name="x")
    g.events = 10
    for turn in range(25):
        x.set(float(turn))
    assert [e.number for e in g.events or ()] == list(range(16, 26))
    g.events = 3
    assert [e.after for e in g.events or ()] == [24, 25, 26]
    g.events = True
    x.set(1.0)
    assert [e.number for e in g.events or ()] == [23, 24, 25, 26]
    assert LIMIT >= 1000


@pytest.mark.parametrize("wrong", ["yes", -1, 2.5, None, np.bool_(True)])
def test_other_switches_are_refused(g: rg.Graph, wrong: object) -> None:
    with pytest.raises(rg.DTypeError, match="True, the number of events to keep, or False"):
        g.events = wrong  # type: ignore[assignment]
    assert g.events is None


def test_events_are_immutable_and_keep_no_node(g: rg.Graph) -> None:
    g.events = True
    x = g.input(1.0, name="x")
    y = x + 1.0
    y.value
    first = (g.events or ())[0]
    with pytest.raises(AttributeError):
        first.kind = "set"  # type: ignore[misc]
    size = len(g)
    del y
    assert len(g) == size - 2


def test_a_graph_with_events_goes_with_its_last_user(g: rg.Graph) -> None:
    local = rg.Graph()
    local.events = True
    y = local.input(np.zeros(1000)) + 1.0
    y.value
    there = weakref.ref(local)
    gc.collect()
    gc.disable()
    try:
        del local, y
        assert there() is None, "without the cyclic collector"
    finally:
        gc.enable()


def test_a_fork_begins_without_a_log(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    g.events = True
    twin = g.fork()
    assert twin.events is None
    twin[x].set(5.0)
    assert g.events == ()


def test_text_of_an_event(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    f = named(rg.floor(x), "f")
    f.cutoff = "equal"
    f.value
    g.events = True
    x.set(1.5)
    f.value
    texts = [str(e) for e in g.events or ()]
    assert texts[0].startswith("1. x set: version 1 -> 2 (")
    assert texts[0].endswith("x.set(1.5))")
    assert texts[2] == "3. f cut off"
