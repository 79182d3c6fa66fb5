"""The explorer in JupyterLab and Chromium: a person moves inputs, and sees what the kernel did."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser import Seen, browser, chromium, need

for _module in ("anywidget", "jupyterlab", "pygraphviz", "ipykernel"):
    need(_module)

pytestmark = pytest.mark.slow  # a JupyterLab and a browser have to start

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0

MODEL = """
import threading
import reactgrad as rg
from reactgrad.explain._snapshot import key_of
g = rg.Graph()
x, w = g.input(1.0, name="x"), g.param(2.0, name="w")
flag = g.input(True, name="flag")
positive = rg.lift(lambda v: v > 0, cutoff="equal")(x)
signed = rg.lift(lambda yes, on, v: v if yes and on else -v)(positive, flag, w * 3.0)
gate = threading.Event()
gate.set()
def patience(value):
    assert gate.wait(60)
    return value
patient = rg.lift(patience)(w)
after = patient + 1.0
inverse = rg.lift(lambda v: 1.0 / (v - 4.0))(x)
for name in ("positive", "signed", "patient", "after", "inverse"):
    globals()[name].name = name
slope = rg.grad(rg.tanh(w), w)
g.forward(signed, after, inverse, slope)
"""
SHOW = "explorer = g.explore(bounds={x: (-5.0, 5.0), 'w': (0.0, 10.0)}, layer='all')\nexplorer"


class Lab:
    """A JupyterLab with one notebook, open in a browser, and a second client of its kernel."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        cells = [
            {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "id": f"c{i}"}
            | {"execution_count": None}
            for i, source in enumerate((MODEL, SHOW))
        ]
        kernel = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        }
        notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (folder / "explore.ipynb").write_text(json.dumps(notebook))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.runtime = folder / "runtime"
        places = {
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
        }
        places |= {"JUPYTER_DATA_DIR": str(folder / "data"), "IPYTHONDIR": str(folder / "ipython")}
        places |= {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scheduler")))}
        places |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "HOME": str(folder)}
        places |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"), "PYTHONWARNINGS": ""}
        self.output = (folder / "lab.log").open("w")
        self.server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *(f"--port={port}", "--ip=127.0.0.1", "--IdentityProvider.token=t"),
                *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"),
                *(
                    "--LabApp.news_url=",
                    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
                ),
            ],
            cwd=folder,
            env=os.environ | places,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{port}"
        self.client: Any = None

    def open(self, chrome: Any) -> None:
        """Wait for all of it, and run the notebook's two cells."""
        self._await_server(self._folder)
        self.page = chrome.new_context(viewport={"width": 1400, "height": 1000}).new_page()
        self.seen = Seen(self.page)
        self.root = self.page.locator(".rg-explorer")
        self.page.goto(f"{self.url}/lab/tree/explore.ipynb?token=t")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=PATIENCE * 1e3)
        self._connect()
        self.run_cell(0)
        self.show()

    def run_cell(self, cell: int) -> None:
        self.page.locator(".jp-CodeCell .cm-content").nth(cell).click()
        self.page.keyboard.press("Control+Enter")

    def show(self) -> None:
        """Run the cell with the explorer."""
        self.run_cell(1)
        self.page.wait_for_selector(".rg-explorer[data-draws] .rg-box", timeout=PATIENCE * 1e3)
        self.page.locator(".rg-explorer").scroll_into_view_if_needed()

    def _await_server(self, folder: Path) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/api?token=t", timeout=5):
                    return
            except OSError:
                log = (folder / "lab.log").read_text()[-2000:]
                assert self.server.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.2)

    def _connect(self) -> None:
        from jupyter_client.blocking.client import BlockingKernelClient

        kernels = self._kernels()
        end = time.monotonic() + PATIENCE
        while not kernels and time.monotonic() < end:
            time.sleep(0.2)
            kernels = self._kernels()
        (kernel,) = kernels
        client = BlockingKernelClient()
        client.load_connection_file(str(self.runtime / f"kernel-{kernel['id']}.json"))
        client.start_channels(iopub=False, stdin=False, hb=False)
        client.kernel_info(reply=True, timeout=PATIENCE)
        self.client = client

    def _kernels(self) -> list[dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"{self.url}/api/kernels?token=t", timeout=20) as answer:
                return json.load(answer)
        except OSError:  # one is starting
            return []

    def ask(self, expression: str) -> Any:
        """The value of an expression in the kernel's main thread."""
        reply = self.client.execute(
            "", user_expressions={"it": expression}, reply=True, timeout=PATIENCE, silent=True
        )
        found = reply["content"]["user_expressions"]["it"]
        assert found["status"] == "ok", found
        return ast.literal_eval(found["data"]["text/plain"])

    def do(self, code: str) -> None:
        reply = self.client.execute(code, reply=True, timeout=PATIENCE, silent=True)
        assert reply["content"]["status"] == "ok", reply["content"]

    def key(self, name: str) -> int:
        return self.ask(f"key_of(g, g[{name!r}])")

    def keys(self, expression: str) -> set[int]:
        return set(self.ask(f"[key_of(g, var) for var in {expression}]"))

    def move(self, name: str, value: float) -> None:
        self.root.get_by_label(name, exact=True).fill(str(value))

    def close(self) -> None:
        if self.client is not None:
            self.client.stop_channels()
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.output.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    chromium()
    with browser() as chrome:
        lab = Lab(tmp_path_factory.mktemp("lab"))
        try:
            lab.open(chrome)
            yield lab
        finally:
            lab.close()


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> None:
    """Each test begins at the present state, with everything up to date and no complaint."""
    lab.do(
        "gate.set(); g.set({x: 1.0, w: 2.0, flag: True}); g.forward(signed, after, inverse, slope)"
    )
    lab.root.get_by_label("the present state").click()
    lab.page.mouse.move(2, 2)
    lab.seen.until(lambda: not lab.seen.keys("stale") and not lab.seen.keys("error"))


