"""What notebooks show: right, text only, never more than a screen, and nothing runs for it."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.viz._html import MOST_LINES, abbreviated

TAGS = {
    "a",
    "b",
    "div",
    "ellipse",
    "g",
    "path",
    "polygon",
    "polyline",
    "pre",
    "style",
    "svg",
    "table",
    "td",
    "text",
}
TAGS |= {"title", "tr"}


def plain(page: str) -> str:
    """The text of some HTML; what is not well-formed fails."""
    found: list[str] = []
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            assert tag in TAGS
            opened.append(tag)

        def handle_startendtag(self, tag: str, attrs: Any) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

        def handle_data(self, data: str) -> None:
            if opened[-1:] != ["style"]:
                found.append(data)

    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not opened
    return " ".join(" ".join(found).split())


@pytest.fixture(params=["with Graphviz", "without"])
def drawing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pygraphviz", None)
        return False
    pytest.importorskip("pygraphviz", reason="draws pictures, extra viz")
    return True


def test_each_thing_has_a_display_that_runs_nothing(drawing: bool) -> None:
    g = rg.Graph()
    x = g.input(np.ones(3), name="x")
    h = rg.tanh(x)
    h.name = "h"
    y = h.sum()
    run = g.forward(y)
    x.set(np.zeros(3))
    plan = g.plan(y)
    things: list[Any] = [g, plan, run, g.why(y), g.stats(), y, x]
    texts = [plain(thing._repr_html_()) for thing in things]
    assert texts[0].startswith("Graph of 3 nodes: 1 clean, 2 stale")
    assert texts[1].startswith("Plan: 2 to run")
    assert texts[2].startswith("Run: ran 2, ")
    assert texts[3].startswith("y is stale (version 1)")
    assert "3 (1 of them leaves), 2 edges" in texts[4]
    assert "state stale version 1" in texts[5]
    assert "from h" in texts[5]
    assert "[0. 0. 0.]" in texts[6]
    for text in texts[:3]:
        assert "h" in text.split()
        assert ("reactgrad[viz]" in text) is not drawing
    assert ("<svg" in g._repr_html_()) is drawing
    assert y.is_stale
    assert g.last_run.ran == run.ran


def test_states_are_told_in_words_also_without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.tanh(x)
    y.name = "y"
    y.cutoff = "equal"
    y.value
    assert "y tanh ran v1 float64[]" in plain(g._repr_html_())
    x.touch()
    y.value
    assert "y tanh cut off v1 float64[]" in plain(g._repr_html_())
    assert "state cut off, cutoff" in plain(y._repr_html_())


def test_nodes_in_odd_states_show_no_value() -> None:
    g = rg.Graph()

    def fails(value: Any) -> Any:
        raise ValueError("<no & never>")

    unset, broken = g.input(shape=(), dtype="f8"), rg.lift(fails)(g.input(1.0))
    with pytest.raises(ValueError, match="never"):
        broken.value
    assert "state unset" in plain(unset._repr_html_())
    text = plain(broken._repr_html_())
    assert "state error" in text
    assert "ValueError: <no & never>" in text
    loss = rg.tanh(rg.exp(g.param(1.0))).sum()
    inner = loss.parents[0]
    loss.backward(retain_graph=False)
    assert "<pre" not in inner._repr_html_()
    assert inner in g.forward(inner).rebuilt, "a display rebuilds nothing"
    g.remove(loss)
    assert "removed" in plain(loss._repr_html_())


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a & b", "\"quoted\" 'twice'"])
def test_text_is_text(name: str, drawing: bool) -> None:
    g = rg.Graph()
    with g:
        x = rg.lift(lambda: name)()
    x.name = name
    y = rg.lift(lambda a: a)(x)
    run = g.forward(y)
    for thing in (g, x, y, run, g.why(y)):
        page = thing._repr_html_()
        assert "<script" not in page
        plain(page)
    assert name in plain(x._repr_html_())
    assert name.split("/", maxsplit=1)[0] in unescape(g._repr_html_())
    assert drawing or "svg" not in page


def test_nothing_is_longer_than_a_screen() -> None:
    g = rg.Graph()
    leaves = [g.input(float(i)) for i in range(300)]
    total = rg.lift(lambda *values: sum(values))(*leaves)
    total.value
    assert len(re.findall("<ellipse|<polygon", g._repr_html_())) < 400
    assert "max-height" in g._repr_html_()
    for shape in [(10_000,), (300, 300), (2, 3, 4, 50, 60), (0,), (3, 0, 2), ()]:
        lines = abbreviated(np.zeros(shape)[()]).splitlines()
        assert len(lines) <= MOST_LINES + 1
        assert all(len(line) <= 100 for line in lines)
    assert len(abbreviated("x" * 100_000)) < 2100


def test_slices_of_many_axes_say_which_they_are() -> None:
    value = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2)
    text = abbreviated(value)
    assert text.startswith("[0, 0, :, :]\n[[0 1]\n [2 3]]\n[0, 1, :, :]\n[[4 5]")
    assert text.endswith("... 3 more slices")


def test_a_run_and_a_plan_of_nothing_say_so() -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(1.0))
    y.value
    assert plain(g.plan(y)._repr_html_()) == "Plan: nothing to run"
    assert plain(g.forward(y)._repr_html_()).startswith("Run: ran 0")
    assert plain(rg.Graph()._repr_html_()).startswith("Graph of 0 nodes")


class Untold:
    def __repr__(self) -> str:
        raise RuntimeError("says nothing")


@pytest.mark.parametrize(
    "value",
    [
        10**6000,
        [10**6000],
        {"a": Untold()},
        (Untold(),),
        np.array([10**6000, Untold()], object),
        np.array(Untold(), object),
        Fraction(10**5000, 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_cannot_be_told_break_no_display(value: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.lift(lambda _: value)(x)
    with g.record(snapshots=True) as log:
        y.value
    assert "clean" in repr(y)
    assert y._repr_html_()
    assert g.snapshot(values=True).nodes[-1].value
    assert str(g.why(y))
    if find_spec("pygraphviz") is not None:
        g.export_html(tmp_path / "page.html", log)
