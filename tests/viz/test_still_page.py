"""``g.explore()`` where there are no widgets: a page in a frame, which shows the graph as it is now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from tests.viz.browser import Seen, need


def explored(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, rg.Var]:
    need("pygraphviz")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    g = rg.Graph()
    y = rg.tanh(g.input(0.5, name="</iframe><b>x"))
    y.name = "y"
    _ = y.value
    return g.explore(y, bounds={"</iframe><b>x": (0.0, 1.0)}), y


def test_it_says_what_brings_widgets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page, _y = explored(monkeypatch)
    assert "pip install 'reactgrad[jupyter]'" in repr(page)
    html = page._repr_html_()
    assert "reactgrad[jupyter]" in html
    assert html.count("</iframe>") == 1
    assert html.count("<b>") == 0
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html
    page.close()


@pytest.mark.slow
def test_a_notebook_shows_it_in_a_frame(
    chromium_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page, y = explored(monkeypatch)
    file = tmp_path / "cell.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{page._repr_html_()}")
    shown = chromium_page.new_context(viewport={"width": 1000, "height": 760}).new_page()
    seen = Seen(shown)
    shown.goto(file.as_uri())
    frame = shown.frame_locator("iframe")
    box = frame.locator('.rg-box[aria-label^="y,"]')
    box.wait_for()
    assert f"{float(y.value):.6g}" in (box.get_attribute("aria-label") or "")
    box.click()
    assert "y" in frame.locator(".rg-panel h3").inner_text()
    assert seen.complaints == []
    assert {url for url in seen.requests if not url.startswith(("data:", "about:"))} == {
        file.as_uri()
    }
    shown.context.close()