def shows_last_run(lab: Lab) -> None:
    """The page says of each node what the kernel's last run did with it."""
    cut_off = lab.keys("g.last_run.cut_off")
    lab.seen.until(lambda: lab.seen.keys("ran") == lab.keys("g.last_run.ran") - cut_off)
    assert lab.seen.keys("cut_off") == cut_off
    assert lab.seen.keys("error") == lab.keys("g.last_run.failed")


def test_a_slider_runs_what_it_makes_stale(lab: Lab) -> None:
    lab.move("x", 3.0)
    lab.seen.until(lambda: lab.ask("float(x.value)") == 3.0 and not lab.seen.keys("stale"))
    assert lab.ask("[var.name for var in g.last_run.ran]") == ["positive", "inverse"]
    assert lab.ask("[var.name for var in g.last_run.cut_off]") == ["positive"]
    shows_last_run(lab)
    assert "ran 2 of" in lab.seen.text(".rg-status")
    assert "1 cut off" in lab.seen.text(".rg-status")
    lab.root.get_by_label("flag", exact=True).uncheck()
    lab.seen.until(lambda: lab.ask("flag.value is False"))
    shows_last_run(lab)
    lab.root.get_by_label("w, as a number").fill("7.5")
    lab.seen.until(lambda: lab.ask("float(w.value)") == 7.5 and not lab.seen.keys("stale"))
    shows_last_run(lab)
    assert lab.seen.box(lab.key("signed")).locator(".rg-row1").inner_html() == "-22.5"
    lab.root.get_by_label("flag", exact=True).check()


def test_pointing_at_an_input_previews_the_plan(lab: Lab) -> None:
    for name in ("x", "w"):
        lab.seen.box(lab.key(name)).hover()
        lab.do(
            f"twin = g.fork(); twin[{name}].touch()\n"
            "plan = twin.plan(*[twin[v] for v in g.nodes if v.parents and not v.children])"
        )
        planned = set(lab.ask("[key_of(twin, var) for var in plan.nodes]"))
        lab.seen.until(lambda planned=planned: lab.seen.keys("rg-plan") == planned)
        assert f"then runs {len(planned)}" in lab.seen.text(".rg-preview")
    assert lab.ask("not g.plan(signed, after).nodes"), "a preview runs and changes nothing"


