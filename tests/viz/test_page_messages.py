"""Messages that no page sends, and values of the wrong kind: the page says so, and everything goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import need
from tests.viz.test_session import Page, opened

need("pygraphviz")
__all__ = ["opened"]

SAID = "the page has sent what cannot be answered: "
MALFORMED: dict[str, tuple[Any, str]] = {
    "no object": ([1, 2], "a message is an object, not [1, 2]"),
    "nothing": (None, "a message is an object, not None"),
    "no kind": ({}, "there is no message of the kind None"),
    "another kind": ({"kind": "eval"}, "there is no message of the kind 'eval'"),
    "a kind that is a list": ({"kind": ["set"]}, "there is no message of the kind ['set']"),
    "a set of nothing": ({"kind": "set"}, "'set' needs the key of a node, not None"),
    "a set without value": ({"kind": "set", "key": 1}, "'set' needs a value"),
    "a key that is text": (
        {"kind": "set", "key": "x", "value": 1},
        "'set' needs the key of a node, not 'x'",
    ),
    "an endless key": (
        {"kind": "set", "key": float("inf"), "value": 1},
        "'set' needs the key of a node, not inf",
    ),
    "a key that is true": ({"kind": "why", "key": True}, "'why' needs the key of a node, not True"),
    "no key": ({"kind": "why"}, "'why' needs the key of a node, not None"),
    "a focus that is a number": ({"kind": "view", "focus": 5}, "there is no part 5"),
    "a focus that is no key": ({"kind": "view", "focus": "#x"}, "there is no part '#x'"),
    "a focus of many digits": (
        {"kind": "view", "focus": "#" + "1" * 5000},
        "there is no part '#1111",
    ),
    "a focus of other digits": ({"kind": "view", "focus": "#\u0663"}, "there is no part '#\u0663'"),
    "another layer": ({"kind": "view", "layer": "both"}, "there is no layer 'both'"),
    "a layer that is a dict": ({"kind": "view", "layer": {}}, "there is no layer {}"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_message_is_answered_and_the_next_page_opens(
    opened: Callable[..., Page], what: str
) -> None:
    message, text = MALFORMED[what]
    g = rg.Graph()
    x = g.input(1.0)
    y = x * 2.0
    page = opened(g)
    page.session.receive(message)
    page.wait_for("problem", lambda told: told["text"].startswith(SAID + text))
    page.told.clear()
    page.session.receive({"kind": "open"})
    page.wait_for("view")
    page.set(x, 3.0)
    page.until(lambda: y.state == "clean" and page.runs() != [])
    assert y.value == 6.0


@pytest.mark.parametrize("focus", ["#99999999", "no/such/scope/", "", "/"])
def test_a_part_that_is_not_there_is_the_whole(opened: Callable[..., Page], focus: str) -> None:
    g = rg.Graph()
    y = g.input(1.0) * 2.0
    page = opened(g)
    page.told.clear()
    page.session.receive({"kind": "view", "layer": "values", "focus": focus})
    page.wait_for("view")
    assert not [m for m in page.told if m["kind"] == "problem" and m["text"]]
    assert y.state == "stale"


REFUSED: list[tuple[Any, Any, str]] = [
    (3, 1.5, "'x' holds a whole number and was given 1.5 by the page. Nothing was set."),
    (3, "4", "'x' holds a whole number and was given '4' by the page. Nothing was set."),
    (3, True, "'x' holds a whole number and was given True by the page. Nothing was set."),
    (3, None, "'x' holds a whole number and was given None by the page. Nothing was set."),
    (True, "false", "'x' holds true or false and was given 'false' by the page. Nothing was set."),
    (True, 0, "'x' holds true or false and was given 0 by the page. Nothing was set."),
    (1.0, [2.0], "'x' holds a number and was given [2.0] by the page. Nothing was set."),
    (1.0, "2", "'x' holds a number and was given '2' by the page. Nothing was set."),
    (1.0, float("nan"), "'x' holds a number and was given nan by the page. Nothing was set."),
    (
        np.float32(1),
        {"a": 1},
        "'x' holds a number and was given {'a': 1} by the page. Nothing was set.",
    ),
    (
        np.ones(2),
        [1.0, 2.0, 3.0],
        "'x' holds an array of as many numbers as before and was given [1.0, 2.0, 3.0] by the page. Nothing was set.",
    ),
    (
        np.ones(2),
        [1.0, "2"],
        "'x' holds an array of as many numbers as before and was given [1.0, '2']",
    ),
    ("text", {"a": 1}, "'x' has no control on the page: set it in code, x.set(new)."),
    (10**30, 3, "'x' has no control on the page: set it in code, x.set(new)."),
]


@pytest.mark.parametrize(("value", "sent", "text"), REFUSED)
def test_values_of_another_kind_are_refused(
    opened: Callable[..., Page], value: Any, sent: Any, text: str
) -> None:
    g = rg.Graph()
    x, other = g.input(value, name="x"), g.input(1.0, name="other")
    y = rg.lift(lambda a, b: b)(x, other)
    page = opened(g)
    version = x.value_version
    with page.session._lock:  # both in one turn of the session
        page.session._sets = {key_of(g, x): sent}
    page.set(other, 2)
    page.wait_for("problem", lambda told: told["text"].startswith(text))
    page.until(lambda: y.state == "clean" and page.runs() != [])
    assert x.value_version == version
    assert y.value == 2.0
    assert type(other.value) is float


def test_whole_numbers_may_come_as_floats(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    n = g.input(3, name="n")
    y = rg.lift(lambda a: a)(n)
    page = opened(g)
    page.set(n, 4.0)
    page.until(lambda: y.state == "clean" and page.runs() != [])
    assert type(y.value) is int
    assert y.value == 4


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"kind": "mode", "mode": "later"}, "there is no mode 'later'"),
        ({"kind": "mode", "mode": []}, "there is no mode []"),
        ({"kind": "compute", "keys": []}, "'compute' needs the keys of nodes, not []"),
        ({"kind": "compute", "keys": "all"}, "'compute' needs the keys of nodes, not 'all'"),
        (
            {"kind": "compute", "keys": [1, None]},
            "'compute' needs the keys of nodes, not [1, None]",
        ),
    ],
)
def test_modes_and_reads_that_do_not_exist_are_refused(
    opened: Callable[..., Page], message: dict[str, Any], text: str
) -> None:
    g = rg.Graph()
    y = g.input(1.0) * 2.0
    page = opened(g)
    page.session.receive(message)
    page.wait_for("problem", lambda told: told["text"].startswith(SAID + text))
    assert y.is_stale


def test_nodes_that_are_gone_are_not_computed(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x * 2.0
    page = opened(g)
    page.session.receive({"kind": "compute", "keys": [10_000]})
    page.session.receive({"kind": "compute", "keys": [key_of(g, y)]})
    page.until(lambda: len(page.runs()) == 1)
    assert page.runs()[0]["ran"] == [key_of(g, y)]
