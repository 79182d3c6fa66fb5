"""Exported pages do not carry the folders of their author."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from reactgrad.viz._paths import WithoutFolders
from tests.viz.browser import need

need("pygraphviz")

MODEL = """
import reactgrad as rg
g = rg.Graph()
g.events = True
x = g.input(1.0, name="x")
def load(value):
    if value > 1.5:
        raise FileNotFoundError(2, "No such file", HERE + "/secret folder/prices.csv")
    return HERE + "/where/it/lies.csv"
y = rg.lift(load)(x)
z = rg.tanh(x) / 2.0
with g.record(snapshots=True) as log:
    g.forward(y, z)
    x.set(2.0)
    try:
        g.forward(y, z)
    except FileNotFoundError:
        pass
"""


def test_no_absolute_path_is_in_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ann lee" / "my models"
    folder.mkdir(parents=True)
    (folder / "pricing.py").write_text(f"HERE = {str(folder)!r}\n{MODEL}")
    monkeypatch.chdir(folder)
    made = runpy.run_path(str(folder / "pricing.py"))
    made["g"].export_html(tmp_path / "page.html", made["log"])
    text = (tmp_path / "page.html").read_text()
    assert "pricing.py:" in text
    assert "prices.csv" in text
    for part in (str(tmp_path), "ann lee", str(Path.home()), sys.prefix, os.fspath(Path.cwd())):
        assert part not in text, part


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/home/ann/work/models/book.py:12: y = a / b", "models/book.py:12: y = a / b"),
        (r"C:\Users\ann\models\book.py:3: y = x", "models/book.py:3: y = x"),
        (r"\\server\share\models\book.py:3", "models/book.py:3"),
        ("In [3], line 2: y = x / 2", "In [3], line 2: y = x / 2"),
        ("see https://example.org/a/b, 1/2 and layer1/act/w", None),
        ("(/srv/a/b.py:1: x) and '/opt/c/d'", "(a/b.py:1: x) and 'c/d'"),
        ("a//b and /one", None),
    ],
)
def test_paths_are_cut_and_nothing_else(text: str, short: str | None) -> None:
    assert WithoutFolders()(text) == (text if short is None else short)


def test_a_live_page_keeps_the_whole_path(tmp_path: Path) -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(1.0))
    (node,) = [one for one in g.snapshot().nodes if one.name == y.label]
    assert str(Path(__file__)) in node.line


@pytest.mark.slow
def test_the_panel_says_where_a_node_was_built_and_no_folder(
    chromium_page: Any, tmp_path: Path
) -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(1.0, name="x"))
    y.name = "y"
    with g.record(snapshots=True) as log:
        g.forward(y)
    g.export_html(tmp_path / "page.html", log)
    page = chromium_page.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(f'.rg-box[data-key="{key_of(g, y)}"]').click()
    page.wait_for_selector(".rg-panel dd")
    assert "test_page_paths.py:" in page.locator(".rg-panel").inner_text()
    for part in (str(Path(__file__).parent), str(Path.home()), str(tmp_path)):
        assert part not in page.content()