def test_a_click_says_why(lab: Lab) -> None:
    lab.move("x", -2.0)
    lab.seen.until(lambda: lab.ask("float(x.value)") == -2.0 and not lab.seen.keys("stale"))
    lab.seen.box(lab.key("signed")).click()
    first, *_ = lab.ask("str(g.why(signed))").splitlines()
    lab.seen.until(lambda: first in lab.seen.text(".rg-panel"))
    assert "In [1], line 8: signed = rg.lift(" in lab.seen.text(".rg-panel")
    lab.seen.box(lab.key("w")).click()
    lab.seen.until(lambda: "gradient norm" in lab.seen.text(".rg-panel"))
    assert lab.ask("f'{abs(float(slope.value)):.6g}'") in lab.seen.text(".rg-panel")
    lab.page.locator(".rg-close").click()


def test_computing_is_cancelled_and_nothing_freezes(lab: Lab) -> None:
    running = {lab.key("patient")}
    lab.do("w.touch()")
    planned = lab.keys("g.plan(signed, after, inverse, slope).nodes")
    lab.do("gate.clear()")
    lab.move("w", 5.0)
    lab.seen.until(lambda: lab.seen.keys("running") == running)
    # What comes before it has ended, and is green; the rest is still to run.
    lab.seen.until(lambda: lab.seen.keys("stale") | lab.seen.keys("ran") >= planned - running)
    lab.seen.until(lambda: "computing … patient" in lab.seen.text(".rg-status"))
    assert f"of {len(planned)} done" in lab.seen.text(".rg-status")
    # The kernel's main thread answers, and the page as well, while a node is computed.
    lab.do("answer = 6 * 7")
    lab.seen.box(1).hover()
    lab.seen.until(lambda: "a change of x" in lab.seen.text(".rg-preview"))
    lab.root.get_by_label("stop computing").click()
    lab.seen.until(lambda: lab.ask("explorer._session._stop"))  # it has arrived
    lab.do("gate.set()")
    lab.seen.until(lambda: "cancelled" in lab.seen.text(".rg-problem"))
    assert lab.ask("after.is_stale")
    lab.seen.until(lambda: lab.key("after") in lab.seen.keys("stale"))
    lab.move("w", 6.0)
    lab.seen.until(lambda: lab.ask("not after.is_stale") and not lab.seen.keys("stale"))
    assert lab.seen.text(".rg-problem") == ""


def test_what_a_cell_computes_is_shown_while_it_runs(lab: Lab) -> None:
    running = {lab.key("patient")}
    lab.do("gate.clear(); w.set(3.0)")
    lab.do("reader = threading.Thread(target=lambda: g.forward(after)); reader.start()")
    lab.seen.until(lambda: lab.seen.keys("running") == running)
    assert "computing … patient" in lab.seen.text(".rg-status")
    lab.do("gate.set(); reader.join()")
    lab.seen.until(lambda: not lab.seen.keys("running"))
    shows_last_run(lab)


def test_fields_follow_what_a_cell_sets(lab: Lab) -> None:
    lab.do("g.set({x: -3.5, flag: False})")
    x = lab.root.get_by_label("x, as a number")
    lab.seen.until(lambda: x.input_value() == "-3.5")
    lab.seen.until(lambda: not lab.root.get_by_label("flag", exact=True).is_checked())
    assert float(lab.root.get_by_label("x", exact=True).input_value()) == -3.5
    lab.do("w.set(40.0)")  # above the bounds that its slider was given
    lab.seen.until(lambda: lab.root.get_by_label("w, as a number").input_value() == "40")
    assert float(lab.root.get_by_label("w", exact=True).input_value()) == 10.0
    # Who types is not disturbed, and sees the present value afterwards.
    x.fill("2.25")
    lab.seen.until(lambda: lab.ask("x.value") == 2.25)
    lab.do("x.set(1.5)")
    lab.seen.until(lambda: lab.seen.box(lab.key("x")).locator(".rg-row1").inner_html() == "1.5")
    assert x.input_value() == "2.25"
    lab.root.get_by_label("zoom in").focus()
    lab.seen.until(lambda: x.input_value() == "1.5")


