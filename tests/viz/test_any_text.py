"""Names, scopes, functions and values may hold anything: every surface shows it as text, or a part of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.viz._export import as_script, replayed
from reactgrad.viz._picture import picture
from reactgrad.viz._session import Session
from tests.viz.browser import need
from tests.viz.test_displays import plain

need("pygraphviz")

NASTY = [
    "<script>document.title='broken'</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"double\" 'single' `back` \\ back\\slash \\N\\G",
    "two\nlines\tand a tab",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
    "<!-- <script> ]]> &amp; {{x}} ${x} %s",
    "n" * 10_000,
    "\u2028\u2029\x00\x1b[31m half of a letter \ud83d",
    "https://example.org/a//b",
    "<b>a</b>/<i>w</i>",
    " ",
]
# What steers other letters, or nothing can send: none of it leaves.
STEERS = re.compile("[\u202a-\u202e\u2066-\u2069\x00\x1b\ud800-\udfff]")
ANY = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(categories=None), min_size=1, max_size=60),  # halves of letters, too
)


def model(text: str) -> tuple[rg.Graph, Any]:
    """A graph with a text wherever one may stand; and what it recorded."""
    g = rg.Graph()

    def function(x: Any) -> Any:
        return {text: [text] * 3}

    def fails(x: Any) -> Any:
        raise ValueError(text)

    function.__name__ = fails.__qualname__ = text
    x = g.input(1.0)
    try:
        with g.scope(text):
            inner = rg.tanh(x)
    except rg.GraphError:  # an empty part between two slashes
        inner = rg.tanh(x)
    x.name = text
    words = g.keep(rg.lift(lambda v: np.array([[text, text]], dtype=object))(inner))
    value, error = g.keep(rg.lift(function)(x)), g.keep(rg.lift(fails)(x))
    g.keep(rg.lift(lambda v: v)(value))
    with g.record(snapshots=True) as log, pytest.raises(ValueError, match=re.escape(text)):
        g.forward(value, error, words)
    return g, log


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ANY)
def test_pictures_hold_it_as_text(text: str) -> None:
    g, _ = model(text)
    import pygraphviz

    for fold in (None, 1):
        dot = g.to_dot(fold=fold)
        assert not STEERS.search(dot)
        found = pygraphviz.AGraph(string=dot)
        what = picture(g.snapshot(), fold=fold)
        assert len(found.nodes()) == len(what.boxes)
        assert len(found.edges()) == len(what.lines)
        svg = found.draw(format="svg", prog="dot").decode()
        tree = ElementTree.fromstring(svg)  # well-formed
        tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert tags <= {"svg", "g", "title", "text", "a", "path", "polygon", "polyline", "ellipse"}
        assert not any(name.endswith("href") for e in tree.iter() for name in e.attrib)
        words = " ".join("".join(e.itertext()) for e in tree.iter() if e.tag.endswith("text"))
        assert len(words) < 1000
        if text.isascii() and text.isprintable() and len(text) < 30 and "/" not in text:
            assert " ".join(text.split()) in " ".join(words.replace("\xa0", " ").split())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ANY)
def test_displays_hold_it_as_text(text: str) -> None:
    g, log = model(text)
    for thing in (g, *g.nodes, *log.runs, g.plan(*g.nodes[-2:]), g.stats(), *map(g.why, g.nodes)):
        page = thing._repr_html_()
        assert not STEERS.search(page)
        plain(page)  # well-formed, of known tags
        assert len(page) < 60_000
        page.encode()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ANY)
def test_the_explorer_is_told_it_as_json_that_can_be_sent(text: str) -> None:
    g, log = model(text)
    told: list[Any] = []
    session = Session(g, told.append, fold=1)
    session._answer({"kind": "open"})
    graph, view = told
    for box in view["boxes"]:
        if box["node"] is None:  # a scope opens by the name that the page knows
            session._answer({"kind": "view", "focus": box["key"]})
            assert set(box["members"]) <= {m for b in told[-1]["boxes"] for m in b["members"]}
    for key, *_ in graph["nodes"]:
        session._answer({"kind": "why", "key": key})
    for message in told:
        # As Jupyter packs it, and no longer than somebody may wait for.
        packed = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
        assert len(packed) < 100_000
    session.close()
    options: Any = {"former": None, "layer": "values", "fold": None, "limit": 50}
    recorded = replayed(g, log, (), text, **options)
    picture = ElementTree.fromstring(recorded.pop("picture"))
    tags = {one.tag.rpartition("}")[2] for one in picture.iter()}
    assert tags <= {
        "a",
        "ellipse",
        "g",
        "path",
        "polygon",
        "polyline",
        "style",
        "svg",
        "text",
        "title",
    }
    script = as_script(recorded)
    assert not set("<>&") & set(script)
    assert json.loads(script)


@pytest.mark.parametrize("text", NASTY)
def test_files_hold_it_as_text(text: str, tmp_path: Path) -> None:
    g, log = model(text)
    for ending in ("svg", "png", "pdf", "dot"):
        g.draw(tmp_path / f"a.{ending}")
    g.export_html(tmp_path / "a.html", log, title=text)
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page.count("<script") == page.count("</script") == 2
    assert not STEERS.search(page)
