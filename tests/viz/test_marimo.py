"""The explorer in marimo: ``mo.ui.anywidget(g.explore())`` exports, shows, and sets inputs.

marimo is not in the extra ``dev``: it takes 130 MB. Install it to run these tests.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.__main__ import ROOT
from tests.viz.browser import Seen

pytest.importorskip("marimo", reason="marimo is not installed: pip install marimo")
pytest.importorskip("anywidget", reason="widgets, extra jupyter")
pytest.importorskip("pygraphviz", reason="draws pictures, extra viz")

pytestmark = pytest.mark.slow  # a server and a browser have to start

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import reactgrad as rg

    g = rg.Graph()
    x = g.input(2.0, name="x")
    y = x * x
    y.name = "y"
    return g, mo, x, y


@app.cell
def _(g, mo, y):
    page = mo.ui.anywidget(g.explore(y))
    page
    return (page,)


@app.cell
def _(g, mo):
    mo.as_html(g.picture())
    return
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path / "app.py"


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")])}


@pytest.fixture
def address(app: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["run", app.name, "--headless", "--no-token", "--port", str(port)]
    with subprocess.Popen(
        [sys.executable, "-m", "marimo", *command],
        cwd=app.parent,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        found = f"http://127.0.0.1:{port}"
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{found}/health", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            process.communicate(timeout=20)


def test_it_is_exported(app: Path) -> None:
    command = [sys.executable, "-m", "marimo", "export", "html", app.name, "-o", "out.html"]
    done = subprocess.run(
        command, cwd=app.parent, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    text = (app.parent / "out.html").read_text()
    assert "marimo-anywidget" in text
    assert "max-width:100%;height:auto" in text  # the picture


def test_a_field_sets_an_input_and_the_page_shows_what_ran(
    chromium_page: Any, address: str
) -> None:
    page = chromium_page.new_context(viewport={"width": 1200, "height": 1400}).new_page()
    seen = Seen(page)
    page.goto(address)
    page.wait_for_selector(".rg-explorer[data-draws] .rg-box", timeout=60_000)
    page.get_by_label("x, as a number").fill("3")
    box = page.locator('.rg-box[aria-label^="y,"]')
    seen.until(lambda: re.search(r", 9\b", box.get_attribute("aria-label") or "") is not None)
    assert "x 2 → 3" in seen.text(".rg-status")
    page.context.close()