def test_an_error_shows_on_its_node_and_the_page_lives(lab: Lab) -> None:
    lab.move("x", 4.0)
    lab.seen.until(lambda: lab.seen.keys("error") == {lab.key("inverse")})
    assert "ZeroDivisionError" in lab.seen.text(".rg-problem")
    lab.move("x", 2.0)
    lab.seen.until(lambda: not lab.seen.keys("error"))
    shows_last_run(lab)


def test_recorded_runs_are_scrubbed_through(lab: Lab) -> None:
    before = int(lab.root.get_by_label("recorded runs").get_attribute("max"))
    ran = []
    for value in (2.0, -3.0):
        lab.move("x", value)
        lab.seen.until(lambda value=value: lab.ask("float(x.value)") == value)
        lab.seen.until(lambda: not lab.seen.keys("stale"))
        ran.append((lab.keys("g.last_run.ran"), lab.keys("g.last_run.cut_off")))
    for position, (nodes, cut_off) in enumerate(ran):
        lab.seen.scrub(before + position)
        lab.seen.until(lambda cut_off=cut_off: lab.seen.keys("cut_off") == cut_off)
        assert lab.seen.keys("ran") == nodes - cut_off


def test_runs_of_one_moment_are_all_there(lab: Lab) -> None:
    before = int(lab.root.get_by_label("recorded runs").get_attribute("max"))
    lab.do(
        "with g.record() as log:\n"
        "    for n in (2.0, -1.0, 3.0):\n"
        "        x.set(n)\n"
        "        g.forward(signed, inverse)"
    )
    lab.seen.until(
        lambda: int(lab.root.get_by_label("recorded runs").get_attribute("max")) == before + 3
    )
    for position in range(3):
        lab.seen.scrub(before + position)
        cut_off = lab.keys(f"log.runs[{position}].cut_off")
        ran = lab.keys(f"log.runs[{position}].ran")
        assert lab.seen.keys("cut_off") == cut_off
        assert lab.seen.keys("ran") == ran - cut_off


def test_a_burst_of_sets_is_at_most_one_redraw_a_frame(lab: Lab) -> None:
    lab.page.evaluate(
        """() => {
        const root = document.querySelector(".rg-explorer");
        window.seenFrames = 0, window.seenDraws = 0, window.most = 0;
        let before = +root.dataset.draws;
        const look = () => {
            const now = +root.dataset.draws;
            window.most = Math.max(window.most, now - before);
            window.seenDraws += now - before, before = now, window.seenFrames += 1;
            requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    }"""
    )
    lab.do("for n in range(1000): x.set(float(n))")
    x = lab.seen.box(lab.key("x")).locator(".rg-row1")
    lab.seen.until(lambda: x.inner_html() == "999")
    counted = lab.page.evaluate("[window.most, window.seenDraws, window.seenFrames]")
    assert counted[0] <= 1
    assert 0 < counted[1] <= counted[2]


def test_an_edit_is_marked(lab: Lab) -> None:
    lab.do("extra = rg.exp(x); extra.name = 'extra'; extra.value")
    key = lab.key("extra")
    lab.seen.until(lambda: key in lab.seen.keys("rg-added"))
    lab.root.get_by_label("stop marking what was added and removed").click()
    lab.seen.until(lambda: not lab.seen.keys("rg-added") and str(key) in lab.seen.looks())
    lab.do("del extra; g.snapshot()")
    lab.seen.until(lambda: key in lab.seen.keys("rg-removed"))
    lab.root.get_by_label("stop marking what was added and removed").click()
    lab.seen.until(lambda: str(key) not in lab.seen.looks())


