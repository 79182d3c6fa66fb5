"""``g.picture()``: shows itself, with values, no wider than a notebook, and goes into files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.viz._drawing import Drawing
from tests.viz.browser import need


def model() -> tuple[rg.Graph, rg.Var, rg.Var]:
    g = rg.Graph()
    x = g.input(np.array([1.0, 2.0]), name="x")
    with g.scope("part"):
        y = rg.tanh(x).sum()
    y.name = "part/y"
    return g, x, y


def wide(bands: int, scopes: int) -> Drawing:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    ends = []
    for n in range(bands):
        with g.scope(f"part{n % scopes}"):
            ends.append(rg.tanh(x * float(n)))
    total = rg.stack(ends).sum()
    total.name = "total"
    return g.picture()


def pixels(svg: str) -> float:
    found = re.search(r'width="([\d.]+)pt"', svg)
    assert found
    return float(found[1]) / 0.75


def test_values_are_shown_and_nothing_runs() -> None:
    need("pygraphviz")
    g, x, y = model()
    before = g.picture()
    assert ">[1, 2]<" in before.svg
    assert y.is_stale
    value = f"{float(y.value):.6g}"
    assert value not in before.svg  # it shows the graph as it was
    after = g.picture()
    assert f">{value}<" in after.svg
    assert ">part<" in after.svg  # the frame of a scope
    x.set(np.array([0.0, 0.0]))
    assert "stale" in g.picture(g.plan(y)).svg


@pytest.mark.parametrize("scopes", [1, 5, 300])
def test_it_is_never_wider_than_a_notebook(scopes: int, capfd: pytest.CaptureFixture[str]) -> None:
    need("pygraphviz")
    picture = wide(300, scopes)
    assert pixels(picture.svg) <= 1000
    assert "total" in picture.svg
    assert "graph" not in capfd.readouterr().err.lower(), "Graphviz has complained"
    if scopes == 5:
        assert repr(picture).endswith("scopes folded>")
        assert "not shown" not in picture.svg
    if scopes == 300:
        assert "nodes are not shown" in picture.svg
        assert re.fullmatch(r"<Picture of \d+ of \d+ nodes.*>", repr(picture))


@pytest.mark.parametrize(
    ("ending", "begin"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")],
)
def test_it_is_saved(ending: str, begin: bytes, tmp_path: Path) -> None:
    need("pygraphviz")
    g, _, _y = model()
    picture = g.picture()
    picture.save(tmp_path / f"a.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(begin)
    with pytest.raises(rg.VizError, match="the name of a picture ends in .svg"):
        picture.save(tmp_path / "a.gif")


def test_a_png_is_at_most_1000_pixels_wide(tmp_path: Path) -> None:
    need("pygraphviz")
    wide(300, 300).save(tmp_path / "a.png")
    width = int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big")
    assert 100 < width <= 1010  # Graphviz rounds up


def test_a_notebook_shows_it() -> None:
    need("pygraphviz")
    formatters = pytest.importorskip("IPython.core.formatters")
    g, _, _y = model()
    data, _ = formatters.DisplayFormatter().format(g.picture())
    assert data["image/svg+xml"].startswith('<svg style="flex:none;max-width:100%;height:auto')
    assert data["text/plain"] == "<Picture of 3 nodes>"
    assert "text/html" not in data  # not twice


def test_without_the_extra_there_is_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    picture = model()[0].picture()
    assert isinstance(picture, Drawing)
    assert picture._repr_svg_() is None
    html = picture._repr_html_()
    assert html is not None
    assert "<table" in html
    assert "pip install &#x27;reactgrad[viz]&#x27;" in html
    picture.save(tmp_path / "a.dot")
    with pytest.raises(rg.MissingExtraError):
        picture.save(tmp_path / "a.svg")


def test_any_text_stays_text() -> None:
    need("pygraphviz")
    g = rg.Graph()
    g.input(rg.Graph, name='<script>alert("x")</script>')
    assert "<script>" not in g.picture().svg