def test_the_tree_names_every_node_and_nothing_complains(lab: Lab) -> None:
    tree = lab.seen.tree()
    for name in lab.ask("[var.label for var in g.nodes]"):
        assert f"{name}, " in tree
    ours = [text for text in lab.seen.complaints if "rg-" in text or "explorer" in text.lower()]
    assert ours == []
    outside = [
        url for url in lab.seen.requests if not url.startswith((lab.url, "blob:", "data:", "ws:"))
    ]
    assert [url for url in outside if "127.0.0.1" not in url] == []


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_and_has_the_colours_of_the_notebook(lab: Lab, theme: str, width: int) -> None:
    body = lab.page.locator("body")
    former = body.get_attribute("data-jp-theme-light")
    lab.page.set_viewport_size({"width": width, "height": 1000})
    body.evaluate(f"e => e.dataset.jpThemeLight = {json.dumps(str(theme == 'light').lower())}")
    lab.page.wait_for_timeout(300)
    try:
        colour = lab.root.evaluate("e => getComputedStyle(e).backgroundColor")
        assert (colour == "rgb(255, 255, 255)") is (theme == "light")
        # Nothing is wider than its place; inputs and the map are both there to be seen.
        for part in (".rg-explorer", ".rg-controls", ".rg-below", "footer", ".rg-bar", "header"):
            wide = lab.page.locator(f".rg-outer {part}").first
            assert wide.evaluate("e => e.scrollWidth - e.clientWidth") <= 0, part
        for name in ("x", "w", "flag"):
            assert lab.root.get_by_label(name, exact=True).is_visible()
        map_ = lab.page.locator(".rg-map").bounding_box()
        places = lab.page.locator(".rg-box").evaluate_all(
            "all => all.map(b => b.getBoundingClientRect().toJSON())"
        )
        seen = [p for p in places if p["right"] > map_["x"] and p["bottom"] > map_["y"]]
        assert len(seen) == len(places) > 0
        size = lab.page.locator(".rg-row1").first.evaluate(
            "e => parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a"
        )
        assert size > 7.5, "it can be read"
    finally:
        lab.page.set_viewport_size({"width": 1400, "height": 1000})
        body.evaluate("(e, was) => e.dataset.jpThemeLight = was", former)


def test_a_second_view_leaves_the_first_as_it_is(lab: Lab) -> None:
    lab.move("x", 3.0)
    lab.seen.until(lambda: lab.ask("x.value") == 3.0 and not lab.seen.keys("stale"))
    recorded = lab.root.get_by_label("recorded runs")
    before, runs = -1, int(recorded.get_attribute("max"))
    while runs != before:  # the last steps of the slider may still be on their way
        lab.page.wait_for_timeout(500)
        before, runs = runs, int(recorded.get_attribute("max"))
    assert runs > 0
    lab.page.evaluate("document.querySelector('.rg-explorer').dataset.first = 'yes'")
    lab.do("from IPython.display import display")
    lab.page.locator(".jp-CodeCell").nth(1).click(button="right")
    lab.page.get_by_text("Create New View for Cell Output").click()
    lab.page.wait_for_selector(".rg-explorer:not([data-first])[data-draws] .rg-box")
    first = lab.page.locator(".rg-explorer[data-first]")
    second = lab.page.locator(".rg-explorer:not([data-first])")
    assert int(first.get_by_label("recorded runs").get_attribute("max")) == runs
    assert int(second.get_by_label("recorded runs").get_attribute("max")) == 0
    lab.do("x.set(-1.0); g.forward(signed, inverse)")
    shown = f".rg-box[data-key='{lab.key('x')}'] .rg-row1"
    for view in (first, second):
        lab.seen.until(lambda view=view: view.locator(shown).inner_html() == "-1")
    assert int(first.get_by_label("recorded runs").get_attribute("max")) == runs + 1
    assert int(second.get_by_label("recorded runs").get_attribute("max")) == 1
    lab.page.locator(".lm-TabBar-tab", has_text="Output View").locator(
        ".lm-TabBar-tabCloseIcon"
    ).click()


def test_closing_stops_watching(lab: Lab) -> None:
    assert lab.ask("type(g._scheduler).__name__") == "Watched"
    lab.do("explorer.close()")
    assert lab.ask("type(g._scheduler).__name__") == "Scheduler"
    lab.show()  # other tests may follow
    lab.seen.until(lambda: lab.ask("type(g._scheduler).__name__") == "Watched")
